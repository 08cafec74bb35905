"""The connection to a node, driven by blocking sockets: calls, streams, messages, subscriptions.

There is no thread in the background. A thread that waits for an answer reads for all of them: it
waits for the socket outside the lock, and everything else happens under it. So a single-threaded
program makes no hand-over between threads, and any number of threads may share a link.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import select
import signal
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from telpher import _core as core
from telpher import _errors as errors
from telpher import _forks as forks
from telpher import _wire as wire
from telpher._core import Inbound, Route
from telpher._options import Address, Options, full_jitter

NEVER = float("inf")
LEADERS_MAX = 10_000
KEEPALIVE = 600.0
"""How long this side may be silent; a program that makes no calls reads nothing meanwhile."""
IDLE_CHECK = 1.0
"""Seconds without traffic after which the socket is looked at before a call."""
TICK = 0.5
RECEIVE_SIZE = 256 << 10


class Receiver(Protocol):
    """What a subscription does with what arrives for its name."""

    def receive(self, inbound: Inbound) -> None:
        """Takes a request or a message."""

    def end(self, error: errors.TelpherError) -> None:
        """Says that the subscription has ended."""


class Answered:
    """The outcome of a call, once there is one."""

    __slots__ = ("_error", "_is_done", "payload")

    def __init__(self) -> None:
        self._is_done = False
        self._error: errors.TelpherError | None = None
        self.payload = b""

    def done(self) -> bool:
        return self._is_done

    def set_result(self, payload: bytes) -> None:
        self.payload, self._is_done = payload, True

    def set_exception(self, error: errors.TelpherError) -> None:
        self._error, self._is_done = error, True

    def result(self) -> bytes:
        if self._error is not None:
            raise self._error
        return self.payload


class Inbox:
    """A queue whose readers wait; it ends with an error."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._items: deque[Any] = deque()
        self._end: errors.TelpherError | None = None

    def put(self, item: Any) -> None:
        self._items.append(item)

    def end(self, error: errors.TelpherError) -> None:
        if self._end is None:
            self._end = error

    def drain(self) -> list[Any]:
        """Returns the items that nobody has taken."""
        left = list(self._items)
        self._items.clear()
        return left

    def _is_ready(self) -> bool:
        return bool(self._items) or self._end is not None

    def get(self) -> Any:
        """Returns the next item; raises the error of the end after the last."""
        link = self._link
        with link.lock:
            while not self._items:
                if self._end is not None:
                    raise self._end
                link.wait(self._is_ready, NEVER)
            return self._items.popleft()

    def wait(self, seconds: float) -> bool:
        """Waits for an item or the end; False if neither came within `seconds`."""
        with self._link.lock:
            return self._link.wait(self._is_ready, time.monotonic() + seconds)

    def check(self) -> None:
        """Raises the error of the end."""
        if self._end is not None:
            raise self._end


class Items:
    """The items of a streamed answer, as an iterator.

    Closing it, or leaving it before its end, cancels the call at the other side.
    """

    def __init__(self, connection: Connection, slot: int) -> None:
        self._connection = connection
        self._slot = slot
        self._arrived: deque[bytes] = deque()
        self._end: errors.TelpherError | None = None
        self._is_over = False
        self._taken = 0

    def on_item(self, payload: bytes) -> None:
        self._arrived.append(payload)

    def set_result(self, payload: bytes) -> None:
        if payload:
            self._arrived.append(payload)
        self._is_over = True

    def set_exception(self, error: errors.TelpherError) -> None:
        self._end = error
        self._is_over = True

    def done(self) -> bool:
        return self._is_over

    def _is_ready(self) -> bool:
        return bool(self._arrived) or self._is_over

    def __iter__(self) -> Items:
        return self

    def __next__(self) -> bytes:
        link = self._connection.link
        with link.lock:
            if not self._arrived:
                link.wait(self._is_ready, NEVER)
            if not self._arrived:
                if self._end is not None:
                    raise self._end
                raise StopIteration
            self._taken += 1
            if self._taken >= core.ITEMS_AHEAD // 2 and not self._is_over:
                self._connection.core.grant(self._slot, self, self._taken)
                self._connection.flush()
                self._taken = 0
            return self._arrived.popleft()

    def cancel(self) -> None:
        """Cancels the call."""
        with self._connection.link.lock:
            if not self._is_over:
                self._is_over = True
                self._connection.cancel(self._slot, self)

    def close(self) -> None:
        """Cancels the call if it has not ended."""
        self.cancel()
        self._arrived.clear()

    def __del__(self) -> None:
        if not self._is_over:
            with contextlib.suppress(errors.TelpherError):
                self.cancel()


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
            _wait_for(self.socket, left, bool(self._unsent))
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


