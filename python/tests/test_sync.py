"""The blocking client: the same operations, threads, restarts, and equality of the surfaces."""

from __future__ import annotations

import inspect
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import telpher
import telpher.sync
from support import until_sync
from telpher.testing import Node

ROOT = Path(__file__).resolve().parents[1]


class Serving:
    """An agent that a thread serves."""

    def __init__(self, node: Node, agent: telpher.sync.Agent) -> None:
        self._client = telpher.sync.connect(node.address, reconnect=(0.01, 0.1))
        self._running = agent.attached(self._client)
        self._running.__enter__()
        self._thread = threading.Thread(target=self._read)

    def _read(self) -> None:
        with pytest.raises(telpher.TelpherError):
            self._running.ended.get()

    def __enter__(self) -> Serving:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._running.drain(5)
        self._client.close()
        self._thread.join(30)


def make_agent(name: str) -> telpher.sync.Agent:
    agent = telpher.sync.Agent(name)

    @agent.method(default=True)
    def upper(text: str) -> str:
        return text.upper()

    @agent.method
    def count(n: int) -> Iterator[int]:
        yield from range(n)

    @agent.method
    def fails() -> None:
        raise KeyError("broken")

    return agent


def test_requests_streams_and_failures(node: Node, name: str) -> None:
    with Serving(node, make_agent(name)), telpher.sync.connect(node.address) as caller:
        assert caller.request(name, "hello") == b"HELLO"
        assert [it.json() for it in caller.stream(name, "300", method="count")] == list(range(300))
        with pytest.raises(telpher.HandlerError, match="KeyError"):
            caller.request(name, method="fails")
        with pytest.raises(telpher.UnknownMethod):
            caller.request(name, method="nope")
        with pytest.raises(telpher.NoResponder):
            caller.request("acme/test/nobody")
        stream = caller.stream(name, "100000", method="count")
        assert next(stream) == b"0"
        stream.close()
        assert caller.request(name, "again") == b"AGAIN"


def test_threads_share_a_client(node: Node, name: str) -> None:
    with Serving(node, make_agent(name)), telpher.sync.connect(node.address) as caller:
        wrong = list[str]()

        def ask(number: int) -> None:
            for round in range(100):
                text = f"n{number}-{round}"
                if caller.request(name, text, timeout=60).text() != text.upper():
                    wrong.append(text)

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in threads) and not wrong


def test_deadline_ends_a_call(node: Node, name: str) -> None:
    agent = telpher.sync.Agent(name)

    @agent.method
    def slow(request: telpher.sync.Request) -> None:
        until_sync(lambda: request.is_cancelled)

    with Serving(node, agent), telpher.sync.connect(node.address) as caller:
        begun = time.monotonic()
        with pytest.raises(telpher.DeadlineExceeded):
            caller.request(name, timeout=0.1)
        assert time.monotonic() - begun < 20


def test_messages_and_writes(node: Node, name: str) -> None:
    agent, got = telpher.sync.Agent(name), list[object]()

    @agent.message
    def message(body: bytes) -> None:
        got.append(bytes(body))

    @agent.mailbox
    def job(delivery: telpher.Delivery) -> None:
        if delivery.delivery == 1:
            raise telpher.HandlerError("later", retry_after=0.01)
        got.append(delivery.json())

    with telpher.sync.connect(node.address) as sender:
        assert sender.write(name, {"n": 1}, id="one").is_duplicate is False
        assert sender.write(name, {"n": 1}, id="one").is_duplicate is True
        with Serving(node, agent):
            until_sync(lambda: {"n": 1} in got)
            assert sender.send_reported(name, b"hi").delivered == 1
            for _ in range(12_000):
                sender.send(name, b"x")
            until_sync(lambda: len(got) == 12_002)


def test_subscription_is_an_iterator(node: Node, name: str) -> None:
    with telpher.sync.connect(node.address) as client, telpher.sync.connect(node.address) as other:
        with client.subscribe(name) as messages:
            other.send(name, "one")
            assert next(iter(messages)).text() == "one"


def test_records_conversations_and_quotas(node: Node, name: str) -> None:
    with telpher.sync.connect(node.address) as client:
        log = client.records(name)
        assert log.append("a", "b", expect=0).next == 2
        with pytest.raises(telpher.Conflict):
            log.append("c", expect=0)
        assert [record.text() for record in log.all()] == ["a", "b"]
        chat = client.conversation(name)
        chat.append("Hi", author="alice", expect=0)
        with chat.answer() as answer:
            answer.text("Hello")
        assert answer.seq == 2
        for event in chat.follow():
            if isinstance(event, telpher.Head):
                assert event.seq == 2
                break
        for message in chat.tail():
            if message.seq == 2:
                break
        assert chat.context(1000).messages[-1].text == "Hello"
        with client.quota.hold("acme/free/a", tokens=5) as hold:
            hold.cost(tokens=3)
        assert hold.was_open


