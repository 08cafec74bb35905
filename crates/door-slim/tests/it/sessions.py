"""Unmodified slim-bindings against a door: `sessions.py URL NAME...` runs sessions by their names.

Each application is a service of its own, with a connection of its own. The variable `CLIENT` says,
as JSON, what a client shows and trusts: `authorities`, `certificate` and `key` are files, `user` and
`password` are Basic, `token_file` holds what is shown as Bearer, and with `secret` the client signs
JWTs of `subject`.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import uuid
from datetime import timedelta

import slim_bindings as slim

SECRET = "a-secret-of-at-least-32-characters!!"
PATIENCE = timedelta(seconds=20)


def client_config(url):
    config = slim.new_insecure_client_config(url)
    told = json.loads(os.environ.get("CLIENT", "{}"))
    if "authorities" in told:
        source = slim.TlsSource.NONE()
        if "certificate" in told:
            source = slim.TlsSource.FILE(told["certificate"], told["key"])
        config.tls = slim.TlsClientConfig(
            insecure=False,
            insecure_skip_verify=False,
            source=source,
            ca_source=slim.CaSource.FILE(told["authorities"]),
            include_system_ca_certs_pool=False,
            tls_version="tls1.3",
        )
    if "user" in told:
        basic = slim.BasicAuth(username=told["user"], password=told["password"])
        config.auth = slim.ClientAuthenticationConfig.BASIC(basic)
    if "token_file" in told:
        token = slim.StaticJwtAuth(token_file=told["token_file"], duration=timedelta(hours=1))
        config.auth = slim.ClientAuthenticationConfig.STATIC_JWT(token)
    if "secret" in told:
        key = slim.JwtKeyConfig(
            algorithm=slim.JwtAlgorithm.HS256,
            format=slim.JwtKeyFormat.PEM,
            key=slim.JwtKeyData.DATA(told["secret"]),
        )
        jwt = slim.ClientJwtAuth(
            key=slim.JwtKeyType.ENCODING(key),
            audience=["slim"],
            issuer="us",
            subject=told["subject"],
            duration=timedelta(hours=1),
        )
        config.auth = slim.ClientAuthenticationConfig.JWT(jwt)
    return config


class App:
    def __init__(self, url, name):
        self.service = slim.create_service("s" + uuid.uuid4().hex)
        self.connection = self.service.connect(client_config(url))
        self.name = slim.Name("org", "ns", name)
        self.app = self.service.create_app_with_secret(self.name, SECRET)
        self.app.subscribe(self.app.name(), self.connection)

    def route(self, other):
        self.app.set_route(other.name, self.connection)


def config(kind, reliable, mls):
    settings = slim.MlsSettings(
        header_integrity_validation_percent=100, max_seen_control_message_ids_size=100
    )
    return slim.SessionConfig(
        session_type=kind,
        max_retries=10 if reliable else None,
        interval=timedelta(seconds=1) if reliable else None,
        metadata={},
        mls_settings=settings if mls else None,
    )


def note(text):
    """Tells whoever runs this; the standard output is the library's, which logs there."""
    print(text, file=sys.stderr, flush=True)


def fresh(name):
    return name + uuid.uuid4().hex[:8]


def run_all(*works):
    """Runs functions side by side; whatever one of them raises is raised here."""
    raised = []

    def guarded(work):
        try:
            work()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "a part of the session hangs"
    if raised:
        raise raised[0]


def point_to_point(url, reliable=False, mls=False, sizes=(0, 1, 16, 1024, 20_000)):
    caller, echo = App(url, fresh("caller")), App(url, fresh("echo"))
    caller.route(echo)

    def answer():
        session = echo.app.listen_for_session(PATIENCE)
        for _ in sizes:
            message = session.get_message(PATIENCE)
            session.publish_to_and_wait(message.context, b"echo:" + message.payload, None, None)

    def ask():
        kind = slim.SessionType.POINT_TO_POINT
        session = caller.app.create_session_and_wait(config(kind, reliable, mls), echo.name)
        for size in sizes:
            payload = bytes([size % 251]) * size
            session.publish_and_wait(payload, None, None)
            assert session.get_message(PATIENCE).payload == b"echo:" + payload, size
        caller.app.delete_session_and_wait(session)

    run_all(answer, ask)


