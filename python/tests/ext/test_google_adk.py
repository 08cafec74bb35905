"""`TelpherSessionService` with the behaviours that ADK's own services have."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Any

import pytest

import telpher
from pages import example
from telpher.testing import Node

pytest.importorskip("google.adk.sessions")

from google.adk.agents.base_agent import BaseAgent
from google.adk.errors._stale_session_error import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.sessions.base_session_service import BaseSessionService, GetSessionConfig
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.genai import types

from telpher.ext.google_adk import TelpherSessionService

_namespaces = count()
KEY: dict[str, Any] = {"app_name": "app", "user_id": "user"}


def namespace() -> str:
    return f"adk/t{next(_namespaces)}"


def event(number: int, **state: Any) -> Event:
    return Event(
        id=f"e-{number}",
        invocation_id="i",
        author="user",
        timestamp=1000.0 + number,
        content=types.Content(role="user", parts=[types.Part(text=f"text {number}")]),
        actions=EventActions(state_delta=state),
    )


async def script(service: BaseSessionService) -> list[Any]:
    """Runs what the interface offers; returns what was seen."""
    seen = list[Any]()
    assert await service.get_session(**KEY, session_id="none") is None
    await service.delete_session(**KEY, session_id="none")
    assert (await service.list_sessions(app_name="app")).sessions == []
    seen.append(await service.get_user_state(**KEY))
    state = {"a": 1, "user:b": 2, "app:c": 3, "temp:d": 4}
    session = await service.create_session(**KEY, state=state, session_id=" one ")
    seen.append((session.id, session.state))
    with pytest.raises(AlreadyExistsError):
        await service.create_session(**KEY, session_id="one")
    await service.append_event(session, event(1, a=5, **{"user:b": 6, "temp:x": 7}))
    seen.append(session.state)
    await service.append_event(session, event(2, **{"app:c": [8]}))
    await service.append_event(session, Event(author="user", partial=True))
    await service.append_event(session, event(2, **{"app:c": [8]}))
    found = await service.get_session(**KEY, session_id="one")
    assert found is not None
    seen.append((found.state, found.events, found.last_update_time))
    for config in (
        GetSessionConfig(num_recent_events=1),
        GetSessionConfig(num_recent_events=0),
        GetSessionConfig(after_timestamp=1002.0),
        GetSessionConfig(after_timestamp=5000.0),
    ):
        some = await service.get_session(**KEY, session_id="one", config=config)
        assert some is not None
        seen.append([it.id for it in some.events])
    other = await service.create_session(app_name="app", user_id="other", session_id="one")
    seen.append(other.state)
    seen.append(await service.get_user_state(**KEY))
    for user_id in ("user", "other", "none", None):
        listed = await service.list_sessions(app_name="app", user_id=user_id)
        seen.append(sorted((it.user_id, it.id, len(it.events)) for it in listed.sessions))
    await service.delete_session(**KEY, session_id="one")
    seen.append(await service.get_session(**KEY, session_id="one"))
    with pytest.raises(SessionNotFoundError):
        await service.append_event(session, event(3))
    again = await service.create_session(**KEY, session_id="one")
    seen.append((again.state, again.events))
    return seen


async def test_service_behaves_as_the_one_in_memory(node: Node) -> None:
    async with telpher.connect(node.address) as client:
        expected = await script(InMemorySessionService())
        assert await script(TelpherSessionService(client, namespace=namespace())) == expected


async def test_second_writer_is_refused_until_it_reads(node: Node) -> None:
    space = namespace()
    async with telpher.connect(node.address) as one, telpher.connect(node.address) as two:
        first = TelpherSessionService(one, namespace=space)
        second = TelpherSessionService(two, namespace=space)
        mine = await first.create_session(**KEY, session_id="s")
        theirs = await second.get_session(**KEY, session_id="s")
        assert theirs is not None
        await second.append_event(theirs, event(1))
        for _ in range(2):
            with pytest.raises(StaleSessionError):
                await first.append_event(mine, event(2))
        fresh = await first.get_session(**KEY, session_id="s")
        assert fresh is not None
        await first.append_event(fresh, event(2))
        found = await second.get_session(**KEY, session_id="s")
        assert found is not None
        assert [it.id for it in found.events] == ["e-1", "e-2"]


async def test_session_is_created_once(node: Node) -> None:
    space = namespace()
    async with telpher.connect(node.address) as client:
        services = [TelpherSessionService(client, namespace=space) for _ in range(8)]
        creating = [it.create_session(**KEY, session_id="s") for it in services]
        results = await asyncio.gather(*creating, return_exceptions=True)
        assert sum(isinstance(it, AlreadyExistsError) for it in results) == 7


async def test_appended_events_survive_kill9_in_the_middle(own_node: Node) -> None:
    async with telpher.connect(own_node.address) as client:
        service = TelpherSessionService(client)
        session = await service.create_session(**KEY, session_id="s")
        half = asyncio.Event()

        async def append() -> None:
            for number in range(60):
                await service.append_event(session, event(number, **{"user:n": number}))
                if number == 30:
                    half.set()

        appending = asyncio.create_task(append())
        await half.wait()
        await asyncio.to_thread(own_node.restart)
        await appending
        found = await TelpherSessionService(client).get_session(**KEY, session_id="s")
        assert found is not None
        assert [it.id for it in found.events] == [f"e-{number}" for number in range(60)]
        assert found.state["user:n"] == 59


class Counter(BaseAgent):
    """Answers with the number of events that the session has."""

    async def _run_async_impl(self, ctx: Any) -> Any:
        text = f"{len(ctx.session.events)} events"
        content = types.Content(role="model", parts=[types.Part(text=text)])
        yield Event(invocation_id=ctx.invocation_id, author=self.name, content=content)


async def test_example_of_the_page_remembers(own_node: Node) -> None:
    answers = list[str]()
    for turn in range(2):
        async with telpher.connect(own_node.address) as client:
            found = await example("google-adk", node=client, agent=Counter(name="counter"))
            key = {"user_id": "ada", "session_id": "s"}
            if turn == 0:
                await found["sessions"].create_session(app_name="support", **key)
            message = types.Content(role="user", parts=[types.Part(text="Hello?")])
            async for it in found["runner"].run_async(**key, new_message=message):
                answers.append(it.content.parts[0].text)
        own_node.restart()
    assert answers == ["1 events", "3 events"]
