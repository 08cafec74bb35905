"""The applications in examples/python: as their page runs them, and while processes are killed."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import telpher
import telpher.sync
from pages import ROOT, blocks, run_commands
from support import free_port, until_sync
from telpher.testing import Node

EXAMPLES = ROOT / "examples" / "python"
PAGE = (EXAMPLES / "README.md").read_text()
SCRIPTS = [(code, output) for _, code, output in blocks(PAGE, "sh") if output]
LIMIT = {"name": "shop", "match": "acme/shop", "unit": "tokens", "every": "never"}


@pytest.fixture
def own() -> Iterator[Node]:
    """A node that the test may kill."""
    with Node() as started:
        yield started


def environment(node: Node, **more: str) -> dict[str, str]:
    """The environment of a user whose `python` is the one of the tests."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    sources = os.pathsep.join(sys.path)
    return {**os.environ, "TELPHER_URL": node.address, "PATH": path, "PYTHONPATH": sources, **more}


@contextmanager
def running(folder: str, *command: str, env: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """A process of an example during the block."""
    with subprocess.Popen(
        [sys.executable, *command],
        cwd=EXAMPLES / folder,
        env=env,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def output(process: subprocess.Popen[str]) -> str:
    """Returns the rest of the output of a process that ends well."""
    assert process.stdout is not None
    timer = threading.Timer(90, process.kill)
    timer.start()
    written = process.stdout.read()
    assert process.wait() == 0, written
    timer.cancel()
    return written


@pytest.mark.parametrize("index", range(len(SCRIPTS)))
def test_commands_of_the_page_print_what_it_says(own: Node, index: int) -> None:
    commands, expected = SCRIPTS[index]
    lines = run_commands(commands, environment(own)).splitlines()
    # Jobs of a pool may end in any order.
    assert sorted(lines) == sorted(expected.splitlines())


def test_assistant_continues_after_kills_of_it_and_of_the_node(own: Node) -> None:
    env = environment(own)
    ask = ("ask.py", "support-7")
    with running("tool_agent", "orders.py", env=env):
        with running("tool_agent", "assistant.py", env=env) as assistant:
            with running("tool_agent", *ask, "Where is order 42?", env=env) as asking:
                assert output(asking) == "Order 42 is shipped: on Friday.\n"
            assistant.send_signal(signal.SIGKILL)
            assistant.wait()
        with running("tool_agent", *ask, "Where is order 41?", env=env) as asking:
            with telpher.sync.connect(own.address) as client:
                until_sync(lambda: len(questions(client)) == 2)
            own.restart()
            with running("tool_agent", "assistant.py", env=env):
                assert output(asking) == "Order 41 is delivered: last Monday.\n"
    with telpher.sync.connect(own.address) as client:
        stored = client.conversation("support-7").read().messages
        kinds = [(it.role, it.parts[0]["type"]) for it in stored]
        turn = [("user", "text"), ("assistant", "dynamic-tool"), ("assistant", "text")]
        assert kinds == turn * 2


def questions(client: telpher.sync.Client) -> list[telpher.Message]:
    """Returns the questions of the conversation."""
    try:
        stored = client.conversation("support-7").read().messages
    except telpher.NotFound:
        return []
    return [it for it in stored if it.role == "user"]


def test_question_waits_until_there_is_budget(own: Node) -> None:
    env = environment(own)
    with telpher.sync.connect(own.address) as client:

        def limit(tokens: int) -> None:
            body = {"reason": "test", "limits": [{**LIMIT, "budget": tokens}]}
            client.http("PUT", "/v1/policies", body=body)

        limit(600)
        with (
            running("tool_agent", "orders.py", env=env),
            running("tool_agent", "assistant.py", env=env),
            running("tool_agent", "ask.py", "support-7", "Where is order 42?", env=env) as asking,
        ):
            denied = r'telpher_quota_denied_total\{limit="shop"\} [1-9]'
            until_sync(lambda: re.search(denied, metrics(own)) is not None)
            stored = client.conversation("support-7").read().messages
            assert [it.role for it in stored] == ["user", "assistant"], "the tool was called"
            limit(10_000)
            assert output(asking) == "Order 42 is shipped: on Friday.\n"
        spent = 10_000 - (client.quota.peek("acme/shop/assistant").remaining or 0)
        assert 200 <= spent < 1000, "two completions, at their true cost"


def metrics(node: Node) -> str:
    """Returns the metrics of a node."""
    connection = http.client.HTTPConnection(node.http.removeprefix("http://"), timeout=30)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    return text


def test_jobs_have_one_result_each_after_kills(own: Node) -> None:
    env = environment(own, WORK_SECONDS="0.05")
    pictures = [f"{number}.png" for number in range(40)]
    submit = ("submit.py", "monday", *pictures)
    with (
        running("worker_pool", "worker.py", env=env) as first,
        running("worker_pool", *submit, env=env) as submitting,
    ):
        assert submitting.stdout is not None
        lines = [submitting.stdout.readline() for _ in range(6)]
        first.send_signal(signal.SIGKILL)
        own.restart()
        with running("worker_pool", "worker.py", env=env) as second:
            lines += output(submitting).splitlines(keepends=True)
            second.send_signal(signal.SIGTERM)
            assert second.wait(60) == 0, "a worker ends gracefully"
    expected = [f"monday-{it} {it}.thumbnail.png\n" for it in pictures]
    assert lines[0] == "submitted 40\n" and sorted(lines[1:]) == sorted(expected)
    with telpher.sync.connect(own.address) as client:
        again = client.write("acme/media/thumbnails", b"{}", id="monday-0.png")
        assert again.is_duplicate


def test_chat_continues_after_kills_of_the_server_and_of_the_node(own: Node) -> None:
    port = free_port()
    command = re.search(r"^(uvicorn .*?) +#", PAGE, re.M)
    assert command is not None
    server = ("-m", *command[1].replace("8000", str(port)).split(), "--log-level", "warning")
    long = "one two three four five six seven eight nine ten"
    with running("chat_server", *server, env=environment(own, PAUSE_SECONDS="0.2")) as process:
        assert post(port, "hello") == (202, {"seq": 1})
        seen = events(port, "0", lambda it: it["status"] == "complete" and it["author"] == "bot")
        assert [it["text"] for _, it in seen if "seq" in it] == ["hello", "You said: hello "]
        assert post(port, long) == (202, {"seq": 3})
        position, delta = events(port, seen[-1][0], lambda it: it.get("text") == "three ")[-1]
        assert delta == {"text": "three "}
        process.send_signal(signal.SIGKILL)
        process.wait()
    with telpher.sync.connect(own.address) as client:
        chat = client.conversation("lobby")
        until_sync(lambda: chat.last().messages[0].status == "interrupted")
    own.restart()
    with running("chat_server", *server, env=environment(own, PAUSE_SECONDS="0")):
        assert post(port, "again")[0] == 202
        rest = events(port, position, lambda it: it["text"] == "You said: again ")
        messages = [it for _, it in rest if "seq" in it]
        assert [it["status"] for it in messages] == ["interrupted", "complete", "complete"]
        assert messages[0]["text"].startswith("You said: one two three")
        status, problem = post(port, None)
        assert status == 400 and "error" in problem
        page = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        page.request("GET", "/")
        assert b"EventSource" in page.getresponse().read()
        page.close()


def connection(port: int) -> http.client.HTTPConnection:
    """Returns a connection to the server, once it listens."""
    made = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def is_open() -> bool:
        try:
            made.connect()
        except OSError:
            return False
        return True

    until_sync(is_open)
    return made


def post(port: int, text: str | None) -> tuple[int, dict[str, object]]:
    """Sends a message; returns the status and the answer."""
    server = connection(port)
    body = {"author": "ada"} if text is None else {"author": "ada", "text": text}
    server.request("POST", "/chats/lobby/messages", json.dumps(body))
    response = server.getresponse()
    found = json.loads(response.read())
    server.close()
    return response.status, found


def events(
    port: int, after: str, is_last: Callable[[dict[str, str]], bool]
) -> list[tuple[str, dict[str, str]]]:
    """Reads the events after a position until one that is the last."""
    server = connection(port)
    server.request("GET", "/chats/lobby/events", headers={"Last-Event-ID": after})
    response = server.getresponse()
    found, position = list[tuple[str, dict[str, str]]](), ""
    for line in response:
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name == "id":
            position = value
        elif name == "data":
            data = json.loads(value)
            found.append((position, data))
            if is_last({"status": "", "author": "", **data}):
                break
    server.close()
    return found


def test_every_example_has_a_section() -> None:
    folders = {path.name for path in EXAMPLES.iterdir() if path.is_dir()} - {"__pycache__"}
    assert set(re.findall(r"\(([\w-]+)\):", PAGE)) == folders
    assert len(SCRIPTS) == 2 and len(folders) == 3
