"""Nodes for tests: real ones, on free ports, with temporary data.

```
from telpher.testing import Node

with Node() as node:
    with telpher.sync.connect(node.address) as client:
        ...
```

With pytest, the fixture `telpher_node` is such a node for each test. The program is the one of this
package, TELPHER_BINARY, or the one in PATH.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from telpher._binary import find_binary
from telpher._errors import Unavailable

__all__ = ["Node"]

START_TIMEOUT = 30.0
STOP_TIMEOUT = 15.0


class Node:
    """A node with a temporary data directory, as a context manager.

    `options` are the node's options, such as `{"mailbox.messages_max": 10}`, `limits` its quota
    limits, each a mapping as in the file. `kill` ends it as a crash would, `start` starts it again
    with the same data and addresses.
    """

    def __init__(
        self,
        *,
        options: Mapping[str, Any] | None = None,
        limits: Sequence[Mapping[str, Any]] = (),
        kafka: bool = False,
        arguments: Sequence[str] = (),
    ) -> None:
        self._options = dict(options or {})
        self._limits = list(limits)
        self._arguments = list(arguments)
        self._process: subprocess.Popen[bytes] | None = None
        self.directory = Path(tempfile.mkdtemp(prefix="telpher-"))
        """The directory with the data, the configuration and the log."""
        self._listen = {
            "native": "127.0.0.1:0",
            "http": "127.0.0.1:0",
            "kafka": "127.0.0.1:0" if kafka else "none",
            "slim": "none",
        }
        self.address = ""
        """The address for `telpher.connect`."""
        self.http = ""
        """The address of the HTTP listener, such as `http://127.0.0.1:41234`."""
        self.kafka = ""
        """The address for Kafka clients, if `kafka=True`."""

    def __enter__(self) -> Node:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """The process id of the node."""
        if self._process is None:
            raise Unavailable("the node does not run", sent=False)
        return self._process.pid

    @property
    def log(self) -> str:
        """What the node has logged."""
        path = self.directory / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    def start(self) -> None:
        """Starts the node and waits until it is ready.

        After `kill` or `stop` it has the same data and the same addresses.
        """
        program = find_binary()
        configuration = self.directory / "telpher.toml"
        configuration.write_text(_toml(self._options, self._limits))
        arguments = [str(program), "serve", "--json", "--config", str(configuration)]
        arguments += ["--data", str(self.directory / "data")]
        for listener, address in self._listen.items():
            arguments += [f"--{listener}-listen", address]
        if "journal.segment_size" not in self._options:
            arguments += ["--journal-segment-size", "4MiB"]
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("TELPHER_")
        }
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*arguments, *self._arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
            )
        ready = self._wait_until_ready(self._process)
        self.address = ready["native"]
        self.http = ready["http"]
        self.kafka = (ready.get("kafka") or "").removeprefix("kafka://")
        for listener, url in (("native", self.address), ("http", self.http)):
            self._listen[listener] = url.partition("://")[2]
        if self.kafka:
            self._listen["kafka"] = self.kafka

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> dict[str, Any]:
        assert process.stdout is not None
        until, line = time.monotonic() + START_TIMEOUT, b""
        while not line.endswith(b"\n"):
            readable, _, _ = select.select([process.stdout], [], [], until - time.monotonic())
            piece = os.read(process.stdout.fileno(), 65_536) if readable else b""
            if not piece:
                self.kill()
                cause = "did not start in time" if not readable else "ended at its start"
                raise Unavailable(f"the node {cause}:\n{self.log[-2000:]}", sent=False)
            line += piece
        ready: dict[str, Any] = json.loads(line)
        if "native" not in ready:
            self.kill()
            raise Unavailable(f"the node did not start: {line.decode()}\n{self.log}", sent=False)
        return ready

    def command(self, *arguments: str) -> str:
        """Runs a command of the `telpher` program on this node, and returns what it prints."""
        environment = {**os.environ, "TELPHER_URL": self.address, "TELPHER_DATA": str(self.data)}
        done = subprocess.run(
            [str(find_binary()), *arguments],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        if done.returncode != 0:
            raise Unavailable(f"telpher {' '.join(arguments)}: {done.stderr}", sent=False)
        return done.stdout

    @property
    def data(self) -> Path:
        """The data directory."""
        return self.directory / "data"

    def kill(self) -> None:
        """Ends the node at once, as `kill -9`; nothing is flushed."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Ends the node gracefully."""
        self._end(signal.SIGTERM)

    def _end(self, number: int) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(number)
        try:
            process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()

    def restart(self) -> None:
        """Ends the node at once and starts it again."""
        self.kill()
        self.start()

    def close(self) -> None:
        """Ends the node and removes its data."""
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)


def _toml(options: Mapping[str, Any], limits: Sequence[Mapping[str, Any]]) -> str:
    lines = [f"{name} = {json.dumps(value)}" for name, value in options.items()]
    for limit in limits:
        lines.append("[[limit]]")
        lines += [f"{name} = {json.dumps(value)}" for name, value in limit.items()]
    return "\n".join(lines) + "\n"
