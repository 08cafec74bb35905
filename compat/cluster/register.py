"""Histories of registers while nodes fail, for the checker in `porcupine`.

    register.py TELPHER HISTORY [--rounds N] [FAULT...]

During each fault, clients at all three nodes append to and read two registers of their own: a
partition of a topic over HTTP, and a stream with conditional appends by `telpher append --expect`.
Every call is sent once. HISTORY gets one operation in JSON per line. Needs root.
"""

import argparse
import http.client
import itertools
import json
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from faults import BETWEEN_S, FAULTS
from network import CLIENT, NODES, Network, address
from nodes import Cluster

CLIENTS_PER_NODE = 2
PAUSE_S = 0.02
CALL_LIMIT_S = 10
SCAN_LIMIT_S = 60
PAGE = 10_000

# The end of a stream in the message of a conflict.
END = re.compile(r"ends at (\d+)")

# Codes of errors after which a request was not executed.
NOT_EXECUTED = {"moved"}


class History:
    """The operations so far."""

    def __init__(self):
        self.operations = []
        self.values = itertools.count()
        self.clients = itertools.count()

    def value(self):
        """Returns a value that is used once."""
        return f"v{next(self.values)}"

    def run(self, register, client, kind, call, **fields):
        """Runs a call that returns the fields of its outcome, and records it; `None`: never sent."""
        begun = time.monotonic_ns()
        outcome = call()
        ended = time.monotonic_ns()
        if outcome is not None:
            times = {"call": begun, "return": ended}
            one = {"register": register, "client": client, "kind": kind}
            self.operations.append({**one, **times, **fields, **outcome})
        return outcome or {}

    def write(self, path):
        """Writes the operations in the order of their calls, each register's scan last."""
        self.operations.sort(key=lambda it: (it["kind"] == "scan", it["call"]))
        with open(path, "w") as file:
            for operation in self.operations:
                file.write(json.dumps(operation) + "\n")


class Node:
    """A connection to one node over HTTP."""

    def __init__(self, node):
        self.node = node
        self.connection = None

    def ask(self, method, path, body=None):
        """Returns status and answer; `None` if the node cannot be reached, 0 if no answer comes."""
        if self.connection is None:
            connection = http.client.HTTPConnection(address(self.node), 7401, timeout=CALL_LIMIT_S)
            try:
                connection.connect()
            except OSError:
                return None, None
            self.connection = connection
        try:
            headers = {"content-type": "application/json"}
            self.connection.request(method, path, body and json.dumps(body), headers)
            answer = self.connection.getresponse()
            text = answer.read()
            if answer.will_close:
                self.close()
            return answer.status, json.loads(text or "null")
        except (OSError, http.client.HTTPException, ValueError):
            self.close()
            return 0, None

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None


def outcome_of_append(status, answer):
    if status == 200:
        return {"outcome": "done", "offset": answer["records"][0]["offset"]}
    if status is None:
        return None
    code = (answer or {}).get("code") if isinstance(answer, dict) else None
    return {"outcome": "refused" if code in NOT_EXECUTED else "unknown"}


class Partition:
    """A client of a partition."""

    def __init__(self, history, register, node):
        self.history, self.register, self.node = history, register, Node(node)
        self.client = next(history.clients)
        self.end = 0
        self.turn = 0

    def step(self):
        self.turn += 1
        (self.append, self.fetch, self.confirmed)[self.turn % 3]()

    def path(self, query=""):
        return f"/v1/topics/{self.register}/partitions/0/records{query}"

    def send(self, value):
        body = [{"value": value, "partition": 0}]
        return outcome_of_append(*self.node.ask("POST", f"/v1/topics/{self.register}/records", body))

    def read(self, offset, limit=PAGE):
        """Returns a page; `None` without one."""
        status, page = self.node.ask("GET", self.path(f"?from={offset}&limit={limit}"))
        return page if status == 200 else None

    def append(self):
        value = self.history.value()
        self.history.run(
            self.register, self.client, "append", lambda: self.send(value), value=value
        )

    def fetch(self):
        def call():
            page = self.read(max(0, self.end - 1))
            if page is None:
                return None
            records = page["records"]
            self.end = max(self.end, page["next"])
            return {"offset": page["next"], "value": records[-1]["value"] if records else None}

        self.history.run(self.register, self.client, "fetch", call)

    def confirmed(self):
        """Appends a value, and reads the one before it, which cannot change any more."""
        value = self.history.value()

        def call():
            outcome = self.send(value)
            if not outcome or outcome["outcome"] != "done":
                return outcome
            offset = outcome["offset"]
            page = self.read(offset - 1, 1) if offset else None
            before = page["records"][0]["value"] if page and page["records"] else None
            # Without the value before it, it is an append like any other.
            kind = "confirmed" if before or not offset else "append"
            return {**outcome, "before": before, "kind": kind}

        self.history.run(self.register, self.client, "confirmed", call, value=value)


