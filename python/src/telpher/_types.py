"""Values that the client returns: frozen, typed, and without behaviour of their own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from enum import StrEnum
from typing import Any, Literal, TypedDict

from telpher import _wire as wire
from telpher._body import Body, to_json
from telpher._core import Inbound
from telpher._errors import InvalidArgument

__all__ = [
    "Appended",
    "AppendedRecords",
    "Cleared",
    "Closed",
    "ContextWindow",
    "ConversationState",
    "Delivery",
    "Delta",
    "Event",
    "Head",
    "InboxLine",
    "Limit",
    "ListedConversation",
    "Message",
    "NewMessage",
    "Page",
    "Receipt",
    "Record",
    "RecordPage",
    "Status",
    "Stop",
    "Stored",
    "Taken",
]


def _time(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def parse_time(text: str) -> datetime:
    """Returns the time in an RFC 3339 text."""
    return datetime.fromisoformat(text)


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of a one-way message: copies that were queued, and copies that were dropped."""

    delivered: int
    dropped: int


@dataclass(frozen=True, slots=True)
class Stored:
    """A written message: its place in the mailbox, and whether its id existed already."""

    offset: int
    is_duplicate: bool


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message of a mailbox, handed to an instance of its agent.

    Returning from the handler acknowledges it; raising has it delivered again.
    """

    body: Body
    offset: int
    """Its place in the mailbox."""
    delivery: int
    """1 for the first delivery, more for each repetition."""
    written_at: datetime
    name: str
    """The instance that received it."""
    source: str | None
    """The sender's name."""
    metadata: Mapping[str, bytes] = field(default_factory=dict)

    def text(self) -> str:
        """Returns the body as text."""
        return self.body.text()

    def json(self) -> Any:
        """Returns the JSON value that the body is."""
        return self.body.json()


def delivery_of(inbound: Inbound) -> Delivery:
    """Returns the delivery in a request that delivers a message of a mailbox."""
    offset, number, written_ms, body = wire.delivery(inbound.body)
    metadata = wire.read_metadata(inbound.metadata) if inbound.metadata else {}
    source = metadata.get("source")
    return Delivery(
        Body(body),
        offset,
        number,
        _time(written_ms),
        inbound.name,
        source.decode() if source else None,
        metadata,
    )


@dataclass(frozen=True, slots=True)
class Record:
    """A record of a stream."""

    offset: int
    time: datetime
    data: Body

    def text(self) -> str:
        """Returns the record as text."""
        return self.data.text()

    def json(self) -> Any:
        """Returns the JSON value that the record is."""
        return self.data.json()


@dataclass(frozen=True, slots=True)
class RecordPage:
    """Records of a stream. `start` is the oldest stored offset, `next` the one after the newest."""

    records: Sequence[Record]
    start: int
    next: int


@dataclass(frozen=True, slots=True)
class AppendedRecords:
    """Offsets of appended records: of the first, and after the last."""

    first: int
    next: int


def record_page(payload: bytes) -> RecordPage:
    found = wire.extract(payload)
    records = tuple(Record(it.offset, _time(it.time_ms), Body(it.data)) for it in found.items)
    return RecordPage(records, found.start, found.next)


class Status(StrEnum):
    """How a message came to its end."""

    COMPLETE = "complete"
    INTERRUPTED = "interrupted"
    ABORTED = "aborted"
    STOPPED = "stopped"


_STATUS = (Status.COMPLETE, Status.INTERRUPTED, Status.ABORTED, Status.STOPPED)


