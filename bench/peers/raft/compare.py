#!/usr/bin/env python3
"""Runs the quorum floor and raft-floor in turns and prints how they compare.

    compare.py --dir /var/tmp [--shapes 1x128,128x1,1x1024,8x128] [--systems floor,raft,raft-4]
               [--pairs 5] [--seconds 3] [--size 256] [--bin ../bin] [--json FILE]

A shape is connections x requests in flight on each. `raft-G-B` is raft-floor with G groups (1) and B
blocks under way (2), `floor-N` the quorum floor with `--ahead N` (1). Ratios are to `floor`. All systems of a shape are started once and stay up, idle while another one is measured;
each turn runs all of them, one after the other, and a ratio is that of one turn. The interval of a
ratio is that of Student's t over the logarithms of the turns' ratios, 95 %. Processor time is that
of all three nodes together, from the kernel's schedstat; `client` is that of the load generator.
"""

import argparse
import contextlib
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

# Student's t for 95 %, two sides, by degrees of freedom.
T95 = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179,
       2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--dir", required=True, help="where the nodes put their files")
    parser.add_argument("--shapes", default="1x128,128x1,1x1024,8x128")
    parser.add_argument("--systems", default="floor,raft")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--file-mib", type=int, default=256)
    parser.add_argument("--floor-flags", default="", help="more flags of `floors quorum serve`")
    parser.add_argument("--raft-flags", default="", help="more flags of `raft-floor serve`")
    parser.add_argument("--bin", default=str(pathlib.Path(__file__).parent.parent / "bin"))
    parser.add_argument("--json", help="a file for every single run")
    return parser.parse_args()


class Server:
    """Three nodes: the process that was started, and its children."""

    def __init__(self, options, system, scratch):
        self.counts = pathlib.Path(scratch) / f"{system}.counts"
        bin_dir = pathlib.Path(options.bin)
        name, *numbers = system.split("-")
        if name == "floor":
            (ahead,) = numbers or ["1"]
            command = [bin_dir / "floors", "quorum", "serve", "--ahead", ahead]
            command += options.floor_flags.split()
        else:
            groups, blocks = (numbers + ["1", "2"][len(numbers):])[:2]
            command = [bin_dir / "raft-floor", "serve", "--groups", groups, "--blocks", blocks]
            command += options.raft_flags.split()
        command += ["--listen", "127.0.0.1:0", "--dir", options.dir, "--counts", self.counts]
        command += ["--file-mib", options.file_mib]
        self.process = subprocess.Popen(
            [str(part) for part in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        words = self.process.stdout.readline().split()
        if words[:1] != ["READY"]:
            self.end()
            sys.exit(f"compare.py: {system} did not start")
        self.address = words[1]
        self.completed = 0

    def nodes(self):
        pid = self.process.pid
        yield pid
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            yield from (task / "children").read_text().split()

    def cpu_ns(self):
        """Processor time of each node, the leader first."""
        times = []
        for pid in self.nodes():
            tasks = pathlib.Path(f"/proc/{pid}/task").iterdir()
            times.append(sum(int((task / "schedstat").read_text().split()[0]) for task in tasks))
        return times

    def load(self, options, shape, seconds):
        connections, in_flight = shape
        command = [pathlib.Path(options.bin) / "floors", "quorum", "load"]
        command += ["--connect", self.address, "--mode", "concurrent", "--size", options.size]
        command += ["--connections", connections, "--in-flight", in_flight]
        command += ["--seconds", seconds, "--warmup-seconds", 0]
        ran = subprocess.run([str(part) for part in command], capture_output=True, text=True)
        if ran.returncode != 0:
            self.end()
            sys.exit(f"compare.py: {command} failed: {ran.stderr}")
        report = json.loads(ran.stdout)
        self.completed += report["completed"]
        return report

    def measure(self, options, shape):
        self.load(options, shape, 0.3)
        before = self.cpu_ns()
        report = self.load(options, shape, options.seconds)
        cpu = [(after - start) / 1e3 for start, after in zip(before, self.cpu_ns())]
        done = report["completed"]
        return {
            "rate": done / report["window_ns"] * 1e9,
            "p50_us": report["latency"]["p50_ns"] / 1e3,
            "p99_us": report["latency"]["p99_ns"] / 1e3,
            "cpu_us": sum(cpu) / done,
            "leader_cpu_us": cpu[0] / done,
            "client_cpu_us": report["cpu_ns"] / 1e3 / done,
        }

    def end(self):
        """Ends the nodes and returns what each of them counted."""
        self.process.stdin.close()
        self.process.wait(timeout=30)
        if not self.counts.exists():
            return []
        return [json.loads(line) for line in self.counts.read_text().splitlines()]


def interval(ratios):
    """The geometric mean of ratios and its interval."""
    logs = [math.log(ratio) for ratio in ratios]
    mean = statistics.fmean(logs)
    if len(logs) < 2:
        return math.exp(mean), float("nan"), float("nan")
    t = T95[min(len(logs) - 2, len(T95) - 1)]
    half = t * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


def compare(options, shape, systems):
    """Runs all turns of a shape; returns the runs of each system and the nodes' counts."""
    runs = {system: [] for system in systems}
    with contextlib.ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory())
        servers = {}
        for system in systems:
            servers[system] = Server(options, system, scratch)
            stack.callback(servers[system].process.kill)
        for _ in range(options.pairs):
            for system in systems:
                runs[system].append(servers[system].measure(options, shape))
        counts = {}
        for system, server in servers.items():
            nodes = server.end()
            counts[system] = {"completed": server.completed, "nodes": nodes}
    return runs, counts


def print_shape(name, runs, counts):
    for system, all_runs in runs.items():
        mean = {key: statistics.fmean(run[key] for run in all_runs) for key in all_runs[0]}
        nodes = counts[system]["nodes"]
        syncs = sum(node["syncs"] for node in nodes) / counts[system]["completed"] * mean["rate"]
        sync_p50 = statistics.fmean(node["sync_p50_ns"] for node in nodes) / 1e3
        line = (
            f"{name:>8} {system:8} {mean['rate']:10,.0f}/s  p50 {mean['p50_us']:7.0f}  p99"
            f" {mean['p99_us']:7.0f} us  cpu {mean['cpu_us']:6.2f} (leader {mean['leader_cpu_us']:5.2f})"
            f" us/msg  client {mean['client_cpu_us']:5.2f}  syncs {syncs:7,.0f}/s of 3 nodes,"
            f" p50 {sync_p50:4.0f} us"
        )
        if system != "floor" and "floor" in runs:
            pairs = list(zip(all_runs, runs["floor"]))
            for key in ("rate", "cpu_us"):
                middle, low, high = interval([run[key] / floor[key] for run, floor in pairs])
                line += f"  {key} / floor {middle:.2f} [{low:.2f}, {high:.2f}]"
        print(line, flush=True)


def main():
    options = arguments()
    shapes = [tuple(int(part) for part in shape.split("x")) for shape in options.shapes.split(",")]
    systems = options.systems.split(",")
    print(f"load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors, {options.size} B,"
          f" {options.seconds} s, {options.pairs} turns")
    results = []
    for shape in shapes:
        runs, counts = compare(options, shape, systems)
        print_shape(f"{shape[0]}x{shape[1]}", runs, counts)
        results.append({"shape": shape, "runs": runs, "counts": counts})
    print(f"load average {os.getloadavg()[0]:.1f}")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(results, indent=1))


main()