def test_calls_continue_after_a_restart() -> None:
    with Node() as own:
        agent = make_agent("acme/demo/upper")
        with (
            Serving(own, agent),
            telpher.sync.connect(own.address, reconnect=(0.01, 0.1), timeout=30) as caller,
        ):
            policy = telpher.RetryPolicy(attempts=1000, idempotent=True, pause_max=0.1)
            for _ in range(3):
                assert caller.request("acme/demo/upper", "x", retry=policy) == b"X"
                own.restart()
                assert caller.write("acme/demo/other", "y").offset >= 0
        own.kill()


def test_wrong_token_and_body_above_the_limit_are_refused(node: Node, name: str) -> None:
    with Node() as own:
        printed = own.command("token", "add", "builder", "--for", "acme/demo/*", "--json")
        token = telpher.Body(printed.encode()).json()["token"]

        def is_refused() -> bool:
            """The node reads the file of tokens now and then."""
            try:
                telpher.sync.connect(own.address, token="tlp_wrong").close()
            except telpher.Unauthenticated as error:
                assert error.retry == "no" and "TELPHER_TOKEN" in error.hint
                return True
            return False

        until_sync(is_refused)
        with telpher.sync.connect(own.address, token=token, name="acme/demo/a") as client:
            assert client.is_connected
        with pytest.raises(telpher.Denied, match="acme/other/a"):
            telpher.sync.connect(own.address, token=token, name="acme/other/a")
    with Serving(node, make_agent(name)), telpher.sync.connect(node.address) as caller:
        with pytest.raises(telpher.TooLarge, match="frame_size_max"):
            caller.request(name, bytes(9 << 20))
        assert caller.request(name, "hello") == b"HELLO"


def test_call_in_flight_of_a_killed_node_is_unconfirmed() -> None:
    begun, go = threading.Event(), threading.Event()
    agent = telpher.sync.Agent("acme/demo/slow")

    @agent.method
    def waits() -> None:
        begun.set()
        go.wait(60)

    with Node() as own, telpher.sync.connect(own.address) as caller:
        with Serving(own, agent):

            def kill() -> None:
                begun.wait(60)
                own.kill()

            killer = threading.Thread(target=kill)
            killer.start()
            with pytest.raises(telpher.Unconfirmed) as lost:
                caller.request("acme/demo/slow", timeout=60)
            killer.join()
            assert lost.value.retry == "if_idempotent" and lost.value.may_have_been_executed
            with pytest.raises(telpher.Unavailable, match="there was no connection") as away:
                caller.request("acme/demo/slow", timeout=0.2)
            assert away.value.retry == "safe" and not away.value.may_have_been_executed
            go.set()
            own.start()


def test_closed_client_is_refused(node: Node) -> None:
    client = telpher.sync.connect(node.address)
    client.close()
    client.close()
    with pytest.raises(telpher.UsageError, match="closed"):
        client.request("acme/demo/x")


def test_coroutine_functions_are_refused(node: Node, name: str) -> None:
    agent = telpher.sync.Agent(name)

    @agent.method
    async def upper(text: str) -> str:
        return text

    with Serving(node, agent), telpher.sync.connect(node.address) as caller:
        with pytest.raises(telpher.InvalidArgument, match="coroutine function"):
            caller.request(name, "x")


def test_blocking_surface_is_the_one_made_from_asyncio() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "make_sync.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


RENAMED = {"aclose": "close"}


@pytest.mark.parametrize("kind", sorted(set(telpher.sync.__all__) - {"connect", "Method"}))
def test_both_surfaces_have_the_same_methods(kind: str) -> None:
    def public(module: object) -> dict[str, list[str]]:
        found = dict[str, list[str]]()
        for name, member in inspect.getmembers(getattr(module, kind)):
            if not name.startswith("_") and inspect.isfunction(member):
                found[RENAMED.get(name, name)] = list(inspect.signature(member).parameters)
        return found

    assert public(telpher) == public(telpher.sync)


def test_every_public_name_is_documented() -> None:
    for module in (telpher, telpher.sync):
        for name in module.__all__:
            found = getattr(module, name)
            if name in ("Retry",) or not callable(found):
                continue
            assert inspect.getdoc(found), f"{name} has no docstring"
            if not inspect.isclass(found):
                continue
            for attribute, member in vars(found).items():
                if attribute.startswith("_") or not inspect.isfunction(member):
                    continue
                if attribute in ("receive", "end"):
                    continue
                assert inspect.getdoc(member), f"{name}.{attribute} has no docstring"
