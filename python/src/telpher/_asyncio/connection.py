"""One connection: moves bytes between a transport and the core.

All frames of one turn of the event loop leave in one write.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import TYPE_CHECKING, Any, cast

from telpher import _core as core
from telpher import _errors as errors
from telpher._core import Route
from telpher._options import Address

if TYPE_CHECKING:
    from telpher._asyncio.link import Link

NEVER = float("inf")
SWEEP_MIN = 0.002


class Connection(asyncio.Protocol):
    """One connection: moves bytes between a transport and the core."""

    def __init__(self, link: Link, address: Address) -> None:
        options = link.options
        self.link = link
        self.address = address
        self.core = core.Connection(
            options.window(options.keepalive), options.token, options.name, options.in_flight_max
        )
        self.transport: asyncio.Transport | None = None
        self.ready: asyncio.Future[None] = link.loop.create_future()
        self.is_retired = False
        self._is_flushing = False
        self._is_lost = False
        self._sweep: asyncio.TimerHandle | None = None
        self._sweep_at = NEVER
        self._alive: asyncio.TimerHandle | None = None
        self._heard = 0.0
        self._reason = f"the connection to {address} was lost"

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Those of uvloop are no asyncio.Transport, but have its methods.
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(high=1 << 20)
        connected = transport.get_extra_info("socket")
        if connected is not None and connected.family != getattr(socket, "AF_UNIX", None):
            with contextlib.suppress(OSError):
                connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.flush()

    def data_received(self, data: bytes) -> None:
        try:
            events = self.core.receive(data)
        except errors.TelpherError as error:
            if not self.ready.done():
                self.ready.set_exception(error)
            self.close(error.message)
            return
        self._heard = self.link.loop.time()
        if not self.ready.done():
            self._begin()
        for kind, token, value in events:
            if kind == 0:
                if not token.done():
                    token.set_result(value)
            elif kind == 1:
                if not token.done():
                    token.set_exception(value)
            elif kind == 2:
                token.on_item(value)
            else:
                self.link.on_event(self, kind, token, value)
        if self.core.out:
            self.want_flush()
        if self.link.waiting:
            self.link.settle()
        if self.is_retired:
            self.link.close_if_idle(self)

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is not None:
            self._reason = f"{self._reason}: {exc}"
        self._end()

    def pause_writing(self) -> None:
        self.core.is_pausing = True

    def resume_writing(self) -> None:
        self.core.is_pausing = False
        self.flush()
        self.link.settle()

    # Of the link.

    def _begin(self) -> None:
        if self.core.refusal is not None:
            self.ready.set_exception(self.core.refusal)
        elif self.core.peer is not None:
            self.ready.set_result(None)
            self._keep_alive()

    def _keep_alive(self) -> None:
        interval = self.link.options.keepalive
        if interval <= 0:
            return
        silence = self.link.loop.time() - self._heard
        if silence >= 2.5 * interval:
            self.close(f"{self.address} was silent for {silence:.1f} s")
            return
        if silence >= interval:
            self.core.ping()
            self.flush()
        self._alive = self.link.loop.call_later(interval / 2, self._keep_alive)

    def issue(
        self,
        kind: int,
        flags: int,
        route: Route | None,
        body: bytes,
        timeout: float | None,
        metadata: bytes,
        token: Any,
        tells_deadline: bool = True,
    ) -> int:
        """Sends a request whose answer goes to `token`."""
        if timeout is None:
            deadline, deadline_ms = NEVER, None
        else:
            deadline = self.link.loop.time() + timeout
            deadline_ms = None
            if tells_deadline:
                deadline_ms = min(int(timeout * 1000) + 1, 0xFFFFFFFF)
            if deadline < self._sweep_at:
                self._sweep_later(deadline)
        slot = self.core.request(kind, flags, route, body, deadline_ms, metadata, token, deadline)
        if self._is_flushing:
            return slot
        if self.core.in_flight == 1:
            # Nothing to gather with: a turn of the loop would only delay it.
            self.flush()
        else:
            self._is_flushing = True
            self.link.loop.call_soon(self.flush)
        return slot

    def cancel(self, slot: int, token: Any) -> None:
        self.core.cancel(slot, token)
        self.want_flush()

    def want_flush(self) -> None:
        if not self._is_flushing and not self._is_lost:
            self._is_flushing = True
            self.link.loop.call_soon(self.flush)

    def flush(self) -> None:
        self._is_flushing = False
        transport = self.transport
        if self.core.out and transport is not None and not self.core.is_pausing:
            transport.write(self.core.take_out())

    def _sweep_later(self, deadline: float) -> None:
        if self._sweep is not None:
            self._sweep.cancel()
        self._sweep_at = deadline
        self._sweep = self.link.loop.call_at(deadline + SWEEP_MIN, self._expire)

    def _expire(self) -> None:
        self._sweep, self._sweep_at = None, NEVER
        late, soonest = self.core.expired(self.link.loop.time())
        for token, _ in late:
            if not token.done():
                token.set_exception(
                    errors.DeadlineExceeded("no answer came within the deadline", sent=True)
                )
        if late:
            self.want_flush()
        if soonest != NEVER:
            self._sweep_later(soonest)

    def close(self, reason: str | None = None) -> None:
        """Closes the connection; its calls fail."""
        if reason is not None:
            self._reason = reason
        if self.transport is not None:
            self.flush()
            self.transport.close()
        self._end()

    def _end(self) -> None:
        if self._is_lost:
            return
        self._is_lost = True
        for timer in (self._sweep, self._alive):
            if timer is not None:
                timer.cancel()
        refusal = self.core.refusal
        for token, may_be_sent in self.core.lose():
            if not token.done():
                token.set_exception(refusal or core.lost(self._reason, may_be_sent))
        if not self.ready.done():
            self.ready.set_exception(errors.Unavailable(self._reason, sent=False))
            self.ready.exception()
        self.link.on_lost(self, self._reason)