class NewMessage(TypedDict, total=False):
    """A message to append. `role` is required, and one of `text` and `parts`."""

    role: str
    text: str
    parts: Sequence[Mapping[str, Any]]
    id: str
    author: str
    metadata: Mapping[str, Any]
    tokens: int


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a conversation."""

    seq: int
    """Its number, from 1 without gaps."""
    id: str
    role: str
    author: str
    parts: Sequence[Mapping[str, Any]]
    metadata: Mapping[str, Any] | None
    tokens: int
    """Its cost for a model; `is_estimated` if the author gave none."""
    is_estimated: bool
    status: Status
    at: datetime | None

    @property
    def text(self) -> str:
        """The text of its text parts."""
        parts = (part for part in self.parts if part.get("type") == "text")
        return "".join(str(part.get("text", "")) for part in parts)


def native_message(item: wire.Item) -> Message:
    """Returns the message of an answer to READ."""
    it = wire.stored_message(item.data)
    metadata = None
    if it.metadata:
        try:
            metadata = json.loads(it.metadata)
        except ValueError:
            metadata = None
    return Message(
        seq=item.offset,
        id=it.id,
        role=it.role,
        author=it.author,
        parts=json.loads(it.parts),
        metadata=metadata,
        tokens=it.tokens,
        is_estimated=bool(it.flags & 1),
        status=_STATUS[it.status] if it.status < len(_STATUS) else Status.INTERRUPTED,
        at=_time(item.time_ms),
    )


def http_message(it: Mapping[str, Any]) -> Message:
    """Returns the message of a JSON answer."""
    at = it.get("at")
    return Message(
        seq=int(it.get("seq", 0)),
        id=str(it.get("id", "")),
        role=str(it.get("role", "")),
        author=str(it.get("from") or ""),
        parts=it.get("parts", ()),
        metadata=it.get("metadata"),
        tokens=int(it.get("tokens", 0)),
        is_estimated=bool(it.get("estimated", False)),
        status=Status(it.get("status", "complete")),
        at=parse_time(at) if isinstance(at, str) else None,
    )


def encode_message(new: NewMessage, id: str) -> bytes:
    """Returns a message of an APPEND."""
    unknown = set(new) - set(NewMessage.__annotations__)
    if unknown:
        raise InvalidArgument(f"a message has no field {sorted(unknown)[0]!r}")
    if not new.get("role"):
        raise InvalidArgument("a message needs a `role`")
    if ("text" in new) == ("parts" in new):
        raise InvalidArgument("a message needs either `text` or `parts`")
    parts = new.get("parts") or [{"type": "text", "text": new.get("text", "")}]
    metadata = new.get("metadata")
    return wire.new_message(
        new.get("tokens"),
        id,
        new.get("role", ""),
        new.get("author", ""),
        b"" if metadata is None else to_json(metadata),
        to_json(parts),
    )


@dataclass(frozen=True, slots=True)
class Appended:
    """Numbers of appended messages: of the first, and of the last."""

    first: int
    last: int
    deduplicated: int
    """How many of them existed already."""
    ids: Sequence[str]
    """The id of each message, in order."""


@dataclass(frozen=True, slots=True)
class Page:
    """Messages of a conversation. `start` is the oldest stored number, `head` the newest."""

    messages: Sequence[Message]
    start: int
    head: int


def message_page(payload: bytes) -> Page:
    found = wire.extract(payload)
    return Page(tuple(map(native_message, found.items)), found.start, found.next - 1)


@dataclass(frozen=True, slots=True)
class Head:
    """All existing messages have been shown; `seq` is the newest."""

    seq: int
    position: str


@dataclass(frozen=True, slots=True)
class Delta:
    """A chunk of an answer that is being streamed, as its author sent it."""

    draft: int
    message: str
    """The id that the message will have."""
    index: int
    chunk: Mapping[str, Any]
    position: str

    @property
    def text(self) -> str:
        """The text that the chunk adds; empty for chunks of other kinds."""
        is_text = self.chunk.get("type") == "text-delta"
        return str(self.chunk.get("delta", "")) if is_text else ""


@dataclass(frozen=True, slots=True)
class Stop:
    """The author of a streamed answer was asked to stop."""

    draft: int
    message: str
    position: str


@dataclass(frozen=True, slots=True)
class Closed:
    """A streamed answer has ended; its message came before."""

    draft: int
    chunk: Mapping[str, Any] | None
    position: str


@dataclass(frozen=True, slots=True)
class Event:
    """A message that was appended."""

    message: Message
    position: str


@dataclass(frozen=True, slots=True)
class Cleared:
    """All messages up to the number `through` were erased."""

    through: int
    position: str


@dataclass(frozen=True, slots=True)
class Retracted:
    """The numbers from `first` to `last` have no message any more: the newest messages were
    retracted."""

    first: int
    last: int
    position: str


@dataclass(frozen=True, slots=True)
class Retraction:
    """The result of `Conversation.retract`."""

    count: int
    """How many messages were retracted; 0 if there was none."""
    first: int | None
    """The first number that has no message any more."""
    head: int
    """The newest number: that of the retraction, if messages were retracted."""


AnyEvent = Event | Head | Delta | Stop | Closed | Cleared | Retracted
"""What `Conversation.follow` yields."""


@dataclass(frozen=True, slots=True)
class ContextWindow:
    """The messages to send to a model within a token budget."""

    messages: Sequence[Message]
    tokens: int
    raw: Mapping[str, Any]
    """The node's whole answer: `from_seq`, `dropped`, the summary and more."""


