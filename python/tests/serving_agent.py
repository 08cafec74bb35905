"""An agent in a process of its own, which a test ends with SIGTERM while it answers."""

import asyncio
import os
import sys
import time

import telpher
import telpher.sync
from telpher._blocking.runtime import until_stopped


def serve_with_threads() -> None:
    agent = telpher.sync.Agent(os.environ["NAME"])

    @agent.method
    def slow() -> str:
        print("begun", flush=True)
        time.sleep(1)
        return "done"

    with telpher.sync.connect(os.environ["URL"]) as node, agent.attached(node) as running:
        print("ready", flush=True)
        until_stopped(running.ended)
        running.drain(10)


async def serve_with_asyncio() -> None:
    agent = telpher.Agent(os.environ["NAME"])

    @agent.method
    async def slow() -> str:
        print("begun", flush=True)
        await asyncio.sleep(1)
        return "done"

    serving = asyncio.create_task(agent.serve(os.environ["URL"]))
    async with telpher.connect(os.environ["URL"]) as node:
        while True:
            agents = await node.http("GET", "/v1/agents")
            if os.environ["NAME"] in str(agents):
                break
            await asyncio.sleep(0.01)
    print("ready", flush=True)
    await serving


if sys.argv[1] == "sync":
    serve_with_threads()
else:
    asyncio.run(serve_with_asyncio())
