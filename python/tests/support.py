"""Helpers of the tests."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable

LIMIT = 60.0


async def until(condition: Callable[[], bool]) -> None:
    """Waits until a condition is true."""
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end, "the condition did not come true"
        await asyncio.sleep(0.01)


def until_sync(condition: Callable[[], bool]) -> None:
    """Waits until a condition is true."""
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end, "the condition did not come true"
        time.sleep(0.01)


def free_port() -> int:
    """Returns a port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
