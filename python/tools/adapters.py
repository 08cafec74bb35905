"""Tests the adapters, each in a virtual environment of its own with its framework.

`adapters.py [NAME…]` creates the environments below `target/adapters`, installs the frameworks
by the extras of `pyproject.toml`, checks the types and runs the tests, with and without kills of
the node. It prints the counts, and fails if a test fails or is skipped. The program that the tests
start is `target/release/telpher`, `target/debug/telpher` or TELPHER_BINARY.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

PYTHON = Path(__file__).resolve().parent.parent
ENVIRONMENTS = PYTHON.parent / "target" / "adapters"
TIMEOUT = 900
KILLS = ("--kill-node", "0.5")
"""Kills of the node that the tests share, in seconds from a start to the next kill."""
ADAPTERS = {
    "a2a": ["types-protobuf"],
    "claude-agent": [],
    "google-adk": [],
    "langgraph": ["langgraph", "langgraph-checkpoint-conformance"],
    "litellm": [],
    "openai-agents": [],
    "pydantic-ai": [],
}
"""What the tests of each extra need besides the extra."""


def prepare(extra: str, needs: list[str]) -> Path:
    """Creates the environment of an extra, and returns its interpreter."""
    directory = ENVIRONMENTS / extra
    interpreter = directory / "bin" / "python"
    if not interpreter.exists():
        venv.create(directory, with_pip=True)
    settings = tomllib.loads((PYTHON / "pyproject.toml").read_text())
    wanted = settings["project"]["optional-dependencies"][extra] + needs
    command = [interpreter, "-m", "pip", "install", "--quiet", "pytest", "mypy", *wanted]
    subprocess.run(command, check=True, timeout=TIMEOUT)
    return interpreter


def check(extra: str) -> bool:
    """Checks the types of an adapter and runs its tests."""
    module = extra.replace("-", "_")
    interpreter = prepare(extra, ADAPTERS[extra])
    test = f"tests/ext/test_{module}.py"
    environment = {
        **os.environ,
        "PYTHONPATH": str(PYTHON / "src"),
        "MYPYPATH": ":".join(str(PYTHON / it) for it in ("src", "tests", "tests/ext")),
        # LiteLLM would fetch its table of prices when it is imported.
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [interpreter, "-m", *arguments],
            cwd=PYTHON,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT,
        )

    types = run("mypy", "--strict", "--exclude", "^$", f"src/telpher/ext/{module}.py", test)
    is_good = types.returncode == 0
    print(f"{extra}: types {'ok' if is_good else types.stdout}", flush=True)
    for title, options in (("tests", ()), ("while the node is killed", KILLS)):
        tests = run("pytest", "-q", "-rP", test, *options)
        summary = (tests.stdout.strip().splitlines() or ["no output"])[-1].strip("= ")
        counts = re.findall(r"\d+ conformance tests passed.*|the node was killed .*", tests.stdout)
        print(f"{extra}: {title}: {', '.join([summary, *counts])}", flush=True)
        has_passed = tests.returncode == 0 and "passed" in summary and "skipped" not in summary
        if not has_passed:
            print(tests.stdout, tests.stderr, sep="\n")
        is_good = is_good and has_passed
    return is_good


def main() -> int:
    """Checks the adapters that are named, or all."""
    names = sys.argv[1:] or [*ADAPTERS]
    unknown = set(names) - set(ADAPTERS)
    if unknown:
        print(f"no adapter {sorted(unknown)[0]!r}; there are {', '.join(ADAPTERS)}")
        return 2
    return 0 if all([check(name) for name in names]) else 1


if __name__ == "__main__":
    sys.exit(main())
