"""One connection without its socket: bytes in, events out; frames out as bytes to write.

`Connection` keeps the correlation table, the routes, the windows and the credit. It reads no clock
and knows no event loop: an `asyncio.Protocol` and a blocking socket drive the same code. A *token*
is the driver's own object for a call; events return it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from telpher import _errors as errors
from telpher import _wire as wire
from telpher._errors import (
    Busy,
    Cancelled,
    ProtocolError,
    TelpherError,
    TooLarge,
    Unavailable,
    Unconfirmed,
)

FRAME_SIZE_MAX = 8 << 20
FRAME_SIZE_CEILING = 64 << 20
OUT_SIZE_MAX = 4 << 20
"""Size of unwritten bytes at which no more calls are accepted."""
REQUESTS_SIZE_MAX = 64 << 20
"""Bytes of requests to this side's handlers; above it requests are answered with `busy`."""
ITEMS_AHEAD = 64
ROUTES_MAX = 65_535

DONE: Final = 0
"""`(DONE, token, payload)`: the last answer of a call."""
FAILED: Final = 1
"""`(FAILED, token, error)`."""
ITEM: Final = 2
"""`(ITEM, token, payload)`: an item of a streamed answer."""
REQUESTED: Final = 3
"""`(REQUESTED, inbound, None)`: a call of this side."""
RECEIVED: Final = 4
"""`(RECEIVED, inbound, None)`: a one-way message."""
CANCELLED: Final = 5
"""`(CANCELLED, inbound, None)`: the caller cancelled a call of this side."""
CREDITED: Final = 6
"""`(CREDITED, inbound or None, None)`: there is more credit, for items of an inbound call or for
one-way messages."""
ENDED: Final = 7
"""`(ENDED, name, error)`: the node ended a subscription."""
LEAVING: Final = 8
"""`(LEAVING, address, message)`: the node will close (GOAWAY)."""
BROKEN: Final = 9
"""`(BROKEN, None, error)`: the peer ended the connection with an error."""

Event = tuple[int, Any, Any]
Route = tuple[int, str, str]
"""Cast, name, method."""

_unpack = wire.HEADER.unpack_from
_pack = wire.HEADER.pack
_pack_with_deadline = wire.HEADER_WITH_DEADLINE.pack


class Correlation(NamedTuple):
    """A request of this side."""

    slot: int
    generation: int


@dataclass(slots=True, eq=False)
class Inbound:
    """A request or a message that the peer sent."""

    connection: Connection
    slot: int
    generation: int
    flags: int
    name: str
    method: str
    deadline_ms: int | None
    metadata: bytes
    body: bytes
    size: int
    token: Any = None
    """The driver's object for the running handler."""
    ahead: int = 0
    """Items that were sent and for which no credit came back."""
    is_over: bool = False
    until: float | None = None
    """When the handler has to end, by the driver's clock."""


