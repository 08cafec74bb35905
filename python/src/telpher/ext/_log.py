"""A log of JSON values in a conversation: what the stores of all frameworks have in common.

An entry is a message with one data part. Entries above `CHUNK_SIZE` are several messages: chunks,
and then the message that makes them an entry. Every append states the newest message that its
writer knows, so a writer that missed something gets `Conflict` and changes nothing.

The node never uses the name of an erased conversation again. So a log has a generation in its name:
when the conversation of a generation is erased, the log goes on in the next one. An append to an
erased generation fails, hence a writer that knows the old content cannot add to the new one.

Operations are generators of calls to a client. `run` drives them with a `telpher.Client`,
`run_sync` with a `telpher.sync.Client`, and both repeat a call while the node is away. That is safe
because every message has an id, which the node stores once.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Generic, TypeVar, cast
from uuid import uuid4

import telpher.sync
from telpher import _errors as errors
from telpher import _types as types
from telpher._async._client import Client
from telpher._async._http import collection, path
from telpher._options import full_jitter

CHUNK_SIZE = 512 << 10
"""Characters of JSON in one message; below `conversation.message_size_max`."""
BATCH_SIZE = 1 << 20
"""Bytes of messages in one append; below the frame limit of a node (2 MiB)."""
BATCH_COUNT = 200
ENTRY_SIZE_MAX = 64 << 20
"""Characters of JSON in one entry."""
PATIENCE = 30.0
"""Seconds for which a call is repeated while the node is away."""
DEPTH_MAX = 48

T = TypeVar("T")
Call = Callable[[Any], Any]
Io = Generator[Call, Any, T]
"""An operation: it yields calls, is sent their results, and returns a value."""


async def run(client: Client, operation: Io[T], *, patience: float = PATIENCE) -> T:
    """Drives an operation with an asynchronous client."""
    step = _Step(operation, patience)
    while (call := step.call) is not None:
        try:
            step.succeed(await call(client))
        except Exception as error:
            pause = step.fail(error)
            if pause is not None:
                await asyncio.sleep(pause)
    return step.result()


def run_sync(client: telpher.sync.Client, operation: Io[T], *, patience: float = PATIENCE) -> T:
    """Drives an operation with a blocking client."""
    step = _Step(operation, patience)
    while (call := step.call) is not None:
        try:
            step.succeed(call(client))
        except Exception as error:
            pause = step.fail(error)
            if pause is not None:
                time.sleep(pause)
    return step.result()


class _Step(Generic[T]):
    """An operation between two calls."""

    def __init__(self, operation: Io[T], patience: float) -> None:
        self._operation = operation
        self._patience = patience
        self._until = 0.0
        self._made = 0
        self._result: T | None = None
        self.call: Call | None = None
        self._advance(lambda: next(operation))

    def _advance(self, resume: Callable[[], Call]) -> None:
        self._made = 0
        self._until = time.monotonic() + self._patience
        try:
            self.call = resume()
        except StopIteration as stop:
            self.call = None
            self._result = stop.value

    def succeed(self, value: Any) -> None:
        """Passes the result of a call."""
        self._advance(lambda: self._operation.send(value))

    def fail(self, error: Exception) -> float | None:
        """Passes an error of a call, or returns the pause before the call is repeated."""
        if isinstance(error, errors.TelpherError) and error.retry is not errors.Retry.NO:
            pause = max(full_jitter(0.02, 1.0, self._made), error.retry_after or 0.0)
            self._made += 1
            if time.monotonic() + pause < self._until:
                return pause
        self._advance(lambda: self._operation.throw(error))
        return None

    def result(self) -> T:
        """Returns what the operation returned, once there is no call left."""
        return cast(T, self._result)


@dataclass(frozen=True, slots=True)
class Entry:
    """A value of a log."""

    value: Any
    id: str = field(default_factory=lambda: uuid4().hex)
    """The id of its message: appending the same entry again has no effect."""
    role: str = "data"
    author: str = ""
    seq: int = 0
    """The number of its message."""
    at_ms: int = 0
    """When it was appended, in milliseconds since 1970."""


def to_text(value: Any) -> str:
    """Returns the JSON of a value, in ASCII."""
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise errors.InvalidArgument(f"the value cannot be stored as JSON: {error}") from None


def entry_id(*parts: str) -> str:
    """Returns a message id for any texts."""
    return _digest(parts)


def _digest(parts: Sequence[str]) -> str:
    # JSON separates the parts unambiguously.
    text = json.dumps(list(parts))
    return blake2b(text.encode(), digest_size=16).hexdigest()


class Log:
    """A reader's and writer's view of one log: what it has read, and where it ends.

    `key` is any texts; the name of the conversation has a readable form of them and a hash.
    `metadata` is stored with the conversation, for lists.
    """

    def __init__(
        self, namespace: str, prefix: str, key: Sequence[str], metadata: Mapping[str, Any]
    ) -> None:
        readable = re.sub(r"[^A-Za-z0-9_.-]+", "-", ".".join(key))[-48:]
        self._base = f"{namespace}/{prefix}:{readable}:{_digest(key)}"
        self._metadata = dict(metadata)
        self.generation = 1
        self.head = 0
        """The number of the newest message that was read or written."""
        self._exists = False
        self._chunks = dict[str, str]()

    def describe(self, metadata: Mapping[str, Any]) -> None:
        """Adds metadata that are stored with the conversation when it is created."""
        self._metadata |= metadata

    @property
    def name(self) -> str:
        """The full name of the conversation."""
        return f"{self._base}:{self.generation}"

    @classmethod
    def of(cls, name: str, head: int) -> Log:
        """Returns a view of an existing log by the full name of its conversation, from the message
        after `head`."""
        made = cls.__new__(cls)
        base, _, generation = name.rpartition(":")
        made._base, made._metadata = base, {}
        made._start(int(generation))
        made.head, made._exists = head, True
        return made

    def rewind(self) -> None:
        """Lets the next `pull` read everything again."""
        self.head = 0
        self._chunks = {}

    def _start(self, generation: int) -> None:
        self.generation = generation
        self.head = 0
        self._exists = False
        self._chunks = {}

    def pull(self) -> Io[tuple[list[Entry], bool]]:
        """Reads what is new; the flag says that the log was erased since the last time, so that
        these entries are all that it has."""
        was_erased = False
        found = list[Entry]()
        while True:
            try:
                page: types.Page = yield _read_call(self.name, self.head)
            except errors.NotFound:
                return found, was_erased
            except errors.Gone:
                yield from self._find()
                was_erased, found = True, []
                continue
            self._exists = True
            for message in page.messages:
                self.head = message.seq
                entry = self.read(message)
                if entry is not None:
                    found.append(entry)
            if not page.messages or self.head >= page.head:
                return found, was_erased

    def pull_newest(self) -> Io[Entry | None]:
        """Reads the newest entry, None if there is none.

        The next `pull` goes on after it.
        """
        while True:
            try:
                page: types.Page = yield _last_call(self.name, 1)
            except errors.NotFound:
                return None
            except errors.Gone:
                yield from self._find()
                continue
            self._exists = True
            if not page.messages:
                return None
            (newest,) = page.messages
            self.head = newest.seq
            part = newest.parts[0] if newest.parts else {}
            if part.get("type") != "data-chunks":
                entry = self.read(newest)
                return entry if entry is not None else (yield from self._pull_last(0))
            # Further entries may have been appended in the meantime: they are read, too.
            start = max(0, newest.seq - int(part["data"]) - 1)
            try:
                return (yield from self._pull_last(start))
            except errors.InternalError:
                # Chunks of another writer are between those of this entry.
                return (yield from self._pull_last(0))

    def _pull_last(self, start: int) -> Io[Entry | None]:
        """Reads the entries after a message; returns the last one."""
        self.head, self._chunks = start, {}
        entries, _ = yield from self.pull()
        return entries[-1] if entries else None

    def _find(self) -> Io[None]:
        """Moves to the generation after the newest erased one, which is at least this one."""
        erased, step = self.generation, 1
        while (yield from self._is_erased(erased + step)):
            erased, step = erased + step, 2 * step
        end = erased + step
        while end - erased > 1:
            middle = (erased + end) // 2
            if (yield from self._is_erased(middle)):
                erased = middle
            else:
                end = middle
        self._start(end)

    def _is_erased(self, generation: int) -> Io[bool]:
        name = f"{self._base}:{generation}"
        try:
            yield lambda node: node.conversation(name).read(0, limit=1)
        except errors.NotFound:
            return False
        except errors.Gone:
            return True
        return False

    def read(self, message: types.Message) -> Entry | None:
        """Returns the entry that a message completes."""
        part = message.parts[0] if message.parts else {}
        data = part.get("data")
        at_ms = int(message.at.timestamp() * 1000) if message.at is not None else 0
        match part.get("type"):
            case "data-entry":
                value = data
            case "data-chunk" if isinstance(data, str):
                self._chunks[message.id] = data
                return None
            case "data-chunks" if isinstance(data, int):
                pieces = [self._chunks.pop(f"{message.id}.{index}", "") for index in range(data)]
                if "" in pieces:
                    raise errors.InternalError(
                        f"chunks of message {message.seq} of {self.name!r} are missing",
                        hint="the conversation has retention, or another program wrote to it",
                    )
                value = json.loads("".join(pieces))
            case _:
                # A message that another program appended.
                return None
        return Entry(value, message.id, message.role, message.author, message.seq, at_ms)

    def append(self, entries: Sequence[Entry]) -> Io[None]:
        """Appends entries if `head` is the newest message, else raises `Conflict`.

        Entries of at most 1 MiB together are appended all or none. Of larger ones a crash leaves
        the first entries, each whole.
        """
        if not self._exists:
            yield from self._create()
        for batch in _batches(entries):
            name, expect = self.name, self.head
            try:
                done: types.Appended = yield _append_call(name, batch, expect)
            except errors.Gone:
                raise errors.Conflict(
                    f"the conversation {name!r} was erased since it was read",
                    hint="read it again, then write",
                ) from None
            self.head = max(self.head, done.last)

    def _create(self) -> Io[None]:
        name, metadata = self.name, self._metadata
        try:
            yield lambda node: node.conversation(name).create(metadata=metadata)
        except errors.Gone:
            raise errors.Conflict(
                f"the conversation {name!r} was erased since it was read",
                hint="read it again, then write",
            ) from None
        self._exists = True

    def erase(self) -> Io[None]:
        """Erases all entries; the log goes on empty."""
        yield from self.pull()
        name = self.name
        try:
            yield lambda node: node.conversation(name).erase()
        except errors.NotFound:
            return
        except errors.Gone:
            pass
        self._start(self.generation + 1)


def _read_call(name: str, after: int) -> Call:
    return lambda node: node.conversation(name).read(after, limit=1_000)


def _last_call(name: str, count: int) -> Call:
    return lambda node: node.conversation(name).last(count)


def _append_call(name: str, batch: list[types.NewMessage], expect: int) -> Call:
    return lambda node: node.conversation(name).append_all(batch, expect=expect)


def _batches(entries: Sequence[Entry]) -> Generator[list[types.NewMessage], None, None]:
    """Yields messages in batches, each small enough for one append."""
    batch, size = list[types.NewMessage](), 0
    for entry in entries:
        made = list(_messages(entry))
        for message, message_size in made:
            is_full = len(batch) >= BATCH_COUNT or size + message_size > BATCH_SIZE
            if batch and is_full:
                yield batch
                batch, size = [], 0
            batch.append(message)
            size += message_size
    if batch:
        yield batch


def _messages(entry: Entry) -> Generator[tuple[types.NewMessage, int], None, None]:
    """Yields the messages of an entry and their sizes."""
    text = to_text(entry.value)
    if len(text) <= CHUNK_SIZE and _is_shallow(text) and _is_unicode(text, entry.value):
        yield _message(entry, entry.id, "data-entry", entry.value), len(text) + 256
        return
    if len(text) > ENTRY_SIZE_MAX:
        raise errors.TooLarge(
            f"an entry has {len(text)} characters of JSON (limit {ENTRY_SIZE_MAX})",
            hint="store large content elsewhere, and its address here",
        )
    pieces = [text[at : at + CHUNK_SIZE] for at in range(0, len(text), CHUNK_SIZE)]
    for index, piece in enumerate(pieces):
        # Quotes and backslashes take two bytes.
        yield _message(entry, f"{entry.id}.{index}", "data-chunk", piece), 2 * len(piece) + 256
    yield _message(entry, entry.id, "data-chunks", len(pieces)), 256


def _message(entry: Entry, id: str, kind: str, data: Any) -> types.NewMessage:
    return {
        "role": entry.role,
        "author": entry.author,
        "id": id,
        "parts": [{"type": kind, "data": data}],
    }


def _is_shallow(text: str) -> bool:
    """Returns whether JSON is nested less deeply than the node accepts as parts; brackets in texts
    count, which is harmless."""
    depth = deepest = 0
    for mark in re.findall(r"[\[\]{}]", text):
        depth += 1 if mark in "[{" else -1
        deepest = max(deepest, depth)
    return deepest <= DEPTH_MAX


def _is_unicode(text: str, value: Any) -> bool:
    """Returns whether a value has no half of a surrogate pair, which UTF-8 cannot express."""
    if "\\ud" not in text:
        return True
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def listed(namespace: str, metadata: Mapping[str, str]) -> Io[list[dict[str, Any]]]:
    """Returns the conversations with these metadata that have messages, newest activity first."""
    route = collection(namespace, "conversations")
    params = {f"metadata.{key}": value for key, value in metadata.items()} | {"limit": "100"}
    found = list[dict[str, Any]]()
    while True:
        asked = dict(params)
        page: dict[str, Any] = yield _get_call(route, asked)
        found += [line for line in page["conversations"] if line["head_seq"] > 0]
        if not page.get("next"):
            return found
        params["after"] = page["next"]


def _get_call(route: str, params: dict[str, str]) -> Call:
    return lambda node: node.http("GET", route, params=params)


def erase_named(name: str) -> Io[None]:
    """Erases a conversation by its full name; it may be erased already."""
    try:
        yield lambda node: node.conversation(name).erase()
    except (errors.NotFound, errors.Gone):
        pass


def patch_metadata(name: str, metadata: Mapping[str, Any]) -> Io[None]:
    """Merges metadata into those of a conversation (RFC 7396)."""
    route = path(name, "conversations")
    body = {"metadata": dict(metadata)}
    yield lambda node: node.http("PATCH", route, body=body)
