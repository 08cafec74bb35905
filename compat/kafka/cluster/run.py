"""Moves the leader of a cluster while a client produces and a group's job copies, and compares the topics.

    run.py TELPHER [--may-double] -- COMMAND...

Starts `telpher cluster dev`, and the command with the addresses and the names of two topics. Kills the
leader, lets it hand over, and pauses it, in turn, until it has moved MOVES times. Fails if the client
reports an error, if a record is lost, or if one is there twice. With `--may-double`, the producers are not
idempotent: what they have written twice is counted only.
"""

import argparse
import collections
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from confluent_kafka import Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from report import PARTITIONS

MOVES = 6
SOURCE, TARGET = "source", "target"
LIMIT_S = 120
# Records that are acknowledged, and copied, between two moves.
PROGRESS = 100
QUIET = {"log_level": 2}


def wait_until(what, condition, limit_s=LIMIT_S):
    deadline = time.monotonic() + limit_s
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"after {limit_s} s: not {what}")
        time.sleep(0.05)
    return value


class Cluster:
    """Three nodes that `telpher cluster dev` has started."""

    def __init__(self, telpher, directory):
        self.telpher, self.directory = telpher, directory
        command = [telpher, "cluster", "dev", "--nodes", "3", "--json", "--data", directory]
        self.launcher = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        started = json.loads(self.launcher.stdout.readline())
        self.nodes = {node["id"]: node for node in started["nodes"]}
        self.servers = started["bootstrap"]
        # Processes that were started again.
        self.again = {}

    def status(self, node):
        """Returns the status of the cluster as a node or its leader answers it."""
        url = f"tcp://{self.nodes[node]['native']}"
        command = [self.telpher, "cluster", "status", "--json", "--url", url]
        try:
            asked = subprocess.run(command, capture_output=True, timeout=5)
            return json.loads(asked.stdout) if asked.returncode == 0 else None
        except (subprocess.TimeoutExpired, ValueError):
            return None

    def leader(self, without=None):
        """Returns the node that leads, as another than `without` answers."""
        for node in self.nodes:
            status = self.status(node) if node != without else None
            if status and status["leader"] not in (None, without):
                return status["leader"]
        return None

    def leader_in_sync(self):
        """Returns the leader if it leads all shards and all nodes have everything."""
        leader = self.leader()
        status = self.status(leader) if leader else None
        if not status or status["leader"] != leader:
            return None
        leads = all(it["leader"] == leader for it in status["shards"])
        return leader if leads and all(it["in_sync"] for it in status["nodes"]) else None

    def signal(self, node, number):
        os.kill(self.nodes[node]["pid"], number)

    def is_ended(self, node):
        if node in self.again:
            return self.again[node].poll() is not None
        # The launcher does not wait for its child, which stays as a zombie.
        with open(f"/proc/{self.nodes[node]['pid']}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] == "Z"

    def restart(self, node):
        wait_until("the process has ended", lambda: self.is_ended(node))
        with open(self.nodes[node]["log"], "a") as log:
            command = [*self.nodes[node]["command"], "--end-with-stdin"]
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log)
        self.again[node], self.nodes[node]["pid"] = process, process.pid

    def move(self, how):
        """Moves the leader to another node, and returns both."""
        leader = wait_until("all are in sync", self.leader_in_sync)
        self.signal(leader, {"kill": 9, "hand over": 15, "pause": signal.SIGSTOP}[how])
        try:
            other = wait_until("another node leads", lambda: self.leader(leader))
        finally:
            if how == "pause":
                self.signal(leader, signal.SIGCONT)
        if how != "pause":
            self.restart(leader)
        return leader, other

    def close(self):
        for process in self.again.values():
            process.stdin.close()
        self.launcher.stdin.close()
        for process in [*self.again.values(), self.launcher]:
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class Client:
    """The client, and what it has reported."""

    def __init__(self, command, log):
        self.acked, self.copied = set(), 0
        self.notices, self.errors, self.refused = collections.Counter(), [], []
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        )
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            kind, _, rest = line.rstrip().partition(" ")
            match kind:
                case "acked":
                    self.acked.add(int(rest))
                case "copied":
                    self.copied = int(rest)
                case "notice":
                    self.notices[rest] += 1
                case "error":
                    self.errors.append(rest)
                case "refused":
                    self.refused.append(rest)
                case _:
                    self.errors.append(f"it says: {line.rstrip()}")

    def progress(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"the client has ended with {self.process.returncode}")
        return len(self.acked), self.copied

    def wait_for_progress(self):
        acked, copied = self.progress()
        wait_until(
            f"{PROGRESS} more than {acked} acknowledged",
            lambda: self.progress()[0] >= acked + PROGRESS,
        )
        wait_until(
            f"{PROGRESS} more than {copied} copied",
            lambda: self.progress()[1] >= copied + PROGRESS,
        )

    def end(self):
        self.process.stdin.close()
        if (status := self.process.wait(3 * LIMIT_S)) != 0:
            self.errors.append(f"the client ends with {status}")
        self.reader.join()


