"""A2A over SLIM with slima2a: `agents.py URL`; the agent is a process of its own."""

import asyncio
import subprocess
import sys
import uuid

import httpx
import slim_bindings
from a2a.client import minimal_agent_card
from a2a.helpers import new_text_message
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore
from a2a.types.a2a_pb2 import AgentCapabilities, AgentCard, Role, SendMessageRequest
from slima2a import setup_slim_client
from slima2a.client_transport import (
    ClientConfig,
    MultiAgentClientFactory,
    slimrpc_channel_factory,
)
from slima2a.handler import SRPCHandler
from slima2a.types.v1.a2a_pb2_slimrpc import add_A2AServiceServicer_to_server

SECRET = "a-secret-of-at-least-32-characters!!"


class Echo(AgentExecutor):
    async def execute(self, context, queue):
        text = "echo:" + context.get_user_input()
        await queue.enqueue_event(new_text_message(text, role=Role.ROLE_AGENT))

    async def cancel(self, context, queue):
        raise NotImplementedError


async def connect(url, name):
    return await setup_slim_client(
        namespace="compat", group="a2a", name=name, slim_url=url, secret=SECRET
    )


async def serve(url, name):
    _, app, local_name, connection = await connect(url, name)
    card = AgentCard(
        name="echo",
        description="answers what it is sent",
        version="1",
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text"],
        default_output_modes=["text"],
    )
    handler = DefaultRequestHandler(
        agent_executor=Echo(), task_store=InMemoryTaskStore(), agent_card=card
    )
    server = slim_bindings.Server.new_with_connection(app, local_name, connection)
    add_A2AServiceServicer_to_server(SRPCHandler(card, handler), server)
    print("ready", file=sys.stderr, flush=True)
    await server.serve_async()


async def ask(url, name):
    _, app, _, connection = await connect(url, "caller-" + name)
    for is_streaming in (True, False):
        config = ClientConfig(
            supported_protocol_bindings=["slimrpc"],
            streaming=is_streaming,
            httpx_client=httpx.AsyncClient(),
            slimrpc_channel_factory=slimrpc_channel_factory(app, connection),
        )
        card = minimal_agent_card(f"compat/a2a/{name}", ["slimrpc"])
        client = MultiAgentClientFactory(config).create(card=card)
        for text in ("hello", "x" * 200_000):
            message = new_text_message(text, role=Role.ROLE_USER)
            answers = []
            async for answer in client.send_message(request=SendMessageRequest(message=message)):
                assert answer.WhichOneof("payload") == "message", answer
                answers += [part.text for part in answer.message.parts]
            assert answers == ["echo:" + text], [answer[:40] for answer in answers]
        print("   ok: streaming" if is_streaming else "   ok: unary", file=sys.stderr, flush=True)


async def run(url):
    name = "echo-" + uuid.uuid4().hex[:8]
    words = [sys.executable, __file__, url, name]
    agent = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        while (line := agent.stderr.readline()) != "ready\n":
            assert line, "the agent has ended"
        await asyncio.wait_for(ask(url, name), 120)
    finally:
        agent.kill()
        agent.wait()


if __name__ == "__main__":
    import os

    asyncio.run(serve(*sys.argv[1:]) if len(sys.argv) > 2 else run(sys.argv[1]))
    # The library's threads do not end by themselves.
    os._exit(0)
