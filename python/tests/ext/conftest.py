"""Tests of the adapters; `tools/adapters.py` runs each with its framework installed.

With `--kill-node SECONDS` the node that tests share is killed and started again at that interval,
and connecting waits until it is there.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import telpher
import telpher.sync
from telpher.testing import Node

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

CONNECT_PAUSE = 0.02


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--kill-node", type=float, default=0.0, metavar="SECONDS")


@pytest.fixture
def own_node() -> Iterator[Node]:
    """A node of one test, which may kill it."""
    with Node() as started:
        yield started


@pytest.fixture(scope="session")
def node(request: pytest.FixtureRequest) -> Iterator[Node]:
    """A node that the tests share."""
    interval = request.config.getoption("--kill-node")
    with Node() as started:
        is_over, kills = threading.Event(), list[int]()

        def kill() -> None:
            while not is_over.wait(interval):
                started.restart()
                kills.append(started.pid)

        killer = threading.Thread(target=kill)
        if not interval:
            yield started
            return
        killer.start()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(telpher, "connect", Patient)
            patch.setattr(telpher.sync, "connect", patient)
            try:
                yield started
            finally:
                is_over.set()
                killer.join()
        print(f"\nthe node was killed {len(kills)} times")


class Patient:
    """`telpher.connect` that tries again while the node starts."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._arguments, self._options = arguments, options
        self._client: telpher.Client | None = None

    async def __aenter__(self) -> telpher.Client:
        while True:
            try:
                self._client = await connect(*self._arguments, **self._options)
                return self._client
            except telpher.Unavailable:
                await asyncio.sleep(CONNECT_PAUSE)

    async def __aexit__(self, *_: object) -> None:
        if self._client is not None:
            await self._client.aclose()


connect, connect_sync = telpher.connect, telpher.sync.connect


def patient(*arguments: Any, **options: Any) -> telpher.sync.Client:
    """`telpher.sync.connect` that tries again while the node starts."""
    is_over = threading.Event()
    while True:
        try:
            return connect_sync(*arguments, **options)
        except telpher.Unavailable:
            is_over.wait(CONNECT_PAUSE)
