"""The blocks of code in pages, which tests run as they are written."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import textwrap
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import telpher

ROOT = Path(__file__).resolve().parents[2]
BLOCK = r"```{language}\n(.*?)```(?:\n\n```text\n(.*?)```)?"


def blocks(page: str, language: str = "python") -> list[tuple[str, str, str]]:
    """Returns the name, the code and the expected output of each block of a language.

    The name is that of the comment in the first line: `# agent.py`, `# langgraph`.
    """
    found = list[tuple[str, str, str]]()
    for code, output in re.findall(BLOCK.format(language=language), page, re.S):
        named = re.match(r"# ([\w.-]+)\n", code)
        found.append((named[1] if named else "", code, output))
    return found


def run_commands(commands: str, environment: Mapping[str, str], timeout: float = 90) -> str:
    """Runs a block of shell commands in the root of the repository, and returns its output. What it
    leaves in the background is ended."""
    script = f"trap 'kill $(jobs -p)' EXIT\n{commands}"
    with subprocess.Popen(
        ["bash", "-euc", script],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as shell:
        try:
            output, _ = shell.communicate(timeout=timeout)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
    assert shell.returncode == 0, output
    return output


async def execute(code: str, **names: Any) -> Mapping[str, Any]:
    """Runs a piece of a program that has these names; returns the names that it has defined."""
    parameters = ", ".join(names)
    body = textwrap.indent(code, "    ")
    lines = [f"async def snippet({parameters}):", body, "    return locals()"]
    scope: dict[str, Any] = {"telpher": telpher, "asyncio": asyncio}
    exec("\n".join(lines), scope)
    made: Mapping[str, Any] = await scope["snippet"](**names)
    return made


async def example(name: str, **names: Any) -> Mapping[str, Any]:
    """Runs the example of an adapter in docs/python-adapters.md."""
    page = (ROOT / "docs" / "python-adapters.md").read_text()
    (code,) = (code for found, code, _ in blocks(page) if found == name)
    return await execute(code, **names)