def create_topics(servers):
    admin = AdminClient({"bootstrap.servers": servers, **QUIET})
    topics = [NewTopic(name, PARTITIONS, 3) for name in (SOURCE, TARGET)]
    for made in admin.create_topics(topics).values():
        made.result(LIMIT_S)


def numbers(servers, topic):
    """Returns the numbers of each partition, in the order of the log."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "reader", **QUIET})
    partitions = [TopicPartition(topic, it, 0) for it in range(PARTITIONS)]
    ends = {it.partition: consumer.get_watermark_offsets(it, timeout=60)[1] for it in partitions}
    consumer.assign(partitions)
    log = {it: [] for it in ends}
    deadline = time.monotonic() + LIMIT_S
    while any(len(log[it]) < ends[it] for it in ends):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{topic} could not be read in {LIMIT_S} s")
        for message in consumer.consume(1000, 1.0):
            if message.error():
                if message.error().code() != KafkaError._PARTITION_EOF:
                    raise RuntimeError(message.error())
                continue
            log[message.partition()].append(int(message.value()))
    consumer.close()
    return log


def doubled(log):
    counts = collections.Counter(it for some in log.values() for it in some)
    return sorted(it for it, count in counts.items() if count > 1)


def seen(error):
    return f"the application sees an error: {error}"


def compare(client, source, target, may_double):
    """Returns what contradicts the promises, and prints the figures."""
    faults = [seen(it) for it in client.errors]
    written = {it for some in source.values() for it in some}
    copies = {it for some in target.values() for it in some}
    twice = {"source": doubled(source), "target": doubled(target)}
    print(f"{len(client.acked)} acknowledged, {len(written)} written, {len(copies)} copied")
    for name, numbers_ in twice.items():
        print(f"twice in the {name}: {len(numbers_)} {numbers_[:5]}")
    if lost := sorted(client.acked - written):
        faults.append(f"{len(lost)} acknowledged records are lost: {lost[:5]}")
    if lost := sorted(written - copies):
        faults.append(f"{len(lost)} records are not copied: {lost[:5]}")
    if phantoms := sorted(copies - written):
        faults.append(f"{len(phantoms)} copies are of no record: {phantoms[:5]}")
    if not may_double:
        for name, log in (("source", source), ("target", target)):
            if twice[name]:
                faults.append(f"{len(twice[name])} records are twice in the {name}")
            if any(some != sorted(some) for some in log.values()):
                faults.append(f"the records in the {name} are in another order")
    if len(client.refused) != 1:
        faults.append(f"a transaction is refused {len(client.refused)} times, not once")
    print(f"events that are no faults: {dict(client.notices)}")
    print(f"refused transaction: {'; '.join(client.refused)}")
    return faults


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("telpher")
    parser.add_argument("--may-double", action="store_true")
    parser.add_argument("command", nargs="+")
    args = parser.parse_args()
    directory = tempfile.mkdtemp(prefix="telpher-compat-")
    faults, client = None, None
    cluster = Cluster(args.telpher, directory)
    try:
        create_topics(cluster.servers)
        with open(os.path.join(directory, "client.log"), "w") as log:
            client = Client([*args.command, cluster.servers, SOURCE, TARGET], log)
            client.wait_for_progress()
            for number in range(MOVES):
                how = ("kill", "hand over", "pause")[number % 3]
                begun = time.monotonic()
                leader, other = cluster.move(how)
                client.wait_for_progress()
                took = time.monotonic() - begun
                print(f"{how:9} from node {leader} to {other}: {took:.1f} s", flush=True)
            client.end()
        source, target = (numbers(cluster.servers, it) for it in (SOURCE, TARGET))
        faults = compare(client, source, target, args.may_double)
    finally:
        if client and client.process.poll() is None:
            client.process.kill()
        cluster.close()
        if faults is None:
            # A client that has given up makes no progress.
            errors = client.errors if client else []
            faults = ["the run was interrupted", *map(seen, errors)]
        for fault in faults[:20]:
            print(f"FAULT: {fault}")
        if faults:
            print(f"the logs and the data are in {directory}")
        else:
            shutil.rmtree(directory)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
