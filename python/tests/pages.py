"""The blocks of code in pages, which tests run as they are written."""

from __future__ import annotations

import asyncio
import re
import textwrap
from collections.abc import Mapping
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
