"""The pytest plugin: the fixture `telpher_node`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from telpher.testing import Node


@pytest.fixture
def telpher_node() -> Iterator[Node]:
    """A node on free ports with temporary data, which ends with the test.

    ```
    def test_upper(telpher_node):
        with telpher.sync.connect(telpher_node.address) as node:
            ...
    ```
    """
    with Node() as node:
        yield node
