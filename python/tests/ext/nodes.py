"""Nodes of the tests of adapters, which `--kill-node` kills while tests use them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import telpher
import telpher.sync
from telpher.testing import Node

CONNECT_PAUSE = 0.02
connect, connect_sync = telpher.connect, telpher.sync.connect


@contextmanager
def serving(interval: float, **options: Any) -> Iterator[Node]:
    """A node during the block; with an interval it is killed and started again.

    Connecting waits until it is there.
    """
    with Node(**options) as node:
        if not interval:
            yield node
            return
        is_over, kills = threading.Event(), list[int]()

        def kill() -> None:
            while not is_over.wait(interval):
                node.restart()
                kills.append(node.pid)

        killer = threading.Thread(target=kill)
        killer.start()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(telpher, "connect", Patient)
            patch.setattr(telpher.sync, "connect", patient)
            try:
                yield node
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


def patient(*arguments: Any, **options: Any) -> telpher.sync.Client:
    """`telpher.sync.connect` that tries again while the node starts."""
    is_over = threading.Event()
    while True:
        try:
            return connect_sync(*arguments, **options)
        except telpher.Unavailable:
            is_over.wait(CONNECT_PAUSE)