def group(url, mls=False):
    moderator = App(url, fresh("moderator"))
    members = [App(url, fresh("member")) for _ in range(3)]
    kind = slim.SessionType.GROUP
    room = slim.Name("org", "ns", fresh("room"))
    session = moderator.app.create_session_and_wait(config(kind, True, mls), room)
    joined = {}

    def join(member):
        joined[member] = member.app.listen_for_session(PATIENCE)

    def invite():
        for member in members:
            moderator.route(member)
            session.invite_and_wait(member.name)

    run_all(invite, *(lambda member=member: join(member) for member in members))
    first, second, third = (joined[member] for member in members)
    for payload in (b"one", b"two"):
        session.publish_and_wait(payload, None, None)
        for member in (first, second, third):
            assert member.get_message(PATIENCE).payload == payload
    first.publish_and_wait(b"from a member", None, None)
    for other in (session, second, third):
        assert other.get_message(PATIENCE).payload == b"from a member"
    session.remove_and_wait(members[0].name)
    session.publish_and_wait(b"without the first", None, None)
    for member in (second, third):
        assert member.get_message(PATIENCE).payload == b"without the first"
    second.close_and_wait()
    # A moderator whose last member has left ends the session by itself: one stays.
    session.publish_and_wait(b"for who is left", None, None)
    assert third.get_message(PATIENCE).payload == b"for who is left"
    moderator.app.delete_session_and_wait(session)


def survives(url):
    """A session goes on when the node has come back; whoever runs this ends it in between."""
    caller, echo = App(url, fresh("caller")), App(url, fresh("echo"))
    caller.route(echo)
    kind = slim.SessionType.POINT_TO_POINT

    def answer():
        session = echo.app.listen_for_session(PATIENCE)
        while True:
            message = session.get_message(PATIENCE)
            session.publish_to_and_wait(message.context, message.payload, None, None)
            if message.payload == b"last":
                return

    def ask():
        session = caller.app.create_session_and_wait(config(kind, True, False), echo.name)
        session.publish_and_wait(b"first", None, None)
        assert session.get_message(PATIENCE).payload == b"first"
        note("end the node")
        sys.stdin.readline()
        session.publish_and_wait(b"last", None, None)
        assert session.get_message(PATIENCE).payload == b"last"

    run_all(answer, ask)


def present(url):
    """Applications that are subscribed; whoever runs this ends the node in between."""
    apps = [App(url, fresh("app")) for _ in range(10)]
    note("present")
    sys.stdin.readline()
    assert len(apps) == 10


class Echo(slim.UnaryUnaryHandler):
    async def handle(self, request, context):
        return b"echo:" + request


class Count(slim.UnaryStreamHandler):
    async def handle(self, request, context, sink):
        for number in range(int(request)):
            await sink.send_async(str(number).encode())
        await sink.close_async()


def rpc(url):
    """What is called answers once, and as a stream."""
    slim.uniffi_set_event_loop(LOOP)
    caller, callee = App(url, fresh("caller")), App(url, fresh("callee"))
    server = slim.Server.new_with_connection(callee.app, callee.name, callee.connection)
    server.register_unary_unary("Service", "Echo", Echo())
    server.register_unary_stream("Service", "Count", Count())
    serving = asyncio.run_coroutine_threadsafe(server.serve_async(), LOOP)
    channel = slim.Channel.new_with_connection(caller.app, callee.name, caller.connection)
    for request in (b"", b"hello", bytes(range(256)) * 64):
        answer = channel.call_unary("Service", "Echo", request, PATIENCE, None)
        assert answer == b"echo:" + request
    answers = channel.call_unary_stream("Service", "Count", b"5", PATIENCE, None)
    items = []
    while isinstance(item := answers.next(), slim.StreamMessage.DATA):
        items.append(item[0])
    assert items == [b"0", b"1", b"2", b"3", b"4"], items
    channel.close_blocking(PATIENCE)
    server.shutdown_blocking()
    serving.cancel()


def listener(url):
    """Takes whatever it is sent, in a process of its own that may be stopped."""
    app = App(url, os.environ["LISTENER"])
    note("listening")
    session = app.app.listen_for_session(timedelta(minutes=5))
    while True:
        message = session.get_message(timedelta(minutes=5))
        if message.payload == b"last":
            return note("got the last")


