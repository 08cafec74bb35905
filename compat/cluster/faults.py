"""Faults of nodes and links while a client writes and another reads; then everything is compared.

    faults.py TELPHER [--rounds N] [FAULT...]

Three processes run in network namespaces of their own, which needs root. Ends with 1 if anything
that was acknowledged is lost, doubled or reordered, or if anything was read that is not there.
"""

import argparse
import shutil
import signal
import statistics
import sys
import tempfile
import time

from load import Load, compare, final_log
from network import CLIENT, NODES, Network, address
from nodes import Cluster

# A follower grants no vote for 0.8 s after the leader's last heartbeat.
SHORT_PAUSE_S = 0.6
LONG_PAUSE_S = 2.5
PARTITION_S = 5
# A leader hands over after 2 s without a sync.
STALL_S = 8
BETWEEN_S = 2


def others(node):
    return [it for it in NODES if it != node]


def kill_leader(cluster, leader):
    cluster.kill([leader])
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
        cluster.start(node)


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
    "rolling-restart": rolling_restart,
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("telpher")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("faults", nargs="*", choices=[*FAULTS, []])
    args = parser.parse_args()
    directory = tempfile.mkdtemp(prefix="telpher-cluster-")
    network = Network()
    cluster = load = None
    faults = ["the run was interrupted"]
    try:
        network.enter(CLIENT)
        cluster = Cluster(args.telpher, network, directory)
        servers = ",".join(f"{address(node)}:9092" for node in NODES)
        load = Load(servers)
        gaps = {}
        for _ in range(args.rounds):
            for name in args.faults or FAULTS:
                time.sleep(BETWEEN_S)
                leader = load.leader()
                begun = time.monotonic()
                FAULTS[name](cluster, leader)
                healed = time.monotonic()
                gap = load.first_ack_after(begun + 0.05)
                load.first_ack_after(healed)
                gaps.setdefault(name, []).append(gap)
                print(f"{name:16} led by {leader}: first ack after {gap:.2f} s", flush=True)
        time.sleep(BETWEEN_S)
        load.end()
        log, faults = final_log(servers)
        faults += compare(load, log)
        print(f"{load.sent} sent, {len(load.acked)} acknowledged, {len(load.failed)} failed")
        print(f"client errors: {load.errors}; failures: {set(load.failed.values())}")
        for name, seconds in gaps.items():
            print(f"{name:16} first ack: median {statistics.median(seconds):.2f} s")
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
