"""Measures the Python client and its peers: `bench.py [--seconds S] [--repeats N] [--out DIR]`.

Needs `telpher` (TELPHER_BINARY or PATH, a release build), `nats-server` and `redis-server` in PATH,
and requirements.txt. Every case runs in a process of its own, and the cases of a repeat run one
after the other in turn, so that a change of the machine concerns all of them.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import socket
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "python" / "src"))

from telpher._binary import find_binary  # noqa: E402
from telpher.testing import Node  # noqa: E402

LIMIT = {"name": "bench", "match": "acme/bench/*", "unit": "requests", "capacity": 10**12,
         "refill": "1000000/s"}
# Name in the table, case, calls in flight, variables.
ROWS: list[tuple[str, str, int, dict[str, str]]] = [
    ("telpher, asyncio", "telpher", 1, {}),
    ("bare asyncio client", "bare", 1, {}),
    ("telpher.sync", "blocking", 1, {}),
    ("nats-py", "nats", 1, {}),
    ("redis-py GET", "redis", 1, {}),
    ("telpher, take", "take", 1, {}),
    ("httpx, take", "http", 1, {}),
    ("telpher, asyncio", "telpher", 64, {}),
    ("telpher, uvloop", "telpher", 64, {"LOOP": "uvloop"}),
    ("telpher, asyncio, agent in Python", "telpher", 64, {"AGENT": "acme/bench/python"}),
    ("nats-py", "nats", 64, {}),
    ("nats-py, uvloop", "nats", 64, {"LOOP": "uvloop"}),
    ("redis-py GET", "redis", 64, {}),
    ("telpher, take", "take", 64, {}),
    ("httpx, take", "http", 64, {}),
]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def process(*command: str, env: dict[str, str] | None = None, ready: str = "") -> Iterator[None]:
    """A process that runs during the block; `ready` is the line that it prints first."""
    out = subprocess.PIPE if ready else subprocess.DEVNULL
    with subprocess.Popen(
        command, env=env, stdout=out, stderr=subprocess.DEVNULL, text=True
    ) as started:
        try:
            if ready:
                assert started.stdout is not None
                assert started.stdout.readline().strip() == ready, command
            yield
        finally:
            started.terminate()


def wait_for_port(port: int) -> None:
    for _ in range(500):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.2):
            return
        # The server has not opened its port yet.
        subprocess.run(["sleep", "0.02"], check=True)
    raise SystemExit(f"nothing listens on port {port}")


@contextlib.contextmanager
def servers() -> Iterator[dict[str, str]]:
    """The node, the peers' servers and the responders; yields the variables of the cases."""
    nats_port, redis_port = free_port(), free_port()
    with contextlib.ExitStack() as stack:
        node = stack.enter_context(Node(limits=[LIMIT]))
        env = {
            **os.environ,
            "PYTHONPATH": str(HERE.parent.parent / "python" / "src"),
            "URL": node.address,
            "HTTP": node.http,
            "NATS": f"nats://127.0.0.1:{nats_port}",
            "REDIS": f"redis://127.0.0.1:{redis_port}",
        }
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        stack.enter_context(process("nats-server", "-a", "127.0.0.1", "-p", str(nats_port)))
        redis = ("redis-server", "--port", str(redis_port), "--save", "", "--dir", directory)
        stack.enter_context(process(*redis))
        wait_for_port(nats_port)
        wait_for_port(redis_port)
        listen = (str(find_binary()), "listen", "acme/bench/echo", "--echo", "--url", node.address)
        stack.enter_context(process(*listen))
        for responder in ("respond-nats", "respond-telpher"):
            command = (sys.executable, str(HERE / "cases.py"), responder)
            stack.enter_context(process(*command, env=env, ready="ready"))
        yield env


