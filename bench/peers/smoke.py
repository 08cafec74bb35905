"""Checks the contract of every program: see smoke.sh."""

import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

BIN = pathlib.Path(sys.argv[1])
SECONDS = 0.3
LATENCY = ("count", "mean_ns", "min_ns", "p50_ns", "p90_ns", "p99_ns", "p999_ns", "max_ns")
FIELDS = {
    "program": str, "mode": str, "in_flight": int, "size": int, "connections": int,
    "completed": int, "errors": int, "window_ns": int, "cpu_ns": int, "latency": dict,
    "received": int, "notes": str,
}
checks = 0


def check(truth, *what):
    global checks
    checks += 1
    if not truth:
        sys.exit("smoke: " + " ".join(str(part) for part in what))


@contextlib.contextmanager
def serving(*command, end="stdin"):
    """Starts a server; yields its address; then sees it end in the way that is asked for."""
    command = [str(part) for part in command]
    server = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    try:
        ready = server.stdout.readline().split()
        check(len(ready) == 2 and ready[0] == "READY", command, "printed", ready)
        yield ready[1]
        check(server.poll() is None, command, "ended by itself with", server.returncode)
        if end == "stdin":
            server.stdin.close()
        else:
            server.send_signal(signal.SIGTERM)
        check(server.wait(timeout=10) == 0, command, "ended with", server.returncode)
        check(server.stdout.read() == "", command, "printed more than READY")
    finally:
        server.kill()
        server.wait()


def run(*command):
    command = [str(part) for part in command]
    return command, subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
    )


def measured(*command, program, extra=()):
    """Runs a load and returns its report, with everything checked that any report promises."""
    command, ran = run(*command)
    check(ran.returncode == 0, command, "failed:", ran.stderr)
    check(ran.stdout.count("\n") == 1, command, "printed", repr(ran.stdout))
    report = json.loads(ran.stdout)
    for name, kind in FIELDS.items():
        check(type(report.get(name)) is kind, command, "has", name, report.get(name))
    for name in extra:
        check(report.get(name, 0) > 0, command, "has", name, report.get(name))
    check(report["program"] == program, command, "is", report["program"])
    check(report["completed"] > 0 and report["errors"] == 0, command, report)
    check(0 < report["cpu_ns"] <= report["window_ns"] * os.cpu_count() * 1.1, command, report)
    latency = report["latency"]
    check(tuple(latency) == LATENCY, command, latency)
    if report["mode"] == "publish":
        check(latency["count"] == 0, command, latency)
    else:
        rising = [latency[name] for name in LATENCY[2:]]
        check(latency["count"] == report["completed"], command, report)
        check(rising == sorted(rising) and rising[0] > 0, command, latency)
        check(latency["min_ns"] <= latency["mean_ns"] <= latency["max_ns"], command, latency)
        # Little's law: requests in flight are rate times latency.
        busy = latency["mean_ns"] * latency["count"] / report["window_ns"]
        most = report["in_flight"] * report["connections"]
        check(busy <= most * 1.01, command, "keeps", busy, "requests in flight of", most)
    if "--seconds" in command:
        check(report["window_ns"] >= SECONDS * 0.99e9, command, report)
    print(
        f"{program:20} {report['mode']:10} {report['in_flight']:6} x {report['connections']:<4}"
        f" {report['size']:6} B {report['completed'] / report['window_ns'] * 1e9:14,.0f} /s"
        f" p50 {latency['p50_ns'] / 1e3:10.1f} µs",
        flush=True,
    )
    return report


def refused(*command, code, says):
    """Runs something wrong, which has to say so."""
    command, ran = run(*command)
    check(ran.returncode == code, command, "ended with", ran.returncode, ran.stdout, ran.stderr)
    check(ran.stdout == "", command, "printed", ran.stdout)
    check(says in ran.stderr and "\nhint: " in ran.stderr, command, "said", ran.stderr)


def check_mistakes(load, address, gone):
    refused(*load, "--connect", gone, "--mode", "serial", "--seconds", 1, code=1, says=gone)
    wrong = (*load, "--connect", address, "--seconds", 1)
    refused(*wrong, "--mode", "sideways", code=2, says="sideways")
    refused(*wrong, "--mode", "serial", "--in-flight", 2, code=2, says="serial")
    refused(*wrong, "--mode", "serial", "--sise", 2, code=2, says="sise")
    refused(*load, "--connect", address, "--mode", "serial", code=2, says="window")


