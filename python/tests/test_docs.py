"""The programs and snippets of docs/python.md, as they are written."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import telpher
import telpher.sync
from pages import ROOT, blocks, execute
from support import until_sync
from telpher.testing import Node

PAGE = (ROOT / "docs" / "python.md").read_text()
README = (ROOT / "README.md").read_text()
PROGRAMS = {name: (code, output) for name, code, output in blocks(PAGE) if name}
SNIPPETS = [code for name, code, _ in blocks(PAGE) if not name]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Node, Path]]:
    """A node, and a folder with the programs; the agent runs."""
    folder = tmp_path_factory.mktemp("docs")
    for name, (code, _) in PROGRAMS.items():
        (folder / name).write_text(code)
    with Node() as node:
        log = (folder / "agent.log").open("w")
        agent = subprocess.Popen(
            [sys.executable, "agent.py"], cwd=folder, env=environment(node), stdout=log
        )
        try:
            with telpher.sync.connect(node.address) as client:
                until_sync(lambda: "greeter" in str(client.http("GET", "/v1/agents")))
            yield node, folder
        finally:
            agent.terminate()
            assert agent.wait(30) == 0, "the agent ends gracefully"
            log.close()


def environment(node: Node) -> dict[str, str]:
    return {
        **os.environ,
        "TELPHER_URL": node.address,
        "PYTHONPATH": os.pathsep.join(sys.path),
    }


def run(node: Node, folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment(node),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("program", ["caller.py", "chat.py", "budget.py", "blocking.py"])
def test_program_prints_what_the_page_says(place: tuple[Node, Path], program: str) -> None:
    node, folder = place
    assert run(node, folder, program) == PROGRAMS[program][1]
    if program == "caller.py":
        log = folder / "agent.log"
        until_sync(lambda: "job {'job': 7} delivery 1" in log.read_text())


def test_test_of_the_page_passes(place: tuple[Node, Path]) -> None:
    node, folder = place
    arguments = ["-m", "pytest", "-q", "-p", "telpher._pytest", "test_greeting.py"]
    assert "1 passed" in run(node, folder, *arguments)


def test_every_program_of_the_page_is_run() -> None:
    run_by_tests = {"caller.py", "chat.py", "budget.py", "blocking.py", "test_greeting.py"}
    assert PROGRAMS.keys() == run_by_tests | {"agent.py"}


@pytest.mark.parametrize("index", range(len(SNIPPETS)))
async def test_snippet_of_the_page_runs(node: Node, index: int) -> None:
    async with telpher.connect(node.address) as client:
        await execute(SNIPPETS[index], node=client)


def test_every_adapter_has_an_example() -> None:
    page = (ROOT / "docs" / "python-adapters.md").read_text()
    settings = tomllib.loads((ROOT / "python" / "pyproject.toml").read_text())
    extras = {*settings["project"]["optional-dependencies"]} - {"otel", "uvloop"}
    assert {name for name, _, _ in blocks(page)} == extras
    for extra in extras:
        test = (ROOT / "python/tests/ext" / f"test_{extra.replace('-', '_')}.py").read_text()
        assert f'example("{extra}"' in test


async def test_snippets_of_the_packages_readme_run(node: Node) -> None:
    agent = telpher.Agent("acme/demo/upper")

    @agent.method
    async def upper(text: str) -> str:
        return text.upper()

    async with telpher.connect(node.address) as server, agent.attached(server):
        for _, code, _ in blocks((ROOT / "python" / "README.md").read_text()):
            await execute(code.replace("tcp://127.0.0.1:7400", node.address))


def test_programs_of_the_readme_run(node: Node, tmp_path: Path) -> None:
    programs = {name: (code, output) for name, code, output in blocks(README) if name}
    for name, (code, _) in programs.items():
        (tmp_path / name).write_text(code)
    command = [sys.executable, "agent.py"]
    with subprocess.Popen(command, cwd=tmp_path, env=environment(node)) as agent:
        with telpher.sync.connect(node.address) as client:
            until_sync(lambda: "shout" in str(client.http("GET", "/v1/agents")))
        assert run(node, tmp_path, "ask.py") == programs["ask.py"][1]
        agent.terminate()
        assert agent.wait(30) == 0
