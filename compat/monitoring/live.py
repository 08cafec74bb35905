"""Rules and dashboard of packaging/monitoring in a Prometheus that reads real nodes under load.

    live.py --files DIR --prometheus PROGRAM --telpher PROGRAM --workspace DIR

A node alone, whose servers for the archive, quotas and webhooks are away, and a cluster of three get
load. Ends with 1 if a query of the dashboard has no data, if an alert that must fire does not, or if
one fires that must not. Prometheus reads every second, and all times of the rules are shortened.
"""

import argparse
import contextlib
import json
import math
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

PATIENCE_S = 90
# Time limit of one program of the load.
PROGRAM_S = 20
# Range of the queries, and of the rules instead of their own.
RANGE = "10s"

# Alerts of the node whose servers are away, and whose consumers are slow.
AWAY = [
    "TelpherArchiveDown",
    "TelpherGroupLagGrows",
    "TelpherQuotaDegraded",
    "TelpherQuotaStoreDown",
    "TelpherWebhookDeadLetters",
    "TelpherWebhooksFail",
]
# Alerts that none of this causes.
UNEXPECTED = [
    "TelpherAppendsWait",
    "TelpherCompactionFails",
    "TelpherConnectionsRefused",
    "TelpherDown",
    "TelpherInternalErrors",
    "TelpherMailboxesUnreadable",
    "TelpherMemberClockOff",
    "TelpherMemberKeptOut",
    "TelpherMembersMissing",
    "TelpherRestarts",
    "TelpherWritesRefused",
]

CONFIGURATION = """
[[limit]]
name = "calls"
match = "*/*/*"
unit = "requests"
capacity = 1
refill = "1/s"
on_unreachable = "allow"
"""

PROMETHEUS = """
global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}}
rule_files: [rules.yml]
scrape_configs:
  - job_name: telpher
    static_configs:
      - targets: {targets}
"""


class Failure(Exception):
    """A check that failed."""


def free_port():
    """Return a TCP port of loopback that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait(what, condition):
    """Wait until a condition returns something, and return it."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > deadline:
            raise Failure(f"not within {PATIENCE_S} s: {what}")
        time.sleep(0.2)


