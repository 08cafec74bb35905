"""Checkpoints of LangGraph: `TelpherSaver` implements `BaseCheckpointSaver`.

```
async with telpher.connect() as node:
    graph = builder.compile(checkpointer=TelpherSaver(node))
    await graph.ainvoke(inputs, {"configurable": {"thread_id": "support-42"}})
```

A thread is one conversation, and every checkpoint, its channel values and its pending writes are
appended to it. A saver keeps the threads that it used in memory and reads what is new.
"""

from __future__ import annotations

import asyncio
import threading
from base64 import b64decode, b64encode
from collections import OrderedDict
from collections.abc import (
    AsyncIterator,
    Callable,
    Coroutine,
    Generator,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, TypeVar, cast
from uuid import uuid4

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_checkpoint_id,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.base import SerializerProtocol

import telpher.sync
from telpher import _errors as errors
from telpher._async._client import Client
from telpher.ext import _log as log

__all__ = ["TelpherSaver"]

THREADS_MAX = 256

T = TypeVar("T")


class TelpherSaver(BaseCheckpointSaver[str]):
    """A `BaseCheckpointSaver` of LangGraph in a namespace of a node.

    With a `telpher.Client` use it from that client's event loop (`ainvoke`, `astream`), with a
    `telpher.sync.Client` from any thread (`invoke`, `stream`). The other methods work too: those of
    the other kind run in a thread, or in the loop.

    Two runs of one thread at the same time would continue from the same checkpoint, and one result
    would be lost. So a checkpoint is refused (`telpher.Conflict`) if this saver read its parent as
    the newest of the thread and it no longer is. A run that names a `checkpoint_id` is a fork, and
    is not refused.
    """

    def __init__(
        self,
        client: Client | telpher.sync.Client,
        *,
        namespace: str = "default/default",
        serde: SerializerProtocol | None = None,
        threads_max: int = THREADS_MAX,
    ) -> None:
        super().__init__(serde=serde)
        self._client = client
        self._namespace = namespace
        self._threads_max = threads_max
        self._threads = OrderedDict[str, _Thread]()
        self._guard = threading.Lock()
        self._writer = uuid4().hex

    def get_next_version(self, current: str | None, channel: None) -> str:
        """Returns the next version of a channel; branches of a thread never get the same."""
        return InMemorySaver.get_next_version(cast(InMemorySaver, self), current, channel)

    # How operations are driven.

    def _thread(self, thread_id: str) -> _Thread:
        with self._guard:
            found = self._threads.get(thread_id)
            if found is None:
                found = self._threads[thread_id] = _Thread(
                    self._namespace, thread_id, self.serde, self._writer
                )
                while len(self._threads) > self._threads_max:
                    self._threads.popitem(last=False)
            self._threads.move_to_end(thread_id)
            return found

    async def _run(self, thread: _Locks, operation: log.Io[T]) -> T:
        client = self._client
        if isinstance(client, telpher.sync.Client):
            return await asyncio.to_thread(self._run_sync, thread, operation)
        async with thread.alock:
            return await log.run(client, operation)

    def _run_sync(self, thread: _Locks, operation: log.Io[T]) -> T:
        client = self._client
        if isinstance(client, telpher.sync.Client):
            with thread.lock:
                return log.run_sync(client, operation)
        return self._in_loop(client, self._run(thread, operation))

    def _in_loop(self, client: Client, work: Coroutine[Any, Any, T]) -> T:
        loop = client._link.loop
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if running is loop:
            work.close()
            raise errors.UsageError(
                "a blocking method of TelpherSaver was called in the event loop of its client",
                hint="use ainvoke or astream, or give TelpherSaver a telpher.sync.Client",
            )
        return asyncio.run_coroutine_threadsafe(work, loop).result()

    def _list_threads(self) -> log.Io[list[str]]:
        found = yield from log.listed(self._namespace, {"telpher_langgraph": "thread"})
        return [line["metadata"]["thread_id"] for line in found]

    # Asynchronous methods.

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Returns the checkpoint that `config` names, or the newest of its thread."""
        thread = self._thread(_thread_id(config))
        return await self._run(thread, thread.get_tuple(config))

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Yields checkpoints, newest first; without `config` those of all threads."""
        for thread_id in await self._thread_ids(config):
            thread = self._thread(thread_id)
            found = await self._run(thread, thread.listed(config, filter, before, limit))
            for item in found:
                yield item
            if limit is not None:
                limit -= len(found)

    async def _thread_ids(self, config: RunnableConfig | None) -> list[str]:
        if config is not None:
            return [_thread_id(config)]
        return await self._run(_Locks(), self._list_threads())

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Stores a checkpoint; returns when it is on disk."""
        thread = self._thread(_thread_id(config))
        return await self._run(thread, thread.put(config, checkpoint, metadata, new_versions))

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Stores the pending writes of a task; returns when they are on disk."""
        thread = self._thread(_thread_id(config))
        await self._run(thread, thread.put_writes(config, writes, task_id, task_path))

    async def adelete_thread(self, thread_id: str) -> None:
        """Erases a thread. Its id can be used again."""
        thread = self._thread(str(thread_id))
        await self._run(thread, thread.erase())

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Deletes the checkpoints of runs, which reads every thread of the namespace.

        The bytes stay on disk until the thread is deleted.
        """
        if not run_ids:
            return
        for thread_id in await self._thread_ids(None):
            thread = self._thread(thread_id)
            await self._run(thread, thread.delete_runs(set(run_ids)))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copies all checkpoints and writes of a thread to another."""
        source = self._thread(str(source_thread_id))
        entries = await self._run(source, source.entries())
        target = self._thread(str(target_thread_id))
        await self._run(target, target.add(entries))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Deletes old checkpoints: with "delete" all, with "keep_latest" all but the newest of each
        namespace and those that its delta channels need.

        The bytes stay on disk until the thread is deleted; "delete" erases them.
        """
        _check_strategy(strategy)
        for thread_id in thread_ids:
            thread = self._thread(str(thread_id))
            await self._run(thread, thread.erase() if strategy == "delete" else thread.prune())

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Returns the writes to channels since their last stored value."""
        thread = self._thread(_thread_id(config))
        return await self._run(thread, thread.history(config, channels))

    # Blocking methods: the same operations.

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Returns the checkpoint that `config` names, or the newest of its thread."""
        thread = self._thread(_thread_id(config))
        return self._run_sync(thread, thread.get_tuple(config))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yields checkpoints, newest first; without `config` those of all threads."""
        if config is not None:
            thread_ids = [_thread_id(config)]
        else:
            thread_ids = self._run_sync(_Locks(), self._list_threads())
        for thread_id in thread_ids:
            thread = self._thread(thread_id)
            found = self._run_sync(thread, thread.listed(config, filter, before, limit))
            yield from found
            if limit is not None:
                limit -= len(found)

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Stores a checkpoint; returns when it is on disk."""
        thread = self._thread(_thread_id(config))
        return self._run_sync(thread, thread.put(config, checkpoint, metadata, new_versions))

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Stores the pending writes of a task; returns when they are on disk."""
        thread = self._thread(_thread_id(config))
        self._run_sync(thread, thread.put_writes(config, writes, task_id, task_path))

    def delete_thread(self, thread_id: str) -> None:
        """Erases a thread. Its id can be used again."""
        thread = self._thread(str(thread_id))
        self._run_sync(thread, thread.erase())

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Deletes the checkpoints of runs; see `adelete_for_runs`."""
        if not run_ids:
            return
        for thread_id in self._run_sync(_Locks(), self._list_threads()):
            thread = self._thread(thread_id)
            self._run_sync(thread, thread.delete_runs(set(run_ids)))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copies all checkpoints and writes of a thread to another."""
        source = self._thread(str(source_thread_id))
        entries = self._run_sync(source, source.entries())
        target = self._thread(str(target_thread_id))
        self._run_sync(target, target.add(entries))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Deletes old checkpoints; see `aprune`."""
        _check_strategy(strategy)
        for thread_id in thread_ids:
            thread = self._thread(str(thread_id))
            self._run_sync(thread, thread.erase() if strategy == "delete" else thread.prune())

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Returns the writes to channels since their last stored value."""
        thread = self._thread(_thread_id(config))
        return self._run_sync(thread, thread.history(config, channels))


class _Locks:
    """Locks of a thread, or of an operation on none."""

    def __init__(self) -> None:
        self.lock: AbstractContextManager[Any] = threading.Lock()
        self.alock: AbstractAsyncContextManager[Any] = asyncio.Lock()


class _Thread(_Locks):
    """A thread as a saver knows it: its log, folded into LangGraph's own saver in memory."""

    def __init__(
        self, namespace: str, thread_id: str, serde: SerializerProtocol, writer: str
    ) -> None:
        super().__init__()
        metadata = {"telpher_langgraph": "thread", "thread_id": thread_id}
        self._log = log.Log(namespace, "langgraph", (thread_id,), metadata)
        self._thread_id = thread_id
        self._serde = serde
        self._writer = writer
        self._reset()

    def _reset(self) -> None:
        self._memory = InMemorySaver(serde=self._serde)
        self._writers = dict[tuple[str, str], str]()
        self._children = set[tuple[str, str]]()
        self._read_as_newest = set[tuple[str, str | None]]()
        self._forks = set[tuple[str, str | None]]()

    # Reading.

    def _pull(self) -> log.Io[None]:
        entries, was_erased = yield from self._log.pull()
        if was_erased:
            seen = self._read_as_newest
            self._reset()
            # A run that read the erased thread is refused.
            self._read_as_newest = seen
        for entry in entries:
            self._apply(entry.value)

    def _apply(self, value: dict[str, Any]) -> None:
        match value["op"]:
            case "put":
                self._apply_put(value)
            case "writes":
                self._apply_writes(value)
            case "delete":
                for ns, checkpoint_id in value["ids"]:
                    self._memory.storage[self._thread_id][ns].pop(checkpoint_id, None)
                    self._memory.writes.pop((self._thread_id, ns, checkpoint_id), None)
            case _:
                raise errors.Unsupported(
                    f"the thread {self._log.name!r} has an entry of the kind {value['op']!r}",
                    hint="a newer version of telpher wrote it: upgrade",
                )

    def _apply_put(self, value: dict[str, Any]) -> None:
        ns, checkpoint_id, parent = value["ns"], value["id"], value["parent"]
        for channel, version, data in value["blobs"]:
            self._memory.blobs[(self._thread_id, ns, channel, version)] = _bytes(data)
        self._memory.storage[self._thread_id][ns][checkpoint_id] = (
            _bytes(value["checkpoint"]),
            _bytes(value["metadata"]),
            parent,
        )
        self._writers[ns, checkpoint_id] = value["writer"]
        if parent is not None and value["writer"] == self._writer:
            self._children.add((ns, parent))

    def _apply_writes(self, value: dict[str, Any]) -> None:
        stored = self._memory.writes[(self._thread_id, value["ns"], value["id"])]
        task_id = value["task"]
        for index, channel, data in value["writes"]:
            if index < 0 or (task_id, index) not in stored:
                stored[task_id, index] = (task_id, channel, _bytes(data), value["path"])

    def _newest(self, ns: str) -> str | None:
        return max(self._memory.storage[self._thread_id][ns], default=None)

    def get_tuple(self, config: RunnableConfig) -> log.Io[CheckpointTuple | None]:
        yield from self._pull()
        ns = _namespace(config)
        newest = self._newest(ns)
        named = get_checkpoint_id(config)
        if named is None:
            self._read_as_newest.add((ns, newest))
        elif named != newest:
            self._forks.add((ns, named))
        return self._memory.get_tuple(self._config(config))

    def listed(
        self,
        config: RunnableConfig | None,
        filter: dict[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> log.Io[list[CheckpointTuple]]:
        yield from self._pull()
        wanted: RunnableConfig = {"configurable": {"thread_id": self._thread_id}}
        if config is not None:
            wanted["configurable"] |= {
                key: config["configurable"][key]
                for key in ("checkpoint_ns", "checkpoint_id")
                if key in config["configurable"]
            }
        return [*self._memory.list(wanted, filter=filter, before=before, limit=limit)]

    def history(
        self, config: RunnableConfig, channels: Sequence[str]
    ) -> log.Io[Mapping[str, DeltaChannelHistory]]:
        yield from self._pull()
        wanted = self._config(config)
        return self._memory.get_delta_channel_history(config=wanted, channels=channels)

    def _config(self, config: RunnableConfig) -> RunnableConfig:
        configurable = {**config["configurable"], "thread_id": self._thread_id}
        return {**config, "configurable": configurable}

    def entries(self) -> log.Io[list[dict[str, Any]]]:
        """Returns the values of all entries."""
        yield from self._pull()
        entries, _ = yield from log.Log.of(self._log.name, 0).pull()
        return [entry.value for entry in entries]

    # Writing.

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> log.Io[RunnableConfig]:
        ns, parent = _namespace(config), config["configurable"].get("checkpoint_id")
        values = checkpoint["channel_values"]
        stored = {key: value for key, value in checkpoint.items() if key != "channel_values"}
        dumps = self._serde.dumps_typed
        value = {
            "op": "put",
            "ns": ns,
            "id": checkpoint["id"],
            "parent": parent,
            "writer": self._writer,
            "checkpoint": _text(dumps(stored)),
            "metadata": _text(dumps(get_checkpoint_metadata(config, metadata))),
            "blobs": [
                [name, version, _text(dumps(values[name]) if name in values else ("empty", b""))]
                for name, version in new_versions.items()
            ],
        }

        def check() -> None:
            newest = self._newest(ns)
            if newest in (parent, checkpoint["id"]) or (ns, parent) in self._forks:
                return
            if (ns, parent) in self._read_as_newest:
                raise errors.Conflict(
                    f"another run continued the thread {self._thread_id!r}: its newest checkpoint "
                    f"is {newest}, this run continues {parent}",
                    hint="run one at a time per thread, or invoke again to go on from the newest",
                )

        yield from self._append([value], check)
        self._forks.discard((ns, parent))
        self._read_as_newest.add((ns, checkpoint["id"]))
        return {
            "configurable": {
                "thread_id": config["configurable"]["thread_id"],
                "checkpoint_ns": ns,
                "checkpoint_id": checkpoint["id"],
            }
        }

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str,
    ) -> log.Io[None]:
        ns, checkpoint_id = _namespace(config), config["configurable"]["checkpoint_id"]
        value = {
            "op": "writes",
            "ns": ns,
            "id": checkpoint_id,
            "task": task_id,
            "path": task_path,
            "writes": [
                [WRITES_IDX_MAP.get(name, index), name, _text(self._serde.dumps_typed(item))]
                for index, (name, item) in enumerate(writes)
            ],
        }

        def check() -> None:
            # Writes may come after the next checkpoint of the same run, but not of another saver.
            place = (ns, checkpoint_id)
            is_current = self._newest(ns) in (checkpoint_id, None)
            if is_current or place in self._forks or place in self._children:
                return
            if place in self._read_as_newest:
                raise errors.Conflict(
                    f"another run continued the thread {self._thread_id!r} after the checkpoint "
                    f"{checkpoint_id}",
                    hint="run one at a time per thread, or invoke again to go on from the newest",
                )

        yield from self._append([value], check)

    def add(self, values: Sequence[dict[str, Any]]) -> log.Io[None]:
        """Appends entries as they are."""
        yield from self._append(values, lambda: None)

    def _append(self, values: Sequence[dict[str, Any]], check: Callable[[], None]) -> log.Io[None]:
        entries = [log.Entry(value) for value in values]
        check()
        while entries:
            try:
                yield from self._log.append(entries)
                break
            except errors.Conflict:
                # Something else was appended, or the thread erased: look whether it matters.
                yield from self._pull()
                check()
        for value in values:
            self._apply(value)

    def erase(self) -> log.Io[None]:
        yield from self._log.erase()
        self._reset()

    def delete_runs(self, run_ids: set[str]) -> log.Io[None]:
        yield from self._pull()
        ids = [
            [ns, checkpoint_id]
            for ns, checkpoint_id, metadata in self._checkpoints()
            if metadata.get("run_id") in run_ids
        ]
        if ids:
            yield from self._append([{"op": "delete", "ids": ids}], lambda: None)

    def _checkpoints(self) -> Generator[tuple[str, str, dict[str, Any]], None, None]:
        for ns, checkpoints in self._memory.storage[self._thread_id].items():
            for checkpoint_id, (_, metadata, _) in checkpoints.items():
                yield ns, checkpoint_id, self._serde.loads_typed(metadata)

    def prune(self) -> log.Io[None]:
        yield from self._pull()
        kept = set[tuple[str, str]]()
        metadata = {(ns, id): found for ns, id, found in self._checkpoints()}
        for ns, checkpoints in self._memory.storage[self._thread_id].items():
            current = max(checkpoints, default=None)
            if current is None:
                continue
            # Delta channels without a value are rebuilt from their ancestors.
            counters = metadata[ns, current].get("counters_since_delta_snapshot") or {}
            needed = set(counters)
            while current is not None and current in checkpoints:
                kept.add((ns, current))
                checkpoint = self._serde.loads_typed(checkpoints[current][0])
                needed -= {
                    name
                    for name, version in checkpoint["channel_versions"].items()
                    if self._has_value(ns, name, version)
                }
                current = checkpoints[current][2] if needed else None
        ids = [[ns, id] for ns, id in metadata if (ns, id) not in kept]
        if ids:
            yield from self._append([{"op": "delete", "ids": ids}], lambda: None)

    def _has_value(self, ns: str, channel: str, version: Any) -> bool:
        blob = self._memory.blobs.get((self._thread_id, ns, channel, version))
        return blob is not None and blob[0] != "empty"


def _thread_id(config: RunnableConfig) -> str:
    return str(config["configurable"]["thread_id"])


def _namespace(config: RunnableConfig) -> str:
    return str(config["configurable"].get("checkpoint_ns", ""))


def _text(data: tuple[str, bytes]) -> list[str]:
    return [data[0], b64encode(data[1]).decode()]


def _bytes(data: list[str]) -> tuple[str, bytes]:
    return data[0], b64decode(data[1])


def _check_strategy(strategy: str) -> None:
    if strategy not in ("keep_latest", "delete"):
        raise errors.InvalidArgument(
            f"{strategy!r} is no pruning strategy", hint='use "keep_latest" or "delete"'
        )
