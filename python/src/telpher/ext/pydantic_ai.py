"""Conversations of Pydantic AI: `TelpherConversationStore` implements its `ConversationStore`.

```
async with telpher.connect() as node:
    store = TelpherConversationStore(node)
    conversation = await store.load("support-42") or Conversation(conversation_id="support-42")
    result = await agent.run("Where is my parcel?", conversation=conversation)
    await store.save(result)              # ConversationConflict after another writer
```

A conversation of Pydantic AI is one of Telpher. A fork has a copy of the messages that it shares,
so that deleting a conversation erases its messages and no other's.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from pydantic import TypeAdapter
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    ConversationStore,
)
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse

from telpher import _errors as errors
from telpher._async._client import Client
from telpher.ext import _log as log

__all__ = ["TelpherConversationStore"]

CONVERSATIONS_MAX = 256
_RECORD = TypeAdapter(ConversationRecord)


class TelpherConversationStore(ConversationStore):
    """A `ConversationStore` of Pydantic AI in a namespace of a node.

    A save, a branch or a deletion of an old revision is refused with `ConversationConflict`, also
    between processes. Deleting erases the messages.
    """

    def __init__(
        self,
        client: Client,
        *,
        namespace: str = "default/default",
        conversations_max: int = CONVERSATIONS_MAX,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._conversations_max = conversations_max
        self._stored = OrderedDict[str, _Stored]()

    def _of(self, conversation_id: str) -> _Stored:
        found = self._stored.get(conversation_id)
        if found is None:
            found = self._stored[conversation_id] = _Stored(self._namespace, conversation_id)
            while len(self._stored) > self._conversations_max:
                self._stored.popitem(last=False)
        self._stored.move_to_end(conversation_id)
        return found

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        """Returns the record of a conversation, None if there is none."""
        stored = self._of(conversation_id)
        async with stored.lock:
            await log.run(self._client, stored.pull())
            return stored.record()

    async def read_records(
        self, *, scope: str | None = None, limit: int | None = None
    ) -> Sequence[ConversationRecord]:
        """Returns the records, or those of a scope, most recently saved first."""
        found = list[ConversationRecord]()
        for line in await self._listed(scope):
            if limit is not None and len(found) >= limit:
                break
            record = await self.read_record(line["metadata"]["conversation_id"])
            if record is not None:
                found.append(record)
        return sorted(found, key=lambda record: record.updated_at, reverse=True)

    async def _listed(self, scope: str | None = None) -> list[dict[str, Any]]:
        wanted = {"telpher_pydantic": "conversation"}
        if scope is not None:
            wanted["scope"] = log.entry_id(scope)
        return await log.run(self._client, log.listed(self._namespace, wanted))

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        """Stores a record and its new entries; returns when they are on disk."""
        entries = list(new_entries)
        stored = self._of(record.conversation_id)
        if record.forked_from is not None and expected_revision is None:
            entries = [*await self._shared(record), *entries]
        async with stored.lock:
            await log.run(self._client, stored.write(record, entries, expected_revision))

    async def _shared(self, fork: ConversationRecord) -> list[ConversationEntry]:
        """Returns the entries that a fork shares with the conversation that it comes from."""
        try:
            return await self.read_history(fork.forked_at)
        except LookupError:
            raise ConversationConflict(fork.conversation_id) from None

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """Erases a conversation with its messages. Its id can be used again."""
        stored = self._of(conversation_id)
        async with stored.lock:
            await log.run(self._client, stored.delete(expected_revision))

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        """Returns an entry; one of a conversation that this store has not read is searched in all
        conversations of the namespace."""
        return _entry((await self._holder(entry_id)).entries[entry_id])

    async def read_history(
        self, head_id: str | None, *, limit: int | None = None
    ) -> list[ConversationEntry]:
        """Returns the entries up to `head_id`, or the last `limit` of them."""
        if head_id is None:
            return []
        entries = (await self._holder(head_id)).entries
        found = list[ConversationEntry]()
        at: str | None = head_id
        while at is not None and (limit is None or len(found) < limit):
            found.append(_entry(entries[at]))
            at = found[-1].parent_id
        found.reverse()
        return found

    async def _holder(self, entry_id: str) -> _Stored:
        """Returns the conversation that has an entry."""
        for stored in reversed(self._stored.values()):
            if entry_id in stored.entries:
                return stored
        for line in await self._listed():
            stored = self._of(line["metadata"]["conversation_id"])
            async with stored.lock:
                await log.run(self._client, stored.pull())
            if entry_id in stored.entries:
                return stored
        raise KeyError(entry_id)


class _Stored:
    """A conversation as a store knows it."""

    def __init__(self, namespace: str, conversation_id: str) -> None:
        self._conversation_id = conversation_id
        self._namespace = namespace
        metadata = {"telpher_pydantic": "conversation", "conversation_id": conversation_id}
        self._log = log.Log(namespace, "pydantic", (conversation_id,), metadata)
        self._record: dict[str, Any] | None = None
        self._is_deleted = False
        self.entries = dict[str, dict[str, Any]]()
        self.lock = asyncio.Lock()

    def record(self) -> ConversationRecord | None:
        return None if self._record is None else _RECORD.validate_python(self._record)

    def _clear(self) -> None:
        self._record, self.entries = None, {}

    def pull(self) -> log.Io[None]:
        entries, was_erased = yield from self._log.pull()
        if was_erased:
            self._clear()
            self._is_deleted = False
        for entry in entries:
            self._apply(entry.value)

    def _apply(self, value: dict[str, Any]) -> None:
        if "entry" in value:
            self.entries[value["entry"]["id"]] = value["entry"]
        elif "record" in value:
            self._record = value["record"]
        elif "deleted" in value:
            self._clear()
            self._is_deleted = True
        else:
            raise errors.Unsupported(
                f"the conversation {self._log.name!r} has an entry of a newer version",
                hint="upgrade telpher",
            )

    def _check(self, expected_revision: str | None) -> None:
        revision = None if self._record is None else self._record["revision"]
        if revision != expected_revision:
            raise ConversationConflict(self._conversation_id)

    def write(
        self,
        record: ConversationRecord,
        new_entries: Sequence[ConversationEntry],
        expected_revision: str | None,
    ) -> log.Io[None]:
        made = [
            log.Entry(
                {"entry": _value(entry)},
                role="assistant" if isinstance(entry.message, ModelResponse) else "user",
            )
            for entry in new_entries
        ]
        # The record comes last: entries without it are not part of any history.
        made.append(log.Entry({"record": _RECORD.dump_python(record, mode="json")}))
        if record.scope is not None:
            self._log.describe({"scope": log.entry_id(record.scope)})
        yield from self.pull()
        while True:
            self._check(expected_revision)
            known = {*self.entries, *(entry.id for entry in new_entries)}
            if record.head_id is not None and record.head_id not in known:
                raise ConversationConflict(self._conversation_id)
            if self._is_deleted:
                # A deletion that did not come to its end.
                yield from self._log.erase()
                self._is_deleted = False
            try:
                yield from self._log.append(made)
                break
            except errors.Conflict:
                yield from self.pull()
        for entry in made:
            self._apply(entry.value)

    def delete(self, expected_revision: str) -> log.Io[None]:
        yield from self.pull()
        while True:
            self._check(expected_revision)
            try:
                # It is an append with an expectation, so that no save is lost.
                yield from self._log.append([log.Entry({"deleted": True})])
                break
            except errors.Conflict:
                yield from self.pull()
        self._clear()
        yield from self._log.erase()


def _value(entry: ConversationEntry) -> dict[str, Any]:
    (message,) = ModelMessagesTypeAdapter.dump_python([entry.message], mode="json")
    return {
        "id": entry.id,
        "parent_id": entry.parent_id,
        "kind": entry.kind,
        "message": message,
    }


def _entry(value: dict[str, Any]) -> ConversationEntry:
    (message,) = ModelMessagesTypeAdapter.validate_python([value["message"]])
    return ConversationEntry(
        id=value["id"], parent_id=value["parent_id"], kind=value["kind"], message=message
    )
