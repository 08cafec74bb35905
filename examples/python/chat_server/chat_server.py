"""A chat server on Starlette: `uvicorn chat_server:app`.

The conversations are in a node, so the server keeps nothing: any number of instances may run, a
browser that reconnects to any of them continues after the last event that it has seen, and an
instance that is killed loses no message. A page for browsers is at `/`.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

import telpher

PAUSE_SECONDS = float(os.environ.get("PAUSE_SECONDS", "0.05"))
"""How long the model thinks before each word."""

PAGE = """<!doctype html><title>Chat</title>
<ol id=messages></ol><p id=draft></p><form><input name=text autofocus><button>Send</button></form>
<script>
const chat = location.hash.slice(1) || "lobby", draft = document.getElementById("draft");
const events = new EventSource(`/chats/${chat}/events`);
events.addEventListener("delta", event => { draft.textContent += JSON.parse(event.data).text; });
events.addEventListener("message", event => {
  const line = document.createElement("li"), { author, text } = JSON.parse(event.data);
  line.textContent = `${author}: ${text}`;
  document.getElementById("messages").append(line);
  draft.textContent = "";
});
document.querySelector("form").addEventListener("submit", event => {
  event.preventDefault();
  const body = JSON.stringify({ author: "you", text: event.target.text.value });
  fetch(`/chats/${chat}/messages`, { method: "POST", body });
  event.target.reset();
});
</script>"""


async def words(messages: list[dict[str, str]]) -> AsyncIterator[str]:
    """Stands for a model: repeats the newest message, word by word."""
    for word in ("You", "said:", *messages[-1]["content"].split()):
        await asyncio.sleep(PAUSE_SECONDS)
        yield f"{word} "


async def answer(chat: telpher.Conversation) -> None:
    """Streams an answer into a conversation."""
    window = await chat.context(budget=4000)
    messages = [{"role": it.role, "content": it.text} for it in window.messages]
    async with chat.answer(author="bot") as stream:
        async for word in words(messages):
            await stream.text(word)


async def post(request: Request) -> Response:
    """Appends a message, and starts the answer."""
    chat = request.app.state.node.conversation(request.path_params["chat"])
    try:
        body = await request.json()
        text, author = str(body["text"]), str(body["author"])
    except (ValueError, KeyError, TypeError):
        return JSONResponse({"error": 'a message is {"author": "…", "text": "…"}'}, 400)
    try:
        stored = await chat.append(text, author=author)
    except telpher.TelpherError as error:
        return JSONResponse({"error": error.message, "code": error.code}, 503)
    task = asyncio.create_task(answer(chat))
    request.app.state.answers.add(task)
    task.add_done_callback(request.app.state.answers.discard)
    return JSONResponse({"seq": stored.last}, 202)


async def events(request: Request) -> Response:
    """Streams what happens in a conversation; a browser names the last event that it has seen."""
    chat = request.app.state.node.conversation(request.path_params["chat"])
    after = request.headers.get("last-event-id", "0")

    async def lines() -> AsyncIterator[str]:
        async for event in chat.follow(after):
            if isinstance(event, telpher.Event):
                message = event.message
                shown = {"seq": message.seq, "author": message.author, "text": message.text}
                kind, data = "message", {**shown, "status": message.status}
            elif isinstance(event, telpher.Delta) and event.text:
                kind, data = "delta", {"text": event.text}
            else:
                continue
            yield f"event: {kind}\nid: {event.position}\ndata: {json.dumps(data)}\n\n"

    return StreamingResponse(lines(), media_type="text/event-stream")


async def page(request: Request) -> Response:
    """Returns the page for browsers."""
    return HTMLResponse(PAGE)


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    """Connects while the server runs, and lets answers end before it stops."""
    async with telpher.connect(timeout=30) as node:
        app.state.node, app.state.answers = node, set[asyncio.Task[None]]()
        yield
        await asyncio.gather(*app.state.answers, return_exceptions=True)


app = Starlette(
    lifespan=lifespan,
    routes=[
        Route("/", page),
        Route("/chats/{chat}/messages", post, methods=["POST"]),
        Route("/chats/{chat}/events", events),
    ],
)