def run(env: dict[str, str], case: str, in_flight: int, seconds: float) -> dict[str, float]:
    command = [sys.executable, str(HERE / "cases.py"), case, str(in_flight), str(seconds)]
    done = subprocess.run(
        command, env=env, capture_output=True, text=True, check=False, timeout=seconds + 60
    )
    if done.returncode != 0:
        raise SystemExit(f"{case}: {done.stderr[-2000:]}")
    made: dict[str, float] = json.loads(done.stdout)
    return made


def table(results: list[dict[str, Any]]) -> str:
    """Returns the medians of the repeats as a table."""
    lines = [
        "| client | in flight | calls/s | client CPU per call | p50 | p99 |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for row in results:
        middle = {
            key: statistics.median(run[key] for run in row["runs"])
            for key in ("rate", "cpu_us", "p50_us", "p99_us")
        }
        lines.append(
            f"| {row['client']} | {row['in_flight']} | {middle['rate']:,.0f} "
            f"| {middle['cpu_us']:.1f} µs | {middle['p50_us']:.0f} µs | {middle['p99_us']:.0f} µs |"
        )
    return "\n".join(lines)


def comparisons(results: list[dict[str, Any]]) -> str:
    """Returns the figures that the client is judged by, of the rows that were measured."""

    def median(client: str, in_flight: int, key: str) -> float | None:
        for row in results:
            if (row["client"], row["in_flight"]) == (client, in_flight):
                return statistics.median(run[key] for run in row["runs"])
        return None

    def ratio(key: str, in_flight: int, client: str, peer: str) -> str:
        mine, other = median(client, in_flight, key), median(peer, in_flight, key)
        return f"{mine / other:.2f}" if mine and other else "not measured"

    cpu = median("telpher, asyncio", 64, "cpu_us")
    lines = [
        ("p50 at 1 in flight, times that of the bare client (at most 1.3)",
         ratio("p50_us", 1, "telpher, asyncio", "bare asyncio client")),
        ("calls/s at 64 in flight, times those of nats-py (at least 3)",
         ratio("rate", 64, "telpher, asyncio", "nats-py")),
        ("the same with an agent in Python",
         ratio("rate", 64, "telpher, asyncio, agent in Python", "nats-py")),
        ("client CPU per call at 64 in flight (at most 10 µs)",
         f"{cpu:.1f} µs" if cpu else "not measured"),
    ]
    return "\n".join(f"- {text}: {value}" for text, value in lines)


def main() -> None:
    """Measures everything, prints a table, and writes README.md and results.json to `--out`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", help="cases, separated by commas", default="")
    parser.add_argument("--commit", help="the measured commit", default="unknown")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    chosen = options.only.split(",") if options.only else []
    rows = [row for row in ROWS if not chosen or row[1] in chosen]
    results: list[dict[str, Any]] = [
        {"client": name, "case": case, "in_flight": in_flight, "runs": []}
        for name, case, in_flight, _ in rows
    ]
    with servers() as env:
        for _ in range(options.repeats):
            for (_, case, in_flight, extra), row in zip(rows, results, strict=True):
                row["runs"].append(run({**env, **extra}, case, in_flight, options.seconds))
    print(table(results), comparisons(results), sep="\n\n")
    if options.out:
        machine = {"python": platform.python_version(), "system": platform.platform(),
                   "cpus": os.cpu_count()}
        options.out.mkdir(parents=True, exist_ok=True)
        document = {"commit": options.commit, "machine": machine, "seconds": options.seconds,
                    "rows": results}
        (options.out / "results.json").write_text(json.dumps(document, indent=1) + "\n")
        page = [
            "# python",
            "The Python client and its peers with requests of 128 bytes. Run again with `cargo xtask "
            "bench python`. A row is the median of the repeats; the client has a process of its own.",
            table(results),
            comparisons(results),
            f"Commit {options.commit}. Python {machine['python']}, {machine['cpus']} CPUs, "
            f"{machine['system']}. {options.repeats} repeats of {options.seconds:g} s.",
        ]
        (options.out / "README.md").write_text("\n\n".join(page) + "\n")


if __name__ == "__main__":
    main()
