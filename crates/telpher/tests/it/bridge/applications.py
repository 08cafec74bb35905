"""Unmodified slim-bindings beside a bridge: `applications.py URL NAME...` does things by their names.

`org/ns/agent` is the bridge, `org/ns/app` an application that the bridge calls.
"""

import os
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[4] / "door-slim/tests/it"))

import slim_bindings as slim
from sessions import PATIENCE, App, config, fresh, note

KIND = slim.SessionType.POINT_TO_POINT
AGENT = slim.Name("org", "ns", "agent")
LONG = timedelta(minutes=5)


class Caller:
    """An application with a session with the agent."""

    def __init__(self, url, reliable=False, mls=False):
        self.app = App(url, fresh("caller"))
        self.app.app.set_route(AGENT, self.app.connection)
        self.session = self.app.app.create_session_and_wait(config(KIND, reliable, mls), AGENT)

    def say(self, payload, **metadata):
        named = {key.replace("_", "-"): value for key, value in metadata.items()}
        self.session.publish_and_wait(payload, None, named)

    def hear(self):
        message = self.session.get_message(PATIENCE)
        return message.payload, message.context.metadata

    def leave(self):
        self.app.app.delete_session_and_wait(self.session)


def ask(url, reliable):
    caller = Caller(url, reliable)
    for size in (0, 1, 16, 1024, 20_000):
        payload = bytes([97 + size % 26]) * size
        caller.say(payload, number=str(size))
        answer, metadata = caller.hear()
        assert answer == payload, size
        assert metadata["number"] == str(size), metadata
        assert "telpher-error" not in metadata, metadata
    # Many requests at once: the metadata of an answer identifies its request.
    for number in range(50):
        caller.say(b"many", number=str(number))
    numbers = {caller.hear()[1]["number"] for _ in range(50)}
    assert numbers == {str(number) for number in range(50)}, numbers
    caller.leave()


def at_once(url):
    """Opens sessions of several applications."""
    failed = []

    def one():
        try:
            ask(url, True)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failed, failed


def error(url):
    """Makes requests that the agent refuses, or that have no agent."""
    caller = Caller(url, True)
    caller.say(b"question", number="7", telpher_method="sums")
    said, metadata = caller.hear()
    note(f"error {metadata['telpher-error']} {metadata['number']} {said.decode()}")
    caller.leave()


def one_way(url):
    caller = Caller(url, True)
    caller.say(b"take this", telpher_one_way="true", colour="red")
    caller.say(b"and this")
    caller.leave()


def refused(url):
    """Tries to open a session with MLS, which is refused at once."""
    begun = time.monotonic()
    try:
        Caller(url, mls=True)
    except slim.SlimError as error:
        seconds = time.monotonic() - begun
        return note(f"refused {'at once' if seconds < 5 else seconds}: {error}")
    raise AssertionError("there is a session")


def stranger(url):
    """An application without the secret."""
    app = App.__new__(App)
    app.service = slim.create_service("s" + fresh(""))
    app.connection = app.service.connect(slim.new_insecure_client_config(url))
    app.name = slim.Name("org", "ns", fresh("stranger"))
    app.app = app.service.create_app_with_secret(app.name, "b-secret-of-at-least-32-characters!!")
    app.app.subscribe(app.app.name(), app.connection)
    app.app.set_route(AGENT, app.connection)
    try:
        app.app.create_session_and_wait(config(KIND, False, False), AGENT)
    except slim.SlimError:
        return
    raise AssertionError("there is a session")


def vanishes(url):
    """Sends a request and ends before the answer."""
    caller = Caller(url, True)
    caller.say(b"wait")
    note("asked")
    time.sleep(600)


def across(url):
    """Sends requests before and after a restart of the node."""
    caller = Caller(url, True)
    caller.say(b"before")
    assert caller.hear()[0] == b"before"
    note("heard before")
    sys.stdin.readline()
    caller.say(b"after")
    assert caller.hear()[0] == b"after"
    caller.leave()


def ended(url):
    """Waits for the end of the bridge during a session, of which the application is notified."""
    caller = Caller(url)
    caller.say(b"last")
    assert caller.hear()[0] == b"last"
    note("in session")
    try:
        caller.session.get_message(PATIENCE)
    except slim.SlimError as error:
        return note(f"told: {error}")
    raise AssertionError("something was said")


def echo(url):
    """The application `org/ns/app`, which answers all requests in any number of sessions."""
    app = App(url, "app")
    note("listening")

    def answer(session):
        while True:
            try:
                message = session.get_message(LONG)
            except slim.SlimError:
                return
            said, metadata = message.payload, message.context.metadata
            if said == b"be silent":
                note("silent")
                continue
            if said == b"leave":
                # A participant leaves by ending its session.
                app.app.delete_session_and_wait(session)
                return
            if said == b"no":
                session.publish_to_and_wait(
                    message.context, b"not today", None, {"telpher-error": "denied"}
                )
                continue
            if said == b"note":
                note(f"noted {metadata['telpher-source']} {metadata['telpher-method']}")
                continue
            session.publish_to_and_wait(message.context, b"echo:" + said, None, None)

    while True:
        session = app.app.listen_for_session(LONG)
        threading.Thread(target=answer, args=(session,), daemon=True).start()


ACTS = {
    "ask": lambda url: ask(url, False),
    "ask-reliable": lambda url: ask(url, True),
    "at-once": at_once,
    "error": error,
    "one-way": one_way,
    "refused": refused,
    "stranger": stranger,
    "vanishes": vanishes,
    "across": across,
    "ended": ended,
    "echo": echo,
}

if __name__ == "__main__":
    slim.initialize_with_defaults()
    for name in sys.argv[2:]:
        ACTS[name](sys.argv[1])
        note("done " + name)
    # The library's threads do not always end cleanly, so the process exits at once.
    os._exit(0)