class Link:
    """Calls a node, and connects again when the connection is lost."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.lock = threading.RLock()
        self.connection: Connection | None = None
        self.receivers: dict[str, tuple[int, bytes, Receiver]] = {}
        self.is_closed = False
        self.is_foreign = False
        """True in a process that was forked after this link was made."""
        self._changed = threading.Condition(self.lock)
        self._is_reading = False
        self._is_connecting = False
        self._attempt = 0
        self._next_try = 0.0
        self._retired: list[Connection] = []
        self._down: errors.TelpherError = errors.Unavailable("not connected yet", sent=False)
        self._next_address = 0
        self._leaders: dict[Route, int] = {}
        self._sides: dict[int, Link] = {}
        self._pool: ThreadPoolExecutor | None = None
        self._running = 0
        forks.remember(self)

    # Connecting.

    def connect(self) -> None:
        """Connects once to each address in turn; raises the last failure."""
        failure: errors.TelpherError | None = None
        for _ in self.options.addresses:
            try:
                self._dial()
            except errors.TelpherError as error:
                failure = error
                if isinstance(error, errors.Unauthenticated | errors.Denied):
                    break
            else:
                return
        assert failure is not None
        raise failure

    def _dial(self) -> None:
        """Connects to the next address; called without the lock."""
        addresses = self.options.addresses
        address = addresses[self._next_address % len(addresses)]
        connection = Connection(self, address)
        try:
            self._open(connection)
        except errors.TelpherError as error:
            with self.lock:
                connection.lose(error.message)
                self._next_address += 1
                self._down = error
            raise
        with self.lock:
            self._renew(connection)
            self.connection = connection
            self._attempt = 0
            self._changed.notify_all()

    def _open(self, connection: Connection) -> None:
        timeout = self.options.connect_timeout
        try:
            connection.open(timeout)
        except TimeoutError as error:
            if isinstance(error, errors.TelpherError):
                raise
            message = f"{connection.address} did not answer within {timeout:g} s"
            raise errors.Unavailable(message, sent=False, hint=_HINT) from None
        except OSError as error:
            if isinstance(error, errors.TelpherError):
                raise
            message = f"cannot connect to {connection.address}: {error}"
            raise errors.Unavailable(message, sent=False, hint=_HINT) from None

    def _renew(self, connection: Connection) -> None:
        """Subscribes again, as the same instances. The answers are read with the others."""
        for name, (options, description, receiver) in self.receivers.items():
            token = _Renewal(self, name, receiver)
            connection.issue(
                wire.SUBSCRIBE,
                0,
                None,
                wire.subscribe(options, name) + description,
                None,
                b"",
                token,
                False,
            )

    def on_lost(self, connection: Connection, reason: str) -> None:
        if connection in self._retired:
            self._retired.remove(connection)
        if connection is self.connection:
            self.connection = None
            if not self.is_closed:
                self._down = errors.Unavailable(reason, sent=False)
        self._changed.notify_all()

    def on_event(self, connection: Connection, kind: int, subject: Any, value: Any) -> None:
        """Takes an event of a connection that concerns no call of this side."""
        if kind in (core.REQUESTED, core.RECEIVED):
            found = self.receivers.get(subject.name)
            if found is not None:
                found[2].receive(subject)
            elif kind == core.REQUESTED:
                error = errors.NoResponder("the subscription was given up")
                connection.core.fail(subject, error, False)
            else:
                connection.core.consume(subject)
        elif kind == core.ENDED:
            found = self.receivers.pop(subject, None)
            if found is not None:
                found[2].end(value)
        elif kind == core.LEAVING:
            self._retire(connection, str(value))
        elif kind == core.BROKEN:
            connection.core.refusal = value
            if isinstance(value, errors.Unauthenticated | errors.Denied):
                self._give_up(value)
            connection.lose(value.message)

    def _retire(self, connection: Connection, message: str) -> None:
        connection.is_retired = True
        self._retired.append(connection)
        if connection is self.connection:
            self.connection = None
            self._down = errors.Unavailable(f"the node is leaving: {message}", sent=False)
        self._close_if_idle(connection)

    def _close_if_idle(self, connection: Connection) -> None:
        if connection.core.in_flight == 0 and connection.core.unanswered == 0:
            connection.lose("the node is leaving")

    def _give_up(self, error: errors.TelpherError) -> None:
        self._down = error
        self.is_closed = True
        for *_, receiver in self.receivers.values():
            receiver.end(error)
        self.receivers.clear()

    # Waiting. All of this is called with the lock.

    def wait(self, is_done: Callable[[], bool], until: float) -> bool:
        """Reads, or waits for the thread that reads, until `is_done()`; False after `until`."""
        while not is_done():
            now = time.monotonic()
            if now >= until:
                return False
            if self.is_closed and self.connection is None:
                raise self._closed()
            if self._is_reading:
                self._changed.wait(min(TICK, until - now))
            elif self.connection is None and not self._retired:
                self._connect_again(until)
            else:
                self._read(min(until - now, TICK))
        return True

    def _read(self, seconds: float) -> None:
        connections = [it for it in (self.connection, *self._retired) if it is not None]
        soonest = min(it.deadline for it in connections)
        seconds = min(seconds, max(0.0, soonest - time.monotonic()))
        self._is_reading = True
        self.lock.release()
        try:
            if len(connections) == 1 and connections[0].socket is not None:
                only = connections[0]
                assert only.socket is not None
                _wait_for(only.socket, seconds, only.wants_to_write)
            else:
                time.sleep(0.001)
        finally:
            self.lock.acquire()
            self._is_reading = False
        now = time.monotonic()
        for connection in connections:
            connection.flush()
            connection.read()
            connection.expire(now)
            if connection.is_retired and not connection.is_lost:
                self._close_if_idle(connection)
        self._changed.notify_all()

    def _connect_again(self, until: float) -> None:
        """Makes one attempt to connect, or waits for that of another thread."""
        now = time.monotonic()
        if self._is_connecting:
            self._changed.wait(max(0.0, min(TICK, until - now)))
            return
        if now < self._next_try:
            self._changed.wait(max(0.0, min(self._next_try, until) - now))
            return
        self._is_connecting = True
        self.lock.release()
        failure: errors.TelpherError | None = None
        try:
            self._dial()
        except errors.TelpherError as error:
            failure = error
        finally:
            self.lock.acquire()
            self._is_connecting = False
        if isinstance(failure, errors.Unauthenticated | errors.Denied):
            self._give_up(failure)
        elif failure is not None:
            pause_min, pause_max = self.options.reconnect
            pause = full_jitter(pause_min, pause_max, self._attempt)
            self._attempt += 1
            self._next_try = time.monotonic() + pause
        self._changed.notify_all()

    def check(self) -> None:
        """Raises if the link cannot be used here."""
        if self.is_foreign:
            raise errors.UsageError(
                "this client was connected in another process, before a fork",
                sent=False,
                hint="connect in the child process; connections cannot be shared",
            )
        if self.is_closed:
            raise self._closed()

    def _closed(self) -> errors.TelpherError:
        if isinstance(self._down, errors.Unauthenticated | errors.Denied):
            return self._down
        return errors.UsageError("the client is closed", sent=False)

    def _ready(self, until: float, has_room: Callable[[Connection], bool]) -> Connection:
        """Returns the connection once it has room."""
        self.check()
        connection = self.connection
        if connection is not None and time.monotonic() - connection.used_at > IDLE_CHECK:
            connection.read()
            connection.used_at = time.monotonic()
        found = self.connection

        def is_ready() -> bool:
            nonlocal found
            found = self.connection
            return found is not None and has_room(found)

        if not self.wait(is_ready, until) or found is None:
            raise self._late()
        self.check()
        return found

    def _late(self) -> errors.TelpherError:
        if self.connection is None:
            message = f"there was no connection within the deadline: {self._down.message}"
            return errors.Unavailable(message, sent=False)
        message = "the deadline passed before the call could be sent: the window is full"
        return errors.DeadlineExceeded(message, sent=False)

    # Calls.

    def call(
        self,
        kind: int,
        flags: int,
        route: Route | None,
        body: bytes,
        timeout: float | None,
        metadata: bytes = b"",
        tells_deadline: bool = True,
    ) -> bytes:
        """Sends a request and returns the payload of its answer."""
        with self.lock:
            until = NEVER if timeout is None else time.monotonic() + timeout
            connection = self._ready(until, _has_room)
            answered = Answered()
            slot = connection.issue(
                kind, flags, route, body, _left(until), metadata, answered, tells_deadline
            )
            return self._finish(connection, slot, answered)

    def _finish(self, connection: Connection, slot: int, answered: Answered) -> bytes:
        try:
            if not answered.done():
                self.wait(answered.done, NEVER)
        except BaseException:
            # KeyboardInterrupt, above all.
            if not answered.done():
                connection.cancel(slot, answered)
            raise
        finally:
            self._changed.notify_all()
        return answered.result()

    def call_plain(self, kind: int, body: bytes, timeout: float | None) -> bytes:
        """Sends a request without a route and a deadline of its own."""
        return self.call(kind, 0, None, body, timeout, b"", False)

    def items(
        self,
        kind: int,
        flags: int,
        route: Route | None,
        body: bytes,
        timeout: float | None,
        metadata: bytes = b"",
    ) -> Items:
        """Sends a request and returns the items of its answer."""
        with self.lock:
            until = NEVER if timeout is None else time.monotonic() + timeout
            connection = self._ready(until, _has_room)
            items = Items(connection, 0)
            items._slot = connection.issue(kind, flags, route, body, _left(until), metadata, items)
            return items

    def send(
        self,
        route: Route,
        body: bytes,
        timeout: float | None,
        metadata: bytes = b"",
    ) -> None:
        """Sends a one-way message once the node and its subscribers have room for it."""
        size = len(body) + len(metadata)
        with self.lock:
            until = NEVER if timeout is None else time.monotonic() + timeout
            connection = self._ready(until, lambda it: it.core.has_credit(size, route))
            connection.core.send(route, body, metadata)
            connection.flush()

    def send_answered(
        self,
        kind: int,
        flags: int,
        route: Route,
        body: bytes,
        timeout: float | None,
        metadata: bytes = b"",
    ) -> bytes:
        """Sends a message that uses credit and is answered."""
        size = len(body) + len(metadata)
        with self.lock:
            until = NEVER if timeout is None else time.monotonic() + timeout
            connection = self._ready(
                until, lambda it: it.core.room > 0 and it.core.has_credit(size, route)
            )
            answered = Answered()
            tells = kind == wire.WRITE
            slot = connection.issue(
                kind, flags, route, body, _left(until), metadata, answered, tells
            )
            connection.core.spend(size)
            return self._finish(connection, slot, answered)

    def subscribe(
        self, name: str, options: int, receiver: Receiver, description: bytes = b""
    ) -> str:
        """Subscribes, and returns the full name. `description` follows the name."""
        timeout = self.options.timeout
        with self.lock:
            until = NEVER if timeout is None else time.monotonic() + timeout
            connection = self._ready(until, _has_room)
            answered = _Subscribed(self, options, description, receiver)
            payload = wire.subscribe(options, name) + description
            slot = connection.issue(
                wire.SUBSCRIBE, 0, None, payload, _left(until), b"", answered, False
            )
            return wire.Reader(self._finish(connection, slot, answered)).text16()

    def unsubscribe(self, name: str) -> None:
        """Ends a subscription; what has arrived for it stays with its receiver."""
        if self.receivers.pop(name, None) is None or self.connection is None or self.is_closed:
            return
        with contextlib.suppress(errors.TelpherError):
            self.call_plain(wire.UNSUBSCRIBE, wire.text16(name), 5.0)

    # Nodes of a cluster.

    def leader(self, route: Route) -> Link:
        """Returns the link to the node that answered for `route` last, by default this one."""
        index = self._leaders.get(route)
        if index is None:
            return self
        side = self._sides.get(index)
        if side is None or side.is_closed:
            only = dataclasses.replace(self.options, addresses=(self.options.addresses[index],))
            side = Link(only)
            side.connect()
            self._sides[index] = side
        return side

    def look_elsewhere(self, route: Route) -> None:
        """Has the next request of `route` sent to the next address."""
        index = self._leaders.get(route, self._next_address)
        if len(self._leaders) > LEADERS_MAX:
            self._leaders.clear()
        self._leaders[route] = (index + 1) % len(self.options.addresses)

    # Answers of this side's handlers.

    def run(self, work: Callable[[Inbound], None], inbound: Inbound) -> None:
        """Runs a handler in a thread."""
        if self._pool is None:
            workers = max(1, min(self.options.requests_max, 256))
            self._pool = ThreadPoolExecutor(workers, "telpher")
        self._running += 1

        def done(_: Any) -> None:
            with self.lock:
                self._running -= 1
                self._changed.notify_all()

        self._pool.submit(work, inbound).add_done_callback(done)

    def reply(self, inbound: Inbound, body: bytes) -> None:
        with self.lock:
            inbound.connection.reply(inbound, body)
            self._flush(inbound)

    def fail(self, inbound: Inbound, error: errors.TelpherError, executed: bool = True) -> None:
        with self.lock:
            inbound.connection.fail(inbound, error, executed)
            self._flush(inbound)

    def consume(self, inbound: Inbound) -> None:
        with self.lock:
            inbound.connection.consume(inbound)
            self._flush(inbound)

    def reply_item(self, inbound: Inbound, body: bytes) -> None:
        """Sends an item once the caller has room for it."""
        with self.lock:
            if inbound.ahead >= core.ITEMS_AHEAD:
                self.wait(lambda: inbound.ahead < core.ITEMS_AHEAD or inbound.is_over, NEVER)
            inbound.connection.reply_item(inbound, body)
            self._flush(inbound)

    def _flush(self, inbound: Inbound) -> None:
        for connection in (self.connection, *self._retired):
            if connection is not None and connection.core is inbound.connection:
                connection.flush()

    def new_inbox(self) -> Inbox:
        return Inbox(self)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def now(self) -> float:
        return time.monotonic()

    # The end.

    def close(self) -> None:
        """Closes the connection. Calls in flight fail."""
        with self.lock:
            if self.is_closed and self.connection is None:
                return
            self.is_closed = True
            self._down = errors.Unavailable("the client was closed", sent=False)
            forks.forget(self)
            if self.is_foreign:
                return
            closed = errors.Unavailable("the client was closed", sent=False)
            for *_, receiver in self.receivers.values():
                receiver.end(closed)
            self.receivers.clear()
            for side in self._sides.values():
                side.close()
            for connection in (self.connection, *list(self._retired)):
                if connection is not None:
                    connection.lose("the client was closed")
            self._changed.notify_all()
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def drain(self, seconds: float) -> None:
        """Takes no more work, and waits for the handlers that run."""
        until = time.monotonic() + seconds
        names = list(self.receivers)
        self.receivers.clear()
        for name in names:
            with contextlib.suppress(errors.TelpherError):
                self.call_plain(wire.UNSUBSCRIBE, wire.text16(name), seconds)
        with self.lock, contextlib.suppress(errors.TelpherError):
            self.wait(lambda: self._running == 0, until)


class _Subscribed(Answered):
    """The outcome of SUBSCRIBE. The node may send requests right behind it: the receiver is
    registered as soon as it is read."""

    __slots__ = ("_description", "_link", "_options", "_receiver")

    def __init__(self, link: Link, options: int, description: bytes, receiver: Receiver) -> None:
        super().__init__()
        self._link = link
        self._options = options
        self._description = description
        self._receiver = receiver

    def set_result(self, payload: bytes) -> None:
        super().set_result(payload)
        name = wire.Reader(payload).text16()
        self._link.receivers[name] = (
            self._options,
            self._description,
            self._receiver,
        )


class _Renewal:
    """The outcome of a repeated SUBSCRIBE: only a refusal matters."""

    def __init__(self, link: Link, name: str, receiver: Receiver) -> None:
        self._link = link
        self._name = name
        self._receiver = receiver

    def done(self) -> bool:
        return False

    def set_result(self, payload: bytes) -> None:
        """Does nothing: the subscription goes on."""

    def set_exception(self, error: errors.TelpherError) -> None:
        if not isinstance(error, errors.Unavailable | errors.Unconfirmed):
            self._link.receivers.pop(self._name, None)
            self._receiver.end(error)


def _has_room(connection: Connection) -> bool:
    return connection.core.room > 0


def _left(until: float) -> float | None:
    return None if until == NEVER else max(0.0, until - time.monotonic())


def _wait_for(opened: socket.socket, seconds: float, wants_to_write: bool) -> None:
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


def invoke(function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Calls a function of the user."""
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise errors.UsageError(
            f"{function.__name__} is a coroutine function",
            hint="use telpher.Agent for coroutine functions, or leave out `async`",
        )
    return function(**arguments)


def iterate(made: Any) -> Generator[Any, None, None]:
    """Yields the items of a generator, and closes it."""
    yield from made


def deadline(seconds: float | None) -> contextlib.AbstractContextManager[None]:
    """Does nothing: a thread cannot be ended from outside. See `Request.remaining`."""
    return contextlib.nullcontext()


def until_stopped(ended: Inbox) -> None:
    """Waits for SIGTERM or SIGINT, or for the end of the inbox, whose error is raised."""
    is_stopped = threading.Event()

    def stop(number: int, frame: Any) -> None:
        is_stopped.set()

    before = dict[signal.Signals, Any]()
    for number in (signal.SIGTERM, signal.SIGINT):
        # Only the main thread may set handlers.
        with contextlib.suppress(ValueError):
            before[number] = signal.signal(number, stop)
    try:
        while not is_stopped.is_set():
            if ended.wait(0.1):
                ended.check()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


_HINT = "start a node with `telpher serve --dev`, or check the address"
