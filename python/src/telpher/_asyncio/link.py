"""The connection to a node: calls, messages and subscriptions, and what happens when it is lost.

`Link` has at most one connection for new calls. When it is lost, the calls on it fail and the link
connects again, with pauses with full jitter; meanwhile new calls wait until their deadline.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from telpher import _core as core
from telpher import _errors as errors
from telpher import _forks as forks
from telpher import _wire as wire
from telpher._asyncio.connection import Connection
from telpher._asyncio.items import Inbox, Items, Receiver
from telpher._core import Inbound, Route
from telpher._options import Address, Options, full_jitter

LEADERS_MAX = 10_000
_HINT = "start a node with `telpher serve --dev`, or check the address"


class Link:
    """Calls a node, and connects again when the connection is lost."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.loop = asyncio.get_running_loop()
        self.connection: Connection | None = None
        self.waiting: deque[asyncio.Future[None]] = deque()
        self.receivers: dict[str, tuple[int, bytes, Receiver]] = {}
        self.is_closed = False
        self._retired: set[Connection] = set()
        self._woken = 0
        self._credit_waiting: deque[asyncio.Future[None]] = deque()
        self._reconnecting: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Future[Any]] = set()
        self._down: errors.TelpherError = errors.Unavailable("not connected yet", sent=False)
        self._next_address = 0
        self._leaders: dict[Route, int] = {}
        self._sides: dict[int, Link] = {}
        self.is_foreign = False
        """True in a process that was forked after this link was made."""
        forks.remember(self)

    # Connecting.

    async def connect(self) -> None:
        """Connects once to each address in turn; raises the last failure."""
        failure: errors.TelpherError | None = None
        for _ in self.options.addresses:
            try:
                await self._attempt()
            except errors.TelpherError as error:
                failure = error
                if isinstance(error, errors.Unauthenticated | errors.Denied):
                    break
            else:
                return
        assert failure is not None
        raise failure

    async def _attempt(self) -> None:
        addresses = self.options.addresses
        address = addresses[self._next_address % len(addresses)]
        try:
            connection = await self._open(address)
        except errors.TelpherError as error:
            self._next_address += 1
            self._down = error
            raise
        await self._renew(connection)
        self.connection = connection
        self.settle(everything=True)

    async def _open(self, address: Address) -> Connection:
        connection = Connection(self, address)
        timeout = self.options.connect_timeout
        try:
            async with asyncio.timeout(timeout):
                await self._dial(connection, address)
                await connection.ready
        except TimeoutError:
            connection.close()
            message = f"{address} did not answer within {timeout:g} s"
            raise errors.Unavailable(message, sent=False, hint=_HINT) from None
        except OSError as error:
            connection.close()
            if isinstance(error, errors.TelpherError):
                raise
            message = f"cannot connect to {address}: {error}"
            raise errors.Unavailable(message, sent=False, hint=_HINT) from None
        except BaseException:
            connection.close()
            raise
        return connection

    async def _dial(self, connection: Connection, address: Address) -> None:
        if address.scheme == "unix":
            await self.loop.create_unix_connection(lambda: connection, address.host)
            return
        tls = self.options.ssl_context(address)
        await self.loop.create_connection(lambda: connection, address.host, address.port, ssl=tls)

    async def _renew(self, connection: Connection) -> None:
        """Subscribes again, as the same instances."""
        for name, (options, description, receiver) in list(self.receivers.items()):
            answered = self.loop.create_future()
            connection.issue(
                wire.SUBSCRIBE,
                0,
                None,
                wire.subscribe(options, name) + description,
                5.0,
                b"",
                answered,
                False,
            )
            try:
                await answered
            except (errors.Unavailable, errors.Unconfirmed, errors.DeadlineExceeded):
                raise
            except errors.TelpherError as error:
                self.receivers.pop(name, None)
                receiver.end(error)

    def on_lost(self, connection: Connection, reason: str) -> None:
        self._retired.discard(connection)
        if connection is not self.connection:
            return
        self.connection = None
        if not self.is_closed:
            self._down = errors.Unavailable(reason, sent=False)
            self._reconnect()

    def _reconnect(self) -> None:
        if self.is_closed or self.loop.is_closed():
            return
        if self._reconnecting is None or self._reconnecting.done():
            self._reconnecting = self.loop.create_task(self._keep_connecting())

    async def _keep_connecting(self) -> None:
        attempt = 0
        pause_min, pause_max = self.options.reconnect
        while not self.is_closed and self.connection is None:
            try:
                await self._attempt()
            except errors.TelpherError as error:
                if isinstance(error, errors.Unauthenticated | errors.Denied):
                    self._give_up(error)
                    return
                await asyncio.sleep(full_jitter(pause_min, pause_max, attempt))
                attempt += 1

    def _give_up(self, error: errors.TelpherError) -> None:
        self._down = error
        self.is_closed = True
        for *_, receiver in self.receivers.values():
            receiver.end(error)
        self.receivers.clear()
        self.settle(everything=True)

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
        elif kind == core.CANCELLED:
            token = subject.token
            if token is not None:
                token.cancel()
        elif kind == core.CREDITED:
            self._settle_senders()
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
            connection.close(str(value.message))

    def _retire(self, connection: Connection, message: str) -> None:
        connection.is_retired = True
        self._retired.add(connection)
        if connection is self.connection:
            self.connection = None
            self._down = errors.Unavailable(f"the node is leaving: {message}", sent=False)
            self._reconnect()
        self.close_if_idle(connection)

    def close_if_idle(self, connection: Connection) -> None:
        if connection.core.in_flight == 0 and connection.core.unanswered == 0:
            connection.close("the node has closed the connection")

    # Calls.

    async def call(
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
        connection = self.connection
        if (
            connection is None
            or self.waiting
            or self._woken
            or self.is_foreign
            or connection.core.room <= 0
            or asyncio.get_running_loop() is not self.loop
        ):
            connection, timeout = await self._wait_for_room(timeout)
        answered: asyncio.Future[bytes] = self.loop.create_future()
        slot = connection.issue(
            kind, flags, route, body, timeout, metadata, answered, tells_deadline
        )
        try:
            return await answered
        except asyncio.CancelledError:
            connection.cancel(slot, answered)
            raise

    async def call_plain(self, kind: int, body: bytes, timeout: float | None) -> bytes:
        """Sends a request without a route and a deadline of its own."""
        return await self.call(kind, 0, None, body, timeout, b"", False)

    async def items(
        self,
        kind: int,
        flags: int,
        route: Route | None,
        body: bytes,
        timeout: float | None,
        metadata: bytes = b"",
    ) -> Items:
        """Sends a request and returns the items of its answer."""
        connection = self.connection
        if connection is None or self.waiting or self.is_foreign or connection.core.room <= 0:
            connection, timeout = await self._wait_for_room(timeout)
        else:
            self.check()
        items = Items(connection, 0)
        items._slot = connection.issue(kind, flags, route, body, timeout, metadata, items)
        return items

    async def send(
        self,
        route: Route,
        body: bytes,
        timeout: float | None,
        metadata: bytes = b"",
    ) -> None:
        """Sends a one-way message once the node and its subscribers have room for it."""
        connection = await self._wait_for_credit(route, len(body) + len(metadata), timeout)
        connection.core.send(route, body, metadata)
        connection.want_flush()

    async def send_answered(
        self,
        kind: int,
        flags: int,
        route: Route,
        body: bytes,
        timeout: float | None,
        metadata: bytes = b"",
    ) -> bytes:
        """Sends a message that uses credit and is answered."""
        until = None if timeout is None else self.loop.time() + timeout
        size = len(body) + len(metadata)
        while True:
            connection = await self._wait_for_credit(route, size, timeout)
            if connection.core.room > 0:
                break
            await self._wait_for_room(timeout)
            timeout = None if until is None else max(0.0, until - self.loop.time())
        answered: asyncio.Future[bytes] = self.loop.create_future()
        tells = kind == wire.WRITE
        slot = connection.issue(kind, flags, route, body, timeout, metadata, answered, tells)
        connection.core.spend(size)
        try:
            return await answered
        except asyncio.CancelledError:
            connection.cancel(slot, answered)
            raise

    async def subscribe(
        self, name: str, options: int, receiver: Receiver, description: bytes = b""
    ) -> str:
        """Subscribes, and returns the full name. `description` follows the name."""
        connection, timeout = await self._wait_for_room(self.options.timeout)
        answered = _Subscribed(self, options, description, receiver)
        payload = wire.subscribe(options, name) + description
        slot = connection.issue(wire.SUBSCRIBE, 0, None, payload, timeout, b"", answered, False)
        try:
            return wire.Reader(await answered.future).text16()
        except asyncio.CancelledError:
            connection.cancel(slot, answered)
            raise

    async def unsubscribe(self, name: str) -> None:
        """Ends a subscription; what has arrived for it stays with its receiver."""
        if self.receivers.pop(name, None) is None or self.connection is None or self.is_closed:
            return
        with contextlib.suppress(errors.TelpherError):
            await self.call_plain(wire.UNSUBSCRIBE, wire.text16(name), None)

    # Nodes of a cluster.

    async def leader(self, route: Route) -> Link:
        """Returns the link to the node that answered for `route` last, by default this one."""
        index = self._leaders.get(route)
        if index is None:
            return self
        side = self._sides.get(index)
        if side is None or side.is_closed:
            only = dataclasses.replace(self.options, addresses=(self.options.addresses[index],))
            side = Link(only)
            await side.connect()
            self._sides[index] = side
        return side

    async def look_elsewhere(self, route: Route) -> None:
        """Has the next request of `route` sent to the next address."""
        index = self._leaders.get(route, self._next_address)
        if len(self._leaders) > LEADERS_MAX:
            self._leaders.clear()
        self._leaders[route] = (index + 1) % len(self.options.addresses)

    # Answers of this side's handlers.

    def run(self, work: Callable[[Inbound], Coroutine[Any, Any, None]], inbound: Inbound) -> None:
        """Runs a handler; a CANCEL of the caller cancels it."""
        task = self.loop.create_task(work(inbound))
        inbound.token = task
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def reply(self, inbound: Inbound, body: bytes) -> None:
        inbound.connection.reply(inbound, body)
        self._flush(inbound)

    def fail(self, inbound: Inbound, error: errors.TelpherError, executed: bool = True) -> None:
        inbound.connection.fail(inbound, error, executed)
        self._flush(inbound)

    def consume(self, inbound: Inbound) -> None:
        inbound.connection.consume(inbound)
        if inbound.connection.out:
            self._flush(inbound)

    async def reply_item(self, inbound: Inbound, body: bytes) -> None:
        """Sends an item once the caller has room for it."""
        while inbound.ahead >= core.ITEMS_AHEAD and not inbound.is_over:
            waiter = self.loop.create_future()
            self._credit_waiting.append(waiter)
            await waiter
        inbound.connection.reply_item(inbound, body)
        self._flush(inbound)

    def _flush(self, inbound: Inbound) -> None:
        for connection in (self.connection, *self._retired):
            if connection is not None and connection.core is inbound.connection:
                connection.want_flush()
                if connection.is_retired:
                    self.loop.call_soon(self.close_if_idle, connection)

    def new_inbox(self) -> Inbox:
        return Inbox(self)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def now(self) -> float:
        return self.loop.time()

    # Waiting for room.

    def check(self) -> None:
        """Raises if the link cannot be used here."""
        if self.is_foreign:
            raise errors.UsageError(
                "this client was connected in another process, before a fork",
                sent=False,
                hint="connect in the child process; connections cannot be shared",
            )
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if running is not self.loop:
            state = "closed" if self.loop.is_closed() else "another one"
            raise errors.UsageError(
                f"this client belongs to the event loop that it was connected in, which is {state}",
                sent=False,
                hint="connect within the loop that uses it, or use telpher.sync.connect",
            )
        if self.is_closed:
            if isinstance(self._down, errors.Unauthenticated | errors.Denied):
                raise self._down
            raise errors.UsageError("the client is closed", sent=False)

    async def _wait_for_room(self, timeout: float | None) -> tuple[Connection, float | None]:
        self.check()
        until = None if timeout is None else self.loop.time() + timeout
        is_first = True
        while True:
            connection = self.connection
            is_turn = not self.waiting and not self._woken if is_first else True
            if connection is not None and connection.core.room > 0 and is_turn:
                return connection, None if until is None else max(0.0, until - self.loop.time())
            waiter: asyncio.Future[None] = self.loop.create_future()
            if is_first:
                self.waiting.append(waiter)
            else:
                self.waiting.appendleft(waiter)
            is_first = False
            await self._wait(waiter, self.waiting, until)
            self.check()

    async def _wait(
        self, waiter: asyncio.Future[None], queue: deque[asyncio.Future[None]], until: float | None
    ) -> None:
        timer = None
        if until is not None:
            timer = self.loop.call_at(until, _time_out, waiter)
        try:
            await waiter
        except TimeoutError:
            raise self._late() from None
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self._woken = max(0, self._woken - 1)
                self.settle()
            raise
        finally:
            if timer is not None:
                timer.cancel()
            if waiter.cancelled() or waiter.exception() is not None:
                with contextlib.suppress(ValueError):
                    queue.remove(waiter)
        if queue is self.waiting:
            self._woken = max(0, self._woken - 1)

    def _late(self) -> errors.TelpherError:
        if self.connection is None:
            down = self._down
            message = f"there was no connection within the deadline: {down.message}"
            return errors.Unavailable(message, sent=False)
        message = "the deadline passed before the call could be sent: the window is full"
        return errors.DeadlineExceeded(message, sent=False)

    def settle(self, everything: bool = False) -> None:
        """Offers free room to those that wait."""
        connection = self.connection
        room = 1 << 30 if self.is_closed else 0
        if connection is not None:
            room = connection.core.room - self._woken
        while self.waiting and room > 0:
            waiter = self.waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                self._woken += 1
                room -= 1
        if everything:
            self._settle_senders()

    def _settle_senders(self) -> None:
        for waiter in self._credit_waiting:
            if not waiter.done():
                waiter.set_result(None)
        self._credit_waiting.clear()

    async def _wait_for_credit(self, route: Route, size: int, timeout: float | None) -> Connection:
        self.check()
        until = None if timeout is None else self.loop.time() + timeout
        while True:
            connection = self.connection
            if connection is not None and connection.core.has_credit(size, route):
                return connection
            waiter: asyncio.Future[None] = self.loop.create_future()
            self._credit_waiting.append(waiter)
            await self._wait(waiter, self._credit_waiting, until)
            self.check()

    # The end.

    async def close(self) -> None:
        """Closes the connection. Calls in flight fail."""
        if self.is_closed and self.connection is None:
            return
        self.is_closed = True
        self._down = errors.Unavailable("the client was closed", sent=False)
        forks.forget(self)
        if self.is_foreign:
            return
        if self._reconnecting is not None:
            self._reconnecting.cancel()
            with contextlib.suppress(asyncio.CancelledError, errors.TelpherError):
                await self._reconnecting
        for side in self._sides.values():
            await side.close()
        for task in list(self._tasks):
            task.cancel()
        closed = errors.Unavailable("the client was closed", sent=False)
        for *_, receiver in self.receivers.values():
            receiver.end(closed)
        self.receivers.clear()
        connection, self.connection = self.connection, None
        for open_one in (connection, *self._retired):
            if open_one is not None:
                open_one.close("the client was closed")
        self.settle(everything=True)
        # The transports close in the next turn of the loop.
        await asyncio.sleep(0)

    async def drain(self, seconds: float) -> None:
        """Says goodbye and waits until the handlers have answered."""
        connection = self.connection
        if connection is None:
            return
        names = list(self.receivers)
        self.receivers.clear()
        for name in names:
            with contextlib.suppress(errors.TelpherError):
                await self.call_plain(wire.UNSUBSCRIBE, wire.text16(name), seconds)
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=seconds)


class _Subscribed:
    """The outcome of SUBSCRIBE. The node may send requests right behind it: the receiver is
    registered as soon as it is read."""

    __slots__ = ("_description", "_link", "_options", "_receiver", "future")

    def __init__(self, link: Link, options: int, description: bytes, receiver: Receiver) -> None:
        self._link = link
        self._options = options
        self._description = description
        self._receiver = receiver
        self.future: asyncio.Future[bytes] = link.loop.create_future()

    def done(self) -> bool:
        return self.future.done()

    def set_result(self, payload: bytes) -> None:
        self._link.receivers[wire.Reader(payload).text16()] = (
            self._options,
            self._description,
            self._receiver,
        )
        self.future.set_result(payload)

    def set_exception(self, error: errors.TelpherError) -> None:
        self.future.set_exception(error)


def _time_out(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_exception(TimeoutError())
