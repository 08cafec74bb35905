"""The request that a handler is answering: its deadline and its trace travel to nested calls."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextvars import ContextVar
from typing import NamedTuple


class Scope(NamedTuple):
    """What nested calls inherit."""

    deadline: float | None
    """By `time.monotonic`."""
    trace: Mapping[str, str | bytes]


current: ContextVar[Scope | None] = ContextVar("telpher_scope", default=None)


def limit(timeout: float | None) -> float | None:
    """Returns the shorter of `timeout` and what is left of the current request."""
    scope = current.get()
    if scope is None or scope.deadline is None:
        return timeout
    left = max(0.0, scope.deadline - time.monotonic())
    return left if timeout is None else min(timeout, left)


def after(seconds: float | None) -> float | None:
    """Returns the deadline in `seconds`."""
    return None if seconds is None else time.monotonic() + seconds
