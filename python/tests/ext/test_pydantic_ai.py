"""`TelpherConversationStore` with the contracts of Pydantic AI's `ConversationStore`."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest

import telpher
from pages import example
from telpher.testing import Node

pytest.importorskip("pydantic_ai.conversation_store")

from pydantic_ai import Agent, BinaryImage, DeferredToolRequests, RunUsage
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationStore,
    InMemoryConversationStore,
)
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RequestUsage

from telpher.ext import _log as log
from telpher.ext.pydantic_ai import TelpherConversationStore

_namespaces = count()
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def namespace() -> str:
    return f"pydantic/t{next(_namespaces)}"


def ask(text: str) -> ModelMessage:
    return ModelRequest(parts=[UserPromptPart(text, timestamp=NOW)])


def say(text: str) -> ModelMessage:
    return ModelResponse(parts=[TextPart(text)], timestamp=NOW)


MESSAGES: list[ModelMessage] = [
    ModelRequest(
        parts=[
            SystemPromptPart("be brief", timestamp=NOW),
            UserPromptPart(
                ["look", BinaryImage(bytes(range(256)), media_type="image/png")], timestamp=NOW
            ),
        ],
        instructions="in one word",
    ),
    ModelResponse(
        parts=[
            ThinkingPart("hm", signature="s"),
            ToolCallPart("find", {"what": "é"}, tool_call_id="c"),
        ],
        usage=RequestUsage(input_tokens=7, output_tokens=3),
        model_name="m",
        timestamp=NOW,
        provider_details={"finish": "tool"},
    ),
    ModelRequest(
        parts=[ToolReturnPart("find", {"found": [1, 2.5, None]}, tool_call_id="c", timestamp=NOW)]
    ),
    say("x" * 2_000_000),
]


async def test_every_kind_of_message_comes_back_equal(node: Node) -> None:
    space = namespace()
    async with telpher.connect(node.address) as client:
        saved = Conversation(
            messages=list(MESSAGES),
            conversation_id="c",
            usage=RunUsage(requests=2, input_tokens=7, output_tokens=3, tool_calls=1),
            deferred_tool_requests=DeferredToolRequests(
                approvals=[ToolCallPart("rm", {"path": "/"}, tool_call_id="d")]
            ),
        )
        await TelpherConversationStore(client, namespace=space).save(saved)
        found = await TelpherConversationStore(client, namespace=space).load("c")
        assert found == saved


async def test_agent_continues_a_conversation_across_kill9(own_node: Node) -> None:
    agent = Agent(TestModel(custom_output_text="yes"))
    async with telpher.connect(own_node.address) as client:
        for turn in range(3):
            store = TelpherConversationStore(client)
            conversation = await store.load("c") or Conversation(conversation_id="c")
            assert len(conversation.messages) == 2 * turn
            result = await agent.run("is it?", conversation=conversation)
            await store.save(result)
            await asyncio.to_thread(own_node.restart)
        loaded = await TelpherConversationStore(client).load("c")
        assert loaded is not None and loaded.usage.requests == 3


async def history(store: ConversationStore, conversation_id: str, **more: Any) -> list[str] | None:
    entries = await store.load_entries(conversation_id, **more)
    if entries is None:
        return None
    return [str(getattr(entry.message.parts[0], "content", "")) for entry in entries]


async def script(store: ConversationStore) -> list[Any]:
    """Runs everything that the interface offers; returns what was seen."""
    seen = list[Any]()
    assert await store.load("none") is None
    await store.delete("none")
    one = Conversation(conversation_id="one", messages=[ask("1"), say("2")])
    seen.append(len(await store.save(one, scope="alice")))
    one.messages += [ask("3"), say("4")]
    seen.append(len(await store.save(one)))
    seen.append(await history(store, "one"))
    seen.append(await history(store, "one", limit=3))
    seen.append(await history(store, "one", limit=0))
    seen.append(await history(store, "one", scope="bob"))
    fork = await store.fork("one", at=2, new_conversation_id="two", scope="bob")
    fork.messages.append(ask("5"))
    await store.save(fork)
    seen.append(await history(store, "two"))
    with pytest.raises(ConversationConflict):
        await store.fork("one", new_conversation_id="two")
    branch = await store.branch("one", at=1, expected_revision=one.revision)
    with pytest.raises(ConversationConflict):
        await store.save(one)
    branch.messages.append(say("6"))
    await store.save(branch)
    seen.append(await history(store, "one"))
    (tip,) = (await store.read_record("one")).branches  # type: ignore[union-attr]
    back = await store.branch("one", from_entry=tip, expected_revision=branch.revision)
    seen.append([str(getattr(it.parts[0], "content", "")) for it in back.messages])
    rewritten = Conversation(
        conversation_id="one", messages=[ask("1"), say("summary")], revision=back.revision
    )
    await store.save(rewritten)
    seen.append(await history(store, "one"))
    seen.append([it.conversation_id for it in await store.list_conversations()])
    seen.append([it.conversation_id for it in await store.list_conversations(scope="bob")])
    seen.append([it.conversation_id for it in await store.list_conversations(limit=1)])
    await store.delete("one", scope="bob")
    seen.append(await history(store, "one"))
    await store.delete("one")
    seen.append(await history(store, "one"))
    seen.append(await history(store, "two"))
    with pytest.raises(ConversationConflict):
        await store.save(rewritten)
    again = Conversation(conversation_id="one", messages=[ask("new")])
    await store.save(again)
    seen.append(await history(store, "one"))
    with pytest.raises(ConversationConflict):
        await store.save(Conversation(conversation_id="one", messages=[ask("other")]))
    return seen


async def test_store_behaves_as_the_one_in_memory(node: Node) -> None:
    async with telpher.connect(node.address) as client:
        expected = await script(InMemoryConversationStore())
        assert await script(TelpherConversationStore(client, namespace=namespace())) == expected


async def test_store_behaves_the_same_while_the_node_is_killed(own_node: Node) -> None:
    async with telpher.connect(own_node.address) as client:
        working = asyncio.create_task(script(TelpherConversationStore(client)))
        restarts = 0
        while not working.done() and restarts < 5:
            await asyncio.to_thread(own_node.restart)
            restarts += 1
            # The next restart waits until the client has connected again.
            await log.run(client, log.listed("pydantic/none", {}))
        assert await working == await script(InMemoryConversationStore())
        assert restarts > 1


async def test_second_writer_is_refused(node: Node) -> None:
    space = namespace()
    async with telpher.connect(node.address) as one, telpher.connect(node.address) as two:
        stores = [TelpherConversationStore(it, namespace=space) for it in (one, two)]
        await stores[0].save(Conversation(conversation_id="c", messages=[ask("1")]))
        loaded = [await store.load("c") for store in stores for _ in range(4)]
        for number, conversation in enumerate(loaded):
            assert conversation is not None
            conversation.messages.append(say(str(number)))
        saves = [
            stores[number // 4].save(conversation)
            for number, conversation in enumerate(loaded)
            if conversation is not None
        ]
        results = await asyncio.gather(*saves, return_exceptions=True)
        assert sum(isinstance(it, ConversationConflict) for it in results) == 7
        assert sum(isinstance(it, list) for it in results) == 1
        assert len(await history(stores[0], "c") or ()) == 2


async def test_save_is_refused_after_another_process_deleted_it(node: Node) -> None:
    space = namespace()
    async with telpher.connect(node.address) as client:
        first = TelpherConversationStore(client, namespace=space)
        second = TelpherConversationStore(client, namespace=space)
        mine = Conversation(conversation_id="c", messages=[ask("1")])
        await first.save(mine)
        await second.delete("c")
        mine.messages.append(say("2"))
        with pytest.raises(ConversationConflict):
            await first.save(mine)
        assert await first.load("c") is None


async def test_deletion_that_was_interrupted_stays_deleted(node: Node) -> None:
    space = namespace()
    async with telpher.connect(node.address) as client:
        store = TelpherConversationStore(client, namespace=space)
        await store.save(Conversation(conversation_id="c", messages=[ask("1")]))
        (listed,) = [it async for it in client.conversations(space)]
        tombstone = {"type": "data-entry", "data": {"deleted": True}}
        await client.conversation(f"{space}/{listed.id}").append(role="data", parts=[tombstone])
        assert await store.load("c") is None
        assert await store.list_conversations() == []
        await store.save(Conversation(conversation_id="c", messages=[ask("2")]))
        assert await history(store, "c") == ["2"]


async def test_entry_is_found_by_a_store_that_has_not_read_it(node: Node) -> None:
    space = namespace()
    async with telpher.connect(node.address) as client:
        saved = Conversation(conversation_id="c", messages=[ask("1"), say("2")])
        entries = await TelpherConversationStore(client, namespace=space).save(saved)
        fresh = TelpherConversationStore(client, namespace=space)
        assert await fresh.read_entry(entries[0].id) == entries[0]
        with pytest.raises(LookupError):
            await fresh.read_entry("none")


async def test_example_of_the_page_remembers(own_node: Node) -> None:
    agent = Agent(TestModel(custom_output_text="yes"))
    for turn in range(2):
        async with telpher.connect(own_node.address) as client:
            found = await example("pydantic-ai", node=client, agent=agent)
            stored = await TelpherConversationStore(client).load("support-42")
        assert found["result"].output == "yes"
        assert stored is not None and len(stored.messages) == 2 * turn + 2
        own_node.restart()
