"""Makes `telpher._sync` from `telpher._async`: the same surface without `async`.

`make_sync.py` writes the files, `make_sync.py --check` fails if they differ. Only the drivers
(`_asyncio` and `_blocking`) are written by hand for both. Marks in the source:

- `code  # sync: other code` replaces the line, with its indentation;
- `# sync: skip` … `# sync: end` is left out.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src" / "telpher"
BY_HAND = ("__init__.py",)
HEADER = "# Made by tools/make_sync.py from telpher/_async/{name}: do not edit.\n"
REPLACEMENTS = (
    (r"\basync (def|for|with)\b", r"\1"),
    (r"\bawait ", ""),
    (r"__aenter__", "__enter__"),
    (r"__aexit__", "__exit__"),
    (r"__aiter__", "__iter__"),
    (r"__anext__", "__next__"),
    (r"\baclose\b", "close"),
    (r"\banext\b", "next"),
    (r"\bAsyncIterator\b", "Iterator"),
    (r"\bAsyncGenerator\[(\w+), None\]", r"Generator[\1, None, None]"),
    (r"\bAsyncGenerator, ", ""),
    (r"\bStopAsyncIteration\b", "StopIteration"),
    (r"\b_async\b", "_sync"),
    (r"\b_asyncio\b", "_blocking"),
    (r"\btelpher\.(connect|Agent)\b", r"telpher.sync.\1"),
)


def convert(text: str, name: str) -> str:
    """Returns the synchronous form of a module."""
    text = re.sub(r"^# sync: skip\n.*?^# sync: end\n", "", text, flags=re.M | re.S)
    text = re.sub(r"^( *).*  # sync: (.*)$", r"\1\2", text, flags=re.M)
    for pattern, replacement in REPLACEMENTS:
        text = re.sub(pattern, replacement, text)
    return HEADER.format(name=name) + text


def main() -> int:
    """Writes or compares the files."""
    is_check = "--check" in sys.argv[1:]
    wrong = list[str]()
    wanted = {path.name for path in (SOURCE / "_async").glob("*.py")}
    for path in (SOURCE / "_sync").glob("*.py"):
        if path.name not in wanted:
            wrong.append(f"{path.name} has no source")
    for name in sorted(wanted.difference(BY_HAND)):
        made = convert((SOURCE / "_async" / name).read_text(), name)
        target = SOURCE / "_sync" / name
        if is_check:
            if not target.exists() or target.read_text() != made:
                wrong.append(f"src/telpher/_sync/{name} differs: run tools/make_sync.py")
        else:
            target.write_text(made)
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
