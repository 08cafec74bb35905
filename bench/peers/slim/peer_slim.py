"""SLIM applications as sender and responder, and the SLIM node, for `telpher bench agent --protocol slim`.

Everything is `slim-bindings` as PyPI has it. One program, a role for each process:

    serve   --listen HOST:PORT                 the node: READY, then until its input ends
    respond --connect URL --answer yes|no      READY; `count` is answered with what arrived
    load    --connect URL --mode MODE ...      a line when it is set up; `go` begins; a line with its result

With --reliable the session is a reliable one, as a write's always is. MODE is request-reply (each message is awaited as its echo), fire-and-forget (handed over), or write
(reliable: the receiving session's acknowledgement is awaited, since a node gives none).
"""

import argparse
import json
import os
import socket
import sys
import threading
import time
import uuid
from datetime import timedelta

import slim_bindings as slim

SECRET = "a-secret-of-at-least-32-characters!!"
PATIENCE = timedelta(seconds=30)
ECHO = ("bench", "agent", "echo")
WARM_UP_COUNT = 30


def say(line):
    CONTRACT.write(line + "\n")
    CONTRACT.flush()


class App:
    def __init__(self, url, name):
        self.service = slim.create_service("s" + uuid.uuid4().hex)
        self.connection = self.service.connect(slim.new_insecure_client_config(url))
        self.name = name
        self.app = self.service.create_app_with_secret(name, SECRET)
        self.app.subscribe(self.app.name(), self.connection)


def serve(arguments):
    host, port = arguments.listen.rsplit(":", 1)
    if port == "0":
        with socket.socket() as probe:
            probe.bind((host, 0))
            port = str(probe.getsockname()[1])
    service = slim.create_service("node")
    service.run_server(slim.new_insecure_server_config(f"{host}:{port}"))
    say(f"READY {host}:{port}")
    sys.stdin.read()


class Responder:
    def __init__(self, arguments):
        self.size, self.answers = arguments.size, arguments.answer == "yes"
        self.received, self.first_ns, self.last_ns = 0, 0, 0
        self.app = App(arguments.connect, slim.Name(*ECHO))

    def take_sessions(self):
        while True:
            session = self.app.app.listen_for_session(timedelta(hours=1))
            threading.Thread(target=self.take, args=(session,), daemon=True).start()

    def take(self, session):
        while True:
            message = session.get_message(timedelta(hours=1))
            if self.answers:
                session.publish_to_and_wait(message.context, message.payload, None, None)
            # What warms up is longer.
            if len(message.payload) == self.size:
                self.last_ns = time.monotonic_ns()
                self.first_ns = self.first_ns or self.last_ns
                self.received += 1

    def sink(self):
        arrivals = {"first_ns": self.first_ns, "last_ns": self.last_ns}
        counted = arrivals if self.received > 1 else None
        return {"received": self.received, "arrivals": counted, "errors": {}}


def respond(arguments):
    responder = Responder(arguments)
    threading.Thread(target=responder.take_sessions, daemon=True).start()
    say("READY")
    for _ in sys.stdin:
        say(json.dumps(responder.sink()))


def session_of(app, reliable):
    config = slim.SessionConfig(
        session_type=slim.SessionType.POINT_TO_POINT,
        max_retries=10 if reliable else None,
        interval=timedelta(seconds=1) if reliable else None,
        metadata={},
        mls_settings=None,
    )
    responder = slim.Name(*ECHO)
    app.app.set_route(responder, app.connection)
    return app.app.create_session_and_wait(config, responder)


def load(arguments):
    begun_ns = time.monotonic_ns()
    app = App(arguments.connect, slim.Name("bench", "agent", "load" + uuid.uuid4().hex[:8]))
    session = session_of(app, arguments.reliable or arguments.mode == "write")
    is_answered = arguments.mode == "request-reply"

    def exchange(payload):
        session.publish_and_wait(payload, None, None)
        if is_answered:
            answer = session.get_message(PATIENCE)
            assert len(answer.payload) == len(payload), "an answer of another length"

    for _ in range(WARM_UP_COUNT):
        exchange(bytes(arguments.size + 1))
    say(json.dumps({"setup_ns": time.monotonic_ns() - begun_ns}))
    if not sys.stdin.readline():
        return
    say(json.dumps(measured(arguments, exchange)))


def measured(arguments, exchange):
    payload = bytes(arguments.size)
    latencies, sent = [], 0
    cpu_ns = time.process_time_ns()
    opened_ns = time.monotonic_ns()
    ends_ns = opened_ns + int(arguments.seconds * 1e9)
    pause_ns = 1_000_000_000 // arguments.rate if arguments.rate else 0
    while True:
        due_ns = opened_ns + sent * pause_ns
        now_ns = time.monotonic_ns()
        if max(now_ns, due_ns) >= ends_ns:
            break
        if due_ns > now_ns:
            time.sleep((due_ns - now_ns) / 1e9)
            now_ns = time.monotonic_ns()
        exchange(payload)
        sent += 1
        latencies.append(time.monotonic_ns() - now_ns)
    # A paced message owns its whole interval.
    closed_ns = max(time.monotonic_ns(), ends_ns) if pause_ns else time.monotonic_ns()
    return {
        "completed": sent,
        "errors": 0,
        "window_ns": closed_ns - opened_ns,
        "cpu_ns": time.process_time_ns() - cpu_ns,
        "latency": summary(latencies if arguments.mode != "fire-and-forget" else []),
        "notes": "slim-bindings, one thread",
    }


def summary(latencies):
    latencies.sort()
    count = len(latencies)
    part = lambda share: latencies[min(count - 1, int(count * share))] if count else 0
    return {
        "count": count,
        "mean_ns": sum(latencies) / count if count else 0,
        "min_ns": part(0),
        "p50_ns": part(0.5),
        "p90_ns": part(0.9),
        "p99_ns": part(0.99),
        "p999_ns": part(0.999),
        "max_ns": part(1),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    roles = parser.add_subparsers(required=True)
    serving = roles.add_parser("serve")
    serving.add_argument("--listen", required=True)
    serving.set_defaults(run=serve)
    responding = roles.add_parser("respond")
    responding.add_argument("--connect", required=True)
    responding.add_argument("--answer", choices=["yes", "no"], required=True)
    responding.add_argument("--size", type=int, required=True)
    responding.set_defaults(run=respond)
    loading = roles.add_parser("load")
    loading.add_argument("--connect", required=True)
    loading.add_argument(
        "--mode", choices=["request-reply", "fire-and-forget", "write"], required=True
    )
    loading.add_argument("--reliable", action="store_true")
    loading.add_argument("--size", type=int, required=True)
    loading.add_argument("--rate", type=int, default=0)
    loading.add_argument("--seconds", type=float, required=True)
    loading.set_defaults(run=load)
    arguments = parser.parse_args()
    slim.initialize_with_defaults()
    arguments.run(arguments)


if __name__ == "__main__":
    # The library logs to the standard output, and its threads do not end by themselves.
    CONTRACT = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    main()
    os._exit(0)
