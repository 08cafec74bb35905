"""Faults of nodes and links while a client writes and another reads; then everything is compared.

    faults.py TELPHER [--rounds N | --kills N | --minutes N] [FAULT...]

`--kills N` repeats the named faults, or the three kinds of kills, until N processes were killed;
`--minutes N` until that time is over. Three processes run in network namespaces of their own, which needs root. Ends with 1 if anything
that was acknowledged is lost, doubled or reordered, or if anything was read that is not there.
"""

import argparse
import itertools
import shutil
import signal
import statistics
import sys
import tempfile
import time

from confluent_kafka import Producer

from load import QUIET, Load, compare, final_log
from network import CLIENT, NODES, Network, address
from nodes import Cluster

# A follower grants no vote for 0.8 s after the leader's last heartbeat.
SHORT_PAUSE_S = 0.6
LONG_PAUSE_S = 2.5
PARTITION_S = 5
# A leader hands over after 2 s without a sync.
STALL_S = 8
# Time for which a disk is full; longer than the load needs for some segments.
FULL_S = 12
LARGE_SIZE = 64 << 10
BETWEEN_S = 2

# A run of many kills: less time between two of them, and fewer records, all of which are held in
# memory.
KILLS_BETWEEN_S = 0.5
KILLS_PAUSE_S = 0.02
KILLS = ("kill-leader", "kill-follower", "kill-all")


def others(node):
    return [it for it in NODES if it != node]


def kill_leader(cluster, leader):
    cluster.kill([leader])
    # Another one is elected meanwhile.
    time.sleep(2)
    cluster.start(leader)


def kill_follower(cluster, leader):
    follower = others(leader)[0]
    cluster.kill([follower])
    time.sleep(1)
    cluster.start(follower)


def kill_all(cluster, _):
    cluster.kill(NODES)
    for node in NODES:
        cluster.launch(node)
    for node in NODES:
        cluster.wait_until_ready(node)


def pause(seconds):
    def fault(cluster, leader):
        cluster.signal(leader, signal.SIGSTOP)
        time.sleep(seconds)
        cluster.signal(leader, signal.SIGCONT)

    return fault


def cut(links_of, seconds=PARTITION_S):
    """Cuts links of nodes; every node still hears the clients."""

    def fault(cluster, leader):
        for a, b in links_of(leader):
            cluster.network.set_link(a, b, False)
        time.sleep(seconds)
        cluster.network.heal()

    return fault


def one_way(cluster, leader):
    """The leader hears the others, and they do not hear it."""
    for other in others(leader):
        cluster.network.silence(leader, other)
    time.sleep(PARTITION_S)
    cluster.network.heal()


def flapping_link(cluster, leader):
    for _ in range(5):
        cut(lambda it: [(it, other) for other in others(it)], 1.0)(cluster, leader)
        time.sleep(0.5)


def stalled_disk(cluster, leader):
    """The leader's disk answers nothing, neither writes nor syncs."""
    cluster.freeze(leader, True)
    try:
        time.sleep(STALL_S)
    finally:
        cluster.freeze(leader, False)


def full_disk(of_leader):
    """A disk without space, while another producer writes more than the reserve."""

    def fault(cluster, leader):
        node = leader if of_leader else others(leader)[0]
        cluster.fill(node)
        try:
            write_much(FULL_S)
        finally:
            cluster.empty(node)

    return fault


def write_much(seconds):
    """Writes large records for some time. What is refused is not repeated for long."""
    servers = ",".join(f"{address(node)}:9092" for node in NODES)
    settings = {"bootstrap.servers": servers, "message.timeout.ms": 3_000, **QUIET}
    producer = Producer(settings)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            producer.produce("ballast", bytes(LARGE_SIZE))
        except BufferError:
            pass
        producer.poll(0.005)
    producer.flush(5)