def check_modes(load, address, program, depths):
    time = ("--seconds", SECONDS, "--warmup-seconds", 0.1)
    common = (*load, "--connect", address)
    measured(*common, "--mode", "serial", *time, program=program)
    for mode in ("concurrent", "callback"):
        for depth in depths:
            measured(*common, "--mode", mode, "--in-flight", depth, *time, program=program)
    several = ("--mode", "concurrent", "--in-flight", 4, "--connections", 5, "--size", 5000)
    measured(*common, *several, *time, program=program)
    for mode in ("concurrent", "callback"):
        exact = ("--mode", mode, "--in-flight", 7, "--requests", 1003, "--connections", 3)
        report = measured(*common, *exact, "--size", 0, "--warmup-seconds", 0, program=program)
        check(report["completed"] == 1003, exact, report)
    pinned = measured(*common, "--mode", "serial", *time, "--cpu", 0, program=program)
    check(pinned["cpu_ns"] <= pinned["window_ns"] * 1.05, "a pinned load ran elsewhere", pinned)


def check_pair(name, scratch, serve, load, program, depths=(1, 10, 64, 256, 1000)):
    with serving(*serve, "--listen", "127.0.0.1:0") as gone:
        pass
    with serving(*serve, "--listen", "127.0.0.1:0", "--cpu", 0, end="SIGTERM") as address:
        check_modes(load, address, program, depths)
        check_mistakes(load, address, gone)
        taken = (*serve, "--listen", address)
        refused(*taken, code=1, says=address)
    path = scratch / f"{name}.socket"
    with serving(*serve, "--listen", f"unix:{path}") as address:
        check(address == f"unix:{path}", name, address)
        check_modes(load, address, program, (64,))
        check_mistakes(load, address, f"unix:{path}.gone")
    check(not path.exists(), name, "left", path)


