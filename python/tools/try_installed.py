"""Tries an installed package: `telpher serve --dev`, both clients, and a node for tests.

`try_installed.py PROGRAM`, with the Python of the environment that the package is installed in.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys

import telpher
import telpher.sync
from telpher.testing import Node

LISTENERS = ("--native-listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0")
NONE = ("--kafka-listen", "none", "--slim-listen", "none")


async def talk(address: str) -> None:
    """Calls an agent, and keeps a conversation."""
    agent = telpher.Agent("acme/demo/upper")

    @agent.method
    async def upper(text: str) -> str:
        return text.upper()

    async with telpher.connect(address) as node, agent.attached(node):
        async with telpher.connect(address) as caller:
            assert await caller.request("acme/demo/upper", "hello") == b"HELLO"
            chat = caller.conversation("support-42")
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
            asyncio.run(talk(json.loads(process.stdout.readline())["native"]))
        finally:
            process.terminate()
    with Node() as node, telpher.sync.connect(node.address) as client:
        assert client.records("acme/demo/log").append("one", expect=0).next == 1
    print(f"telpher {telpher.__version__} works")
    return 0


if __name__ == "__main__":
    sys.exit(main())
