"""Frames of the native protocol: bytes of each payload, in both directions.

The layouts are those of `docs/reference/protocol.md`. Nothing here knows connections: the functions
take and return plain values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from struct import Struct
from struct import error as StructError
from typing import NamedTuple

from telpher import _errors as errors
from telpher._body import to_json

HELLO, WELCOME, GOAWAY, PING, PONG, CREDIT, FLOW = 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07
BIND, SUBSCRIBE, UNSUBSCRIBE, ENDED = 0x10, 0x11, 0x12, 0x13
REQUEST, REPLY, ERROR, CANCEL = 0x20, 0x21, 0x22, 0x23
SEND, RECEIPT, WRITE = 0x30, 0x31, 0x32
APPEND, READ, FOLLOW = 0x40, 0x41, 0x42
TAKE, SETTLE, PEEK = 0x50, 0x51, 0x52

DEADLINE, METADATA, MORE, STREAM = 0x01, 0x02, 0x04, 0x08
REPORT, MEMORY, KEYED, WRITTEN = 0x10, 0x20, 0x40, 0x40

ANY, ALL, RECORDS, CONVERSATION, TOPIC = 0, 1, 2, 3, 4

VERSION = 1
HOLD_IDS_OF_128_BITS = 1
FEATURES = HOLD_IDS_OF_128_BITS
WITH_SOURCE, DESCRIBED = 1, 2
ANY_OFFSET = 2**64 - 1
UNKNOWN_TOKENS = 2**32 - 1
UNKNOWN_TIME = 2**64 - 1
HEADER_SIZE = 16
METADATA_SIZE_MAX = 65_535

HEADER = Struct("<IBBHII")
HEADER_WITH_DEADLINE = Struct("<IBBHIII")
_U8 = Struct("<B")
_U16 = Struct("<H")
_U32 = Struct("<I")
_U64 = Struct("<Q")
_WINDOW = Struct("<IIIQI")
_CREDIT = Struct("<IQ")
_ERROR = Struct("<HBI")
_READ = Struct("<QII")
_ITEM = Struct("<QQI")
_LIMIT = Struct("<HBqQQ")
_DENIED = Struct("<HBqQQ")
_DELIVERY = Struct("<QIQ")


def frame(
    kind: int,
    payload: bytes = b"",
    flags: int = 0,
    route: int = 0,
    slot: int = 0,
    generation: int = 0,
) -> bytes:
    """Returns a frame."""
    return HEADER.pack(len(payload), kind, flags, route, slot, generation) + payload


def text8(text: str) -> bytes:
    data = text.encode()
    if len(data) > 255:
        raise errors.InvalidArgument(f"{text[:40]!r}… has {len(data)} bytes (limit 255)")
    return _U8.pack(len(data)) + data


def text16(text: str) -> bytes:
    data = text.encode()
    if len(data) > 65_535:
        raise errors.InvalidArgument(f"{text[:40]!r}… has {len(data)} bytes (limit 65,535)")
    return _U16.pack(len(data)) + data


class Reader:
    """Takes fields from a payload, in their order."""

    __slots__ = ("at", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def _one(self, layout: Struct) -> int:
        try:
            value: int = layout.unpack_from(self.data, self.at)[0]
        except StructError:
            raise _short() from None
        self.at += layout.size
        return value

    def u8(self) -> int:
        return self._one(_U8)

    def u16(self) -> int:
        return self._one(_U16)

    def u32(self) -> int:
        return self._one(_U32)

    def u64(self) -> int:
        return self._one(_U64)

    def fields(self, layout: Struct) -> tuple[int, ...]:
        try:
            values = layout.unpack_from(self.data, self.at)
        except StructError:
            raise _short() from None
        self.at += layout.size
        return values

    def take(self, size: int) -> bytes:
        taken = self.data[self.at : self.at + size]
        if len(taken) != size:
            raise _short()
        self.at += size
        return taken

    def text8(self) -> str:
        return self._text(self.u8())

    def text16(self) -> str:
        return self._text(self.u16())

    def _text(self, size: int) -> str:
        try:
            return self.take(size).decode()
        except UnicodeDecodeError:
            raise errors.ProtocolError("a text is not UTF-8") from None

    def rest(self) -> bytes:
        taken = self.data[self.at :]
        self.at = len(self.data)
        return taken

    @property
    def is_empty(self) -> bool:
        return self.at >= len(self.data)


def _short() -> errors.ProtocolError:
    return errors.ProtocolError("a payload ends too early")


class Window(NamedTuple):
    """What a side accepts at the same time."""

    frame_size_max: int
    calls_max: int
    credit_messages: int
    credit_bytes: int
    keepalive_ms: int


class Welcome(NamedTuple):
    """The node's answer to HELLO."""

    version: int
    role: int
    features: int
    window: Window
    connection: int
    software: str


