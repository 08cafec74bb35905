"""`TelpherSession` with the behaviours that the SDK's own sessions have."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Any

import pytest

import telpher
from pages import example
from telpher.testing import Node

pytest.importorskip("agents.memory")

from agents import Agent, RunConfig, Runner, set_tracing_disabled
from agents.items import ModelResponse
from agents.memory import Session, SessionSettings
from agents.models.interface import Model
from agents.usage import Usage
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from telpher.ext.openai_agents import TelpherSession

_namespaces = count()


def namespace() -> str:
    return f"openai/t{next(_namespaces)}"


def user(text: str) -> Any:
    return {"role": "user", "content": text}


def texts(items: list[Any]) -> list[Any]:
    return [item["content"] for item in items]


class Echo(Model):
    """A model that answers with the number of items that it got."""

    async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> Any:
        text = ResponseOutputText(text=f"{len(input)} items", type="output_text", annotations=[])
        message = ResponseOutputMessage(
            id="m", type="message", role="assistant", content=[text], status="completed"
        )
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


async def test_runs_remember_each_other_across_kill9(own_node: Node) -> None:
    agent = Agent(name="a", model=Echo())
    quiet = RunConfig(tracing_disabled=True)
    async with telpher.connect(own_node.address) as client:
        answers = []
        for _ in range(3):
            session = TelpherSession(client, "s")
            result = await Runner.run(agent, "hello", session=session, run_config=quiet)
            answers.append(result.final_output)
            await asyncio.to_thread(own_node.restart)
        assert answers == ["1 items", "3 items", "5 items"]


async def test_session_has_the_protocol_of_the_sdk(node: Node) -> None:
    async with telpher.connect(node.address) as client:
        assert isinstance(TelpherSession(client, "s"), Session)


async def test_items_come_back_in_order_and_equal(node: Node) -> None:
    items: list[Any] = [
        user("é\u2028 😀 \x00"),
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": '{"a": [1.5]}'},
        {"type": "function_call_output", "call_id": "c", "output": "x" * 2_000_000},
        {"role": "assistant", "content": [{"type": "output_text", "text": "", "annotations": []}]},
    ]
    space = namespace()
    async with telpher.connect(node.address) as client:
        session = TelpherSession(client, "s", namespace=space)
        await session.add_items(items)
        await session.add_items([])
        assert await session.get_items() == items
        assert await TelpherSession(client, "s", namespace=space).get_items() == items


@pytest.mark.parametrize(
    ("limit", "expected"), [(None, 5), (2, 2), (5, 5), (9, 5), (0, 0), (-1, 0)]
)
async def test_limit_returns_the_newest_items(node: Node, limit: int | None, expected: int) -> None:
    async with telpher.connect(node.address) as client:
        session = TelpherSession(client, "s", namespace=namespace())
        await session.add_items([user(str(number)) for number in range(5)])
        found = texts(await session.get_items(limit))
        assert found == [str(number) for number in range(5)][5 - expected :]


async def test_settings_limit_what_is_returned(node: Node) -> None:
    space = namespace()
    async with telpher.connect(node.address) as client:
        settings = SessionSettings(limit=1)
        session = TelpherSession(client, "s", namespace=space, session_settings=settings)
        await session.add_items([user("1"), user("2")])
        assert texts(await session.get_items()) == ["2"]
        assert texts(await session.get_items(2)) == ["1", "2"]


async def test_popped_items_are_gone_for_everybody(node: Node) -> None:
    space = namespace()
    async with telpher.connect(node.address) as client:
        session = TelpherSession(client, "s", namespace=space)
        assert await session.pop_item() is None
        await session.add_items([user("1"), user("2")])
        assert await session.pop_item() == user("2")
        await session.add_items([user("3")])
        other = TelpherSession(client, "s", namespace=space)
        assert texts(await other.get_items()) == ["1", "3"]
        assert await other.pop_item() == user("3")
        assert await other.pop_item() == user("1")
        assert await other.pop_item() is None


async def test_concurrent_pops_return_each_item_once(node: Node) -> None:
    space = namespace()
    async with telpher.connect(node.address) as client:
        await TelpherSession(client, "s", namespace=space).add_items(
            [user(str(number)) for number in range(20)]
        )
        sessions = [TelpherSession(client, "s", namespace=space) for _ in range(20)]
        popped = await asyncio.gather(*(session.pop_item() for session in sessions))
        assert sorted(int(item["content"]) for item in popped if item) == [*range(20)]  # type: ignore[typeddict-item,arg-type]


async def test_cleared_session_can_be_used_again(node: Node) -> None:
    space = namespace()
    async with telpher.connect(node.address) as client:
        session = TelpherSession(client, "s", namespace=space)
        await session.clear_session()
        for number in range(5):
            await session.add_items([user(str(number))])
            assert texts(await session.get_items()) == [str(number)]
            await session.clear_session()
            assert await session.get_items() == []
        assert await TelpherSession(client, "s", namespace=space).get_items() == []


async def test_sessions_do_not_see_each_other(node: Node) -> None:
    space = namespace()
    async with telpher.connect(node.address) as client:
        for name in ("a/b", "a-b", "a.b", "ü" * 300, ""):
            session = TelpherSession(client, name, namespace=space)
            assert await session.get_items() == []
            await session.add_items([user(name)])
            assert texts(await session.get_items()) == [name]


async def test_second_writer_is_refused_until_it_reads(node: Node) -> None:
    space = namespace()
    async with telpher.connect(node.address) as one, telpher.connect(node.address) as two:
        first = TelpherSession(one, "s", namespace=space)
        second = TelpherSession(two, "s", namespace=space)
        await first.get_items()
        await second.get_items()
        await second.add_items([user("2")])
        for _ in range(2):
            with pytest.raises(telpher.Conflict):
                await first.add_items([user("1")])
            with pytest.raises(telpher.Conflict):
                await first.add_items([user("1")])
        assert texts(await first.get_items()) == ["2"]
        await first.add_items([user("1")])
        with pytest.raises(telpher.Conflict):
            await second.pop_item()
        assert texts(await second.get_items()) == ["2", "1"]


async def test_writer_of_a_cleared_session_is_refused(node: Node) -> None:
    space = namespace()
    async with telpher.connect(node.address) as client:
        first = TelpherSession(client, "s", namespace=space)
        second = TelpherSession(client, "s", namespace=space)
        await first.add_items([user("1")])
        await second.clear_session()
        await second.add_items([user("2")])
        with pytest.raises(telpher.Conflict):
            await first.add_items([user("3")])
        assert texts(await first.get_items()) == ["2"]


async def test_added_items_survive_kill9_in_the_middle(own_node: Node) -> None:
    async with telpher.connect(own_node.address) as client:
        session = TelpherSession(client, "s")
        half = asyncio.Event()

        async def add() -> None:
            for number in range(100):
                await session.add_items([user(str(number))])
                if number == 50:
                    half.set()

        adding = asyncio.create_task(add())
        await half.wait()
        await asyncio.to_thread(own_node.restart)
        await adding
        found = texts(await TelpherSession(client, "s").get_items())
        assert found == [str(number) for number in range(100)]


async def test_item_that_is_no_json_is_refused(node: Node) -> None:
    async with telpher.connect(node.address) as client:
        session = TelpherSession(client, "s", namespace=namespace())
        with pytest.raises(telpher.InvalidArgument, match="JSON"):
            await session.add_items([user(object())])  # type: ignore[arg-type]
        assert await session.get_items() == []


async def test_example_of_the_page_remembers(own_node: Node) -> None:
    set_tracing_disabled(True)
    agent = Agent(name="a", model=Echo())
    answers = list[str]()
    for _ in range(2):
        async with telpher.connect(own_node.address) as client:
            found = await example("openai-agents", node=client, agent=agent)
        answers.append(found["result"].final_output)
        own_node.restart()
    assert answers == ["1 items", "3 items"]
