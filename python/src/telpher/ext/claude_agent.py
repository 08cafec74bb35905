"""Sessions of the Claude Agent SDK: `TelpherSessionStore` implements its `SessionStore`.

```
async with telpher.connect() as node:
    store = TelpherSessionStore(node)
    options = ClaudeAgentOptions(session_store=store, resume=session_id)
```

A transcript is one conversation; a transcript of a subagent is another. Entries with a `uuid` are
stored once, however often they are appended.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, cast

from claude_agent_sdk import SessionKey, SessionStore, fold_session_summary
from claude_agent_sdk.types import (
    SessionListSubkeysKey,
    SessionStoreEntry,
    SessionStoreListEntry,
    SessionSummaryEntry,
)

from telpher import _errors as errors
from telpher._async._client import Client
from telpher._types import parse_time
from telpher.ext import _log as log

__all__ = ["TelpherSessionStore"]

SUMMARY_SIZE_MAX = 8 << 10
LOGS_MAX = 10_000


class TelpherSessionStore(SessionStore):
    """A `SessionStore` of the Claude Agent SDK in a namespace of a node.

    Two processes that run the same session would mix their messages. So a store that has read or
    written a transcript refuses to append (`telpher.Conflict`) once another store has added
    messages to it; load it again to go on from there. Entries without a `uuid`, such as titles and
    tags, may come from anywhere. `exclusive=False` lets several processes add messages.
    """

    def __init__(
        self, client: Client, *, namespace: str = "default/default", exclusive: bool = True
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._is_exclusive = exclusive
        self._transcripts = OrderedDict[tuple[str, str, str], _Transcript]()

    def _transcript(self, key: SessionKey) -> _Transcript:
        place = (key["project_key"], key["session_id"], key.get("subpath") or "")
        found = self._transcripts.get(place)
        if found is None:
            found = self._transcripts[place] = _Transcript(self._namespace, place)
            while len(self._transcripts) > LOGS_MAX:
                self._transcripts.popitem(last=False)
        self._transcripts.move_to_end(place)
        return found

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Appends a batch; returns when it is on disk. Entries whose `uuid` is stored are not
        appended again."""
        if not entries:
            return
        transcript = self._transcript(key)
        async with transcript.lock:
            await log.run(self._client, transcript.append(entries, self._is_exclusive))

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """Returns the whole transcript, None if nothing was written."""
        transcript = self._transcript(key)
        async with transcript.lock:
            entries = await log.run(self._client, transcript.load())
        return entries or None

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """Lists the sessions of a project."""
        found = await self._sessions(project_key)
        return [
            SessionStoreListEntry(session_id=_ids(line)[1], mtime=_mtime(line)) for line in found
        ]

    async def _sessions(self, project_key: str) -> list[dict[str, Any]]:
        wanted = {"telpher_claude": "session", "project": log.entry_id(project_key)}
        return await log.run(self._client, log.listed(self._namespace, wanted))

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        """Returns a summary of each session of a project.

        A summary is made from the entries that were appended since the last time, and stored in the
        metadata of the conversation.
        """
        return [await self._summary(line) for line in await self._sessions(project_key)]

    async def _summary(self, line: dict[str, Any]) -> SessionSummaryEntry:
        project_key, session_id = _ids(line)
        key = SessionKey(project_key=project_key, session_id=session_id)
        mtime, stored = _mtime(line), line["metadata"].get("summary")
        if stored is not None and stored["seq"] == line["head_seq"]:
            return SessionSummaryEntry(session_id=session_id, mtime=mtime, data=stored["data"])
        reader = log.Log.of(line["name"], stored["seq"] if stored is not None else 0)
        entries, was_erased = await log.run(self._client, reader.pull())
        previous: SessionSummaryEntry | None = None
        if stored is not None and not was_erased:
            previous = SessionSummaryEntry(session_id=session_id, mtime=mtime, data=stored["data"])
        summary = fold_session_summary(previous, key, [entry.value for entry in entries])
        summary["mtime"] = mtime
        kept = {"seq": reader.head, "data": summary["data"]}
        if not was_erased and len(log.to_text(kept)) <= SUMMARY_SIZE_MAX:
            await log.run(self._client, log.patch_metadata(reader.name, {"summary": kept}))
        return summary

    async def delete(self, key: SessionKey) -> None:
        """Erases a transcript, and with a session those of its subagents. Its key can be used
        again."""
        if not key.get("subpath"):
            for line in await self._subagents(key):
                await log.run(self._client, log.erase_named(line["name"]))
        transcript = self._transcript(key)
        async with transcript.lock:
            await log.run(self._client, transcript.erase())

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        """Lists the transcripts of the subagents of a session."""
        return [line["metadata"]["key"][2] for line in await self._subagents(key)]

    async def _subagents(self, key: SessionKey | SessionListSubkeysKey) -> list[dict[str, Any]]:
        session = log.entry_id(key["project_key"], key["session_id"])
        wanted = {"telpher_claude": "subagent", "session": session}
        return await log.run(self._client, log.listed(self._namespace, wanted))


