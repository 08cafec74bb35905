"""`TelpherTaskStore` and its events, with the contracts of a2a-sdk's cluster interfaces."""

from __future__ import annotations

import asyncio
from itertools import count

import pytest

import telpher
from pages import example
from telpher.testing import Node

pytest.importorskip("a2a.server.cluster")

from a2a.auth.user import User
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.cluster import ConcurrentTaskModificationError, TaskVersion
from a2a.server.context import ServerCallContext
from a2a.server.events import EventQueue
from a2a.server.tasks import TaskUpdater
from a2a.types.a2a_pb2 import (
    AgentCard,
    Artifact,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)

from telpher.ext import _log as log
from telpher.ext.a2a import TelpherTaskStore

_namespaces = count()
NEW = TaskVersion.MISSING


def namespace() -> str:
    return f"a2a/t{next(_namespaces)}"


class Named(User):
    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def is_authenticated(self) -> bool:
        return True

    @property
    def user_name(self) -> str:
        return self._name


ALICE, BOB = (ServerCallContext(user=Named(name)) for name in ("alice", "bob"))


def task(id: str, state: int = TaskState.TASK_STATE_WORKING, text: str = "") -> Task:
    made = Task(id=id, context_id="c", status=TaskStatus(state=state))  # type: ignore[arg-type]
    if text:
        made.artifacts.append(Artifact(artifact_id="a", parts=[Part(text=text)]))
    return made


def status(id: str, state: int = TaskState.TASK_STATE_WORKING) -> TaskStatusUpdateEvent:
    return TaskStatusUpdateEvent(
        task_id=id,
        context_id="c",
        status=TaskStatus(state=state),  # type: ignore[arg-type]
    )


async def save(
    store: TelpherTaskStore,
    made: Task,
    after: TaskVersion,
    context: ServerCallContext = ALICE,
    event: TaskStatusUpdateEvent | TaskArtifactUpdateEvent | None = None,
) -> TaskVersion:
    return await store.save(made, event=event, prev=None, prev_version=after, context=context)


async def test_versions_grow_and_stale_saves_are_refused(node: Node) -> None:
    space = namespace()
    async with telpher.connect(node.address) as one, telpher.connect(node.address) as two:
        first, second = (TelpherTaskStore(it, namespace=space) for it in (one, two))
        assert await first.get("t", ALICE) is None
        v1 = await save(first, task("t"), NEW)
        for stale in (NEW, TaskVersion(99)):
            with pytest.raises(ConcurrentTaskModificationError):
                await save(second, task("t"), stale)
        v2 = await save(second, task("t", text="x" * 3_000_000), v1)
        assert v2.is_after(v1)
        saves = [save(store, task("t"), v2) for store in (first, second) for _ in range(4)]
        results = await asyncio.gather(*saves, return_exceptions=True)
        assert sum(isinstance(it, TaskVersion) for it in results) == 1
        assert sum(isinstance(it, ConcurrentTaskModificationError) for it in results) == 7


async def test_cancel_overwrites_running_tasks_only(node: Node) -> None:
    async with telpher.connect(node.address) as client:
        store = TelpherTaskStore(client, namespace=namespace())
        canceled = task("t", TaskState.TASK_STATE_CANCELED)
        with pytest.raises(ConcurrentTaskModificationError):
            await save(store, canceled, NEW)
        await save(store, task("t"), NEW)
        await save(store, canceled, NEW)
        with pytest.raises(ConcurrentTaskModificationError):
            await save(store, canceled, NEW)


async def test_tasks_of_another_owner_do_not_exist(node: Node) -> None:
    async with telpher.connect(node.address) as client:
        store = TelpherTaskStore(client, namespace=namespace())
        await save(store, task("t"), NEW)
        assert await store.get("t", BOB) is None
        await store.delete("t", BOB)
        with pytest.raises(ConcurrentTaskModificationError):
            await save(store, task("t"), NEW, BOB)
        await save(store, task("b"), NEW, BOB)
        listed = await store.list(ListTasksRequest(), ALICE)
        assert [it.id for it in listed.tasks] == ["t"]


