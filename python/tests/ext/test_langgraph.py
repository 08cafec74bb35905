"""`TelpherSaver`, judged by langgraph-checkpoint-conformance and by graphs that run."""

from __future__ import annotations

import asyncio
import operator
import os
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Annotated, Any

import pytest

import telpher
import telpher.sync
from pages import example
from telpher.testing import Node

pytest.importorskip("langgraph.checkpoint.conformance")

from langchain_core.runnables import RunnableConfig
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.report import ProgressCallbacks
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from telpher.ext.langgraph import TelpherSaver

_namespaces = count()


def namespace() -> str:
    return f"langgraph/t{next(_namespaces)}"


async def conform(make: Any, after_test: Callable[[], None] = lambda: None) -> None:
    @checkpointer_test(name="TelpherSaver")
    async def saver() -> AsyncGenerator[BaseCheckpointSaver[Any], None]:
        yield make()

    progress = ProgressCallbacks(on_test_result=lambda *_: after_test())
    report = await validate(saver, progress=progress)
    failures = [it for result in report.results.values() for it in result.failures]
    assert failures == []
    assert all(result.passed for result in report.results.values())
    passed = sum(result.tests_passed for result in report.results.values())
    assert passed >= 81
    print(f"{passed} conformance tests passed, level {report.conformance_level()}")


async def test_asynchronous_client_passes_the_conformance_suite(node: Node) -> None:
    async with telpher.connect(node.address) as client:
        await conform(lambda: TelpherSaver(client, namespace=namespace()))


async def test_blocking_client_passes_the_conformance_suite(node: Node) -> None:
    with telpher.sync.connect(node.address) as client:
        await conform(lambda: TelpherSaver(client, namespace=namespace()))


async def test_conformance_suite_passes_while_the_node_is_killed(own_node: Node) -> None:
    async with telpher.connect(own_node.address) as client:
        restarts = list[asyncio.Future[None]]()

        def kill() -> None:
            # The next tests run while the node dies and starts.
            if all(it.done() for it in restarts):
                loop = asyncio.get_running_loop()
                restarts.append(loop.run_in_executor(None, own_node.restart))

        await conform(lambda: TelpherSaver(client, namespace=namespace()), kill)
        await asyncio.gather(*restarts)
        assert len(restarts) > 5


class State(TypedDict):
    log: Annotated[list[str], operator.add]


def graph(saver: TelpherSaver, *names: str) -> Any:
    builder = StateGraph(State)
    previous = START
    for name in names:
        builder.add_node(name, lambda state, name=name: {"log": [name]})
        builder.add_edge(previous, name)
        previous = name
    builder.add_edge(previous, END)
    return builder.compile(checkpointer=saver)


def config(thread_id: str, **more: Any) -> RunnableConfig:
    return {"configurable": {"thread_id": thread_id, **more}}


async def test_graph_continues_with_another_saver_after_kill9(own_node: Node) -> None:
    async with telpher.connect(own_node.address) as client:
        first = graph(TelpherSaver(client), "a", "b")
        await first.ainvoke({"log": ["1"]}, config("t"))
        await asyncio.to_thread(own_node.restart)
        second = graph(TelpherSaver(client), "a", "b")
        found = await second.ainvoke({"log": ["2"]}, config("t"))
    assert found["log"] == ["1", "a", "b", "2", "a", "b"]


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_graph_runs_with_a_blocking_client(node: Node, durability: str) -> None:
    with telpher.sync.connect(node.address) as client:
        made = graph(TelpherSaver(client, namespace=namespace()), "a", "b")
        for text in ("1", "2"):
            found = made.invoke({"log": [text]}, config("t"), durability=durability)
        assert found["log"] == ["1", "a", "b", "2", "a", "b"]
        states = list(made.get_state_history(config("t")))
        assert states[0].values == found


async def test_blocking_call_in_the_loop_of_the_client_is_refused(node: Node) -> None:
    async with telpher.connect(node.address) as client:
        saver = TelpherSaver(client, namespace=namespace())
        with pytest.raises(telpher.UsageError, match="ainvoke"):
            saver.get_tuple(config("t"))
        assert await asyncio.to_thread(saver.get_tuple, config("t")) is None


async def test_second_run_of_another_process_is_refused(node: Node) -> None:
    space = namespace()
    async with telpher.connect(node.address) as one, telpher.connect(node.address) as two:
        first, second = (TelpherSaver(client, namespace=space) for client in (one, two))
        await graph(first, "a").ainvoke({"log": ["1"]}, config("t"))
        has_started, go_on = asyncio.Event(), asyncio.Event()

        async def wait(state: State) -> State:
            has_started.set()
            await go_on.wait()
            return {"log": ["slow"]}

        builder = StateGraph(State)
        builder.add_node("wait", wait)
        builder.add_edge(START, "wait")
        made = builder.compile(checkpointer=second)
        slow = asyncio.create_task(made.ainvoke({"log": ["2"]}, config("t"), durability="sync"))
        await has_started.wait()
        await graph(first, "a").ainvoke({"log": ["3"]}, config("t"))
        go_on.set()
        with pytest.raises(telpher.Conflict):
            await slow
        state = await graph(TelpherSaver(one, namespace=space), "a").aget_state(config("t"))
        assert state.values["log"] == ["1", "a", "2", "3", "a"]


