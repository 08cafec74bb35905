"""Tests of the adapters; `tools/adapters.py` runs each with its framework installed.

With `--kill-node SECONDS` the node that tests share is killed and started again at that interval.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from telpher.testing import Node

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from nodes import serving


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--kill-node", type=float, default=0.0, metavar="SECONDS")


@pytest.fixture(scope="session")
def interval(request: pytest.FixtureRequest) -> float:
    """Seconds between kills of the node that tests share; 0: it is not killed."""
    seconds: float = request.config.getoption("--kill-node")
    return seconds


@pytest.fixture
def own_node() -> Iterator[Node]:
    """A node of one test, which may kill it."""
    with Node() as started:
        yield started


@pytest.fixture(scope="session")
def node(interval: float) -> Iterator[Node]:
    """A node that the tests share."""
    with serving(interval) as started:
        yield started
