"""The server that the A2A TCK tests: `server.py HTTP_PORT GRPC_PORT [NODE]`.

It speaks JSON-RPC, HTTP+JSON and gRPC with the request handler of a2a-sdk. With the address of a
node its tasks are in a `TelpherTaskStore`, otherwise in the memory of the process. Several servers
may share the ports: the kernel distributes the connections. It prints a line when it is ready.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
from collections.abc import AsyncIterator
from typing import Any

import grpc.aio
import uvicorn
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandlerV2
from a2a.server.request_handlers.grpc_handler import GrpcHandler
from a2a.server.routes import (
    create_agent_card_routes,
    create_jsonrpc_routes,
    create_rest_routes,
)
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types.a2a_pb2 import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentProvider,
    AgentSkill,
    Part,
    Task,
    TaskState,
    TaskStatus,
)
from a2a.types.a2a_pb2_grpc import add_A2AServiceServicer_to_server
from a2a.utils.errors import A2AError
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Value
from starlette.applications import Starlette

import telpher
from telpher.ext.a2a import TelpherTaskStore

HOST = "127.0.0.1"
REST = "/rest"
# Twice the TCK's timeout of a stream.
LONG_SECONDS = 4.0

TEXT = "text/plain"
FILE = Part(raw=b"content of a file", media_type=TEXT, filename="output.txt")
LINK = Part(url="https://example.com/output.txt", media_type=TEXT, filename="output.txt")
DATA = Part(data=ParseDict({"key": "value", "count": 42}, Value()))

# What the agent does for a message whose id begins with a text; the longest text decides. The ids
# are those of the TCK's scenarios.
BEHAVIOURS: dict[str, list[Any]] = {
    "tck-complete-task": ["complete:Hello from TCK"],
    "tck-artifact-text": [Part(text="Generated text content"), "complete"],
    "tck-artifact-file": [FILE, "complete"],
    "tck-artifact-file-url": [LINK, "complete"],
    "tck-artifact-data": [DATA, "complete"],
    "tck-input-required": ["ask"],
    "tck-stream-001": ["work", Part(text="Stream hello from TCK"), "complete"],
    "tck-stream-002": ["complete"],
    "tck-stream-003": ["work", Part(text="Stream task lifecycle"), "complete"],
    "tck-stream-ordering-001": ["work", Part(text="Ordered output"), "complete"],
    "tck-stream-artifact-text": ["work", Part(text="Streamed text content"), "complete"],
    "tck-stream-artifact-file": ["work", FILE, "complete"],
    "tck-stream-artifact-chunked": ["work", "chunks", "complete"],
    "test-resubscribe-message-id": ["work", "wait", "complete"],
}


class Agent(AgentExecutor):
    """Does what the id of the message asks for."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Answers a message."""
        message = context.message
        assert message is not None and context.task_id and context.context_id
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        if message.message_id.startswith("tck-message-response"):
            answer = updater.new_agent_message([Part(text="Direct message response")])
            await event_queue.enqueue_event(answer)
            return
        if message.message_id.startswith("tck-reject-task"):
            raise A2AError("rejected")
        if context.current_task is None:
            made = Task(
                id=context.task_id,
                context_id=context.context_id,
                status=TaskStatus(state=TaskState.TASK_STATE_SUBMITTED),
                history=[message],
            )
            await event_queue.enqueue_event(made)
        fitting = [it for it in BEHAVIOURS if message.message_id.startswith(it)]
        steps = BEHAVIOURS[max(fitting, key=len)] if fitting else ["complete:Unknown message"]
        for step in steps:
            await self._do(step, updater)

    async def _do(self, step: Any, updater: TaskUpdater) -> None:
        if isinstance(step, Part):
            await updater.add_artifact([step])
            return
        name, _, text = step.partition(":")
        match name:
            case "work":
                await updater.start_work()
            case "wait":
                await asyncio.sleep(LONG_SECONDS)
            case "ask":
                await updater.requires_input()
            case "chunks":
                for index, chunk in enumerate(("chunk-1 ", "chunk-2")):
                    await updater.add_artifact(
                        [Part(text=chunk)],
                        artifact_id="chunked",
                        append=index > 0,
                        last_chunk=index == 1,
                    )
            case "complete":
                answer = updater.new_agent_message([Part(text=text)]) if text else None
                await updater.complete(answer)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Cancels a task."""
        assert context.task_id and context.context_id
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def card(http_port: int, grpc_port: int) -> AgentCard:
    """Returns the card of the agent."""
    urls = {
        "JSONRPC": f"http://{HOST}:{http_port}/",
        "HTTP+JSON": f"http://{HOST}:{http_port}{REST}",
        "GRPC": f"{HOST}:{grpc_port}",
    }
    return AgentCard(
        name="Telpher",
        description="An agent for the A2A TCK",
        version="1.0.0",
        provider=AgentProvider(organization="Telpher", url="https://example.com"),
        supported_interfaces=[
            AgentInterface(url=url, protocol_binding=binding, protocol_version="1.0")
            for binding, url in urls.items()
        ],
        capabilities=AgentCapabilities(streaming=True, push_notifications=False),
        default_input_modes=[TEXT, "application/json"],
        default_output_modes=[TEXT],
        skills=[AgentSkill(id="tck", name="TCK", description="Answers the TCK", tags=["tck"])],
    )


@contextlib.asynccontextmanager
async def handler_of(node: str, made: AgentCard) -> AsyncIterator[DefaultRequestHandlerV2]:
    """The request handler, with the tasks in a node if there is one."""
    if not node:
        yield DefaultRequestHandlerV2(Agent(), InMemoryTaskStore(), made)
        return
    async with telpher.connect(node) as client:
        store = TelpherTaskStore(client)
        yield DefaultRequestHandlerV2(Agent(), store, made, event_stream=store.events)


async def main() -> None:
    """Serves until the process is ended."""
    http_port, grpc_port = int(sys.argv[1]), int(sys.argv[2])
    node = sys.argv[3] if len(sys.argv) > 3 else ""
    made = card(http_port, grpc_port)
    async with handler_of(node, made) as handler:
        routes = [
            *create_agent_card_routes(made, cache_control="public, max-age=60"),
            *create_jsonrpc_routes(handler, "/"),
            *create_rest_routes(handler, path_prefix=REST),
        ]
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind((HOST, http_port))
        listener.listen(128)
        http = uvicorn.Server(uvicorn.Config(Starlette(routes=routes), log_level="warning"))
        rpc = grpc.aio.server(options=[("grpc.so_reuseport", 1)])
        add_A2AServiceServicer_to_server(GrpcHandler(handler), rpc)
        rpc.add_insecure_port(f"{HOST}:{grpc_port}")
        await rpc.start()
        print("ready", flush=True)
        try:
            await http.serve(sockets=[listener])
        finally:
            await rpc.stop(0)


if __name__ == "__main__":
    asyncio.run(main())
