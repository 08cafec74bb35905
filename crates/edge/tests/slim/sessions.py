"""Unmodified slim-bindings against a door: `sessions.py URL NAME...` runs sessions by their names.

Each application is a service of its own, with a connection of its own.
"""

import sys
import threading
import uuid
from datetime import timedelta

import slim_bindings as slim

SECRET = "a-secret-of-at-least-32-characters!!"
PATIENCE = timedelta(seconds=20)


class App:
    def __init__(self, url, name):
        self.service = slim.create_service("s" + uuid.uuid4().hex)
        self.connection = self.service.connect(slim.new_insecure_client_config(url))
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
    members = [App(url, fresh("member")) for _ in range(2)]
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
    first, second = (joined[member] for member in members)
    for payload in (b"one", b"two"):
        session.publish_and_wait(payload, None, None)
        assert first.get_message(PATIENCE).payload == payload
        assert second.get_message(PATIENCE).payload == payload
    first.publish_and_wait(b"from a member", None, None)
    assert session.get_message(PATIENCE).payload == b"from a member"
    assert second.get_message(PATIENCE).payload == b"from a member"
    session.remove_and_wait(members[0].name)
    session.publish_and_wait(b"without the first", None, None)
    assert second.get_message(PATIENCE).payload == b"without the first"
    second.close_and_wait()
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


SESSIONS = {
    "point-to-point": point_to_point,
    "reliable": lambda url: point_to_point(url, reliable=True),
    "mls": lambda url: point_to_point(url, mls=True),
    "reliable-mls": lambda url: point_to_point(url, reliable=True, mls=True),
    "group": group,
    "group-mls": lambda url: group(url, mls=True),
    "survives": survives,
}

if __name__ == "__main__":
    slim.initialize_with_defaults()
    for name in sys.argv[2:]:
        SESSIONS[name](sys.argv[1])
        note("done " + name)