async def test_two_savers_that_start_a_thread_do_not_both_win(node: Node) -> None:
    space = namespace()
    async with telpher.connect(node.address) as client:
        savers = [TelpherSaver(client, namespace=space) for _ in range(8)]
        runs = [graph(it, "a").ainvoke({"log": ["1"]}, config("t")) for it in savers]
        results = await asyncio.gather(*runs, return_exceptions=True)
        won = [it for it in results if not isinstance(it, BaseException)]
        assert all(isinstance(it, dict | telpher.Conflict) for it in results), results
        state = await graph(TelpherSaver(client, namespace=space), "a").aget_state(config("t"))
        # Runs that came one after the other have all of their effects in the state.
        assert len(state.values["log"]) == 2 * len(won) >= 2


def test_two_runs_of_one_saver_do_not_both_win(node: Node) -> None:
    with telpher.sync.connect(node.address) as client, ThreadPoolExecutor(8) as pool:
        made = graph(TelpherSaver(client, namespace=namespace()), "a")

        def run(_: int) -> bool:
            try:
                made.invoke({"log": ["1"]}, config("t"))
            except telpher.Conflict:
                return False
            return True

        won = sum(pool.map(run, range(8)))
        assert len(made.get_state(config("t")).values["log"]) == 2 * won >= 2


async def test_run_from_an_older_checkpoint_is_a_fork(node: Node) -> None:
    async with telpher.connect(node.address) as client:
        made = graph(TelpherSaver(client, namespace=namespace()), "a")
        await made.ainvoke({"log": ["1"]}, config("t"))
        old = (await made.aget_state(config("t"))).config
        await made.ainvoke({"log": ["2"]}, config("t"))
        found = await made.ainvoke({"log": ["3"]}, old)
        assert found["log"] == ["1", "a", "3", "a"]
        await made.aupdate_state(old, {"log": ["4"]})
        assert (await made.aget_state(config("t"))).values["log"] == ["1", "a", "4"]


async def test_deleted_thread_is_empty_and_can_be_used_again(node: Node) -> None:
    async with telpher.connect(node.address) as client:
        saver = TelpherSaver(client, namespace=namespace())
        for _ in range(3):
            found = await graph(saver, "a").ainvoke({"log": ["1"]}, config("t"))
            assert found["log"] == ["1", "a"]
            await saver.adelete_thread("t")
            assert await saver.aget_tuple(config("t")) is None
        assert [it async for it in saver.alist(None)] == []


async def test_large_state_is_stored_in_chunks(node: Node) -> None:
    text = os.urandom(4 << 20).hex()
    space = namespace()
    async with telpher.connect(node.address) as client:
        await graph(TelpherSaver(client, namespace=space), "a").ainvoke(
            {"log": [text]}, config("t")
        )
        state = await graph(TelpherSaver(client, namespace=space), "a").aget_state(config("t"))
        assert state.values["log"] == [text, "a"]


def extend(state: list[str], writes: Any) -> list[str]:
    return [*state, *(item for write in writes for item in write)]


class Delta(TypedDict):
    log: Annotated[list[str], DeltaChannel(extend)]


async def test_pruned_thread_keeps_what_delta_channels_need(node: Node) -> None:
    builder = StateGraph(Delta)
    builder.add_node("a", lambda state: {"log": ["a"]})
    builder.add_edge(START, "a")
    space = namespace()
    async with telpher.connect(node.address) as client:
        saver = TelpherSaver(client, namespace=space)
        made = builder.compile(checkpointer=saver)
        for text in ("1", "2", "3"):
            await made.ainvoke({"log": [text]}, config("t"))
        before = (await made.aget_state(config("t"))).values
        await saver.aprune(["t"])
        fresh = builder.compile(checkpointer=TelpherSaver(client, namespace=space))
        assert (await fresh.aget_state(config("t"))).values == before
        assert before["log"] == ["1", "a", "2", "a", "3", "a"]


async def test_example_of_the_page_remembers(own_node: Node) -> None:
    builder = StateGraph(State)
    builder.add_node("answer", lambda state: {"log": [f"{len(state['log'])} before"]})
    builder.add_edge(START, "answer")
    for expected in (1, 3):
        async with telpher.connect(own_node.address) as client:
            found = await example("langgraph", node=client, builder=builder)
        assert found["state"]["log"][-1] == f"{expected} before"
        own_node.restart()
