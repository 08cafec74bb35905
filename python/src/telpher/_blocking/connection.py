"""One connection: moves bytes between a socket and the core."""

from __future__ import annotations

import select
import socket
import ssl
import time
from typing import TYPE_CHECKING, Any

from telpher import _core as core
from telpher import _errors as errors
from telpher._core import Route
from telpher._options import Address

if TYPE_CHECKING:
    from telpher._blocking.link import Link

NEVER = float("inf")
KEEPALIVE = 600.0
"""How long this side may be silent; a program that makes no calls reads nothing meanwhile."""
RECEIVE_SIZE = 256 << 10


class Connection:
    """One connection: moves bytes between a socket and the core. Used under the link's lock."""

    def __init__(self, link: Link, address: Address) -> None:
        options = link.options
        self.link = link
        self.address = address
        self.core = core.Connection(
            options.window(KEEPALIVE), options.token, options.name, options.in_flight_max
        )
        self.socket: socket.socket | None = None
        self.is_retired = False
        self.is_lost = False
        self.used_at = time.monotonic()
        self.deadline = NEVER
        self._unsent = b""

    def open(self, timeout: float) -> None:
        """Connects and greets; called without the lock."""
        until = time.monotonic() + timeout
        self.socket = self._dial(timeout)
        self.socket.setblocking(False)
        with self.link.lock:
            self.flush()
        while self.core.peer is None:
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError
            wait_for(self.socket, left, bool(self._unsent))
            with self.link.lock:
                self.flush()
                self.read()
                if self.core.refusal is not None:
                    raise self.core.refusal
                if self.is_lost:
                    raise errors.Unavailable(f"{self.address} closed the connection", sent=False)

    def _dial(self, timeout: float) -> socket.socket:
        address = self.address
        if address.scheme == "unix":
            opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                opened.settimeout(timeout)
                opened.connect(address.host)
            except BaseException:
                opened.close()
                raise
            return opened
        opened = socket.create_connection((address.host, address.port), timeout)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        tls = self.link.options.ssl_context(address)
        if tls is None:
            return opened
        try:
            return tls.wrap_socket(opened, server_hostname=address.host)
        except BaseException:
            opened.close()
            raise

    @property
    def wants_to_write(self) -> bool:
        return bool(self._unsent)

    def flush(self) -> None:
        """Writes what the socket takes; the rest is written while waiting."""
        opened = self.socket
        if opened is None or self.is_lost:
            return
        while self._unsent or self.core.out:
            data = self._unsent or self.core.take_out()
            try:
                sent = opened.send(data)
            except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
                self._unsent = data
                self.core.is_pausing = True
                return
            except OSError as error:
                self.lose(str(error))
                return
            self._unsent = data[sent:]
        self.core.is_pausing = False

    def read(self) -> None:
        """Reads what has arrived and acts on it."""
        opened = self.socket
        while opened is not None and not self.is_lost:
            try:
                data = opened.recv(RECEIVE_SIZE)
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return
            except OSError as error:
                self.lose(str(error))
                return
            if not data:
                self.lose("the node closed it")
                return
            self.used_at = time.monotonic()
            try:
                events = self.core.receive(data)
            except errors.TelpherError as error:
                self.core.refusal = error
                self.lose(error.message)
                return
            for kind, token, value in events:
                if kind == 0:
                    token.set_result(value)
                elif kind == 1:
                    token.set_exception(value)
                elif kind == 2:
                    token.on_item(value)
                else:
                    self.link.on_event(self, kind, token, value)
            if self.core.out:
                self.flush()
            if len(data) < RECEIVE_SIZE and not isinstance(opened, ssl.SSLSocket):
                return

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
        deadline, deadline_ms = NEVER, None
        if timeout is not None:
            deadline = time.monotonic() + timeout
            self.deadline = min(self.deadline, deadline)
            if tells_deadline:
                deadline_ms = min(int(timeout * 1000) + 1, 0xFFFFFFFF)
        slot = self.core.request(kind, flags, route, body, deadline_ms, metadata, token, deadline)
        self.flush()
        return slot

    def cancel(self, slot: int, token: Any) -> None:
        self.core.cancel(slot, token)
        self.flush()

    def expire(self, now: float) -> None:
        """Fails the calls whose deadline has passed."""
        if now < self.deadline:
            return
        late, self.deadline = self.core.expired(now)
        for token, _ in late:
            message = "no answer came within the deadline"
            token.set_exception(errors.DeadlineExceeded(message, sent=True))
        self.flush()

    def lose(self, reason: str) -> None:
        """Closes the connection; its calls fail."""
        if self.is_lost:
            return
        self.is_lost = True
        if self.socket is not None:
            self.socket.close()
        text = f"the connection to {self.address} was lost: {reason}"
        refusal = self.core.refusal
        for token, may_be_sent in self.core.lose():
            token.set_exception(refusal or core.lost(text, may_be_sent))
        self.link.on_lost(self, text)


def wait_for(opened: socket.socket, seconds: float, wants_to_write: bool) -> None:
    """Waits until the socket can be read, or written if that is wanted."""
    if isinstance(opened, ssl.SSLSocket) and opened.pending():
        return
    try:
        if hasattr(select, "poll"):
            poll = select.poll()
            poll.register(opened, select.POLLIN | (select.POLLOUT if wants_to_write else 0))
            poll.poll(min(seconds, 3600.0) * 1000)
        else:
            writes = [opened] if wants_to_write else []
            select.select([opened], writes, [], min(seconds, 3600.0))
    except (OSError, ValueError):
        # The socket was closed by another thread; the caller looks at its state.
        return