def hello(window: Window, token: str, name: str, features: int = FEATURES) -> bytes:
    payload = b"TLPH" + _U16.pack(VERSION) + _U16.pack(VERSION) + _U32.pack(features)
    payload += _WINDOW.pack(*window) + text16(token) + text16(name)
    return frame(HELLO, payload)


def welcome(payload: bytes) -> Welcome:
    reader = Reader(payload)
    version, role, features = reader.u16(), reader.u8(), reader.u32()
    window = Window(*reader.fields(_WINDOW))
    return Welcome(version, role, features, window, reader.u64(), reader.text8())


def bind(route: int, cast: int, method: str, name: str) -> bytes:
    return frame(BIND, _U8.pack(cast) + text8(method) + text16(name), route=route)


def bound(payload: bytes) -> tuple[int, str, str]:
    """Returns the cast, method and name of a BIND."""
    reader = Reader(payload)
    return reader.u8(), reader.text8(), reader.text16()


def subscribe(options: int, name: str) -> bytes:
    return _U8.pack(options) + text16(name)


class MethodDescription(NamedTuple):
    """A method, as an agent describes it. The schemas are JSON texts, empty if not stated."""

    name: str
    description: str
    is_stream: bool
    input: bytes
    output: bytes


def description(version: str, text: str, methods: Sequence[MethodDescription]) -> bytes:
    """Returns what follows the name in a SUBSCRIBE with `DESCRIBED`."""
    out = text8(version) + text16(text) + _U16.pack(len(methods))
    for it in methods:
        out += text8(it.name) + _U8.pack(it.is_stream) + text16(it.description)
        out += _U32.pack(len(it.input)) + it.input + _U32.pack(len(it.output)) + it.output
    return out


def ended(payload: bytes) -> tuple[int, str]:
    reader = Reader(payload)
    return reader.u16(), reader.text16()


def error(
    number: int, message: str, sent: bool, retry_after_ms: int = 0, details: bytes = b""
) -> bytes:
    cut = message.encode()[:65_535].decode(errors="ignore")
    return _ERROR.pack(number, sent, retry_after_ms) + text16(cut) + details


def read_error(payload: bytes) -> errors.TelpherError:
    reader = Reader(payload)
    number, sent, retry_after_ms = reader.fields(_ERROR)
    message = reader.text16()
    return errors.from_number(
        number,
        message,
        sent=bool(sent & 1),
        retry_after=retry_after_ms / 1000 if retry_after_ms else None,
        details=reader.rest(),
    )


def metadata(entries: Mapping[str, str | bytes]) -> bytes:
    """Returns a metadata block without its length."""
    block = b""
    for key, value in entries.items():
        data = value.encode() if isinstance(value, str) else bytes(value)
        block += text8(key) + _U16.pack(len(data)) + data
    if len(block) > METADATA_SIZE_MAX:
        message = f"metadata of {len(block)} bytes is above the limit of {METADATA_SIZE_MAX}"
        raise errors.TooLarge(message, sent=False)
    return block


def read_metadata(block: bytes) -> dict[str, bytes]:
    reader, entries = Reader(block), dict[str, bytes]()
    while not reader.is_empty:
        key = reader.text8()
        entries[key] = reader.take(reader.u16())
    return entries


def split(flags: int, payload: bytes) -> tuple[int | None, bytes, bytes]:
    """Returns the deadline in milliseconds, the metadata block and the body of a payload."""
    at, deadline_ms, block = 0, None, b""
    if flags & DEADLINE:
        if len(payload) < 4:
            raise _short()
        deadline_ms = _U32.unpack_from(payload)[0]
        at = 4
    if flags & METADATA:
        if len(payload) < at + 2:
            raise _short()
        size = _U16.unpack_from(payload, at)[0]
        block = payload[at + 2 : at + 2 + size]
        if len(block) != size:
            raise _short()
        at += 2 + size
    return deadline_ms, block, payload[at:] if at else payload


