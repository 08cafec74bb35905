"""Records, conversations and quotas, against a node."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

import telpher
from support import until
from telpher.testing import Node


async def test_records_are_appended_with_an_expected_end(node: Node, name: str) -> None:
    async with telpher.connect(node.address) as client:
        log = client.records(name)
        assert await log.append("one", b"", {"n": 3}, expect=0) == telpher.AppendedRecords(0, 3)
        with pytest.raises(telpher.Conflict) as conflict:
            await log.append("x", expect=7)
        assert conflict.value.head == 3
        page = await log.read()
        assert [record.data for record in page.records] == [b"one", b"", b'{"n":3}']
        assert page.records[2].json() == {"n": 3}
        assert (page.start, page.next) == (0, 3)
        assert [record.offset async for record in log.all(1)] == [1, 2]
        with pytest.raises(telpher.InvalidArgument):
            await log.append()


async def test_follower_gets_existing_and_new_records(node: Node, name: str) -> None:
    async with telpher.connect(node.address) as client, telpher.connect(node.address) as writer:
        log, got = client.records(name), list[str]()

        async def follow() -> None:
            async for record in log.follow():
                got.append(record.text())

        task = asyncio.create_task(follow())
        for number in range(200):
            await writer.records(name).append(str(number))
        await until(lambda: len(got) == 200)
        assert got == [str(number) for number in range(200)]
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_conversation_is_appended_and_read(node: Node, name: str) -> None:
    async with telpher.connect(node.address) as client:
        chat = client.conversation(name)
        first = await chat.append(
            "Where is my parcel?", author="alice", id="m-1", metadata={"k": [1]}, tokens=5, expect=0
        )
        assert (first.first, first.last, first.ids) == (1, 1, ["m-1"])
        again = await chat.append(
            "Where is my parcel?", author="alice", id="m-1", metadata={"k": [1]}, tokens=5
        )
        assert again.deduplicated == 1
        with pytest.raises(telpher.Conflict) as conflict:
            await chat.append("Hello?", expect=0)
        assert conflict.value.head == 1
        with pytest.raises(telpher.IdReused):
            await chat.append("Another", id="m-1")
        batch = await chat.append_all(
            [
                {"role": "assistant", "parts": [{"type": "text", "text": "On its way."}]},
                {"role": "user", "text": "Thanks", "id": "m-3"},
            ],
            expect=1,
        )
        assert (batch.first, batch.last, batch.ids[1]) == (2, 3, "m-3")
        page = await chat.read()
        assert [message.text for message in page.messages] == [
            "Where is my parcel?",
            "On its way.",
            "Thanks",
        ]
        message = page.messages[0]
        assert (message.seq, message.author, message.metadata, message.tokens) == (
            1,
            "alice",
            {"k": [1]},
            5,
        )
        assert not message.is_estimated and message.status == "complete"
        assert (await chat.last(2)).messages[0].seq == 2
        assert [it.seq async for it in chat.messages(after=1)] == [2, 3]
        for wrong in ({"role": "user"}, {"text": "x"}, {"role": "user", "text": "x", "no": 1}):
            with pytest.raises(telpher.InvalidArgument):
                await chat.append_all([wrong])  # type: ignore[list-item]


async def test_conversation_state_window_list_inbox_and_fork(node: Node, name: str) -> None:
    async with telpher.connect(node.address) as client:
        chat = client.conversation(name)
        with pytest.raises(telpher.NotFound):
            await chat.state()
        for number in range(4):
            await chat.append(f"{number} " * 50, author="bob" if number % 2 else "alice")
        state = await chat.update(metadata={"user": name})
        assert state.metadata == {"user": name} and state.head == 4
        with pytest.raises(telpher.Conflict):
            await chat.update(version=state.version + 7, metadata={})
        window = await chat.context(80)
        assert 0 < window.tokens <= 80 and window.messages[-1].seq == 4
        listed = [it.id async for it in client.conversations("acme/test", metadata={"user": name})]
        assert listed == [name.rpartition("/")[2]]
        await chat.mark("carol", 3)
        lines = [it async for it in client.inbox("carol", "acme/test") if it.id == listed[0]]
        assert [line.unread for line in lines] == [1]
        copy = await chat.fork(f"{listed[0]}-copy", at=2)
        assert (await copy.read()).head == 2
        await chat.summarize("They talked.", through=2)
        window = await chat.context(10_000)
        summary = window.messages[0]
        assert (summary.seq, summary.role) == (0, "system")
        assert window.messages[0].text == "They talked." and window.messages[1].seq == 3
        await copy.erase()
        with pytest.raises(telpher.Gone):
            await copy.append("again")


async def test_follow_shows_messages_answers_and_their_end(node: Node, name: str) -> None:
    async with telpher.connect(node.address) as client, telpher.connect(node.address) as reader:
        chat = client.conversation(name)
        await chat.append("Where is my parcel?")
        events = list[object]()

        async def follow() -> None:
            async for event in reader.conversation(name).follow():
                events.append(event)

        task = asyncio.create_task(follow())
        await until(lambda: any(isinstance(event, telpher.Head) for event in events))
        async with chat.answer("a-1", author="bot") as answer:
            await answer.reasoning("hm")
            await answer.text("On its ")
            await answer.text("way.")
        assert (answer.seq, answer.status) == (2, "complete")
        await until(
            lambda: any(isinstance(it, telpher.Event) and it.message.seq == 2 for it in events)
        )
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        message = (await chat.last()).messages[0]
        assert (message.id, message.author, message.text) == ("a-1", "bot", "On its way.")


async def test_answer_of_a_failing_block_is_aborted(node: Node, name: str) -> None:
    async with telpher.connect(node.address) as client:
        chat = client.conversation(name)
        with pytest.raises(KeyError):
            async with chat.answer() as answer:
                await answer.text("half")
                raise KeyError
        assert answer.status == "aborted"
        message = (await chat.last()).messages[0]
        assert (message.status, message.text) == ("aborted", "half")


async def test_tail_continues_with_new_messages(node: Node, name: str) -> None:
    async with telpher.connect(node.address) as client:
        chat, seen = client.conversation(name), list[int]()

        async def tail() -> None:
            async for message in chat.tail():
                seen.append(message.seq)

        task = asyncio.create_task(tail())
        for _ in range(5):
            await chat.append("x")
        await until(lambda: seen == [1, 2, 3, 4, 5])
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_take_is_admitted_until_the_limit_denies(node: Node) -> None:
    async with telpher.connect(node.address) as client:
        subject = "acme/limited/a"
        taken = await client.quota.take(subject, requests=1)
        assert taken.remaining == 1 and taken.limits[0].name == "few"
        assert (await client.quota.take(subject, {"requests": 1}, id="t-1")).remaining == 0
        assert (await client.quota.take(subject, {"requests": 1}, id="t-1")).is_repeated
        with pytest.raises(telpher.QuotaDenied) as denied:
            await client.quota.take(subject, requests=1)
        error = denied.value
        assert (error.limit, error.unit, error.have, error.need) == ("few", "requests", 0, 1)
        assert error.retry == "safe" and error.retry_after and error.retry_after > 60
        assert not error.may_have_been_executed
        await client.quota.take("acme/spent/a", requests=1)
        with pytest.raises(telpher.QuotaDenied) as spent:
            await client.quota.take("acme/spent/a", requests=1)
        assert spent.value.is_exhausted and spent.value.retry == "no"
        assert spent.value.retry_after is None
        with pytest.raises(telpher.InvalidArgument):
            await client.quota.take(subject)
        with pytest.raises(telpher.InvalidArgument):
            await client.quota.take(subject, requests=-1)
        with pytest.raises(telpher.InvalidArgument):
            await client.quota.take(subject, unknown_unit=1)


async def test_usage_shows_what_subjects_spent(node: Node) -> None:
    async with telpher.connect(node.address) as client:
        subject = "acme/fast/usage"
        for _ in range(2):
            await client.quota.take(subject, requests=1, wait=10)
        async with client.quota.hold("acme/team/usage", tokens=400) as hold:
            hold.cost(tokens=150)
        usage = client.quota.usage
        rows = [row async for row in usage(subject=subject)]
        assert {(row.subject, row.unit, row.amount, row.takes) for row in rows} == {
            (subject, "requests", 2, 2)
        }
        day = rows[0].day
        assert day is not None and abs((day - datetime.now(UTC).date()).days) <= 1
        (row,) = [row async for row in usage(day, by="subject", subject="acme/team/usage")]
        assert (row.day, row.unit, row.amount, row.takes) == (None, "tokens", 150, 1)
        sums = [row async for row in usage(day, by="limit", limit=row.limit)]
        assert sums[0].subject is None and sums[0].amount >= 150
        assert [row async for row in usage("2026-01-01", "2026-01-31")] == []
        with pytest.raises(telpher.InvalidArgument):
            [row async for row in usage("yesterday")]


async def test_take_waits_until_it_passes(node: Node) -> None:
    async with telpher.connect(node.address) as client:
        for _ in range(4):
            await client.quota.take("acme/fast/a", requests=1, wait=10)


async def test_hold_costs_what_was_used(node: Node) -> None:
    async with telpher.connect(node.address) as client:
        subject = "acme/team/a"

        async def left() -> int | None:
            return (await client.quota.peek(subject)).remaining

        async with client.quota.hold(subject, tokens=800) as hold:
            assert await left() == 200
            hold.cost(tokens=300)
        assert hold.was_open and await left() == 700
        async with client.quota.hold(subject, tokens=100):
            pass
        assert await left() == 600
        with pytest.raises(KeyError):
            async with client.quota.hold(subject, tokens=500):
                raise KeyError
        assert await left() == 600
        with pytest.raises(KeyError):
            async with client.quota.hold(subject, tokens=500) as hold:
                hold.cost(tokens=50)
                raise KeyError
        assert await left() == 550
        with pytest.raises(telpher.QuotaDenied):
            async with client.quota.hold(subject, tokens=551):
                raise AssertionError("the block must not run")
