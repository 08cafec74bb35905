"""Sessions of Google ADK: `TelpherSessionService` implements its `BaseSessionService`.

```
async with telpher.connect() as node:
    runner = Runner(agent=agent, app_name="support", session_service=TelpherSessionService(node))
```

A session is one conversation, each event a message. The state of an app and that of a user are
conversations of their own.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from google.adk.errors._stale_session_error import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.platform import time as platform_time
from google.adk.sessions._session_util import extract_json_safe_state_delta
from google.adk.sessions.base_session_service import (
    BaseSessionService,
    GetSessionConfig,
    ListSessionsResponse,
)
from google.adk.sessions.session import Session
from google.adk.sessions.state import State

from telpher import _errors as errors
from telpher._async._client import Client
from telpher.ext import _log as log

__all__ = ["TelpherSessionService"]

LOGS_MAX = 1_000


class TelpherSessionService(BaseSessionService):
    """A `BaseSessionService` of Google ADK in a namespace of a node.

    An event is refused with `StaleSessionError` if the session has events that the given `Session`
    has not; get the session again, then append.
    """

    def __init__(self, client: Client, *, namespace: str = "default/default") -> None:
        self._client = client
        self._namespace = namespace
        self._stored = OrderedDict[tuple[str, ...], _Stored]()

    def _of(self, *key: str) -> _Stored:
        found = self._stored.get(key)
        if found is None:
            found = self._stored[key] = _Stored(self._namespace, key)
            while len(self._stored) > LOGS_MAX:
                self._stored.popitem(last=False)
        self._stored.move_to_end(key)
        return found

    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> Session:
        """Creates a session; `AlreadyExistsError` if there is one with this id."""
        session_id = (session_id or "").strip() or str(uuid4())
        deltas = extract_json_safe_state_delta(state or {})
        stored = self._of("session", app_name, user_id, session_id)
        async with stored.lock:
            await log.run(self._client, stored.create(deltas["session"], platform_time.get_time()))
        await self._merge_shared(app_name, user_id, deltas)
        session = await self.get_session(app_name=app_name, user_id=user_id, session_id=session_id)
        if session is None:
            raise SessionNotFoundError(f"Session {session_id} was deleted while it was created.")
        return session

    async def get_session(
        self,
        *,
        app_name: str,
        user_id: str,
        session_id: str,
        config: GetSessionConfig | None = None,
    ) -> Session | None:
        """Returns a session with its events, or those that `config` asks for."""
        session_id = session_id.strip()
        stored = self._of("session", app_name, user_id, session_id)
        async with stored.lock:
            await log.run(self._client, stored.pull())
            if not stored.exists:
                return None
            session = stored.session()
        shared = await self._shared_state(app_name, user_id)
        session.state.update(shared)
        if config is not None and config.after_timestamp is not None:
            newer = len(session.events)
            while newer and session.events[newer - 1].timestamp >= config.after_timestamp:
                newer -= 1
            session.events = session.events[newer:]
        if config is not None and config.num_recent_events is not None:
            count = config.num_recent_events
            session.events = session.events[-count:] if count else []
        return session

    async def list_sessions(
        self, *, app_name: str, user_id: str | None = None
    ) -> ListSessionsResponse:
        """Lists the sessions of a user or of all users, without events, which reads each."""
        wanted = {"telpher_adk": "session", "app": log.entry_id(app_name)}
        if user_id is not None:
            wanted["user"] = log.entry_id(app_name, user_id)
        lines = await log.run(self._client, log.listed(self._namespace, wanted))
        nothing = GetSessionConfig(num_recent_events=0)
        found = list[Session]()
        for line in lines:
            _, _, user, session_id = line["metadata"]["key"]
            session = await self.get_session(
                app_name=app_name, user_id=user, session_id=session_id, config=nothing
            )
            if session is not None:
                found.append(session)
        found.sort(key=lambda it: (it.last_update_time, it.user_id, it.id))
        return ListSessionsResponse(sessions=found)

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Erases a session with its events. Its id can be used again."""
        stored = self._of("session", app_name, user_id, session_id.strip())
        async with stored.lock:
            await log.run(self._client, stored.erase())

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """Returns the state of a user, without prefixes."""
        return await self._state("user", app_name, user_id)

    async def append_event(self, session: Session, event: Event) -> Event:
        """Appends an event; returns when it is on disk."""
        if event.partial:
            return event
        stored = self._of("session", session.app_name, session.user_id, session.id)
        self._apply_temp_state(session, event)
        event = self._trim_temp_delta_state(event)
        deltas = extract_json_safe_state_delta(event.actions.state_delta or {})
        async with stored.lock:
            is_new = await log.run(self._client, stored.append(session, event, deltas["session"]))
        if not is_new:
            return event
        await self._merge_shared(session.app_name, session.user_id, deltas)
        session.last_update_time = event.timestamp
        return self._commit_event_to_session(session, event)

    async def _merge_shared(
        self, app_name: str, user_id: str, deltas: dict[str, dict[str, Any]]
    ) -> None:
        for kind, key in (("app", (app_name,)), ("user", (app_name, user_id))):
            if deltas[kind]:
                stored = self._of(kind, *key)
                async with stored.lock:
                    await log.run(self._client, stored.merge(deltas[kind]))

    async def _shared_state(self, app_name: str, user_id: str) -> dict[str, Any]:
        app = await self._state("app", app_name)
        user = await self._state("user", app_name, user_id)
        state = {State.APP_PREFIX + key: value for key, value in app.items()}
        return state | {State.USER_PREFIX + key: value for key, value in user.items()}

    async def _state(self, *key: str) -> dict[str, Any]:
        stored = self._of(*key)
        async with stored.lock:
            await log.run(self._client, stored.pull())
            return dict(stored.state)


