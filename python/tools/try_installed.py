"""Tries an installed package: `telpher serve --dev`, the tutorial, the examples that need nothing
else, and a node for tests.

`try_installed.py PROGRAM`, with the Python of the environment that the package is installed in.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import telpher
import telpher.sync
from telpher.testing import Node

LISTENERS = ("--native-listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0")
NONE = ("--kafka-listen", "none", "--slim-listen", "none")


ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python" / "tests"))

from pages import blocks, run_commands  # noqa: E402


def run_tutorial(address: str) -> None:
    """Runs the programs of docs/python.md as they are written."""
    page = (ROOT / "docs" / "python.md").read_text()
    programs = {name: (code, output) for name, code, output in blocks(page) if name}
    environment = {**os.environ, "TELPHER_URL": address}
    with tempfile.TemporaryDirectory() as folder:
        for name, (code, _) in programs.items():
            (Path(folder) / name).write_text(code)
        command = [sys.executable, "-I", "agent.py"]
        with subprocess.Popen(command, cwd=folder, env=environment) as agent:
            try:
                wait_for_agent(address)
                for name, (_, output) in programs.items():
                    if output:
                        done = subprocess.run(
                            [sys.executable, "-I", name],
                            cwd=folder,
                            env=environment,
                            capture_output=True,
                            text=True,
                            check=True,
                        )
                        assert done.stdout == output, (name, done.stdout)
                        print(f"{name} prints what the page says")
            finally:
                agent.terminate()


def run_examples(address: str) -> None:
    """Runs the commands of examples/python/README.md whose output is known."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "TELPHER_URL": address, "PATH": path}
    page = (ROOT / "examples" / "python" / "README.md").read_text()
    for _, commands, output in blocks(page, "sh"):
        if output:
            done = run_commands(commands, environment)
            assert sorted(done.splitlines()) == sorted(output.splitlines()), done
            print(f"{commands.splitlines()[0]}: the commands print what the page says")


def wait_for_agent(address: str) -> None:
    """Waits until the agent of the tutorial is there."""
    with telpher.sync.connect(address) as node:
        while "greeter" not in str(node.http("GET", "/v1/agents")):
            time.sleep(0.02)


async def talk(address: str) -> None:
    """Calls an agent, and keeps a conversation."""
    agent = telpher.Agent("acme/demo/upper")

    @agent.method
    async def upper(text: str) -> str:
        return text.upper()

    async with telpher.connect(address) as node, agent.attached(node):
        async with telpher.connect(address) as caller:
            assert await caller.request("acme/demo/upper", "hello") == b"HELLO"
            chat = caller.conversation("support-1")
            await chat.append("Where is my parcel?", expect=0)
            async with chat.answer() as answer:
                await answer.text("On its way.")
            assert [message.seq async for message in chat.messages()] == [1, 2]


def main() -> int:
    """Runs everything once."""
    command = [sys.argv[1], "serve", "--dev", "--json", *LISTENERS, *NONE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            assert process.stdout is not None
            address = json.loads(process.stdout.readline())["native"]
            asyncio.run(talk(address))
            run_tutorial(address)
            run_examples(address)
        finally:
            process.terminate()
    with Node() as node, telpher.sync.connect(node.address) as client:
        assert client.records("acme/demo/log").append("one", expect=0).next == 1
    print(f"telpher {telpher.__version__} works")
    return 0


if __name__ == "__main__":
    sys.exit(main())
