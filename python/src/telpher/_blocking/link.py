"""The connection to a node: calls, messages and subscriptions, and what happens when it is lost.

There is no thread in the background. A thread that waits for an answer reads for all of them: it
waits for the socket outside the lock, and everything else happens under it. So a single-threaded
program makes no hand-over between threads, and any number of threads may share a link.
"""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from telpher import _core as core
from telpher import _errors as errors
from telpher import _forks as forks
from telpher import _wire as wire
from telpher._blocking.connection import NEVER, Connection, wait_for
from telpher._blocking.items import Answered, Inbox, Items, Receiver
from telpher._core import Inbound, Route
from telpher._options import Options, full_jitter

LEADERS_MAX = 10_000
IDLE_CHECK = 0.05
"""Seconds without traffic after which the socket is looked at before a call."""
TICK = 0.5
_HINT = "start a node with `telpher serve --dev`, or check the address"


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
                wait_for(only.socket, seconds, only.wants_to_write)
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
