"""One application of slim-bindings 2.0 to 3.3: `application.py URL ROLE KIND SUFFIX`.

`ROLE` is `callee`, which writes "ready" to its standard error and serves until it is killed, or `caller`, which
fails when something is not as it should be. `KIND` is one of `KINDS`, and `SUFFIX` keeps runs apart.
"""

import asyncio
import os
import sys
import threading
from datetime import timedelta

import slim_bindings as slim

SECRET = "a-secret-of-at-least-32-characters!!"
PATIENCE = timedelta(seconds=30)
LONG = timedelta(minutes=10)
SIZES = (0, 1, 1024, 200_000)


class App:
    def __init__(self, url, name):
        self.service = slim.create_service("service-" + name)
        self.connection = self.service.connect(slim.new_insecure_client_config(url))
        self.name = slim.Name("compat", "slim", name)
        self.app = self.service.create_app_with_secret(self.name, SECRET)
        self.app.subscribe(self.app.name(), self.connection)

    def route(self, name):
        other = slim.Name("compat", "slim", name)
        self.app.set_route(other, self.connection)
        return other


def session_config(kind, mls, reliable=True):
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


def echo(session, is_group):
    """Answers what it is sent, unless that is an answer."""
    while True:
        message = session.get_message(LONG)
        if message.payload.startswith(b"echo:"):
            continue
        answer = b"echo:" + message.payload
        if is_group:
            session.publish_and_wait(answer, None, None)
        else:
            session.publish_to_and_wait(message.context, answer, None, None)


def callee(url, kind, suffix):
    names = ["first", "second"] if kind.startswith("group") else ["callee"]
    apps = [App(url, name + suffix) for name in names]
    if kind == "rpc":
        return serve_rpc(apps[0])

    def serve(app):
        while True:
            session = app.app.listen_for_session(LONG)
            arguments = (session, kind.startswith("group"))
            threading.Thread(target=echo, args=arguments, daemon=True).start()

    for app in apps:
        threading.Thread(target=serve, args=(app,), daemon=True).start()
    note("ready")
    threading.Event().wait()


def point_to_point(url, suffix, mls=False, reliable=True):
    caller = App(url, "caller" + suffix)
    callee = caller.route("callee" + suffix)
    kind = slim.SessionType.POINT_TO_POINT
    config = session_config(kind, mls, reliable)
    session = caller.app.create_session_and_wait(config, callee)
    for size in SIZES:
        payload = bytes([size % 251]) * size
        session.publish_and_wait(payload, None, {"key": "value"})
        assert session.get_message(PATIENCE).payload == b"echo:" + payload, size
    caller.app.delete_session_and_wait(session)


def group(url, suffix, mls=False):
    moderator = App(url, "moderator" + suffix)
    room = slim.Name("compat", "slim", "room" + suffix)
    config = session_config(slim.SessionType.GROUP, mls)
    session = moderator.app.create_session_and_wait(config, room)
    members = [moderator.route(name + suffix) for name in ("first", "second")]
    for member in members:
        session.invite_and_wait(member)
    for round in range(3):
        payload = f"round {round}".encode()
        session.publish_and_wait(payload, None, None)
        for _ in members:
            assert session.get_message(PATIENCE).payload == b"echo:" + payload
    session.remove_and_wait(members[0])
    session.publish_and_wait(b"for one", None, None)
    assert session.get_message(PATIENCE).payload == b"echo:for one"
    moderator.app.delete_session_and_wait(session)


class Echo(slim.UnaryUnaryHandler):
    async def handle(self, request, context):
        return b"echo:" + request


class Count(slim.UnaryStreamHandler):
    async def handle(self, request, context, sink):
        for number in range(int(request)):
            await sink.send_async(str(number).encode())
        await sink.close_async()


class Join(slim.StreamUnaryHandler):
    async def handle(self, stream, context):
        joined = b""
        while isinstance(item := await stream.next_async(), slim.StreamMessage.DATA):
            joined += item[0]
        return joined


def serve_rpc(app):
    async def serve():
        server = slim.Server.new_with_connection(app.app, app.name, app.connection)
        server.register_unary_unary("Service", "Echo", Echo())
        server.register_unary_stream("Service", "Count", Count())
        server.register_stream_unary("Service", "Join", Join())
        note("ready")
        await server.serve_async()

    asyncio.run_coroutine_threadsafe(serve(), LOOP).result()


def rpc(url, suffix):
    caller = App(url, "caller" + suffix)
    callee = caller.route("callee" + suffix)
    channel = slim.Channel.new_with_connection(caller.app, callee, caller.connection)
    for request in (b"", b"hello", bytes(range(256)) * 64):
        answer = channel.call_unary("Service", "Echo", request, PATIENCE, None)
        assert answer == b"echo:" + request
    answers = channel.call_unary_stream("Service", "Count", b"5", PATIENCE, None)
    items = []
    while isinstance(item := answers.next(), slim.StreamMessage.DATA):
        items.append(item[0])
    assert items == [b"0", b"1", b"2", b"3", b"4"], items
    writer = channel.call_stream_unary("Service", "Join", PATIENCE, None)
    for piece in (b"a", b"b", b"c"):
        writer.send(piece)
    assert writer.finalize_stream() == b"abc"


def note(text):
    """Tells the parent; the standard output is the library's, which logs there."""
    print(text, file=sys.stderr, flush=True)


KINDS = {
    "point-to-point": point_to_point,
    "unreliable": lambda url, suffix: point_to_point(url, suffix, reliable=False),
    "point-to-point-mls": lambda url, suffix: point_to_point(url, suffix, mls=True),
    "group": group,
    "group-mls": lambda url, suffix: group(url, suffix, mls=True),
    "rpc": rpc,
}

if __name__ == "__main__":
    LOOP = asyncio.new_event_loop()
    threading.Thread(target=LOOP.run_forever, daemon=True).start()
    slim.initialize_with_defaults()
    slim.uniffi_set_event_loop(LOOP)
    url, role, kind, suffix = sys.argv[1:]
    if role == "callee":
        callee(url, kind, suffix)
    else:
        KINDS[kind](url, suffix)
    # The library's threads do not end by themselves.
    os._exit(0)