class _Stored:
    """A session, or the state of an app or a user, as a service knows it."""

    def __init__(self, namespace: str, key: Sequence[str]) -> None:
        metadata: dict[str, Any] = {"telpher_adk": key[0], "key": list(key)}
        metadata["app"] = log.entry_id(key[1])
        if len(key) > 2:
            metadata["user"] = log.entry_id(key[1], key[2])
        self._key = key
        self._log = log.Log(namespace, f"adk-{key[0]}", key[1:], metadata)
        self.lock = asyncio.Lock()
        self._clear()

    def _clear(self) -> None:
        self.exists = False
        self.state = dict[str, Any]()
        self._events = list[dict[str, Any]]()
        self._updated = 0.0

    def _marker(self) -> str:
        return f"{self._log.generation}:{self._log.head}"

    def session(self) -> Session:
        _, app_name, user_id, session_id = self._key
        session = Session(
            id=session_id,
            app_name=app_name,
            user_id=user_id,
            state=dict(self.state),
            events=[Event.model_validate(event) for event in self._events],
            last_update_time=self._updated,
        )
        session._storage_update_marker = self._marker()
        return session

    def pull(self) -> log.Io[None]:
        entries, was_erased = yield from self._log.pull()
        if was_erased:
            self._clear()
        for entry in entries:
            self._apply(entry.value)

    def _apply(self, value: dict[str, Any]) -> None:
        self.exists = True
        self.state.update(value["state"])
        self._updated = value.get("time", self._updated)
        if "event" in value:
            self._events.append(value["event"])

    def create(self, state: dict[str, Any], time: float) -> log.Io[None]:
        value = {"state": state, "time": time}
        entry = log.Entry(value)
        while True:
            yield from self.pull()
            if self.exists:
                raise AlreadyExistsError(f"Session with id {self._key[-1]} already exists.")
            try:
                yield from self._log.append([entry])
                break
            except errors.Conflict:
                continue
        self._apply(value)

    def append(self, session: Session, event: Event, state: dict[str, Any]) -> log.Io[bool]:
        """Appends an event; False if an equal one with its id is stored."""
        value = {
            "state": state,
            "time": event.timestamp,
            "event": event.model_dump(mode="json", exclude_none=True, by_alias=True),
        }
        yield from self.pull()
        if not self.exists:
            raise SessionNotFoundError(f"Session {session.id} not found.")
        if value["event"] in self._events:
            return False
        marker = session._storage_update_marker
        if marker is None:
            known = [it.id for it in session.events]
            is_stale = known != [it.get("id") for it in self._events]
        else:
            is_stale = marker != self._marker()
        stale = StaleSessionError(
            f"Session {session.id} has events that this copy has not: get it again."
        )
        if is_stale:
            raise stale
        role = "user" if event.author == "user" else "assistant"
        try:
            yield from self._log.append([log.Entry(value, role=role)])
        except errors.Conflict:
            raise stale from None
        self._apply(value)
        session._storage_update_marker = self._marker()
        return True

    def merge(self, state: dict[str, Any]) -> log.Io[None]:
        """Adds to the state; of two writers of a key the later one wins."""
        entry = log.Entry({"state": state})
        while True:
            yield from self.pull()
            try:
                yield from self._log.append([entry])
                break
            except errors.Conflict:
                continue
        self._apply({"state": state})

    def erase(self) -> log.Io[None]:
        yield from self._log.erase()
        self._clear()
