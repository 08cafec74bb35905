"""`TelpherSessionStore`, judged by the conformance suite of the Claude Agent SDK."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import pytest

import telpher
from pages import example
from telpher.testing import Node

pytest.importorskip("claude_agent_sdk")

from claude_agent_sdk import SessionKey, SessionStore
from claude_agent_sdk.testing import run_session_store_conformance

from telpher.ext.claude_agent import TelpherSessionStore

KEY: SessionKey = {"project_key": "-home-me/project", "session_id": "s-1"}
_namespaces = count()


def namespace() -> str:
    return f"claude/t{next(_namespaces)}"


async def telpher_messages(client: telpher.Client) -> AsyncIterator[telpher.Message]:
    """Yields the messages of the session as they are appended."""
    while not (listed := [it async for it in client.conversations()]):  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    async for message in client.conversation(listed[0].id).tail():
        yield message


def entry(number: int, **more: Any) -> Any:
    return {"type": "user", "uuid": f"u-{number}", "n": number, **more}


async def test_store_passes_the_conformance_suite(node: Node) -> None:
    async with telpher.connect(node.address) as client:

        def make() -> SessionStore:
            return TelpherSessionStore(client, namespace=namespace())

        await run_session_store_conformance(make)


async def test_conformance_suite_passes_while_the_node_is_killed(own_node: Node) -> None:
    async with telpher.connect(own_node.address) as client:
        made = count()

        def make() -> SessionStore:
            if next(made) % 4 == 2:
                own_node.restart()
            return TelpherSessionStore(client, namespace=namespace())

        await run_session_store_conformance(make)


async def test_appended_entries_survive_kill9_in_the_middle(own_node: Node) -> None:
    async with telpher.connect(own_node.address) as client:
        store = TelpherSessionStore(client)
        entries = [entry(number) for number in range(200)]

        async def append() -> None:
            for at in range(0, 200, 4):
                await store.append(KEY, entries[at : at + 4])

        writing = asyncio.create_task(append())
        async for message in telpher_messages(client):
            if message.seq >= 40:
                break
        await asyncio.to_thread(own_node.restart)
        await writing
        assert await TelpherSessionStore(client).load(KEY) == entries


async def test_second_writer_is_refused_until_it_loads(node: Node) -> None:
    space = namespace()
    async with telpher.connect(node.address) as one, telpher.connect(node.address) as two:
        first = TelpherSessionStore(one, namespace=space)
        second = TelpherSessionStore(two, namespace=space)
        await first.append(KEY, [entry(1)])
        await second.load(KEY)
        await second.append(KEY, [entry(2)])
        for _ in range(2):
            with pytest.raises(telpher.Conflict):
                await first.append(KEY, [entry(3)])
        assert await second.load(KEY) == [entry(1), entry(2)]
        await first.load(KEY)
        await first.append(KEY, [entry(3)])
        assert await first.load(KEY) == [entry(1), entry(2), entry(3)]


async def test_title_of_another_process_does_not_refuse_the_session(node: Node) -> None:
    space = namespace()
    async with telpher.connect(node.address) as client:
        session = TelpherSessionStore(client, namespace=space)
        titles = TelpherSessionStore(client, namespace=space)
        await session.append(KEY, [entry(1)])
        await titles.append(KEY, [{"type": "custom-title", "customTitle": "t"}])  # type: ignore[typeddict-unknown-key]
        await session.append(KEY, [entry(2)])
        assert [e["type"] for e in await session.load(KEY) or ()] == [
            "user",
            "custom-title",
            "user",
        ]


async def test_shared_store_lets_both_writers_append(node: Node) -> None:
    space = namespace()
    async with telpher.connect(node.address) as client:
        first = TelpherSessionStore(client, namespace=space, exclusive=False)
        second = TelpherSessionStore(client, namespace=space, exclusive=False)
        await first.append(KEY, [entry(1)])
        await second.append(KEY, [entry(2)])
        await first.append(KEY, [entry(3)])
        assert await first.load(KEY) == [entry(1), entry(2), entry(3)]


async def test_repeated_uuid_is_stored_once(node: Node) -> None:
    async with telpher.connect(node.address) as client:
        store = TelpherSessionStore(client, namespace=namespace())
        await store.append(KEY, [entry(1), entry(2)])
        await store.append(KEY, [entry(2), entry(3)])
        await store.append(KEY, [entry(2, changed=True), entry(4)])
        assert await store.load(KEY) == [entry(1), entry(2), entry(3), entry(4)]


@pytest.mark.parametrize(
    "value",
    ["x" * 3_000_000, "\ud800 half a pair", "\x00\x1f\u2028", [[[[[]]]]], -0.5, 2**70, None],
    ids=["large", "surrogate", "control", "nested", "float", "integer", "null"],
)
async def test_any_json_comes_back_equal(node: Node, value: Any) -> None:
    async with telpher.connect(node.address) as client:
        store = TelpherSessionStore(client, namespace=namespace())
        await store.append(KEY, [entry(1, value=value), entry(2)])
        assert await store.load(KEY) == [entry(1, value=value), entry(2)]


async def test_deeply_nested_entry_comes_back_equal(node: Node) -> None:
    deep: Any = 1
    for _ in range(200):
        deep = [deep]
    async with telpher.connect(node.address) as client:
        store = TelpherSessionStore(client, namespace=namespace())
        await store.append(KEY, [entry(1, value=deep)])
        assert await store.load(KEY) == [entry(1, value=deep)]


async def test_deleted_session_can_be_used_again_many_times(node: Node) -> None:
    space = namespace()
    async with telpher.connect(node.address) as client:
        for number in range(12):
            store = TelpherSessionStore(client, namespace=space)
            assert await store.load(KEY) is None
            await store.append(KEY, [entry(number)])
            await store.delete(KEY)
        assert await store.list_sessions(KEY["project_key"]) == []


async def test_writer_of_a_deleted_session_is_refused(node: Node) -> None:
    space = namespace()
    async with telpher.connect(node.address) as client:
        first = TelpherSessionStore(client, namespace=space)
        second = TelpherSessionStore(client, namespace=space)
        await first.append(KEY, [entry(1)])
        await second.delete(KEY)
        await second.append(KEY, [entry(2)])
        with pytest.raises(telpher.Conflict):
            await first.append(KEY, [entry(3)])
        assert await second.load(KEY) == [entry(2)]


async def test_summary_counts_entries_appended_after_it_was_stored(node: Node) -> None:
    space = namespace()
    async with telpher.connect(node.address) as client:
        store = TelpherSessionStore(client, namespace=space)
        await store.append(KEY, [entry(1, customTitle="first")])
        (before,) = await store.list_session_summaries(KEY["project_key"])
        await store.append(KEY, [entry(2, customTitle="second")])
        (after,) = await store.list_session_summaries(KEY["project_key"])
        (again,) = await store.list_session_summaries(KEY["project_key"])
        assert before["data"]["custom_title"] == "first"
        assert after["data"]["custom_title"] == "second"
        assert again == after


async def test_example_of_the_page_has_the_store(own_node: Node) -> None:
    async with telpher.connect(own_node.address) as client:
        found = await example("claude-agent", node=client, session_id="s-1")
        assert found["options"].session_store is found["store"]
        await found["store"].append(KEY, [entry(1)])
    own_node.restart()
    async with telpher.connect(own_node.address) as client:
        found = await example("claude-agent", node=client, session_id="s-1")
        assert await found["store"].load(KEY) == [entry(1)]