class Processes:
    """Processes that this script has started, and that end with it."""

    def __init__(self, directory):
        self.directory = directory
        self.started = []

    def start(self, name, words, **options):
        """Start a process whose standard error goes to a file."""
        with open(os.path.join(self.directory, f"{name}.log"), "ab") as log:
            options = {"stdout": log, "stdin": subprocess.DEVNULL} | options
            process = subprocess.Popen(words, stderr=log, cwd=self.directory, **options)
        self.started.append(process)
        return process

    def ready(self, name, words):
        """Start a process that prints a JSON object when it is ready, and return both."""
        pipes = {"stdout": subprocess.PIPE, "stdin": subprocess.PIPE, "text": True}
        process = self.start(name, words, **pipes)
        text = ""
        for line in process.stdout:
            text += line
            with contextlib.suppress(json.JSONDecodeError):
                return process, json.loads(text)
        raise Failure(f"{name} ended; see {self.directory}/{name}.log")

    def end(self):
        """End everything, the newest first."""
        for process in reversed(self.started):
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)
            process.terminate()
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class Load(threading.Thread):
    """Load on the node and the cluster, until it is stopped."""

    def __init__(self, telpher, processes, node, cluster):
        super().__init__(daemon=True)
        self.telpher = telpher
        self.directory = processes.directory
        self.node = node
        self.broker = node["kafka"].split("://")[-1]
        self.bootstrap = cluster["bootstrap"]
        self.stopped = threading.Event()
        self.error = None
        self.http("PUT", "/v1/agents/support", {
            "url": f"http://127.0.0.1:{free_port()}/hook", "pause_ms": 100, "attempts_max": 3,
            "debounce_ms": 10,
        })
        self.run_program(["kcat", "-b", self.broker, "-t", "jobs", "-p", "0", "-P"], "x\n" * 12_000)
        self.run_program([
            "kcat", "-q", "-b", self.broker, "-G", "readers", "-c", "4",
            "-X", "auto.offset.reset=earliest", "jobs",
        ])
        processes.start("listen", self.words("listen", "acme/demo/upper", "--exec", "tr a-z A-Z"))
        processes.start("consume", ["kcat", "-q", "-b", self.broker, "-C", "-t", "jobs", "-o", "end"])

    def words(self, *words):
        """Return a command line of telpher for the node."""
        return [self.telpher, *words, "--url", self.node["native"]]

    def run_program(self, words, text=""):
        """Run a program to its end. How it ends does not matter here: nodes are killed meanwhile."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(
                words, input=text, text=True, cwd=self.directory, timeout=PROGRAM_S, check=False,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )

    def http(self, method, path, value=None, kind="application/json"):
        """Send a request to the node. Refusals are part of the load."""
        body = value if isinstance(value, bytes | None) else json.dumps(value).encode()
        request = urllib.request.Request(
            self.node["http"] + path, body, {"Content-Type": kind}, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                answer.read()
        except urllib.error.HTTPError as error:
            error.read()

    def run(self):
        """Repeat all kinds of load."""
        try:
            number = 0
            while not self.stopped.is_set():
                number += 1
                self.once(number)
        except OSError as error:
            if not self.stopped.is_set():
                self.error = error

    def once(self, number):
        """Send one of each kind."""
        for words in (
            ["request", "acme/demo/upper", "hello"],
            ["send", "--all", "acme/demo/upper", "hello"],
            ["send", "acme/demo/absent", "hello"],
            ["request", "acme/demo/absent", "hello"],
            ["write", "acme/demo/upper", "job"],
            ["write", "acme/demo/lower", "job"],
            ["append", "acme/demo/log", "record"],
        ):
            self.run_program(self.words(*words))
        chat = f"/v1/conversations/c{number}"
        self.http("PUT", chat, {"agent": "support"})
        self.http("POST", chat + "/messages", {"messages": [{"role": "user", "content": "hello"}]})
        chunks = b'{"type":"text-start","id":"t"}\n{"type":"finish"}\n'
        self.http("POST", chat + "/messages/a-1/stream", chunks, "application/jsonl")
        self.http("GET", "/v1/conversations/none")
        self.http("GET", "/v1/topics")
        for _ in range(3):
            self.http("POST", "/v1/take", {"subject": "acme/demo/bot", "cost": {"requests": 1}})
        self.run_program(["kcat", "-b", self.broker, "-t", "jobs", "-p", "0", "-P"], "x\n" * 200)
        self.run_program(["kcat", "-b", self.broker, "-L", "-t", "no such topic!"])
        self.run_program(["kcat", "-b", self.bootstrap, "-t", "events", "-P"], "x\n" * 20)


class Prometheus:
    """A Prometheus with the rules, their times shortened."""

    def __init__(self, program, files, processes, targets):
        self.directory = os.path.join(processes.directory, "prometheus")
        os.makedirs(self.directory)
        with open(os.path.join(files, "telpher.rules.yml"), encoding="utf-8") as file:
            rules = file.read()
        rules = re.sub(r"\bfor: \w+", "for: 2s", shorten(rules))
        self.write("rules.yml", rules)
        self.write("prometheus.yml", PROMETHEUS.format(targets=json.dumps(targets)))
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        processes.start("prometheus", [
            program, f"--config.file={self.directory}/prometheus.yml",
            f"--storage.tsdb.path={self.directory}/data", f"--web.listen-address=127.0.0.1:{port}",
        ])
        wait("Prometheus is ready", self.is_ready)

    def write(self, name, text):
        """Write a file into the directory of Prometheus."""
        with open(os.path.join(self.directory, name), "w", encoding="utf-8") as file:
            file.write(text)

    def is_ready(self):
        """Return whether Prometheus answers."""
        try:
            with urllib.request.urlopen(self.url + "/-/ready", timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False

    def query(self, expression):
        """Return the labels and values of an expression, without those that are not a number."""
        query = urllib.parse.urlencode({"query": expression})
        try:
            with urllib.request.urlopen(f"{self.url}/api/v1/query?{query}", timeout=10) as answer:
                result = json.load(answer)["data"]["result"]
        except urllib.error.HTTPError as error:
            raise Failure(f"{expression}: {error.read().decode()}") from error
        values = [(it["metric"], float(it["value"][1])) for it in result]
        return [(labels, value) for labels, value in values if not math.isnan(value)]

    def alerts(self, name, state, **labels):
        """Return the alerts of this name and state that there are now."""
        selector = {"alertname": name, "alertstate": state} | labels
        selector = ",".join(f'{key}="{value}"' for key, value in selector.items())
        return self.query(f"ALERTS{{{selector}}}")

    def expect_alert(self, name, **labels):
        """Wait until an alert fires, and check that it was pending before."""
        wait(f"{name} fires", lambda: self.alerts(name, "firing", **labels))
        pending = f'count_over_time(ALERTS{{alertname="{name}",alertstate="pending"}}[5m])'
        if not self.query(pending):
            raise Failure(f"{name} fires and was never pending")
        print(f"   fires: {name} {labels or ''}", flush=True)


def shorten(text):
    """Replace the ranges of expressions."""
    return re.sub(r"\[\d+[smhd]\]", f"[{RANGE}]", text)


def queries(files):
    """Return the titles and queries of the dashboard, with its variables replaced."""
    with open(os.path.join(files, "telpher-dashboard.json"), encoding="utf-8") as file:
        dashboard = json.load(file)
    row = ""
    for panel in dashboard["panels"]:
        if panel["type"] == "row":
            row = panel["title"]
            continue
        for target in panel["targets"]:
            query = target["expr"].replace("$__rate_interval", RANGE)
            query = query.replace("$job", ".*").replace("$instance", ".*")
            yield f"{row} / {panel['title']} / {target['legendFormat']}", shorten(query)


def check_dashboard(files, prometheus, load):
    """Wait until every query has data."""
    missing = dict(queries(files))
    count = len(missing)

    def is_complete():
        if load.error:
            raise Failure(f"the load ended: {load.error}")
        for title, query in list(missing.items()):
            if prometheus.query(query):
                del missing[title]
        return not missing

    try:
        wait("every query has data", is_complete)
    except Failure as failure:
        lines = "\n".join(f"  {title}: {query}" for title, query in missing.items())
        raise Failure(f"{failure}; {len(missing)} of {count} have none:\n{lines}") from failure
    print(f"   {count} queries of the dashboard have data", flush=True)


def check_alerts(prometheus, node, process, cluster):
    """Check alerts: of servers that are away, of a node that hangs, of members that are killed."""
    for name in AWAY:
        prometheus.expect_alert(name)
    for name in UNEXPECTED:
        found = prometheus.query(f'count_over_time(ALERTS{{alertname="{name}",alertstate="firing"}}[5m])')
        if found:
            raise Failure(f"{name} fired without a cause: {found}")
    instance = node["http"].split("://")[-1]
    process.send_signal(signal.SIGSTOP)
    prometheus.expect_alert("TelpherDown", instance=instance)
    process.send_signal(signal.SIGCONT)
    wait("the alert ends", lambda: not prometheus.alerts("TelpherDown", "firing", instance=instance))
    members = list(cluster["nodes"])
    os.kill(members[0]["pid"], signal.SIGKILL)
    prometheus.expect_alert("TelpherDown", instance=members[0]["http"])
    prometheus.expect_alert("TelpherMembersMissing")
    os.kill(members[1]["pid"], signal.SIGKILL)
    prometheus.expect_alert("TelpherQuorumLost")


def run(options, processes):
    """Start everything, and check it."""
    with open(os.path.join(processes.directory, "node.toml"), "w", encoding="utf-8") as file:
        file.write(CONFIGURATION)
    away = free_port()
    process, node = processes.ready("node", [
        options.telpher, "serve", "--dev", "--json", "--end-with-stdin", "--config", "node.toml",
        "--native-listen", "127.0.0.1:0", "--native-socket", "none",
        "--http-listen", "127.0.0.1:0", "--kafka-listen", "127.0.0.1:0", "--slim-listen", "none",
        "--archive-url", f"postgres://telpher@127.0.0.1:{away}/telpher?sslmode=disable",
        "--quota-store-redis", f"redis://127.0.0.1:{away}",
    ])
    _, cluster = processes.ready("cluster", [options.telpher, "cluster", "dev", "--json"])
    targets = [node["http"].split("://")[-1], *(it["http"] for it in cluster["nodes"])]
    prometheus = Prometheus(options.prometheus, options.files, processes, targets)
    load = Load(options.telpher, processes, node, cluster)
    load.start()
    try:
        check_dashboard(options.files, prometheus, load)
        check_alerts(prometheus, node, process, cluster)
    finally:
        load.stopped.set()
        load.join(PATIENCE_S)


def main():
    """Run the checks in a directory of their own, which stays if one fails."""
    parser = argparse.ArgumentParser()
    for name in ("files", "prometheus", "telpher", "workspace"):
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    options.telpher = os.path.abspath(options.telpher)
    directory = os.path.join(os.path.abspath(options.workspace), f"run-{os.getpid()}")
    os.makedirs(directory)
    processes = Processes(directory)
    try:
        run(options, processes)
    except Failure as failure:
        print(f"{failure}\nlogs: {directory}", file=sys.stderr)
        return 1
    finally:
        processes.end()
    shutil.rmtree(directory)
    return 0


if __name__ == "__main__":
    sys.exit(main())
