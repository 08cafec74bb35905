"""What arrives for a call or a subscription, until it is taken."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Protocol

from telpher import _core as core
from telpher import _errors as errors
from telpher._core import Inbound

if TYPE_CHECKING:
    from telpher._blocking.connection import Connection
    from telpher._blocking.link import Link

NEVER = float("inf")


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
        """Returns the items that were not taken."""
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

    @property
    def has_arrived(self) -> bool:
        """True if an item, or the end, has arrived and was not taken."""
        return bool(self._arrived) or self._is_over

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
