"""What arrives for a call or a subscription, until it is taken."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, Protocol

from telpher import _core as core
from telpher import _errors as errors
from telpher._core import Inbound

if TYPE_CHECKING:
    from telpher._asyncio.connection import Connection
    from telpher._asyncio.link import Link


class Receiver(Protocol):
    """What a subscription does with what arrives for its name."""

    def receive(self, inbound: Inbound) -> None:
        """Takes a request or a message."""

    def end(self, error: errors.TelpherError) -> None:
        """Says that the subscription has ended."""


class Inbox:
    """A queue whose readers wait; it ends with an error."""

    __slots__ = ("_end", "_items", "_loop", "_readers")

    def __init__(self, link: Link) -> None:
        self._loop = link.loop
        self._items: deque[Any] = deque()
        self._readers: deque[asyncio.Future[None]] = deque()
        self._end: errors.TelpherError | None = None

    def put(self, item: Any) -> None:
        self._items.append(item)
        self._wake()

    def end(self, error: errors.TelpherError) -> None:
        if self._end is None:
            self._end = error
        while self._readers:
            self._wake()

    def _wake(self) -> None:
        while self._readers:
            reader = self._readers.popleft()
            if not reader.done():
                reader.set_result(None)
                return

    def drain(self) -> list[Any]:
        """Returns the items that were not taken."""
        left = list(self._items)
        self._items.clear()
        return left

    async def get(self) -> Any:
        """Returns the next item; raises the error of the end after the last."""
        while not self._items:
            if self._end is not None:
                raise self._end
            reader = self._loop.create_future()
            self._readers.append(reader)
            try:
                await reader
            except asyncio.CancelledError:
                if reader.done() and not reader.cancelled() and self._items:
                    self._wake()
                raise
        item = self._items.popleft()
        if self._items and self._readers:
            self._wake()
        return item


class Items:
    """The items of a streamed answer, as an asynchronous iterator.

    Closing it, or leaving it before its end, cancels the call at the other side.
    """

    def __init__(self, connection: Connection, slot: int) -> None:
        self._connection = connection
        self._slot = slot
        self._arrived: deque[bytes] = deque()
        self._reader: asyncio.Future[None] | None = None
        self._end: errors.TelpherError | None = None
        self._is_over = False
        self._taken = 0

    # Called by the connection.

    def on_item(self, payload: bytes) -> None:
        self._arrived.append(payload)
        self._wake()

    def set_result(self, payload: bytes) -> None:
        if payload:
            self._arrived.append(payload)
        self._is_over = True
        self._wake()

    def set_exception(self, error: errors.TelpherError) -> None:
        self._end = error
        self._is_over = True
        self._wake()

    def done(self) -> bool:
        return self._is_over

    def _wake(self) -> None:
        reader = self._reader
        if reader is not None and not reader.done():
            reader.set_result(None)

    # Called by the user.

    def __aiter__(self) -> Items:
        return self

    async def __anext__(self) -> bytes:
        while not self._arrived:
            if self._is_over:
                if self._end is not None:
                    raise self._end
                raise StopAsyncIteration
            self._reader = self._connection.link.loop.create_future()
            try:
                await self._reader
            except asyncio.CancelledError:
                self.cancel()
                raise
            finally:
                self._reader = None
        self._taken += 1
        if self._taken >= core.ITEMS_AHEAD // 2 and not self._is_over:
            self._connection.core.grant(self._slot, self, self._taken)
            self._connection.want_flush()
            self._taken = 0
        return self._arrived.popleft()

    @property
    def has_arrived(self) -> bool:
        """True if an item, or the end, has arrived and was not taken."""
        return bool(self._arrived) or self._is_over

    def cancel(self) -> None:
        """Cancels the call."""
        if not self._is_over:
            self._is_over = True
            self._connection.cancel(self._slot, self)

    async def aclose(self) -> None:
        """Cancels the call if it has not ended."""
        self.cancel()
        self._arrived.clear()

    def __del__(self) -> None:
        if not self._is_over and not self._connection.link.loop.is_closed():
            self.cancel()