def rolling_restart(cluster, _):
    for node in NODES:
        cluster.signal(node, signal.SIGTERM)
        cluster.processes[node].wait(60)
        cluster.start(node)
        time.sleep(1)


FAULTS = {
    "kill-leader": kill_leader,
    "kill-follower": kill_follower,
    "kill-all": kill_all,
    "short-pause": pause(SHORT_PAUSE_S),
    "long-pause": pause(LONG_PAUSE_S),
    "isolate-leader": cut(lambda it: [(it, other) for other in others(it)]),
    "isolate-follower": cut(lambda it: [(others(it)[0], o) for o in others(others(it)[0])]),
    "cut-link": cut(lambda it: [(it, others(it)[0])]),
    "cut-followers": cut(lambda it: [tuple(others(it))]),
    "one-way": one_way,
    "flapping-links": flapping_link,
    "stalled-disk": stalled_disk,
    "full-leader": full_disk(of_leader=True),
    "full-follower": full_disk(of_leader=False),
    "rolling-restart": rolling_restart,
}


def repeated(args):
    """Returns the faults to run, one after the other."""
    if args.kills or args.minutes:
        return itertools.cycle(args.faults or KILLS)
    return (args.faults or list(FAULTS)) * args.rounds


def is_enough(args, cluster, begun):
    if args.kills and cluster.kills >= args.kills:
        return True
    return bool(args.minutes) and time.monotonic() > begun + args.minutes * 60


def summary(seconds):
    """Returns the distribution of times."""
    ordered = sorted(seconds)
    at = lambda share: ordered[min(len(ordered) - 1, int(len(ordered) * share))]
    return (
        f"{len(ordered)} times, first ack: median {statistics.median(ordered):.2f} s, "
        f"p99 {at(0.99):.2f} s, max {ordered[-1]:.2f} s"
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("telpher")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--kills", type=int)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("faults", nargs="*", choices=[*FAULTS, []])
    args = parser.parse_args()
    is_long = bool(args.kills or args.minutes)
    directory = tempfile.mkdtemp(prefix="telpher-cluster-")
    network = Network()
    cluster = load = None
    faults = ["the run was interrupted"]
    try:
        network.enter(CLIENT)
        cluster = Cluster(args.telpher, network, directory)
        servers = ",".join(f"{address(node)}:9092" for node in NODES)
        load = Load(servers, KILLS_PAUSE_S) if is_long else Load(servers)
        gaps = {}
        start = time.monotonic()
        for name in repeated(args):
            time.sleep(KILLS_BETWEEN_S if is_long else BETWEEN_S)
            leader = load.leader()
            begun = time.monotonic()
            FAULTS[name](cluster, leader)
            healed = time.monotonic()
            gap = load.first_ack_after(begun + 0.05)
            load.first_ack_after(healed)
            gaps.setdefault(name, []).append(gap)
            pause_s = load.longest_pause(begun, time.monotonic())
            told = f"first ack after {gap:.2f} s, longest pause {pause_s:.2f} s"
            print(f"{name:16} led by {leader}: {told}; {cluster.kills} kills so far", flush=True)
            if is_enough(args, cluster, start):
                break
        time.sleep(BETWEEN_S)
        load.end()
        log, faults = final_log(servers)
        faults += compare(load, log)
        minutes = (time.monotonic() - start) / 60
        print(f"{cluster.kills} processes were killed with SIGKILL in {minutes:.1f} minutes")
        print(f"{load.sent} sent, {len(load.acked)} acknowledged, {len(load.failed)} failed")
        print(f"client errors: {load.errors}; failures: {set(load.failed.values())}")
        for name, seconds in gaps.items():
            print(f"{name:16} {summary(seconds)}")
    finally:
        if load:
            load.is_over.set()
        if cluster:
            cluster.close()
        network.close()
        for fault in faults:
            print(f"FAULT: {fault}")
        if faults:
            print(f"the logs and the data are in {directory}")
        else:
            shutil.rmtree(directory)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