def credit(messages: int, size: int) -> bytes:
    return _CREDIT.pack(messages, size)


def read_credit(payload: bytes) -> tuple[int, int]:
    messages, size = Reader(payload).fields(_CREDIT)
    return messages, size


def goaway(payload: bytes) -> tuple[int, int, str, str]:
    """Returns the code, the milliseconds to drain, another address, and a message."""
    reader = Reader(payload)
    return reader.u16(), reader.u32(), reader.text16(), reader.text16()


def make_goaway(code: int, drain_ms: int, address: str, message: str) -> bytes:
    return _U16.pack(code) + _U32.pack(drain_ms) + text16(address) + text16(message)


def receipt(payload: bytes) -> tuple[int, int]:
    """Returns the number of delivered and of dropped copies."""
    reader = Reader(payload)
    return reader.u32(), reader.u32()


def key(id: bytes, ttl_ms: int) -> bytes:
    """Returns what precedes the body of a WRITE with KEYED."""
    return id + _U32.pack(ttl_ms)


def stored(payload: bytes) -> tuple[int, bool]:
    """Returns the offset of a written message, and whether it existed already."""
    reader = Reader(payload)
    return reader.u64(), bool(reader.u8() & 1)


def delivery(body: bytes) -> tuple[int, int, int, bytes]:
    """Returns the offset, the number of the delivery, the time and the body of a delivery."""
    reader = Reader(body)
    offset, number, written_ms = reader.fields(_DELIVERY)
    return offset, number, written_ms, reader.rest()


def append(expected: int | None, records: Sequence[bytes]) -> bytes:
    start = ANY_OFFSET if expected is None else expected
    parts = [_U64.pack(start), _U32.pack(len(records))]
    for record in records:
        parts.append(_U32.pack(len(record)))
        parts.append(record)
    return b"".join(parts)


def read(start: int, records_max: int, bytes_max: int) -> bytes:
    return _READ.pack(start, records_max, bytes_max)


class Item(NamedTuple):
    """A record or message of an answer to READ."""

    offset: int
    time_ms: int
    data: bytes


class Extract(NamedTuple):
    """The answer to READ."""

    start: int
    next: int
    items: list[Item]


def extract(payload: bytes) -> Extract:
    reader = Reader(payload)
    start, end, items = reader.u64(), reader.u64(), list[Item]()
    while not reader.is_empty:
        offset, time_ms, length = reader.fields(_ITEM)
        items.append(Item(offset, time_ms, reader.take(length)))
    return Extract(start, end, items)


def appended(payload: bytes) -> tuple[int, int]:
    reader = Reader(payload)
    return reader.u64(), reader.u64()


def new_message(
    tokens: int | None, id: str, role: str, author: str, metadata: bytes, parts: bytes
) -> bytes:
    return (
        _U32.pack(UNKNOWN_TOKENS if tokens is None else tokens)
        + text8(id)
        + text8(role)
        + text16(author)
        + _U32.pack(len(metadata))
        + metadata
        + parts
    )


class StoredMessage(NamedTuple):
    """A message of a conversation, as READ returns it."""

    status: int
    flags: int
    tokens: int
    id: str
    role: str
    author: str
    metadata: bytes
    parts: bytes


def stored_message(data: bytes) -> StoredMessage:
    reader = Reader(data)
    status, flags, tokens = reader.u8(), reader.u8(), reader.u32()
    id, role, author = reader.text8(), reader.text8(), reader.text16()
    metadata = reader.take(reader.u32())
    return StoredMessage(status, flags, tokens, id, role, author, metadata, reader.rest())


def appended_messages(payload: bytes) -> tuple[int, int, int, list[str]]:
    """Returns the first number, the one after the last, how many existed, and the made ids."""
    reader = Reader(payload)
    first, end, deduplicated, made = reader.u64(), reader.u64(), reader.u32(), list[str]()
    while not reader.is_empty:
        made.append(reader.text8())
    return first, end, deduplicated, made


