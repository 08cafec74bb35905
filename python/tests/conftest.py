"""What all tests share: a node, unique names, and coroutine tests without a plugin."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from telpher.testing import Node

ROOT = Path(__file__).resolve().parents[2]
TEST_TIMEOUT = 120.0
_names = count()

for _profile in ("release", "debug"):
    _built = ROOT / "target" / _profile / "telpher"
    if _built.is_file():
        os.environ.setdefault("TELPHER_BINARY", str(_built))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs coroutine tests, each in an event loop of its own and within a time limit."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in wanted}

    async def within() -> None:
        async with asyncio.timeout(TEST_TIMEOUT):
            await pyfuncitem.obj(**arguments)

    asyncio.run(within())
    return True


LIMITS = [
    {"name": "few", "match": "acme/limited/*", "unit": "requests", "capacity": 2, "refill": "1/h"},
    {"name": "spent", "match": "acme/spent/*", "unit": "requests", "budget": 1, "every": "never"},
    {"name": "fast", "match": "acme/fast/*", "unit": "requests", "capacity": 1, "refill": "20/s"},
    {"name": "tokens", "match": "acme/team/*", "unit": "tokens", "capacity": 1000, "refill": "0/s"},
]


@pytest.fixture(scope="session")
def node() -> Iterator[Node]:
    """A node that the tests share; each test uses names of its own."""
    with Node(limits=LIMITS, kafka=True) as started:
        yield started


@pytest.fixture
def name() -> str:
    """A name that no other test uses."""
    return f"acme/test/n{next(_names)}"
