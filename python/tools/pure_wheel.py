"""Makes the wheel for any platform: the given wheel without its program.

`pure_wheel.py WHEEL DIRECTORY` writes `telpher-VERSION-py3-none-any.whl`. Its command `telpher`
says how to run a node; the client is the same.
"""

from __future__ import annotations

import base64
import hashlib
import sys
import zipfile
from pathlib import Path

SCRIPT = "telpher = telpher._missing:main"


def digest(data: bytes) -> str:
    """Returns the entry of RECORD for a file's content."""
    found = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
    return f"sha256={found.decode()},{len(data)}"


def convert(name: str, data: bytes) -> bytes:
    """Returns a file of the metadata as the pure wheel has it."""
    if name.endswith(".dist-info/WHEEL"):
        lines = [line for line in data.decode().splitlines() if not line.startswith("Tag: ")]
        lines = ["Root-Is-Purelib: true" if it.startswith("Root-Is") else it for it in lines]
        return "\n".join([*filter(None, lines), "Tag: py3-none-any", ""]).encode()
    if name.endswith(".dist-info/entry_points.txt"):
        return data.rstrip() + f"\n\n[console_scripts]\n{SCRIPT}\n".encode()
    return data


def main() -> int:
    """Writes the wheel."""
    source, directory = Path(sys.argv[1]), Path(sys.argv[2])
    name, version = source.name.split("-")[:2]
    target = directory / f"{name}-{version}-py3-none-any.whl"
    record = list[str]()
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        names = [it for it in old.namelist() if ".data/" not in it and not it.endswith("/")]
        if len(names) == len(old.namelist()):
            print(f"{source} has no program", file=sys.stderr)
            return 1
        for entry in names:
            if entry.endswith(".dist-info/RECORD"):
                place = entry
                continue
            data = convert(entry, old.read(entry))
            info = zipfile.ZipInfo(entry, (1980, 1, 1, 0, 0, 0))
            info.external_attr = 0o644 << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            new.writestr(info, data)
            record.append(f"{entry},{digest(data)}")
        new.writestr(place, "\n".join([*record, f"{place},,", ""]))
    print(target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