def topic_record(
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[tuple[str, bytes | None]] = (),
    partition: int | None = None,
) -> bytes:
    flags = (key is not None) | (value is not None) << 1
    flags |= bool(headers) << 2 | (partition is not None) << 3
    out = _U8.pack(flags)
    if partition is not None:
        out += _U32.pack(partition)
    if key is not None:
        out += _U32.pack(len(key)) + key
    if headers:
        out += _U16.pack(len(headers))
        for name, data in headers:
            size = UNKNOWN_TOKENS if data is None else len(data)
            out += text16(name) + _U32.pack(size) + (data or b"")
    return out + (value or b"")


def costs(units: Mapping[str, int]) -> bytes:
    return b"".join(text8(unit) + _U64.pack(count) for unit, count in units.items())


def take(
    subject: str,
    units: Mapping[str, int],
    *,
    hold_ms: int | None = None,
    wait_ms: int | None = None,
    priority: int = 0,
    id: str | None = None,
) -> bytes:
    flags = (hold_ms is not None) | (wait_ms is not None) << 1 | (id is not None) << 2
    out = _U8.pack(flags) + text16(subject)
    if hold_ms is not None:
        out += _U32.pack(hold_ms)
    if wait_ms is not None:
        out += _U32.pack(wait_ms) + _U8.pack(priority)
    if id is not None:
        out += text8(id)
    entries = costs(units)
    return out + _U16.pack(len(entries)) + entries


class LimitState(NamedTuple):
    """A limit of an answer to TAKE or PEEK."""

    name: str
    unit: str
    is_shared: bool
    would_deny: bool
    have: int
    capacity: int
    reset_after_ns: int | None


class Admitted(NamedTuple):
    is_repeated: bool
    is_degraded: bool
    hold: int
    hold_ends_ms: int
    limits: list[LimitState]


class Refusal(NamedTuple):
    """A take that was denied by a limit."""

    limit: str
    unit: str
    is_exhausted: bool
    have: int
    need: int
    retry_after_ns: int | None


class Undecided(NamedTuple):
    """A take that was not decided, or that can never pass."""

    number: int
    message: str


def outcomes(payload: bytes) -> list[Admitted | Refusal | Undecided]:
    """Returns the outcome of each take."""
    reader = Reader(payload)
    limits = [(reader.text8(), reader.text8()) for _ in range(reader.u16())]
    found = list[Admitted | Refusal | Undecided]()
    while not reader.is_empty:
        kind = reader.u8()
        if kind == 0:
            found.append(_admitted(reader, limits))
        elif kind == 1:
            which, flags, have, need, retry_ns = reader.fields(_DENIED)
            name, unit = limits[which]
            retry = None if retry_ns == UNKNOWN_TIME else retry_ns
            found.append(Refusal(name, unit, bool(flags & 1), have, need, retry))
        else:
            found.append(Undecided(reader.u16(), reader.text16()))
    return found


def _admitted(reader: Reader, limits: Sequence[tuple[str, str]]) -> Admitted:
    flags, hold, ends_ms = reader.u8(), 0, 0
    if flags & 4:
        low, high = reader.u64(), reader.u64()
        hold, ends_ms = high << 64 | low, reader.u64()
    else:
        reader.u64()
    states = list[LimitState]()
    for _ in range(reader.u16()):
        which, bits, have, capacity, reset_ns = reader.fields(_LIMIT)
        name, unit = limits[which]
        reset = None if reset_ns == UNKNOWN_TIME else reset_ns
        states.append(LimitState(name, unit, bool(bits & 1), bool(bits & 2), have, capacity, reset))
    return Admitted(bool(flags & 1), bool(flags & 2), hold, ends_ms, states)


def settle(hold: int, units: Mapping[str, int] | None) -> bytes:
    low, high = hold & (2**64 - 1), hold >> 64
    flags = (units is not None) | (high != 0) << 1
    out = _U64.pack(low) + _U8.pack(flags)
    if high:
        out += _U64.pack(high)
    return out + (costs(units) if units is not None else b"")


def upload(path: str, name: str) -> bytes:
    """Returns the request of an HTTP route whose body follows in pieces."""
    return to_json({"method": "POST", "path": path, "upload": name})


def piece(name: str, text: str, is_last: bool) -> bytes:
    """Returns a piece of the body of an upload."""
    return to_json({"upload": name, "text": text} | ({"end": True} if is_last else {}))
