"""One measurement in a process of its own: `cases.py CASE IN_FLIGHT SECONDS`, prints JSON.

Addresses come from the environment: URL (native), HTTP, NATS, REDIS. All bodies have 128 bytes.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import struct
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

BODY = b"x" * 128
WARM_UP = 0.5
Call = Callable[[], Awaitable[Any]]


def summary(times: list[float], wall: float, cpu: float) -> dict[str, float]:
    """Returns the rate, the CPU time per call and percentiles of the times of calls."""
    times.sort()
    return {
        "calls": len(times),
        "rate": len(times) / wall,
        "cpu_us": cpu / len(times) * 1e6,
        "p50_us": times[len(times) // 2] * 1e6,
        "p99_us": times[len(times) * 99 // 100] * 1e6,
    }


async def measure(call: Call, in_flight: int, seconds: float) -> dict[str, float]:
    """Runs `in_flight` loops of calls; returns the rate, the CPU time per call and percentiles."""
    times = list[float]()
    end = time.perf_counter() + WARM_UP

    async def loop(record: list[float] | None) -> None:
        while (begun := time.perf_counter()) < end:
            await call()
            if record is not None:
                record.append(time.perf_counter() - begun)

    await asyncio.gather(*(loop(None) for _ in range(in_flight)))
    end = time.perf_counter() + seconds
    wall, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(loop(times) for _ in range(in_flight)))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return summary(times, wall, cpu)


async def telpher(in_flight: int, seconds: float) -> dict[str, float]:
    """Requests of this package to `telpher listen --echo` through a node."""
    import telpher as package

    async with package.connect(os.environ["URL"]) as node:
        name = os.environ.get("AGENT", "acme/bench/echo")
        return await measure(lambda: node.request(name, BODY), in_flight, seconds)


class Bare(asyncio.Protocol):
    """The least that an asyncio client of the same node can do: one call, prepared bytes."""

    def __init__(self, request: bytes) -> None:
        self.request = request
        self.answered: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport
        made = transport.get_extra_info("socket")
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data: bytes) -> None:
        if self.answered is not None:
            self.answered.set_result(None)

    async def call(self, generation: int) -> None:
        self.answered = asyncio.get_running_loop().create_future()
        header = struct.pack("<IBBHII", len(self.request), 0x20, 0, 1, 0, generation)
        self.transport.write(header + self.request)
        await self.answered


async def bare(in_flight: int, seconds: float) -> dict[str, float]:
    """The bare client above, on the same path."""
    from telpher import _wire as wire

    host, port = os.environ["URL"].removeprefix("tcp://").rsplit(":", 1)
    loop = asyncio.get_running_loop()
    _, client = await loop.create_connection(lambda: Bare(BODY), host, int(port))
    window = wire.Window(8 << 20, 64, 64, 16 << 20, 0)
    client.answered = loop.create_future()
    client.transport.write(wire.hello(window, "", ""))
    await client.answered
    client.transport.write(wire.bind(1, wire.ANY, "", "acme/bench/echo"))
    generation = 0

    async def call() -> None:
        nonlocal generation
        generation += 1
        await client.call(generation)

    return await measure(call, 1, seconds)


async def nats(in_flight: int, seconds: float) -> dict[str, float]:
    """Requests of nats-py to a nats-py responder through nats-server."""
    import nats as package

    client = await package.connect(os.environ["NATS"])
    made = await measure(
        lambda: client.request("bench.echo", BODY, timeout=10), in_flight, seconds
    )
    await client.close()
    return made


async def redis(in_flight: int, seconds: float) -> dict[str, float]:
    """GET of redis-py."""
    from redis import asyncio as package

    client = package.Redis.from_url(os.environ["REDIS"], max_connections=in_flight)
    await client.set("bench", BODY)
    made = await measure(lambda: client.get("bench"), in_flight, seconds)
    await client.aclose()
    return made


TAKE = {"subject": "acme/bench/a", "cost": {"requests": 1}}


async def http(in_flight: int, seconds: float) -> dict[str, float]:
    """Takes of a quota with httpx over the node's HTTP listener."""
    import httpx

    limits = httpx.Limits(max_connections=in_flight)
    async with httpx.AsyncClient(base_url=os.environ["HTTP"], limits=limits) as client:
        return await measure(lambda: client.post("/v1/take", json=TAKE), in_flight, seconds)


async def take(in_flight: int, seconds: float) -> dict[str, float]:
    """The same takes with this package."""
    import telpher as package

    async with package.connect(os.environ["URL"]) as node:
        return await measure(
            lambda: node.quota.take("acme/bench/a", requests=1), in_flight, seconds
        )


def blocking(in_flight: int, seconds: float) -> dict[str, float]:
    """Requests of the blocking client, one at a time."""
    from telpher import sync

    times = list[float]()
    with sync.connect(os.environ["URL"]) as node:
        for _ in range(200):
            node.request("acme/bench/echo", BODY)
        wall, cpu = time.perf_counter(), time.process_time()
        while (begun := time.perf_counter()) - wall < seconds:
            node.request("acme/bench/echo", BODY)
            times.append(time.perf_counter() - begun)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return summary(times, wall, cpu)


async def respond_nats() -> None:
    """Answers requests with nats-py until it is ended."""
    import nats as package

    client = await package.connect(os.environ["NATS"])

    async def echo(message: Any) -> None:
        await message.respond(message.data)

    await client.subscribe("bench.echo", cb=echo)
    print("ready", flush=True)
    await asyncio.Event().wait()


async def respond_telpher() -> None:
    """Answers requests with an agent of this package until it is ended."""
    import telpher as package

    agent = package.Agent("acme/bench/python")

    @agent.method
    async def echo(body: bytes) -> bytes:
        return body

    async with package.connect(os.environ["URL"]) as node, agent.attached(node):
        print("ready", flush=True)
        await asyncio.Event().wait()


CASES = {"telpher": telpher, "bare": bare, "nats": nats, "redis": redis, "http": http, "take": take}


def main() -> None:
    """Runs one case."""
    case, loop = sys.argv[1], os.environ.get("LOOP", "asyncio")
    run: Callable[[Any], Any] = asyncio.run
    if loop == "uvloop":
        import uvloop

        run = uvloop.run
    if case.startswith("respond-"):
        run(respond_nats() if case == "respond-nats" else respond_telpher())
        return
    in_flight, seconds = int(sys.argv[2]), float(sys.argv[3])
    made = (
        blocking(in_flight, seconds)
        if case == "blocking"
        else run(CASES[case](in_flight, seconds))
    )
    print(json.dumps(made))


if __name__ == "__main__":
    main()
