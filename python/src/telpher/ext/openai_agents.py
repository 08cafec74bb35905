"""Sessions of the OpenAI Agents SDK: `TelpherSession` implements its `Session`.

```
async with telpher.connect() as node:
    session = TelpherSession(node, "support-42")
    result = await Runner.run(agent, "Where is my parcel?", session=session)
```

A session is one conversation, each item a message.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

from agents.items import TResponseInputItem
from agents.memory import SessionABC, SessionSettings
from agents.memory.session_settings import resolve_session_limit

from telpher import _errors as errors
from telpher._async._client import Client
from telpher.ext import _log as log

__all__ = ["TelpherSession"]


class TelpherSession(SessionABC):
    """A `Session` of the OpenAI Agents SDK in a namespace of a node.

    Use one object for each run. If another object has added or removed items since this one read
    the session, `add_items` and `pop_item` are refused (`telpher.Conflict`) and change nothing;
    `get_items` reads what is new, and the object may write again.
    """

    def __init__(
        self,
        client: Client,
        session_id: str,
        *,
        namespace: str = "default/default",
        session_settings: SessionSettings | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings = session_settings or SessionSettings()
        self._client = client
        metadata = {"telpher_openai": "session", "session_id": session_id}
        self._log = log.Log(namespace, "openai", (session_id,), metadata)
        self._items = list[dict[str, Any]]()
        self._has_read = False
        self._lock = asyncio.Lock()

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Returns the newest `limit` items in their order, by default those that the settings say,
        or all."""
        limit = resolve_session_limit(limit, self.session_settings)
        async with self._lock:
            await log.run(self._client, self._pull())
            items = self._items
        if limit is not None:
            items = items[-limit:] if limit > 0 else []
        return [cast(TResponseInputItem, dict(item)) for item in items]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Adds items; returns when they are on disk."""
        if not items:
            return
        entries = [
            log.Entry({"item": dict(item)}, role=_role(cast("dict[str, Any]", item)))
            for item in items
        ]
        async with self._lock:
            await log.run(self._client, self._append(entries))

    async def pop_item(self) -> TResponseInputItem | None:
        """Removes the newest item and returns it, None if there is none.

        It is not read any more; its bytes are erased with the session (`clear_session`).
        """
        async with self._lock:
            return await log.run(self._client, self._pop())

    async def clear_session(self) -> None:
        """Erases all items. The session can be used again."""
        async with self._lock:
            await log.run(self._client, self._log.erase())
            self._items = []
            self._has_read = True

    def _pull(self) -> log.Io[None]:
        entries, was_erased = yield from self._log.pull()
        if was_erased:
            self._items = []
        for entry in entries:
            self._apply(entry.value)
        self._has_read = True

    def _apply(self, value: dict[str, Any]) -> None:
        if "item" in value:
            self._items.append(value["item"])
        elif "pop" in value:
            self._items.pop()
        else:
            raise errors.Unsupported(
                f"the session {self._log.name!r} has an entry that this version does not know",
                hint="a newer version of telpher wrote it: upgrade",
            )

    def _append(self, entries: list[log.Entry]) -> log.Io[None]:
        has_read = self._has_read
        while True:
            if not self._has_read:
                yield from self._pull()
            try:
                yield from self._log.append(entries)
                break
            except errors.Conflict as conflict:
                if has_read:
                    raise errors.Conflict(
                        f"the session {self.session_id!r} changed since this object read it",
                        hint="call get_items, then write; use one run at a time per session",
                    ) from conflict
                self._has_read = False
        for entry in entries:
            self._apply(entry.value)

    def _pop(self) -> log.Io[TResponseInputItem | None]:
        has_read = self._has_read
        while True:
            if not self._has_read:
                yield from self._pull()
            if not self._items:
                return None
            popped = self._items[-1]
            self._has_read = True
            try:
                yield from self._append([log.Entry({"pop": 1})])
            except errors.Conflict:
                if has_read:
                    raise
                self._has_read = False
                continue
            return cast(TResponseInputItem, dict(popped))


def _role(item: dict[str, Any]) -> str:
    role, kind = item.get("role"), item.get("type", "message")
    if role in ("user", "assistant", "system"):
        return str(role)
    return "tool" if isinstance(kind, str) and kind.endswith("_output") else "assistant"