class Connection:
    """The state of one connection."""

    def __init__(self, window: wire.Window, token: str, name: str, in_flight_max: int) -> None:
        self.window = window
        self.in_flight_max = in_flight_max
        self.calls_max = 0
        self.peer: wire.Welcome | None = None
        self.refusal: TelpherError | None = None
        self.is_pausing = False
        self.out: list[bytes] = [wire.hello(window, token, name)]
        self.out_size = 0
        self.tokens: list[Any] = []
        self.generations: list[int] = []
        self.deadlines: list[float] = []
        self.free: list[int] = []
        self.in_flight = 0
        self._unwritten: list[int] = []
        self._routes: dict[Route, int] = {}
        self._full: set[int] = set()
        self._peer_routes: dict[int, tuple[int, str, str]] = {}
        self._inbound: dict[int, Inbound] = {}
        self._requests_size = 0
        self._rest = bytearray()
        self._need = 0
        self._skip = 0
        self._outstanding = [0, 0]
        self._consumed = [0, 0]
        self._unread = [0, 0]
        self._pings: deque[tuple[int, int]] = deque()

    # Frames of this side.

    def take_out(self) -> bytes:
        """Returns the bytes to write, and forgets them."""
        data = self.out[0] if len(self.out) == 1 else b"".join(self.out)
        self.out.clear()
        self.out_size = 0
        self._unwritten.clear()
        return data

    @property
    def room(self) -> int:
        """How many more calls are accepted now."""
        if self.out_size >= OUT_SIZE_MAX or self.is_pausing:
            return 0
        return self.calls_max - self.in_flight

    def has_credit(self, size: int, route: Route) -> bool:
        """True if a one-way message of `size` bytes may be sent now."""
        peer = self.peer
        if peer is None or self.out_size >= OUT_SIZE_MAX or self.is_pausing:
            return False
        if self._full and self._routes.get(route) in self._full:
            return False
        messages, outstanding = self._outstanding
        if messages == 0:
            return True
        window = peer.window
        return messages < window.credit_messages and outstanding + size <= window.credit_bytes

    def request(
        self,
        kind: int,
        flags: int,
        route: Route | None,
        body: bytes,
        deadline_ms: int | None,
        metadata: bytes,
        token: Any,
        deadline: float,
    ) -> int:
        """Queues a request that will be answered, and returns its slot.

        `deadline_ms` goes to the peer, `deadline` is when the driver wants to give up. The driver
        has checked that there is `room`.
        """
        number = 0
        if route is not None:
            known = self._routes.get(route)
            number = known if known is not None else self._bind(route)
        length = len(body)
        if metadata:
            flags |= wire.METADATA
            body = len(metadata).to_bytes(2, "little") + metadata + body
            length = len(body)
        if length + 4 > self._frame_size_max:
            raise self._too_large(length)
        free = self.free
        if free:
            slot = free.pop()
            generation = (self.generations[slot] % 0xFFFFFFFF) + 1
            self.generations[slot] = generation
            self.tokens[slot] = token
            self.deadlines[slot] = deadline
        else:
            slot = len(self.tokens)
            generation = 1
            self.generations.append(1)
            self.tokens.append(token)
            self.deadlines.append(deadline)
        self.in_flight += 1
        self._unwritten.append(slot)
        out = self.out
        if deadline_ms is None:
            out.append(_pack(length, kind, flags, number, slot, generation))
        else:
            out.append(
                _pack_with_deadline(
                    length + 4, kind, flags | 1, number, slot, generation, deadline_ms
                )
            )
        if length:
            out.append(body)
        self.out_size += length + 20
        return slot

    def send(self, route: Route, body: bytes, metadata: bytes) -> None:
        """Queues a one-way message. The driver has checked `has_credit`."""
        number = self._routes.get(route) or self._bind(route)
        flags = 0
        self.spend(len(body) + len(metadata))
        if metadata:
            flags = wire.METADATA
            body = len(metadata).to_bytes(2, "little") + metadata + body
        if len(body) > self._frame_size_max:
            raise self._too_large(len(body))
        self._put(wire.frame(wire.SEND, body, flags, number))

    def spend(self, size: int) -> None:
        """Counts a one-way message against the peer's window."""
        self._outstanding[0] += 1
        self._outstanding[1] += size

    def cancel(self, slot: int, token: Any) -> None:
        """Gives up a call: tells the peer, and ignores what still arrives for it."""
        if slot < len(self.tokens) and self.tokens[slot] is token:
            self.tokens[slot] = _ABANDONED
            self.deadlines[slot] = _NEVER
            self._put(_pack(0, wire.CANCEL, 0, 0, slot, self.generations[slot]))

    def grant(self, slot: int, token: Any, items: int) -> None:
        """Returns credit for items of a streamed answer."""
        if slot < len(self.tokens) and self.tokens[slot] is token:
            generation = self.generations[slot]
            self._put(wire.frame(wire.CREDIT, wire.credit(items, 0), 0, 0, slot, generation))

    def reply(self, inbound: Inbound, body: bytes) -> None:
        """Answers a call."""
        if not self._finish(inbound):
            return
        if len(body) > self._frame_size_max:
            refusal = self._too_large(len(body))
            self._put_error(inbound, refusal, True)
            return
        self._put(wire.frame(wire.REPLY, body, 0, 0, inbound.slot, inbound.generation))

    def reply_item(self, inbound: Inbound, body: bytes) -> None:
        """Sends an item of a streamed answer. The driver has checked that fewer than
        `ITEMS_AHEAD` are unread."""
        if inbound.is_over:
            raise Cancelled("the caller cancelled the call", sent=True)
        if len(body) > self._frame_size_max:
            raise self._too_large(len(body))
        inbound.ahead += 1
        self._put(wire.frame(wire.REPLY, body, wire.MORE, 0, inbound.slot, inbound.generation))

    def fail(self, inbound: Inbound, error: TelpherError, executed: bool = True) -> None:
        """Answers a call with an error."""
        if self._finish(inbound):
            self._put_error(inbound, error, executed)

    def consume(self, inbound: Inbound) -> None:
        """Returns the credit of a one-way message, once a quarter of the window is consumed."""
        consumed, unread = self._consumed, self._unread
        unread[0] -= 1
        unread[1] -= inbound.size
        consumed[0] += 1
        consumed[1] += inbound.size
        window = self.window
        if consumed[0] * 4 >= window.credit_messages or consumed[1] * 4 >= window.credit_bytes:
            self._put(wire.frame(wire.CREDIT, wire.credit(*consumed)))
            consumed[0] = consumed[1] = 0

    def ping(self) -> None:
        """Asks the peer for a sign of life."""
        self._put(_pack(0, wire.PING, 0, 0, 0, 0))

    def leave(self, drain_ms: int, message: str) -> None:
        """Tells the peer that this side will close."""
        self._put(wire.frame(wire.GOAWAY, wire.make_goaway(14, drain_ms, "", message)))

    @property
    def unanswered(self) -> int:
        """How many calls of this side's handlers are unanswered."""
        return len(self._inbound)

    def expired(self, now: float) -> tuple[list[tuple[Any, int]], float]:
        """Gives up the calls whose deadline has passed; returns them, and the next deadline."""
        late, soonest = list[tuple[Any, int]](), _NEVER
        for slot, deadline in enumerate(self.deadlines):
            if deadline <= now:
                token = self.tokens[slot]
                late.append((token, slot))
                self.cancel(slot, token)
            elif deadline < soonest:
                soonest = deadline
        return late, soonest

    def lose(self) -> list[tuple[Any, bool]]:
        """Ends the connection: returns the tokens of the open calls, and whether each may have been
        sent."""
        unsent = set(self._unwritten)
        lost = [
            (token, slot not in unsent)
            for slot, token in enumerate(self.tokens)
            if token is not None and token is not _ABANDONED
        ]
        self.tokens.clear()
        self.generations.clear()
        self.deadlines.clear()
        self.free.clear()
        self.out.clear()
        self.in_flight = 0
        for inbound in self._inbound.values():
            inbound.is_over = True
        self._inbound.clear()
        return lost

    def _put(self, data: bytes) -> None:
        self.out.append(data)
        self.out_size += len(data)

    def _bind(self, route: Route) -> int:
        cast, name, method = route
        routes = self._routes
        if len(routes) < ROUTES_MAX:
            number = len(routes) + 1
            bind = wire.bind(number, cast, method, name)
        else:
            oldest = next(iter(routes))
            bind = wire.bind(routes[oldest], cast, method, name)
            number = routes.pop(oldest)
            self._full.discard(number)
        routes[route] = number
        self._put(bind)
        return number

    @property
    def _frame_size_max(self) -> int:
        return self.peer.window.frame_size_max if self.peer else FRAME_SIZE_MAX

    def _too_large(self, size: int) -> TooLarge:
        limit = self._frame_size_max
        message = f"a body of {size} bytes is above the limit of {limit} (native.frame_size_max)"
        return TooLarge(message, sent=False)

    def _finish(self, inbound: Inbound) -> bool:
        if inbound.is_over:
            return False
        inbound.is_over = True
        self._inbound.pop(inbound.slot, None)
        self._requests_size -= inbound.size
        return True

    def _put_error(self, inbound: Inbound, error: TelpherError, executed: bool) -> None:
        retry_ms = max(1, round(error.retry_after * 1000)) if error.retry_after else 0
        payload = wire.error(error.number, error.message, executed, retry_ms, error.details)
        self._put(wire.frame(wire.ERROR, payload, 0, 0, inbound.slot, inbound.generation))

    # Frames of the peer.

    def receive(self, data: bytes) -> list[Event]:
        """Takes bytes of the peer and returns what they mean.

        Raises `ProtocolError` if they are no frames of this protocol; the connection has to be
        closed then.
        """
        events: list[Event] = []
        rest = self._rest
        if self._skip:
            skipped = min(self._skip, len(data))
            self._skip -= skipped
            data = data[skipped:]
        if rest:
            rest += data
            if len(rest) < self._need:
                return events
            data = bytes(rest)
            rest.clear()
        size, at = len(data), 0
        tokens, generations, free = self.tokens, self.generations, self.free
        while size - at >= 16:
            length, kind, flags, route, slot, generation = _unpack(data, at)
            end = at + 16 + length
            if end > size:
                if length > self.window.frame_size_max:
                    self._skip_frame(length, kind, slot, generation, events)
                    self._skip = end - size
                    return events
                self._need = 16 + length
                break
            if kind == 0x21 and not flags:
                if slot < len(tokens) and generations[slot] == generation:
                    token = tokens[slot]
                    if token is not None:
                        tokens[slot] = None
                        self.deadlines[slot] = _NEVER
                        free.append(slot)
                        self.in_flight -= 1
                        if token is not _ABANDONED:
                            events.append((0, token, data[at + 16 : end]))
            else:
                payload = data[at + 16 : end]
                self._frame(kind, flags, route, slot, generation, payload, events)
            at = end
        else:
            self._need = 16
        if at and self.peer is None and self.refusal is None:
            raise ProtocolError("the first frame is no WELCOME: this is not a Telpher node")
        if at < size:
            rest += data[at:]
        return events

    def _skip_frame(
        self,
        length: int,
        kind: int,
        slot: int,
        generation: int,
        events: list[Event],
    ) -> None:
        if length > 16 * self.window.frame_size_max or self.peer is None:
            raise ProtocolError(f"a frame of {length} bytes: this is not the Telpher protocol")
        limit = self.window.frame_size_max
        error = TooLarge(
            f"a payload of {length} bytes is above the limit of {limit} (frame_size_max of connect)"
        )
        if kind in (wire.REPLY, wire.ERROR):
            self._answer(1, slot, generation, error, events)
        elif kind == wire.REQUEST:
            payload = wire.error(error.number, error.message, False)
            self._put(wire.frame(wire.ERROR, payload, 0, 0, slot, generation))

    def _answer(
        self, event: int, slot: int, generation: int, value: Any, events: list[Event]
    ) -> None:
        tokens = self.tokens
        if slot >= len(tokens) or self.generations[slot] != generation:
            return
        token = tokens[slot]
        if token is None:
            return
        tokens[slot] = None
        self.deadlines[slot] = _NEVER
        self.free.append(slot)
        self.in_flight -= 1
        if token is not _ABANDONED:
            events.append((event, token, value))

    def _frame(
        self,
        kind: int,
        flags: int,
        route: int,
        slot: int,
        generation: int,
        payload: bytes,
        events: list[Event],
    ) -> None:
        if self.peer is None:
            self._begin(kind, payload, events)
        elif kind == wire.REPLY:
            _, _, body = wire.split(flags & wire.METADATA, payload)
            if flags & wire.MORE:
                if slot < len(self.tokens) and self.generations[slot] == generation:
                    token = self.tokens[slot]
                    if token is not None and token is not _ABANDONED:
                        events.append((ITEM, token, body))
            else:
                self._answer(DONE, slot, generation, body, events)
        elif kind == wire.ERROR:
            error = wire.read_error(payload)
            if generation:
                self._answer(FAILED, slot, generation, error, events)
            else:
                events.append((BROKEN, None, error))
        elif kind == wire.RECEIPT:
            self._answer(DONE, slot, generation, payload, events)
        elif kind == wire.REQUEST:
            self._requested(flags, route, slot, generation, payload, events)
        elif kind == wire.SEND:
            self._received(flags, route, payload, events)
        elif kind == wire.CANCEL:
            inbound = self._inbound.get(slot)
            if inbound is not None and inbound.generation == generation:
                self.fail(inbound, Cancelled("cancelled by the caller"))
                events.append((CANCELLED, inbound, None))
        elif kind == wire.CREDIT:
            self._credited(slot, generation, payload, events)
        elif kind == wire.FLOW:
            if payload[:1] == b"\x01":
                self._full.add(route)
            else:
                self._full.discard(route)
                events.append((CREDITED, None, None))
        elif kind == wire.BIND:
            self._peer_routes[route] = wire.bound(payload)
        elif kind == wire.PING:
            self._put(_pack(0, wire.PONG, 0, 0, slot, generation))
        elif kind == wire.ENDED:
            number, name = wire.ended(payload)
            error = errors.from_number(
                number,
                f"the node ended the subscription to {name}",
                sent=False,
                retry_after=None,
                details=b"",
            )
            events.append((ENDED, name, error))
        elif kind == wire.GOAWAY:
            _, _, address, message = wire.goaway(payload)
            events.append((LEAVING, address, message))
        elif kind != wire.PONG and not kind & 0x80:
            raise ProtocolError(f"a frame of the unknown kind {kind:#x}")

    def _begin(self, kind: int, payload: bytes, events: list[Event]) -> None:
        if kind == wire.WELCOME:
            self.peer = wire.welcome(payload)
            self.calls_max = min(self.in_flight_max, self.peer.window.calls_max)
        elif kind == wire.ERROR:
            self.refusal = wire.read_error(payload)
            events.append((BROKEN, None, self.refusal))
        else:
            raise ProtocolError("the first frame is no WELCOME: this is not a Telpher node")

    def _requested(
        self,
        flags: int,
        route: int,
        slot: int,
        generation: int,
        payload: bytes,
        events: list[Event],
    ) -> None:
        deadline_ms, block, body = wire.split(flags, payload)
        _, method, name = self._peer_routes.get(route, (0, "", ""))
        inbound = Inbound(
            self, slot, generation, flags, name, method, deadline_ms, block, body, len(payload)
        )
        if self._requests_size + inbound.size > REQUESTS_SIZE_MAX:
            message = f"requests of more than {REQUESTS_SIZE_MAX} bytes are in flight"
            self._put_error(inbound, Busy(message), False)
            return
        self._inbound[slot] = inbound
        self._requests_size += inbound.size
        events.append((REQUESTED, inbound, None))

    def _received(self, flags: int, route: int, payload: bytes, events: list[Event]) -> None:
        deadline_ms, block, body = wire.split(flags, payload)
        _, method, name = self._peer_routes.get(route, (0, "", ""))
        size = len(block) + len(body)
        unread, window = self._unread, self.window
        if unread[0] and (
            unread[0] >= window.credit_messages or unread[1] + size > window.credit_bytes
        ):
            raise ProtocolError("the peer sent more messages than it has credit for")
        unread[0] += 1
        unread[1] += size
        events.append(
            (
                RECEIVED,
                Inbound(self, 0, 0, flags, name, method, deadline_ms, block, body, size),
                None,
            )
        )

    def _credited(self, slot: int, generation: int, payload: bytes, events: list[Event]) -> None:
        messages, size = wire.read_credit(payload)
        if generation:
            inbound = self._inbound.get(slot)
            if inbound is not None and inbound.generation == generation:
                inbound.ahead -= messages
                events.append((CREDITED, inbound, None))
            return
        outstanding = self._outstanding
        outstanding[0] = max(0, outstanding[0] - messages)
        outstanding[1] = max(0, outstanding[1] - size)
        events.append((CREDITED, None, None))


class _Abandoned:
    pass


_ABANDONED = _Abandoned()
_NEVER = float("inf")


def lost(reason: str, may_be_sent: bool) -> TelpherError:
    """Returns the error of a call whose connection was lost."""
    return Unconfirmed(reason) if may_be_sent else Unavailable(reason, sent=False)