def check_lost_server(serve, load):
    """A server that dies in mid-run fails the run."""
    command = [str(part) for part in (*serve, "--listen", "127.0.0.1:0")]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        address = server.stdout.readline().split()[1]
        options = ("--connect", address, "--mode", "callback", "--in-flight", 8, "--seconds", 30)
        client = subprocess.Popen(
            [str(part) for part in (*load, *options)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        try:
            # Processor time of the server shows that the run is under way.
            while cpu_ticks(server.pid) < 3:
                check(client.poll() is None, options, "ended early")
            server.kill()
            out, error = client.communicate(timeout=25)
            check(client.returncode == 1 and out == "" and "\nhint: " in error, load, out, error)
        finally:
            client.kill()
            client.wait()
    finally:
        server.kill()
        server.wait()


def cpu_ticks(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def check_floors(scratch):
    floors = BIN / "floors"
    echo = ((floors, "echo", "serve"), (floors, "echo", "load"))
    check_pair("echo", scratch, *echo, "echo-floor", (1, 10, 64, 256, 1000, 10_000))
    check_lost_server(*echo)
    for threads in (1, 2):
        serve = (floors, "durable-echo", "serve", "--dir", scratch, "--file-mib", 8)
        durable = ((*serve, "--threads", threads), (floors, "durable-echo", "load"))
        check_pair(f"durable-{threads}", scratch, *durable, "durable-echo-floor", (1, 10, 128))
    refused(*serve[:4], "/nowhere", "--listen", "127.0.0.1:0", code=1, says="/nowhere")
    serve = (floors, "quorum", "serve", "--dir", scratch, "--file-mib", 8)
    quorum = (serve, (floors, "quorum", "load"))
    check_pair("quorum", scratch, *quorum, "quorum-floor", (1, 10, 128))
    with serving(floors, "stream", "serve", "--listen", "127.0.0.1:0") as address:
        stream = (floors, "stream", "load", "--connect", address, "--mode", "serial")
        measured(*stream, "--seconds", SECONDS, "--size", 1024, program="stream-floor")
        refused(*stream, "--seconds", SECONDS, "--size", 0, code=2, says="one stream")
        refused(*stream, "--requests", 9, code=2, says="not counted in requests")
    extra = ("syncs", "sync_p50_ns", "sync_p99_ns", "messages_per_sync")
    disk = (floors, "disk", "--dir", scratch, "--file-mib", 8, "--warmup-seconds", 0.1)
    for writers, threads in ((1, 1), (128, 128), (128, 1), (1000, 3)):
        shape = ("--writers", writers, "--threads", threads, "--seconds", SECONDS)
        report = measured(*disk, *shape, program="disk-floor", extra=extra)
        check(report["messages_per_sync"] <= writers, shape, report)
    refused(floors, "disk", "--dir", "/nowhere", "--seconds", 1, code=1, says="/nowhere")
    check(os.listdir(scratch) == [], "the floors left", os.listdir(scratch))


def check_rust(scratch):
    for name in ("peer-tonic", "peer-tarpc"):
        pair = ((BIN / name, "serve"), (BIN / name, "load"))
        check_pair(name, scratch, *pair, name)
        check_lost_server(*pair)
    tonic = BIN / "peer-tonic"
    with serving(tonic, "serve", "--listen", "127.0.0.1:0") as address:
        check_modes((tonic, "load", "--rpc", "bidi"), address, "peer-tonic-bidi", (1, 10, 256))


def check_zmq(scratch):
    pair = ((BIN / "peer-zmq", "serve"), (BIN / "peer-zmq", "load"))
    check_pair("peer-zmq", scratch, *pair, "peer-zmq")
    check_lost_server(*pair)


def check_nats():
    nats = BIN / "peer-nats"
    load = (nats, "load")
    with serving(nats, "serve", "--listen", "127.0.0.1:0") as gone:
        pass
    with serving(nats, "serve", "--listen", "127.0.0.1:0", "--cpu", 0, end="SIGTERM") as address:
        nobody = (*load, "--connect", address, "--seconds", 1)
        for mode in ("serial", "concurrent", "callback"):
            refused(*nobody, "--mode", mode, code=1, says="nobody answers")
        with serving(nats, "respond", "--connect", address):
            check_modes(load, address, "peer-nats", (1, 10, 64, 256, 1000))
            check_mistakes(load, address, gone)
        check_publish(nats, address)
        refused(nats, "serve", "--listen", address, code=1, says="address already in use")
        refused(nats, "respond", "--connect", gone, code=1, says=gone)
        unix = ("--connect", "unix:/socket", "--mode", "serial", "--seconds", 1)
        refused(*load, *unix, code=2, says="unix:/socket")


def check_publish(nats, address):
    publish = (nats, "load", "--connect", address, "--mode", "publish", "--size", 16)
    for subscribers in (0, 1, 10):
        options = ("--seconds", SECONDS, "--warmup-seconds", 0.1, "--subscribers", subscribers)
        report = measured(*publish, *options, program="peer-nats")
        check(report["received"] == report["completed"] * subscribers, report)
    command = (nats, "subscribe", "--connect", address, "--size", 16, "--count", 3)
    subscriber = subprocess.Popen(
        [str(part) for part in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        check(subscriber.stdout.readline().startswith("READY "), command)
        report = measured(*publish, "--seconds", SECONDS, program="peer-nats")
        out, _ = subscriber.communicate(timeout=30)
        counted = json.loads(out)
        check(counted["each"] == [report["completed"]] * 3, counted, report)
        check(counted["received"] == report["completed"] * 3 and counted["rate"] > 0, counted)
    finally:
        subscriber.kill()
        subscriber.wait()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


@contextlib.contextmanager
def listening(*command, port):
    """Starts a server that says nothing when it is ready, and ends it."""
    command = [str(part) for part in command]
    server = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        limit = time.monotonic() + 30
        while True:
            check(server.poll() is None, command, "ended with", server.returncode)
            check(time.monotonic() < limit, command, "does not listen")
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except ConnectionRefusedError:
                time.sleep(0.01)
        yield f"127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


def asked(address, path, body=None):
    """Status, headers and JSON of an answer; what is no JSON is None."""
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(
        f"http://{address}{path}", data, {"Content-Type": "application/json"}
    )
    try:
        answer = urllib.request.urlopen(request, timeout=10)
    except urllib.error.HTTPError as error:
        answer = error
    with answer:
        text = answer.read()
        try:
            return answer.status, answer.headers, json.loads(text)
        except ValueError:
            return answer.status, answer.headers, None


def check_quota_express(scratch):
    port = free_port()
    store = ("--bind", "127.0.0.1", "--port", port, "--save", "", "--dir", scratch)
    with listening(BIN / "redis-server", *store, port=port) as redis:
        with serving(BIN / "quota-express", "--redis", redis, "--listen", "127.0.0.1:0") as address:
            check_limiter(address)
    print("quota-express        every endpoint", flush=True)


def check_limiter(address):
    """The surface of the rate limiter's report, as far as its peer has it."""
    status, _, health = asked(address, "/health")
    check((status, health["status"], health["redis"]) == (200, "ok", "connected"), health)
    status, _, about = asked(address, "/")
    check(list(about["endpoints"]) == ["health", "testRedis", "testRateLimit", "request", "quota"], about)
    _, _, said = asked(address, "/test-redis")
    check(said["success"] and said["testValue"] == "Hello from IRL!", said)
    _, _, quota = asked(address, "/api/quota/a")
    check((quota["status"], quota["remaining"], quota["rate"]) == ("new", 100, 10), quota)

    status, headers, taken = asked(address, "/api/request", {"agentId": "a", "tokens": 40})
    expected = {
        "success": True, "message": "Request allowed", "tokensConsumed": 40, "remaining": 60,
        "limit": 100,
    }
    check((status, taken) == (200, expected), status, taken)
    check(headers["X-RateLimit-Limit"] == "100", headers)
    _, _, quota = asked(address, "/api/quota/a")
    check((quota["status"], quota["limit"]) == ("active", 100) and "lastActivity" in quota, quota)
    status, headers, refused = asked(address, "/api/request", {"agentId": "a", "tokens": 90})
    check(status == 429 and refused["retryAfter"] >= 1 and 60 <= refused["remaining"] < 90, refused)
    check(int(headers["Retry-After"]) == refused["retryAfter"], headers)

    for body in ({}, {"agentId": 5}, {"agentId": "a", "tokens": 0}, {"agentId": "a", "tokens": "x"}):
        status, _, wrong = asked(address, "/api/request", body)
        check(status == 400 and wrong["error"] == "Bad Request", body, wrong)
    check(asked(address, "/api/request", b'{"agent')[0] == 500, "malformed JSON")
    check(asked(address, "/nowhere")[0] == 404, "a path that is none")

    answers = [asked(address, "/api/test-rate-limit") for _ in range(101)]
    statuses = [status for status, _, _ in answers]
    check(statuses == [200] * 100 + [429], statuses)
    check(answers[0][2]["requestNumber"] == 1 and answers[-1][2]["retryAfter"] == 60, answers[-1])


def check_throttlecrab():
    port = free_port()
    flags = ("--http", "--http-host", "127.0.0.1", "--http-port", port, "--log-level", "error")
    with listening(BIN / "throttlecrab-server", *flags, port=port) as address:
        take = {"key": "a", "max_burst": 3, "count_per_period": 1, "period": 60, "quantity": 1}
        allowed = [asked(address, "/throttle", take)[2]["allowed"] for _ in range(4)]
        check(allowed == [True] * 3 + [False], allowed)
    print("throttlecrab         takes", flush=True)


def main():
    with tempfile.TemporaryDirectory() as directory:
        scratch = pathlib.Path(directory)
        parts = {
            "floors": lambda: check_floors(scratch),
            "peer-tonic": lambda: check_rust(scratch),
            "peer-zmq": lambda: check_zmq(scratch),
            "peer-nats": check_nats,
            "quota-express": lambda: check_quota_express(scratch),
            "throttlecrab-server": check_throttlecrab,
        }
        built = sorted(path.name for path in BIN.iterdir()) if BIN.is_dir() else []
        check(built, "nothing is built in", BIN)
        there = [part for part in parts if part in built]
        for part in there:
            parts[part]()
    left_out = [part for part in parts if part not in there]
    untried = [name for name in built if name not in parts]
    print(f"smoke: {checks} checks passed; not built: {', '.join(left_out) or 'nothing'}")
    if untried:
        print(f"smoke: tried by their benchmarks only: {', '.join(untried)}")


main()
