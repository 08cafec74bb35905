"""Requests, streams, messages and writes on asyncio, against a node."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import pydantic
import pytest

import telpher
from support import until
from telpher.testing import Node


@dataclass
class Sum:
    a: int
    b: int


class Total(pydantic.BaseModel):
    total: int


def make_agent(name: str) -> telpher.Agent:
    agent = telpher.Agent(name, description="for tests", version="1")

    @agent.method(default=True)
    async def upper(text: str) -> str:
        """Shouts."""
        return text.upper()

    @agent.method
    async def add(given: Sum) -> Total:
        return Total(total=given.a + given.b)

    @agent.method
    def weather(city: str, days: int = 1) -> dict[str, Any]:
        return {"city": city, "days": days}

    @agent.method
    async def count(n: int) -> AsyncIterator[int]:
        for number in range(n):
            yield number

    @agent.method
    def count_in_a_thread(n: int) -> Iterator[int]:
        yield from range(n)

    @agent.method
    async def fails(body: bytes) -> None:
        raise KeyError("broken")

    @agent.method
    async def refuses(body: bytes) -> None:
        raise telpher.HandlerError("not today", retry_after=1.5, details=b"why")

    @agent.method
    async def asks(request: telpher.Request) -> dict[str, Any]:
        return {
            "body": request.text() if hasattr(request, "text") else request.body.text(),
            "source": request.source,
            "remaining": request.remaining,
            "metadata": {k: v.decode() for k, v in request.metadata.items()},
        }

    return agent


async def test_methods_take_and_return_typed_values(node: Node, name: str) -> None:
    async with telpher.connect(node.address, name="acme/test/asker") as client:
        async with make_agent(name).attached(client) as running:
            assert running.name.startswith(name + "/")
            async with telpher.connect(node.address, name="acme/test/asker") as caller:
                assert await caller.request(name, "hello") == b"HELLO"
                assert (await caller.request(name, "é", method="upper")).text() == "É"
                total = await caller.request(name, Sum(1, 2), method="add")
                assert total.json() == {"total": 3}
                answer = await caller.request(name, {"city": "Ulm"}, method="weather")
                assert answer.json() == {"city": "Ulm", "days": 1}
                asked = await caller.request(
                    name, "x", method="asks", timeout=5, metadata={"k": "v"}
                )
                found = asked.json()
                assert found["source"].startswith("acme/test/asker")
                assert 0 < found["remaining"] <= 5.1
                assert found["metadata"]["k"] == "v"


async def test_failures_of_a_method_are_clear(node: Node, name: str) -> None:
    async with (
        telpher.connect(node.address) as server,
        make_agent(name).attached(server),
        telpher.connect(node.address) as caller,
    ):
        with pytest.raises(telpher.HandlerError, match="KeyError: 'broken'") as failed:
            await caller.request(name, b"", method="fails")
        assert failed.value.may_have_been_executed and failed.value.retry == "no"
        with pytest.raises(telpher.HandlerError, match="not today") as refused:
            await caller.request(name, b"", method="refuses")
        assert refused.value.retry_after == 1.5
        assert refused.value.details == b"why"
        with pytest.raises(telpher.UnknownMethod, match="has no method 'nope'"):
            await caller.request(name, b"", method="nope")
        with pytest.raises(telpher.InvalidArgument, match=r"body.a is \"x\""):
            await caller.request(name, {"a": "x", "b": 1}, method="add")
        with pytest.raises(telpher.InvalidArgument, match="stream"):
            await caller.request(name, "3", method="count")
        with pytest.raises(telpher.NoResponder) as missing:
            await caller.request("acme/test/nobody", b"")
        assert missing.value.code == "no_responder"
        assert missing.value.retry == "safe"
        assert not missing.value.may_have_been_executed
        with pytest.raises(telpher.InvalidArgument, match="is no name"):
            await caller.request("two/parts", b"")


@pytest.mark.parametrize("method", ["count", "count_in_a_thread"])
async def test_streams_carry_all_items_within_their_window(
    node: Node, name: str, method: str
) -> None:
    async with (
        telpher.connect(node.address) as server,
        make_agent(name).attached(server),
        telpher.connect(node.address) as caller,
    ):
        items = [item.json() async for item in caller.stream(name, 300, method=method)]
        assert items == list(range(300))


async def test_leaving_a_stream_cancels_it_at_the_agent(node: Node, name: str) -> None:
    agent = telpher.Agent(name)
    ended = asyncio.Event()

    @agent.method
    async def forever() -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"x"
        finally:
            ended.set()

    async with (
        telpher.connect(node.address) as server,
        agent.attached(server),
        telpher.connect(node.address) as caller,
    ):
        stream = caller.stream(name)
        async for _ in stream:
            break
        await stream.aclose()
        await ended.wait()


async def test_cancelled_task_cancels_the_handler(node: Node, name: str) -> None:
    agent = telpher.Agent(name)
    begun, cancelled = asyncio.Event(), asyncio.Event()

    @agent.method
    async def waits() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async with (
        telpher.connect(node.address) as server,
        agent.attached(server),
        telpher.connect(node.address) as caller,
    ):
        task = asyncio.create_task(caller.request(name))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await cancelled.wait()
        begun.clear()
        cancelled.clear()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await caller.request(name)
        await cancelled.wait()


async def test_deadline_ends_the_call_at_both_sides(node: Node, name: str) -> None:
    agent = telpher.Agent(name)
    cancelled = asyncio.Event()

    @agent.method
    async def waits() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async with (
        telpher.connect(node.address) as server,
        agent.attached(server),
        telpher.connect(node.address) as caller,
    ):
        with pytest.raises(telpher.DeadlineExceeded) as late:
            await caller.request(name, timeout=0.1)
        assert late.value.retry == "if_idempotent"
        assert late.value.may_have_been_executed
        assert isinstance(late.value, TimeoutError)
        await cancelled.wait()


async def test_calls_of_a_handler_inherit_its_deadline_and_trace(node: Node, name: str) -> None:
    inner, outer = telpher.Agent(f"{name}-in"), telpher.Agent(name)

    @inner.method
    async def remaining(request: telpher.Request) -> dict[str, Any]:
        trace = request.metadata.get("traceparent", b"")
        return {"left": request.remaining, "trace": trace.decode()}

    @outer.method
    async def asks(request: telpher.Request) -> bytes:
        return await request.node.request(f"{name}-in", timeout=100)

    async with (
        telpher.connect(node.address) as server,
        inner.attached(server),
        telpher.connect(node.address) as other,
        outer.attached(other),
        telpher.connect(node.address) as caller,
    ):
        trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        answer = await caller.request(name, timeout=3, metadata={"traceparent": trace})
        found = answer.json()
        assert 0 < found["left"] <= 3.1
        assert found["trace"][:35] == trace[:35]


async def test_messages_reach_one_or_all_instances(node: Node, name: str) -> None:
    got = list[tuple[int, bytes]]()

    async def listen(which: int, ready: asyncio.Event) -> None:
        async with telpher.connect(node.address) as client:
            async with client.subscribe(name) as messages:
                ready.set()
                async for message in messages:
                    assert not message.is_request
                    got.append((which, bytes(message.body)))

    readies = [asyncio.Event(), asyncio.Event()]
    tasks = [asyncio.create_task(listen(at, ready)) for at, ready in enumerate(readies)]
    for ready in readies:
        await ready.wait()
    async with telpher.connect(node.address) as sender:
        assert await sender.send_reported(name, "hi", all=True) == telpher.Receipt(2, 0)
        await sender.send(name, "one")
        await sender.send(name, "two")
        await until(lambda: len(got) == 4)
        assert sorted(body for _, body in got) == [b"hi", b"hi", b"one", b"two"]
        assert {which for which, body in got if body != b"hi"} == {0, 1}
        assert await sender.write_in_memory(name, "kept") == 1
        assert await sender.send_reported("acme/test/nobody", "x") == telpher.Receipt(0, 0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_flood_of_messages_loses_none(node: Node, name: str) -> None:
    agent, seen = telpher.Agent(name), list[int]()

    @agent.message
    async def message(number: int) -> None:
        seen.append(number)

    async with (
        telpher.connect(node.address) as server,
        agent.attached(server),
        telpher.connect(node.address) as sender,
    ):
        for number in range(12_000):
            await sender.send(name, str(number))
        await until(lambda: len(seen) == 12_000)
        assert seen == list(range(12_000))


async def test_written_messages_wait_and_are_acknowledged_by_returning(
    node: Node, name: str
) -> None:
    agent, got = telpher.Agent(name), list[telpher.Delivery]()
    async with telpher.connect(node.address, name="acme/test/writer") as writer:
        first = await writer.write(name, {"job": 7}, id="job-7")
        assert not first.is_duplicate
        again = await writer.write(name, {"job": 7}, id="job-7")
        assert again == telpher.Stored(first.offset, True)

        @agent.mailbox
        async def job(message: telpher.Delivery) -> None:
            got.append(message)
            if message.delivery == 1:
                raise telpher.HandlerError("later", retry_after=0.01)

        async with telpher.connect(node.address) as server, agent.attached(server):
            await until(lambda: len(got) == 2)
        assert [message.delivery for message in got] == [1, 2]
        assert got[0].json() == {"job": 7}
        assert got[0].source is not None and got[0].source.startswith("acme/test/writer")
        waiting = json.loads(node.command("mailbox", "peek", name, "--json"))
        assert "job" not in json.dumps(waiting)


async def test_expired_message_is_not_delivered(node: Node, name: str) -> None:
    agent, got = telpher.Agent(name), list[bytes]()

    @agent.mailbox
    async def job(body: bytes) -> None:
        got.append(body)

    async with telpher.connect(node.address) as writer:
        await writer.write(name, b"short", ttl=0.001)
        await asyncio.sleep(0.05)
        await writer.write(name, b"long")
        async with agent.attached(writer):
            await until(lambda: got == [b"long"])


async def test_agent_describes_its_methods(name: str) -> None:
    described = make_agent(name).describe()
    assert described["description"] == "for tests"
    methods = {method["name"]: method for method in described["methods"]}
    assert methods["upper"]["description"] == "Shouts."
    assert methods["weather"]["input"]["required"] == ["city"]
    assert methods["count"]["stream"] is True


async def test_retries_repeat_what_was_not_executed(node: Node, name: str) -> None:
    async with telpher.connect(node.address) as caller:

        async def appear() -> None:
            await asyncio.sleep(0.1)
            async with telpher.connect(node.address) as server, make_agent(name).attached(server):
                await asyncio.sleep(2)

        task = asyncio.create_task(appear())
        policy = telpher.RetryPolicy(attempts=1000, pause_max=0.05)
        assert await caller.request(name, "x", retry=policy) == b"X"
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_http_routes_are_asked_over_the_connection(node: Node) -> None:
    async with telpher.connect(node.address) as client:
        agents = await client.http("GET", "/v1/agents")
        assert "agents" in agents
        with pytest.raises(telpher.TelpherError):
            await client.http("GET", "/v1/nothing")


async def test_unix_socket_is_an_address(node: Node) -> None:
    async with telpher.connect(f"unix://{node.data}/telpher.sock") as client:
        assert client.is_connected
