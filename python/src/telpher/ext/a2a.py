"""Tasks of A2A servers: `TelpherTaskStore` and `TelpherEventStream` of a2a-sdk.

```
store = TelpherTaskStore(node)
handler = DefaultRequestHandlerV2(executor, store, card, event_stream=store.events)
```

A task is one conversation, each save a message with the task and the event that made it. So every
replica of a server reads the same task, and follows its events from any version.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from a2a.server.cluster import (
    ConcurrentTaskModificationError,
    StoredTask,
    TaskEventStream,
    TaskVersion,
    VersionedEvent,
    VersionedTaskStore,
)
from a2a.server.context import ServerCallContext
from a2a.server.events.event_queue import Event
from a2a.server.owner_resolver import OwnerResolver, resolve_user_scope
from a2a.server.tasks.inmemory_task_store import InMemoryTaskStore
from a2a.types.a2a_pb2 import (
    ListTasksRequest,
    ListTasksResponse,
    StreamResponse,
    Task,
    TaskState,
)
from a2a.utils.proto_utils import to_stream_response
from google.protobuf.json_format import MessageToDict, ParseDict

from telpher import _errors as errors
from telpher._async._client import Client
from telpher.ext import _log as log

__all__ = ["TelpherEventStream", "TelpherTaskStore"]

TERMINAL = (
    TaskState.TASK_STATE_COMPLETED,
    TaskState.TASK_STATE_CANCELED,
    TaskState.TASK_STATE_FAILED,
    TaskState.TASK_STATE_REJECTED,
)
_GENERATION = 1 << 40


class TelpherTaskStore(VersionedTaskStore):
    """A `VersionedTaskStore` of a2a-sdk in a namespace of a node.

    A save of an old version is refused with `ConcurrentTaskModificationError`, also between
    replicas. A task of another owner does not exist for a caller, and its id cannot be used.
    """

    def __init__(
        self,
        client: Client,
        *,
        namespace: str = "default/default",
        owner_resolver: OwnerResolver = resolve_user_scope,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._owner_of = owner_resolver
        self.events = TelpherEventStream(client, namespace)
        """The events of the tasks, for the request handler."""

    async def save(
        self,
        task: Task,
        *,
        event: Event | None,
        prev: Task | None,
        prev_version: TaskVersion,
        context: ServerCallContext,
    ) -> TaskVersion:
        """Stores a task and the event that made it; returns when they are on disk."""
        owner = self._owner_of(context)
        return await log.run(self._client, self._save(task, event, prev_version, owner))

    def _save(
        self, task: Task, event: Event | None, prev_version: TaskVersion, owner: str
    ) -> log.Io[TaskVersion]:
        place = _log(self._namespace, task.id)
        place.describe({"telpher_a2a": "task", "owner": log.entry_id(owner), "task_id": task.id})
        value: dict[str, Any] = {"task": MessageToDict(task), "owner": owner}
        if event is not None:
            value["event"] = MessageToDict(to_stream_response(event))
        entry = log.Entry(value)
        is_canceled = task.status.state == TaskState.TASK_STATE_CANCELED
        while True:
            stored = yield from place.pull_newest()
            if stored is not None and stored.id == entry.id:
                return _version(place, stored.seq)
            if stored is not None and stored.value["owner"] != owner:
                raise ConcurrentTaskModificationError(task.id)
            if is_canceled:
                if stored is None or _task(stored).status.state in TERMINAL:
                    raise ConcurrentTaskModificationError(task.id)
            else:
                is_at = stored is not None and _version(place, stored.seq) == prev_version
                is_first = stored is None and prev_version.is_missing
                if not is_at and not is_first:
                    raise ConcurrentTaskModificationError(task.id)
            try:
                yield from place.append([entry])
            except errors.Conflict:
                continue
            return _version(place, place.head)

    async def get(self, task_id: str, context: ServerCallContext) -> StoredTask | None:
        """Returns a task with its version, None if the caller has none with this id."""
        place = _log(self._namespace, task_id)
        stored = await log.run(self._client, place.pull_newest())
        if stored is None or stored.value["owner"] != self._owner_of(context):
            return None
        return StoredTask(_task(stored), _version(place, stored.seq))

    async def list(self, params: ListTasksRequest, context: ServerCallContext) -> ListTasksResponse:
        """Lists the tasks of the caller, which reads each of them."""
        owner = log.entry_id(self._owner_of(context))
        wanted = {"telpher_a2a": "task", "owner": owner}
        found = InMemoryTaskStore(owner_resolver=self._owner_of)
        for line in await log.run(self._client, log.listed(self._namespace, wanted)):
            stored = await self.get(line["metadata"]["task_id"], context)
            if stored is not None:
                await found.save(stored.task, context)
        return await found.list(params, context)

    async def delete(self, task_id: str, context: ServerCallContext) -> None:
        """Erases a task of the caller with its events."""
        if await self.get(task_id, context) is not None:
            await log.run(self._client, _log(self._namespace, task_id).erase())


class TelpherEventStream(TaskEventStream):
    """The events of a `TelpherTaskStore`, from its attribute `events`."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace

    async def publish(self, task_id: str, event: VersionedEvent) -> None:
        """Does nothing: `TelpherTaskStore.save` has stored the event together with the task."""

    async def subscribe(
        self, task_id: str, *, after: TaskVersion
    ) -> AsyncGenerator[VersionedEvent, None]:
        """Yields the events after a version, stored ones and then new ones; it ends when the task
        is deleted."""
        place = _log(self._namespace, task_id)
        await log.run(self._client, place.pull_newest())
        place.rewind()
        while True:
            try:
                async for message in self._client.conversation(place.name).tail(place.head):
                    place.head = message.seq
                    entry = place.read(message)
                    if entry is None or "event" not in entry.value:
                        continue
                    version = _version(place, entry.seq)
                    if version.is_after(after):
                        yield VersionedEvent(_event(entry.value["event"]), version)
            except errors.NotFound:
                # The task is not saved yet.
                await asyncio.sleep(0.05)
            except errors.Gone:
                return

    async def destroy(self, task_id: str) -> None:
        """Does nothing: the events stay with the task until it is deleted."""


def _log(namespace: str, task_id: str) -> log.Log:
    return log.Log(namespace, "a2a", (task_id,), {})


def _version(place: log.Log, seq: int) -> TaskVersion:
    return TaskVersion((place.generation - 1) * _GENERATION + seq)


def _task(stored: log.Entry) -> Task:
    return ParseDict(stored.value["task"], Task())


def _event(value: dict[str, Any]) -> Event:
    response = ParseDict(value, StreamResponse())
    kind = response.WhichOneof("payload")
    if kind is None:
        raise errors.Unsupported(
            "an event has a kind that this a2a-sdk does not know", hint="upgrade a2a-sdk"
        )
    event: Event = getattr(response, kind)
    return event