class Stream:
    """A client of a stream, which appends at the end that it knows."""

    def __init__(self, history, register, node, telpher):
        self.history, self.register, self.telpher = history, register, telpher
        self.url = f"tcp://{address(node)}:7400"
        self.client = next(history.clients)
        self.end = 0

    def run(self, *words):
        command = [self.telpher, *words, "--url", self.url, "--json"]
        try:
            ended = subprocess.run(command, capture_output=True, timeout=CALL_LIMIT_S)
        except subprocess.TimeoutExpired:
            return None, {}
        try:
            return ended.returncode, json.loads(ended.stdout)
        except ValueError:
            return None, {}

    def step(self):
        value, expected = self.history.value(), self.end

        def call():
            words = ("append", self.name(), value, "--expect", str(expected))
            status, answer = self.run(*words)
            if status == 0:
                return {"outcome": "done", "offset": answer["first"]}
            error = answer.get("error") or {}
            if error.get("code") == "conflict":
                return {"outcome": "conflict", "offset": int(END.search(error["message"])[1])}
            is_refused = error.get("code") in NOT_EXECUTED or error.get("sent") == "no"
            return {"outcome": "refused" if is_refused else "unknown"}

        outcome = self.history.run(
            self.register, self.client, "conditional", call, value=value, expected=expected
        )
        if outcome.get("outcome") == "done":
            self.end = outcome["offset"] + 1
        elif outcome.get("outcome") == "conflict":
            self.end = outcome["offset"]

    def name(self):
        return f"acme/demo/{self.register}"


def run_clients(clients, is_over):
    """Lets each client work on a thread of its own; returns the threads."""

    def work(client):
        while not is_over.is_set():
            client.step()
            time.sleep(PAUSE_S)

    threads = [threading.Thread(target=work, args=(it,)) for it in clients]
    for thread in threads:
        thread.start()
    return threads


def eventually(what, call):
    """Repeats a call until it returns something."""
    deadline = time.monotonic() + SCAN_LIMIT_S
    while time.monotonic() < deadline:
        result = call()
        if result is not None:
            return result
        time.sleep(0.1)
    raise TimeoutError(f"after {SCAN_LIMIT_S} s: not {what}")


def scan_partition(history, register):
    """Reads all values. A confirmed read at the end makes sure that none is missing."""
    client = Partition(history, register, NODES[0])

    def end():
        value = history.value()
        outcome = history.run(
            register, client.client, "append", lambda: client.send(value), value=value
        )
        return outcome.get("offset")

    last = eventually("an append to the register", end)

    def values():
        found = []
        while len(found) <= last:
            page = client.read(len(found))
            if page is None or not page["records"]:
                return None
            found += [it["value"] for it in page["records"]]
        return found

    found = eventually("a read of the register", values)
    history.run(register, client.client, "scan", lambda: {"values": found})


def scan_stream(history, register, telpher):
    client = Stream(history, register, NODES[0], telpher)

    def end():
        client.step()
        done = history.operations[-1]
        return done["offset"] if done.get("outcome") == "done" else None

    last = eventually("an append to the stream", end)

    def values():
        command = [telpher, "read", client.name(), "--count", str(last + 1), "--json"]
        read = subprocess.run(
            [*command, "--url", client.url], capture_output=True, timeout=SCAN_LIMIT_S
        )
        if read.returncode:
            return None
        return [json.loads(it)["body"] for it in read.stdout.splitlines()]

    found = eventually("a read of the stream", values)
    history.run(register, client.client, "scan", lambda: {"values": found})


def leader(cluster):
    """Returns the node that leads, as soon as one says so."""

    def asked():
        statuses = (cluster.status(node) for node in NODES)
        leaders = (it["leader"] for it in statuses if it and it.get("leader"))
        return next(leaders, None)

    return eventually("a leader", asked)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("telpher")
    parser.add_argument("history")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("faults", nargs="*", choices=[*FAULTS, []])
    args = parser.parse_args()
    directory = tempfile.mkdtemp(prefix="telpher-register-")
    network = Network()
    history, cluster, is_done = History(), None, False
    try:
        network.enter(CLIENT)
        cluster = Cluster(args.telpher, network, directory)
        names = (args.faults or list(FAULTS)) * args.rounds
        for number, name in enumerate(names):
            partition, stream = f"register-{number}", f"stream-{number}"
            is_over = threading.Event()
            clients = [
                Partition(history, partition, node) for node in NODES for _ in range(CLIENTS_PER_NODE)
            ]
            clients += [Stream(history, stream, node, args.telpher) for node in NODES]
            threads = run_clients(clients, is_over)
            try:
                time.sleep(BETWEEN_S)
                FAULTS[name](cluster, leader(cluster))
                leader(cluster)
                time.sleep(BETWEEN_S)
            finally:
                is_over.set()
                for thread in threads:
                    thread.join()
            scan_partition(history, partition)
            scan_stream(history, stream, args.telpher)
            print(f"{name:16} {len(history.operations)} operations so far", flush=True)
        history.write(args.history)
        is_done = True
    finally:
        if cluster:
            cluster.close()
        network.close()
        if is_done:
            shutil.rmtree(directory)
        else:
            print(f"the logs and the data are in {directory}")
    sys.exit(0 if is_done else 1)


if __name__ == "__main__":
    main()
