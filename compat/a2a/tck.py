"""Runs the A2A TCK from a checkout: `tck.py DIRECTORY REPORTS`, with TELPHER_BINARY.

Three runs: with the store of a2a-sdk in memory, with two servers whose tasks are in a node, and
again while that node is killed. A test that fails with a node and not in memory is a failure of the
adapter; those of the first run are a2a-sdk's own, and are printed.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

from telpher.testing import Node

HERE = Path(__file__).resolve().parent
TIMEOUT = 1200
KILL_INTERVAL = 5.0
"""Seconds between two kills of the node."""


@contextlib.contextmanager
def reserved_ports(count: int) -> Iterator[list[int]]:
    """Ports that no other program gets, and that servers with SO_REUSEPORT can open."""
    with contextlib.ExitStack() as stack:
        ports = list[int]()
        for _ in range(count):
            holder = stack.enter_context(socket.socket())
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            holder.bind(("127.0.0.1", 0))
            ports.append(holder.getsockname()[1])
        yield ports


@contextlib.contextmanager
def server(*arguments: str) -> Iterator[None]:
    """A server that runs during the block."""
    command = [sys.executable, str(HERE / "server.py"), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            if process.stdout.readline() != "ready\n":
                raise SystemExit("the server ended at its start")
            yield
        finally:
            process.kill()


@contextlib.contextmanager
def killing(node: Node) -> Iterator[None]:
    """Kills the node and starts it again, time after time, during the block."""
    is_over = threading.Event()

    def kill() -> None:
        while not is_over.wait(KILL_INTERVAL):
            node.restart()

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        yield
    finally:
        is_over.set()
        killer.join()


def run(directory: Path, reports: Path, name: str, http_port: int) -> dict[str, str]:
    """Runs the TCK; returns the outcome of each test."""
    report = reports / f"{name}.xml"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "tests/compatibility", "-q", "--tb=short"]
    command += ["-p", "no:cacheprovider", f"--sut-host=http://127.0.0.1:{http_port}"]
    command += [f"--junitxml={report}", f"--compatibility-report={reports / name}"]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "TCK_STREAMING_TIMEOUT": "2"}
    with (reports / f"{name}.log").open("w") as log:
        subprocess.run(
            command,
            cwd=directory,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            timeout=TIMEOUT,
            check=False,
        )
    if not report.exists():
        raise SystemExit(f"the TCK did not run: see {reports / name}.log")
    outcomes = dict[str, str]()
    for case in ElementTree.parse(report).iter("testcase"):
        kinds = {child.tag for child in case}
        failed = "failed" if kinds & {"failure", "error"} else "passed"
        test = f"{case.get('classname')}::{case.get('name')}"
        outcomes[test] = "skipped" if "skipped" in kinds else failed
    counts = {it: [*outcomes.values()].count(it) for it in ("passed", "failed", "skipped")}
    counted = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
    print(f"{name}: {counted}", flush=True)
    return outcomes


def main() -> int:
    """Runs the TCK three times."""
    directory, reports = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    if not (directory / "tests" / "compatibility").is_dir():
        print(f"{directory} is no checkout of the A2A TCK for A2A 1.0", file=sys.stderr)
        print("hint: clone a2aproject/a2a-tck, branch 1.0-dev", file=sys.stderr)
        return 2
    reports.mkdir(parents=True, exist_ok=True)
    with reserved_ports(2) as ports, server(*map(str, ports)):
        memory = run(directory, reports, "memory", ports[0])
    with reserved_ports(2) as ports, Node() as node:
        arguments = (*map(str, ports), node.address)
        with server(*arguments), server(*arguments):
            stored = run(directory, reports, "telpher", ports[0])
            with killing(node):
                killed = run(directory, reports, "telpher-killed", ports[0])
    for test, outcome in memory.items():
        if outcome == "failed":
            print(f"  a2a-sdk fails by itself: {test}")
    wrong = [
        (name, test)
        for name, outcomes in (("telpher", stored), ("telpher-killed", killed))
        for test, outcome in memory.items()
        if outcome == "passed" and outcomes.get(test) != "passed"
    ]
    for name, test in wrong:
        print(f"  {name} fails: {test}")
    has_run = "passed" in memory.values()
    return 0 if has_run and not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
