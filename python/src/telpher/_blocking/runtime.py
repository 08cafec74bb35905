"""How functions of the user are called, and how a program is ended."""

from __future__ import annotations

import contextlib
import inspect
import signal
import threading
from collections.abc import Callable, Generator
from typing import Any

from telpher import _errors as errors
from telpher._blocking.items import Inbox


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
