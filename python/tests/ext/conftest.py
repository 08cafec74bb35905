"""Tests of the adapters; `tools/adapters.py` runs each with its framework installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from telpher.testing import Node

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


@pytest.fixture
def own_node() -> Iterator[Node]:
    """A node of one test, which may kill it."""
    with Node() as started:
        yield started