class _Transcript:
    """What a store knows of a transcript."""

    def __init__(self, namespace: str, place: tuple[str, str, str]) -> None:
        project_key, session_id, subpath = place
        metadata = {
            "telpher_claude": "subagent" if subpath else "session",
            "project": log.entry_id(project_key),
            "session": log.entry_id(project_key, session_id),
            "key": list(place),
        }
        self._log = log.Log(namespace, "claude", place, metadata)
        self.lock = asyncio.Lock()
        self._is_known = False

    def load(self) -> log.Io[list[SessionStoreEntry]]:
        self._log.rewind()
        entries, _ = yield from self._log.pull()
        self._is_known = True
        return [entry.value for entry in entries]

    def append(self, entries: Sequence[SessionStoreEntry], is_exclusive: bool) -> log.Io[None]:
        made = [_entry(entry) for entry in entries]
        if not self._is_known:
            # The first append of this store: it goes on from what is there.
            yield from self._log.pull()
            self._is_known = True
        while True:
            try:
                yield from self._log.append(made)
                return
            except errors.IdReused:
                made = yield from self._without_stored(made)
            except errors.Conflict as conflict:
                before = self._log.head
                newer, was_erased = yield from self._log.pull()
                others = {entry.id for entry in newer if entry.value.get("uuid")}
                others -= {entry.id for entry in made}
                if is_exclusive and (others or was_erased):
                    # This store stays out until the transcript is loaded again.
                    if not was_erased:
                        self._log.head = before
                    raise errors.Conflict(
                        f"another process appends to the transcript {self._log.name!r}",
                        hint="load the session again, or end the other process",
                    ) from conflict

    def _without_stored(self, made: list[log.Entry]) -> log.Io[list[log.Entry]]:
        """Leaves out entries whose `uuid` is stored with other content."""
        reader = log.Log.of(self._log.name, 0)
        stored, _ = yield from reader.pull()
        ids = {entry.id for entry in stored}
        return [entry for entry in made if entry.id not in ids]

    def erase(self) -> log.Io[None]:
        yield from self._log.erase()
        self._is_known = False


def _entry(entry: SessionStoreEntry) -> log.Entry:
    role = entry["type"] if entry.get("type") in ("user", "assistant", "system") else "data"
    uuid = entry.get("uuid")
    if uuid is None:
        return log.Entry(dict(entry), role=role)
    return log.Entry(dict(entry), id=log.entry_id(uuid), role=role)


def _ids(line: dict[str, Any]) -> tuple[str, str]:
    """Returns the project key and session id of a listed conversation."""
    project_key, session_id, _ = cast("list[str]", line["metadata"]["key"])
    return project_key, session_id


def _mtime(line: dict[str, Any]) -> int:
    return int(parse_time(line["active_at"]).timestamp() * 1000)