async def test_deleted_task_refuses_its_old_versions(node: Node) -> None:
    async with telpher.connect(node.address) as client:
        store = TelpherTaskStore(client, namespace=namespace())
        old = await save(store, task("t"), NEW)
        await store.delete("t", ALICE)
        assert await store.get("t", ALICE) is None
        with pytest.raises(ConcurrentTaskModificationError):
            await save(store, task("t"), old)
        again = await save(store, task("t"), NEW)
        assert again.is_after(old)


async def test_chunks_of_an_unfinished_save_hide_no_task(node: Node) -> None:
    space = namespace()
    async with telpher.connect(node.address) as client:
        store = TelpherTaskStore(client, namespace=space)
        version = await save(store, task("t"), NEW)
        (listed,) = [it async for it in client.conversations(space)]
        chunk = {"type": "data-chunk", "data": "half"}
        await client.conversation(f"{space}/{listed.id}").append(role="data", parts=[chunk])
        stored = await store.get("t", ALICE)
        assert stored is not None and stored.version == version
        assert (await save(store, task("t"), version)).is_after(version)


async def test_large_task_is_read_while_another_replica_saves(node: Node) -> None:
    space = namespace()
    async with telpher.connect(node.address) as client:
        store = TelpherTaskStore(client, namespace=space)
        version = await save(store, task("t", text="x" * 3_000_000), NEW)
        reading = log.Log(space, "a2a", ("t",), {}).pull_newest()
        page = await next(reading)(client)
        version = await save(store, task("t", text="new"), version)
        with pytest.raises(StopIteration) as read:
            while True:
                page = await reading.send(page)(client)
        assert read.value.value.seq == version._value
        assert "new" in str(read.value.value.value)


async def test_another_replica_follows_events_across_kill9(own_node: Node) -> None:
    async with telpher.connect(own_node.address) as one, telpher.connect(own_node.address) as two:
        first, second = TelpherTaskStore(one), TelpherTaskStore(two)
        seen = list[TaskVersion]()

        async def follow() -> None:
            async for it in second.events.subscribe("t", after=NEW):
                seen.append(it.version)
                assert isinstance(it.event, TaskStatusUpdateEvent)
                if it.event.status.state == TaskState.TASK_STATE_COMPLETED:
                    return

        following = asyncio.create_task(follow())
        version, saved = NEW, list[TaskVersion]()
        for number in range(20):
            state = TaskState.TASK_STATE_COMPLETED if number == 19 else TaskState.TASK_STATE_WORKING
            version = await save(first, task("t", state), version, event=status("t", state))
            saved.append(version)
            if number == 10:
                await asyncio.to_thread(own_node.restart)
        await following
        assert seen == saved
        events = second.events.subscribe("t", after=saved[17])
        assert [(await anext(events)).version for _ in range(2)] == saved[18:]
        await events.aclose()
        stored = await second.get("t", ALICE)
        assert stored is not None and stored.version == saved[-1]


class Worker(AgentExecutor):
    """Begins a task, and ends it with the next message."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.task_id and context.context_id
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        if context.current_task is None:
            status = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
            made = Task(id=context.task_id, context_id=context.context_id, status=status)
            await event_queue.enqueue_event(made)
            await updater.requires_input()
        else:
            await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise NotImplementedError


def message(id: str, begun: Task | None = None) -> SendMessageRequest:
    sent = Message(message_id=id, role=Role.ROLE_USER, parts=[Part(text="Hello?")])
    if begun is not None:
        sent.task_id, sent.context_id = begun.id, begun.context_id
    return SendMessageRequest(message=sent)


async def test_example_of_the_page_continues_a_task(own_node: Node) -> None:
    card = AgentCard(name="worker", description="Works", version="1")
    async with telpher.connect(own_node.address) as client:
        found = await example("a2a", node=client, executor=Worker(), card=card)
        begun = await found["handler"].on_message_send(message("m-1"), ALICE)
        assert begun.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
        await found["handler"].aclose()
    own_node.restart()
    async with telpher.connect(own_node.address) as client:
        found = await example("a2a", node=client, executor=Worker(), card=card)
        ended = await found["handler"].on_message_send(message("m-2", begun), ALICE)
        assert ended.id == begun.id
        assert ended.status.state == TaskState.TASK_STATE_COMPLETED
        await found["handler"].aclose()
