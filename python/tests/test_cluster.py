"""Records on three nodes: answers `moved` are repeated at the node that leads."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest

import telpher
import telpher.sync
from telpher._binary import find_binary

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def nodes() -> Iterator[list[dict[str, Any]]]:
    """Three nodes of a cluster."""
    command = [str(find_binary()), "cluster", "dev", "--nodes", "3", "--json"]
    # It runs until its input ends.
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as cluster:
        assert cluster.stdin is not None and cluster.stdout is not None
        try:
            yield json.loads(cluster.stdout.readline())["nodes"]
        finally:
            cluster.stdin.close()


def addresses(nodes: list[dict[str, Any]]) -> list[str]:
    return [f"tcp://{node['native'].removeprefix('tcp://')}" for node in nodes]


def test_blocking_client_finds_the_leaders(nodes: list[dict[str, Any]]) -> None:
    policy = telpher.RetryPolicy(attempts=200, pause_max=0.2)
    with telpher.sync.connect(addresses(nodes), timeout=30) as client:
        for number in range(8):
            log = client.records(f"acme/demo/blocking-{number}")
            for made in range(1, 1000):
                try:
                    assert log.append("x", expect=0).next == 1
                    break
                except telpher.TelpherError as error:
                    # A shard that has no leader yet.
                    pause = policy.pause(error, made)
                    assert pause is not None, error
                    time.sleep(pause)
            assert [record.offset for record in log.all()] == [0]


async def test_records_are_appended_at_the_leaders_across_a_kill(
    nodes: list[dict[str, Any]],
) -> None:
    policy = telpher.RetryPolicy(attempts=200, pause_max=0.2)
    async with telpher.connect(addresses(nodes), timeout=30, reconnect=(0.01, 0.2)) as client:
        logs = [client.records(f"acme/demo/log-{number}") for number in range(8)]
        ends = [0] * len(logs)

        async def append(number: int) -> None:
            for _ in range(10_000):
                try:
                    ends[number] = (await logs[number].append("x", expect=ends[number])).next
                    return
                except telpher.Conflict as conflict:
                    # An append whose outcome was unknown is there.
                    assert conflict.head == ends[number] + 1
                    ends[number] += 1
                    return
                except telpher.TelpherError as error:
                    assert error.retry != "no", error
                    await asyncio.sleep(policy.pause(error, 1) or 0.1)

        for round in range(6):
            if round == 3:
                os.kill(nodes[0]["pid"], signal.SIGKILL)
            for number in range(len(logs)):
                await append(number)
        assert ends == [6] * len(logs)
        for log in logs:
            records = [record.offset async for record in log.all()]
            assert records == list(range(6))
