"""An assistant that calls tools, streams its answers and spends no more than its budget.

A question waits in the mailbox of the assistant until it is answered. The conversation is the
memory: each step is stored before the next one begins, so an instance that dies in the middle is
replaced by another one that continues.
"""

import asyncio
import json
from typing import Any
from uuid import uuid4

import model

import telpher

NAME = "acme/shop/assistant"
TOOLS = ["acme/shop/orders"]
"""The agents whose methods the model may call."""


async def tools_of(node: telpher.Client) -> dict[str, tuple[str, dict[str, Any]]]:
    """Returns the agent of each tool, and the tool as the model takes it."""
    tools = dict[str, tuple[str, dict[str, Any]]]()
    for agent in TOOLS:
        organisation, namespace, name = agent.split("/")
        route = f"/v1/{organisation}/{namespace}/agents/{name}/description"
        description = await node.http("GET", route)
        for method in description["methods"]:
            tool = {key: method[key] for key in ("name", "description")}
            tools[method["name"]] = agent, {**tool, "parameters": method["input"]}
    return tools


def for_model(message: telpher.Message) -> list[dict[str, Any]]:
    """Returns a stored message in the form of chat completions; a call is two messages."""
    made = list[dict[str, Any]]()
    for part in message.parts:
        if part["type"] == "dynamic-tool":
            made.append({"role": "assistant", "content": f"{part['toolName']} {part['input']}"})
            made.append({"role": "tool", "content": json.dumps(part["output"])})
        elif part["type"] == "text":
            made.append({"role": message.role, "content": part["text"]})
    return made


async def answer(node: telpher.Client, name: str) -> None:
    """Answers the newest question of a conversation."""
    chat = node.conversation(name)
    tools = await tools_of(node)
    while True:
        stored = (await chat.context(budget=4000)).messages
        newest = stored[-1]
        if newest.role == "assistant" and newest.text and newest.status == "complete":
            return  # An earlier delivery of the question has been answered.
        # Half an answer of an instance that died is not shown to the model.
        whole = [it for it in stored if it.status == "complete"]
        messages = [it for message in whole for it in for_model(message)]
        async with node.quota.hold(NAME, tokens=model.TOKENS_MAX) as hold:
            completion = await model.complete(messages, [tool for _, tool in tools.values()])
            hold.cost(tokens=completion.tokens)
        if completion.call is None:
            async with chat.answer(author=NAME) as stream:
                async for piece in completion.text():
                    await stream.text(piece)
            return
        # A second writer is refused by `expect`, so a call is stored once.
        part = await run_tool(node, tools, completion.call)
        await chat.append(role="assistant", author=NAME, parts=[part], expect=newest.seq)


async def run_tool(
    node: telpher.Client, tools: dict[str, tuple[str, dict[str, Any]]], call: model.ToolCall
) -> dict[str, Any]:
    """Calls the agent that has the tool; returns the part of a message with its result."""
    agent, _ = tools[call.tool]
    try:
        output = (await node.request(agent, call.arguments, method=call.tool)).json()
    except (telpher.HandlerError, telpher.InvalidArgument) as error:
        output = {"error": error.message}
    return {
        "type": "dynamic-tool",
        "toolName": call.tool,
        "toolCallId": uuid4().hex,
        "state": "output-available",
        "input": call.arguments,
        "output": output,
    }


async def main() -> None:
    """Answers questions until SIGTERM."""
    assistant = telpher.Agent(NAME, description="Answers customers of the shop.")
    async with telpher.connect(name=NAME) as node:

        @assistant.mailbox
        async def question(message: telpher.Delivery) -> None:
            try:
                await answer(node, message.json()["conversation"])
            except telpher.QuotaDenied as denied:
                # The question stays in the mailbox until there is budget again.
                pause = denied.retry_after or 5.0
                raise telpher.HandlerError("the budget is spent", retry_after=pause) from denied

        await assistant.serve()


if __name__ == "__main__":
    asyncio.run(main())