@dataclass(frozen=True, slots=True)
class ConversationState:
    """Metadata and settings of a conversation."""

    name: str
    head: int
    version: int
    metadata: Mapping[str, Any]
    is_archived: bool
    raw: Mapping[str, Any]
    """The node's whole answer."""


@dataclass(frozen=True, slots=True)
class ListedConversation:
    """A line of a list of conversations."""

    id: str
    raw: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class InboxLine:
    """A conversation of a participant."""

    id: str
    unread: int
    raw: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Limit:
    """The state of a limit after a take."""

    name: str
    unit: str
    remaining: int
    """Negative for debt."""
    capacity: int
    reset_after: float | None
    """Seconds until it is full again; None if it is unknown."""
    would_deny: bool
    """True if the limit is in shadow mode and would have denied the take."""


@dataclass(frozen=True, slots=True)
class Taken:
    """An admitted take."""

    limits: Sequence[Limit]
    is_repeated: bool
    """True if it was taken before with this id."""
    is_degraded: bool
    """True if it was decided without the shared store."""
    hold: int
    hold_ends_in: float | None

    @property
    def remaining(self) -> int | None:
        """The smallest remaining amount of the limits; None if no limit covers the subject."""
        return min((limit.remaining for limit in self.limits), default=None)


def taken(it: wire.Admitted) -> Taken:
    limits = tuple(
        Limit(
            state.name,
            state.unit,
            state.have,
            state.capacity,
            None if state.reset_after_ns is None else state.reset_after_ns / 1e9,
            state.would_deny,
        )
        for state in it.limits
    )
    ends = it.hold_ends_ms / 1000 if it.hold else None
    return Taken(limits, it.is_repeated, it.is_degraded, it.hold, ends)


UsageBy = Literal["day", "subject", "limit"]


@dataclass(frozen=True, slots=True)
class UsageRow:
    """What was spent of a limit."""

    limit: str
    unit: str
    amount: int
    """The amount, in the unit of the limit."""
    takes: int
    """The number of admitted takes. A hold counts when it ends, unless it is cancelled."""
    day: date | None
    """The day (UTC); None for a sum of days."""
    subject: str | None
    """`org/namespace/agent`. None for a sum of subjects, and for the subjects beyond the node's
    `quota.usage_rows_max`, which are counted together."""


def usage_row(row: Mapping[str, Any]) -> UsageRow:
    day = row.get("day")
    return UsageRow(
        row["limit"],
        row["unit"],
        row["amount"],
        row["takes"],
        None if day is None else date.fromisoformat(day),
        row.get("subject"),
    )


Durability = Literal["disk", "memory"]