def stopped(url):
    """A subscriber that is stopped keeps nobody from calling others, over the same connection."""
    name = fresh("listener")
    environment = {**os.environ, "LISTENER": name}
    words = [sys.executable, __file__, url, "listener"]
    child = subprocess.Popen(
        words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    try:
        assert child.stderr.readline() == "listening\n"
        caller, echo = App(url, fresh("caller")), App(url, fresh("echo"))
        to = slim.Name("org", "ns", name)
        caller.app.set_route(to, caller.connection)
        caller.route(echo)
        kind = slim.SessionType.POINT_TO_POINT
        flood = caller.app.create_session_and_wait(config(kind, False, False), to)
        calls = {}

        def answer():
            session = echo.app.listen_for_session(PATIENCE)
            for _ in range(20):
                message = session.get_message(PATIENCE)
                session.publish_to_and_wait(message.context, message.payload, None, None)

        def ask():
            calls["session"] = caller.app.create_session_and_wait(
                config(kind, False, False), echo.name
            )
            child.send_signal(signal.SIGSTOP)
            flooding.start()
            note("stopped")
            sys.stdin.readline()
            for number in range(20):
                payload = str(number).encode()
                calls["session"].publish_and_wait(payload, None, None)
                assert calls["session"].get_message(PATIENCE).payload == payload

        over = threading.Event()

        def send_on():
            while not over.is_set():
                flood.publish_and_wait(bytes(8192), None, None)

        flooding = threading.Thread(target=send_on)
        try:
            run_all(answer, ask)
        finally:
            over.set()
        flooding.join()
        note("others went on")
        child.send_signal(signal.SIGCONT)
        while child.poll() is None:
            flood.publish_and_wait(b"last", None, None)
            try:
                child.wait(0.05)
            except subprocess.TimeoutExpired:
                pass
        assert child.returncode == 0
    finally:
        child.kill()
        child.wait()


def oversize(url):
    """A message above the node's limit is lost alone: neither its session nor its connection."""
    caller, sink = App(url, fresh("caller")), App(url, fresh("sink"))
    caller.route(sink)
    kind = slim.SessionType.POINT_TO_POINT

    def take():
        session = sink.app.listen_for_session(PATIENCE)
        assert session.get_message(PATIENCE).payload == b"small"

    def send():
        session = caller.app.create_session_and_wait(config(kind, False, False), sink.name)
        session.publish_and_wait(bytes(100_000), None, None)
        session.publish_and_wait(b"small", None, None)

    run_all(take, send)


def nobody(url):
    """What is published to a name that nobody has."""
    caller, echo = App(url, fresh("caller")), App(url, fresh("echo"))
    missing = slim.Name("org", "ns", "nobody")
    caller.app.set_route(missing, caller.connection)
    kind = slim.SessionType.POINT_TO_POINT
    try:
        caller.app.create_session_and_wait(config(kind, False, False), missing)
    except slim.SlimError:
        return
    raise AssertionError("there is a session with nobody")


def unheard(url):
    """Somebody is there, but rules keep what is sent from him."""
    caller, echo = App(url, fresh("caller")), App(url, fresh("echo"))
    caller.route(echo)
    kind = slim.SessionType.POINT_TO_POINT
    try:
        caller.app.create_session_and_wait(config(kind, False, False), echo.name)
    except slim.SlimError:
        return
    raise AssertionError("there is a session")


def refused(url):
    """A client that is not let in."""
    try:
        App(url, fresh("caller"))
    except slim.SlimError:
        return
    raise AssertionError("it was let in")


SESSIONS = {
    "point-to-point": point_to_point,
    "reliable": lambda url: point_to_point(url, reliable=True),
    "mls": lambda url: point_to_point(url, mls=True),
    "reliable-mls": lambda url: point_to_point(url, reliable=True, mls=True),
    "group": group,
    "group-mls": lambda url: group(url, mls=True),
    "rpc": rpc,
    "listener": listener,
    "stopped": stopped,
    "oversize": oversize,
    "nobody": nobody,
    "refused": refused,
    "unheard": unheard,
    "survives": survives,
    "present": present,
}

if __name__ == "__main__":
    # Handlers of RPC run here.
    LOOP = asyncio.new_event_loop()
    threading.Thread(target=LOOP.run_forever, daemon=True).start()
    slim.initialize_with_defaults()
    for name in sys.argv[2:]:
        SESSIONS[name](sys.argv[1])
        note("done " + name)
    # The library's threads do not end by themselves, nor always well.
    os._exit(0)
