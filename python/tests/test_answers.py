"""Answers that are streamed while a node shows them, and messages that are read and erased.

A node of an earlier version has none of this: it gets an answer as a whole.
"""

from __future__ import annotations

import asyncio

import pytest

import telpher
import telpher.sync
from support import until
from telpher.testing import Node


@pytest.fixture
def live(node: Node) -> Node:
    """A node that takes an answer in pieces."""
    with telpher.sync.connect(node.address) as client:
        try:
            client.request("telpher/system/http", {"upload": "none"}, method="upload")
        except telpher.UnknownMethod:
            pytest.skip("the node takes answers as a whole")
        except telpher.Gone:
            pass
    return node


async def test_watcher_sees_each_chunk_while_it_is_written(live: Node, name: str) -> None:
    async with telpher.connect(live.address) as client:
        chat, seen = client.conversation(name), list[str]()

        async def watch() -> None:
            async for event in chat.follow():
                if isinstance(event, telpher.Delta) and event.text:
                    seen.append(event.text)

        await chat.append("Where is my parcel?")
        task = asyncio.create_task(watch())
        async with chat.answer() as answer:
            for word in ("On ", "its ", "way."):
                count = len(seen) + 1
                await answer.text(word)
                await until(lambda count=count: len(seen) == count)  # type: ignore[misc]
        assert seen == ["On ", "its ", "way."]
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_stopped_answer_ends_its_block_quietly(live: Node, name: str) -> None:
    async with telpher.connect(live.address) as client:
        chat = client.conversation(name)
        await chat.append("Where is my parcel?")
        async with chat.answer("a-1") as answer:
            await answer.text("half")
            while not (await chat.state()).raw.get("streaming"):
                await answer.text(".")
            await chat.stop("a-1")
            for _ in range(10_000):
                await answer.text(".")
            raise AssertionError("the answer was not stopped")
        assert answer.status == "stopped"
        message = (await chat.last()).messages[0]
        assert message.text.startswith("half") and message.status == "stopped"


async def test_invalid_chunk_is_refused_with_its_reason(live: Node, name: str) -> None:
    async with telpher.connect(live.address) as client:
        with pytest.raises(telpher.InvalidArgument):
            async with client.conversation(name).answer() as answer:
                await answer.chunk({"no": "type"})
                for _ in range(10_000):
                    await answer.text(".")


async def test_message_is_read_by_its_id_and_clear_keeps_the_numbers(live: Node, name: str) -> None:
    async with telpher.connect(live.address) as client:
        chat = client.conversation(name)
        await chat.append("one", id="m-1")
        assert (await chat.message("m-1")).text == "one"
        with pytest.raises(telpher.NotFound):
            await chat.message("m-2")
        with pytest.raises(telpher.Conflict):
            await chat.clear(expect=7)
        await chat.clear(expect=1)
        assert (await chat.append("two")).first == 2
        assert [message.seq async for message in chat.messages()] == [2]


async def test_newest_messages_are_retracted(live: Node, name: str) -> None:
    async with telpher.connect(live.address) as client:
        chat = client.conversation(name)
        for text in ["one", "two", "three"]:
            await chat.append(text, id=text)
        with pytest.raises(telpher.Conflict):
            await chat.retract(expect=2)
        retracted = await chat.retract(expect=3, last=2, id="undo-1")
        assert (retracted.count, retracted.first, retracted.head) == (2, 2, 4)
        assert await chat.retract(expect=3, last=2, id="undo-1") == retracted
        with pytest.raises(telpher.Conflict):
            await chat.append("answer to three", expect=3)
        with pytest.raises(telpher.NotFound):
            await chat.message("two")
        await chat.append("four", expect=retracted.head)
        assert [message.seq async for message in chat.messages()] == [1, 5]
        seen: list[object] = []
        async for event in chat.follow(3):
            if isinstance(event, telpher.Retracted):
                seen.append((event.first, event.last))
            if isinstance(event, telpher.Event):
                seen.append(event.message.seq)
            if isinstance(event, telpher.Head):
                break
        assert seen == [(2, 4), 5]
        assert (await chat.retract(expect=5, after=0)).count == 2
        assert (await chat.retract(expect=6)).count == 0
