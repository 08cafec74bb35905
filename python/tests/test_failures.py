"""Everything that can go wrong: each is a clear exception that says what to do."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import telpher
import telpher.sync
from support import free_port, until
from telpher import _binary as binary
from telpher.testing import Node


@pytest.fixture
def own() -> Iterator[Node]:
    """A node that the test may kill."""
    with Node() as started:
        yield started


async def test_wrong_token_and_wrong_name_are_refused() -> None:
    with Node() as node:
        printed = node.command("token", "add", "builder", "--for", "acme/demo/*", "--json")
        token = telpher.Body(printed.encode()).json()["token"]
        for wrong in ("", "tlp_wrong"):
            await refused(node.address, wrong)
        async with telpher.connect(node.address, token=token, name="acme/demo/a") as client:
            assert client.is_connected
        with pytest.raises(telpher.Denied) as denied:
            await telpher.connect(node.address, token=token, name="acme/other/a")
        assert "telpher token bind" in denied.value.hint
        client = await telpher.connect(node.address, token=token)
        node.command("token", "revoke", "builder")
        with pytest.raises(telpher.Unauthenticated):
            for _ in range(1000):
                with_pause = asyncio.sleep(0.02)
                await with_pause
                try:
                    await client.request("acme/demo/nobody")
                except (telpher.NoResponder, telpher.Unconfirmed):
                    pass
        await client.aclose()


async def refused(address: str, token: str) -> None:
    """Waits until the node refuses a token; it reads the file of tokens now and then."""
    for _ in range(1000):
        try:
            async with telpher.connect(address, token=token):
                await asyncio.sleep(0.02)
        except telpher.Unauthenticated as error:
            assert error.retry == "no" and "TELPHER_TOKEN" in error.hint
            return
    raise AssertionError("the token was never refused")


async def test_connecting_to_no_node_fails_at_once() -> None:
    address = f"tcp://127.0.0.1:{free_port()}"
    with pytest.raises(telpher.Unavailable, match="cannot connect to tcp://") as failed:
        await telpher.connect(address)
    assert "telpher serve --dev" in failed.value.hint
    assert failed.value.retry == "safe" and not failed.value.may_have_been_executed
    assert isinstance(failed.value, ConnectionError)
    with pytest.raises(telpher.Unavailable, match="cannot connect"):
        telpher.sync.connect(address)
    with pytest.raises(telpher.Unavailable, match=r"no-such\.sock"):
        await telpher.connect("unix:///no-such.sock")
    for wrong in ("http://x", "tcp://", "tcp://h:99999"):
        with pytest.raises(telpher.InvalidArgument, match="is no address"):
            telpher.connect(wrong)


async def test_server_of_another_protocol_is_told_apart() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(telpher.ProtocolError, match="not the Telpher protocol"):
            await telpher.connect(f"127.0.0.1:{port}")


async def test_silent_server_is_given_up() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(telpher.Unavailable, match="did not answer within"):
            await telpher.connect(address, connect_timeout=0.1)
        with pytest.raises(telpher.Unavailable, match="did not answer within"):
            telpher.sync.connect(address, connect_timeout=0.1)


async def test_body_above_the_limit_is_refused_and_the_connection_goes_on(
    node: Node, name: str
) -> None:
    agent = telpher.Agent(name)

    @agent.method
    async def echo(body: bytes) -> bytes:
        return bytes(int(body)) if body.isdigit() else body

    async with telpher.connect(node.address, frame_size_max=100_000) as caller:
        with pytest.raises(telpher.TooLarge, match="frame_size_max") as large:
            await caller.request(name, bytes(9 << 20))
        assert not large.value.may_have_been_executed
        async with telpher.connect(node.address) as server, agent.attached(server):
            with pytest.raises(telpher.TooLarge):
                await caller.request(name, b"200000")
            assert await caller.request(name, b"x" * 90_000) == b"x" * 90_000
        with pytest.raises(telpher.TooLarge):
            await caller.conversation(name).append("x" * (2 << 20))


async def test_call_in_flight_of_a_killed_node_is_unconfirmed(own: Node) -> None:
    agent, begun = telpher.Agent("acme/demo/slow"), asyncio.Event()

    @agent.method
    async def waits() -> None:
        begun.set()
        await asyncio.Event().wait()

    async with (
        telpher.connect(own.address) as server,
        agent.attached(server),
        telpher.connect(own.address) as caller,
    ):
        task = asyncio.create_task(caller.request("acme/demo/slow"))
        await begun.wait()
        own.kill()
        with pytest.raises(telpher.Unconfirmed) as lost:
            await task
        assert lost.value.retry == "if_idempotent" and lost.value.may_have_been_executed
        with pytest.raises(telpher.Unavailable, match="there was no connection") as away:
            await caller.request("acme/demo/slow", timeout=0.2)
        assert away.value.retry == "safe" and not away.value.may_have_been_executed


async def test_agent_and_caller_continue_after_a_restart(own: Node) -> None:
    agent, done = telpher.Agent("acme/demo/worker"), list[int]()

    @agent.method
    async def echo(body: bytes) -> bytes:
        return body

    @agent.mailbox
    async def job(number: int) -> None:
        done.append(number)

    async with telpher.connect(own.address, reconnect=(0.01, 0.1)) as server:
        async with agent.attached(server) as running:
            async with telpher.connect(own.address, reconnect=(0.01, 0.1)) as caller:
                log = caller.records("acme/demo/log")
                seen = list[str]()

                async def follow() -> None:
                    async for record in log.follow():
                        seen.append(record.text())

                following = asyncio.create_task(follow())
                for round in range(3):
                    await caller.write("acme/demo/worker", str(round), id=f"job-{round}")
                    await log.append(str(round))
                    own.restart()
                    policy = telpher.RetryPolicy(attempts=1000, idempotent=True, pause_max=0.1)
                    assert await caller.request("acme/demo/worker", b"x", retry=policy) == b"x"
                await until(lambda: set(done) == {0, 1, 2})
                await until(lambda: seen == ["0", "1", "2"])
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)
            assert running.name.startswith("acme/demo/worker/")


async def test_acknowledged_data_survives_a_kill_and_repeated_writes_are_stored_once(
    own: Node,
) -> None:
    async with telpher.connect(own.address, reconnect=(0.01, 0.1), timeout=30) as client:
        chat, appended = client.conversation("acme/demo/chat"), list[str]()

        async def append() -> None:
            for number in range(300):
                id = f"m-{number}"
                while True:
                    try:
                        await chat.append(str(number), id=id)
                        break
                    except telpher.TelpherError as error:
                        assert error.retry in ("safe", "if_idempotent"), error
                        await asyncio.sleep(0.01)
                appended.append(id)

        task = asyncio.create_task(append())
        for count in (50, 150, 250):
            await until(lambda count=count: len(appended) >= count)  # type: ignore[misc]
            own.restart()
        await task
        ids = [message.id async for message in chat.messages()]
        assert ids == appended


async def test_follower_of_a_conversation_continues_after_a_kill(own: Node) -> None:
    async with telpher.connect(own.address, reconnect=(0.01, 0.1), timeout=30) as client:
        chat, seen = client.conversation("acme/demo/chat"), list[int]()

        async def follow() -> None:
            async for event in chat.follow():
                if isinstance(event, telpher.Event):
                    seen.append(event.message.seq)

        task = asyncio.create_task(follow())
        await chat.append("one")
        await until(lambda: seen == [1])
        own.restart()
        await chat.append("two")
        await until(lambda: seen == [1, 2])
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_node_that_drains_finishes_running_calls(own: Node) -> None:
    agent, begun, go = telpher.Agent("acme/demo/slow"), asyncio.Event(), asyncio.Event()

    @agent.method
    async def waits() -> str:
        begun.set()
        await go.wait()
        return "done"

    async with (
        telpher.connect(own.address) as server,
        agent.attached(server),
        telpher.connect(own.address) as caller,
    ):
        task = asyncio.create_task(caller.request("acme/demo/slow"))
        await begun.wait()
        stopping = threading.Thread(target=own.stop)
        stopping.start()
        await until(lambda: not caller.is_connected)
        go.set()
        assert await task == b"done"
        await asyncio.to_thread(stopping.join)


async def test_second_agent_of_the_same_instance_replaces_the_first(node: Node, name: str) -> None:
    agent = telpher.Agent(f"{name}/i-1")

    @agent.method
    async def echo(body: bytes) -> bytes:
        return body

    async with telpher.connect(node.address) as one, telpher.connect(node.address) as two:
        async with agent.attached(one) as first, agent.attached(two):
            with pytest.raises(telpher.Replaced):
                await first.ended.get()


async def test_client_of_another_event_loop_is_refused(node: Node) -> None:
    def connect_elsewhere() -> telpher.Client:
        async def connect() -> telpher.Client:
            return await telpher.connect(node.address)

        return asyncio.run(connect())

    client = await asyncio.to_thread(connect_elsewhere)
    with pytest.raises(telpher.UsageError, match="event loop") as wrong:
        await client.request("acme/demo/x")
    assert "closed" in wrong.value.message and "telpher.sync" in wrong.value.hint


async def test_closed_client_is_refused(node: Node) -> None:
    client = await telpher.connect(node.address)
    task = asyncio.create_task(client.request("acme/demo/x", timeout=60))
    await asyncio.sleep(0)
    await client.aclose()
    await client.aclose()
    with pytest.raises(telpher.TelpherError):
        await task
    with pytest.raises(telpher.UsageError, match="the client is closed"):
        await client.request("acme/demo/x")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forked_process_is_refused_and_leaves_the_parent_alone(node: Node) -> None:
    client = telpher.sync.connect(node.address)

    def child(report: multiprocessing.Queue[str]) -> None:
        try:
            client.request("acme/demo/x")
        except telpher.UsageError as error:
            report.put(error.message)
        with telpher.sync.connect(node.address) as own:
            own.records("acme/test/forked").append("from the child")

    context = multiprocessing.get_context("fork")
    report: multiprocessing.Queue[str] = context.Queue()
    process = context.Process(target=child, args=(report,))
    process.start()
    assert "before a fork" in report.get(timeout=30)
    process.join(30)
    assert process.exitcode == 0
    page = client.records("acme/test/forked").read()
    assert page.records[0].text() == "from the child"
    client.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
async def test_forked_process_may_not_use_an_asyncio_client(node: Node) -> None:
    async with telpher.connect(node.address) as client:
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                client._link.check()
                os.write(write, b"no error")
            except telpher.UsageError as error:
                os.write(write, error.message.encode())
            finally:
                os._exit(0)
        os.close(write)
        await asyncio.to_thread(os.waitpid, pid, 0)
        assert b"before a fork" in os.read(read, 1000)
        os.close(read)


def test_missing_binary_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TELPHER_BINARY", str(tmp_path / "nothing"))
    with pytest.raises(telpher.Unsupported, match="TELPHER_BINARY"):
        binary.find_binary()
    monkeypatch.delenv("TELPHER_BINARY")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(binary, "_scripts", lambda: [tmp_path])
    with pytest.raises(telpher.Unsupported, match="no `telpher` program for") as missing:
        binary.find_binary()
    assert "docker run" in missing.value.hint
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, telpher._binary as b, telpher._missing as m\n"
            "b._scripts = lambda: []\nsys.exit(m.main())",
            "serve",
        ],
        env={"PATH": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1 and "docker run" in done.stderr


@pytest.mark.parametrize("module", ["asyncio", "sync"])
def test_serving_agent_finishes_its_work_after_sigterm(node: Node, name: str, module: str) -> None:
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).parent / "serving_agent.py"), module],
        env={
            **os.environ,
            "URL": node.address,
            "NAME": f"{name}-{module}",
            "PYTHONPATH": os.pathsep.join(sys.path),
        },
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    with telpher.sync.connect(node.address) as caller:
        answers = list[bytes]()
        thread = threading.Thread(
            target=lambda: answers.append(caller.request(f"{name}-{module}", timeout=30))
        )
        thread.start()
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGTERM)
        thread.join(30)
        assert answers == [b"done"]
    assert process.wait(30) == 0
    process.stdout.close()


@pytest.mark.long
async def test_hundred_thousand_calls_in_flight_end(node: Node, name: str) -> None:
    agent = telpher.Agent(name)

    @agent.method
    async def echo(body: bytes) -> bytes:
        return body

    async with (
        telpher.connect(node.address, requests_max=65_536) as server,
        agent.attached(server),
        telpher.connect(node.address, timeout=100) as caller,
    ):
        busy = 0

        async def call(number: int) -> None:
            nonlocal busy
            body = str(number).encode()
            policy = telpher.RetryPolicy(attempts=10_000, pause_max=0.1)
            assert await caller.request(name, body, retry=policy) == body
            busy += 1

        tasks = [asyncio.create_task(call(number)) for number in range(100_000)]
        await asyncio.sleep(0)
        core = caller._link.connection
        assert core is not None and core.core.in_flight <= 16_384
        await asyncio.gather(*tasks)
        assert busy == 100_000


async def test_unanswered_calls_beyond_the_window_end_at_their_deadline(
    node: Node, name: str
) -> None:
    agent = telpher.Agent(name)

    @agent.method
    async def never() -> None:
        await asyncio.Event().wait()

    async with (
        telpher.connect(node.address, requests_max=50_000) as server,
        agent.attached(server),
        telpher.connect(node.address, in_flight_max=100) as caller,
    ):
        calls = [caller.request(name, timeout=0.5) for _ in range(1000)]
        results = await asyncio.gather(*calls, return_exceptions=True)
        assert all(isinstance(error, telpher.DeadlineExceeded) for error in results)
        sent = [error for error in results if error.may_have_been_executed]  # type: ignore
        assert len(sent) <= 400, "a waiting call was never sent"
        assert await caller.write(name, b"x")


@pytest.mark.long
async def test_memory_is_flat_while_dialing_fails(own: Node) -> None:
    async with telpher.connect(own.address, reconnect=(0.0, 0.0001)) as client:
        own.kill()
        link = client._link
        attempts = 0
        original = link._attempt

        async def attempt() -> None:
            nonlocal attempts
            attempts += 1
            await original()

        link._attempt = attempt  # type: ignore[method-assign]
        await until(lambda: attempts > 300)
        gc.collect()
        before, objects = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, len(gc.get_objects())
        await until(lambda: attempts > 3000)
        gc.collect()
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert after - before < 4096, f"{after - before} KiB for {attempts} attempts"
        assert len(gc.get_objects()) - objects < 2000
        own.start()
        assert (await client.http("GET", "/v1/agents", timeout=30))["agents"] is not None


@pytest.mark.long
@pytest.mark.parametrize("module", ["asyncio", "sync"])
async def test_failed_connects_leave_nothing_behind(module: str) -> None:
    address = f"tcp://127.0.0.1:{free_port()}"

    async def connect(times: int) -> None:
        for _ in range(times):
            with pytest.raises(telpher.Unavailable):
                if module == "asyncio":
                    await telpher.connect(address)
                else:
                    telpher.sync.connect(address)

    await connect(200)
    gc.collect()
    before, objects = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, len(gc.get_objects())
    threads, files = threading.active_count(), len(os.listdir("/proc/self/fd"))
    await connect(2000)
    gc.collect()
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert after - before < 4096, f"{after - before} KiB for 2000 connects"
    assert len(gc.get_objects()) - objects < 2000
    assert threading.active_count() <= threads
    assert len(os.listdir("/proc/self/fd")) <= files
