"""How functions of the user are called, and how a program is ended."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import signal
from collections.abc import AsyncGenerator, Callable
from typing import Any

from telpher._asyncio.items import Inbox

_NOTHING = object()


async def invoke(function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Calls a function of the user: a coroutine function here, any other in a thread. Returns the
    iterator of a generator function."""
    if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        return function(**arguments)
    if inspect.iscoroutinefunction(function):
        return await function(**arguments)
    return await asyncio.to_thread(function, **arguments)


async def iterate(made: Any) -> AsyncGenerator[Any, None]:
    """Yields the items of a generator of either kind, and closes it."""
    if inspect.isasyncgen(made):
        try:
            async for item in made:
                yield item
        finally:
            await made.aclose()
        return
    try:
        while (item := await asyncio.to_thread(next, made, _NOTHING)) is not _NOTHING:
            yield item
    finally:
        made.close()


def deadline(seconds: float | None) -> asyncio.Timeout:
    """Ends a block after `seconds`."""
    return asyncio.timeout(seconds)


async def until_stopped(ended: Inbox) -> None:
    """Waits for SIGTERM or SIGINT, or for the end of the inbox, whose error is raised."""
    loop = asyncio.get_running_loop()
    stopped = loop.create_future()

    def stop() -> None:
        if not stopped.done():
            stopped.set_result(None)

    signals = list[signal.Signals]()
    for number in (signal.SIGTERM, signal.SIGINT):
        # Only the main thread may set handlers, and not on every system.
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(number, stop)
            signals.append(number)
    watching = asyncio.ensure_future(ended.get())
    try:
        await asyncio.wait((stopped, watching), return_when=asyncio.FIRST_COMPLETED)
        if watching.done():
            watching.result()
    finally:
        watching.cancel()
        for number in signals:
            loop.remove_signal_handler(number)
