"""Conversations: append, read, follow, streamed answers, windows, lists and read marks."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from types import TracebackType
from typing import Any
from uuid import uuid4

from telpher import _errors as errors
from telpher import _types as types
from telpher import _wire as wire
from telpher._async._http import Http, Upload, path, query
from telpher._async._repeat import call
from telpher._asyncio.link import Link
from telpher._core import Route
from telpher._options import READ_RETRY, WRITE_RETRY

MESSAGES_MAX = 1_000
BYTES_MAX = 4 << 20
Part = Mapping[str, Any]


class Conversation:
    """A conversation, from `Client.conversation`. The first message creates it.

    ```
    chat = node.conversation("support-42")
    await chat.append("Where is my parcel?", author="alice")
    await chat.append("Hello?", expect=1)               # Conflict if the newest message is not 1
    window = await chat.context(budget=8000)            # what to send to a model
    async with chat.answer() as answer:                 # one message, however it ends
        await answer.text("On its way.")
    ```
    """

    def __init__(self, link: Link, http: Http, name: str) -> None:
        self._link = link
        self._http = http
        self._route: Route = (wire.CONVERSATION, name, "")
        self.name = name
        """The full name, `org/namespace/x`."""

    def __repr__(self) -> str:
        return f"Conversation({self.name!r})"

    async def append(
        self,
        text: str | None = None,
        *,
        role: str = "user",
        parts: Sequence[Part] | None = None,
        author: str = "",
        id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        tokens: int | None = None,
        expect: int | None = None,
        timeout: float | None = None,
    ) -> types.Appended:
        """Appends one message; returns when it is on disk.

        `id` makes a repetition safe: the same message is not appended twice. Without one an id is
        made, and the append is repeated with it when its outcome is unknown. `expect` is the number
        that the newest message must have (0: none yet), else `Conflict` has the number in `head`.
        """
        new: types.NewMessage = {"role": role, "author": author, "id": id or ""}
        if text is not None:
            new["text"] = text
        if parts is not None:
            new["parts"] = parts
        if metadata is not None:
            new["metadata"] = metadata
        if tokens is not None:
            new["tokens"] = tokens
        return await self.append_all([new], expect=expect, timeout=timeout)

    async def append_all(
        self,
        messages: Sequence[types.NewMessage],
        *,
        expect: int | None = None,
        timeout: float | None = None,
    ) -> types.Appended:
        """Appends messages, all or none; returns when they are on disk."""
        if not messages:
            raise errors.InvalidArgument("an append needs at least one message")
        ids = [message.get("id") or f"m-{uuid4().hex}" for message in messages]
        encoded = [types.encode_message(it, id) for it, id in zip(messages, ids, strict=True)]
        payload = await call(
            self._link,
            wire.APPEND,
            self._route,
            wire.append(expect, encoded),
            timeout,
            WRITE_RETRY,
        )
        first, end, deduplicated, _ = wire.appended_messages(payload)
        return types.Appended(first, end - 1, deduplicated, ids)

    async def read(
        self, after: int = 0, *, limit: int = 100, timeout: float | None = None
    ) -> types.Page:
        """Reads up to `limit` messages after the number `after`."""
        body = wire.read(after + 1, min(limit, MESSAGES_MAX), BYTES_MAX)
        payload = await call(self._link, wire.READ, self._route, body, timeout, READ_RETRY)
        return types.message_page(payload)

    async def last(self, count: int = 1) -> types.Page:
        """Reads the newest `count` messages, in their order."""
        found = await self._http.ask(
            "GET", path(self.name, "conversations", "messages"), params=query(last=count)
        )
        messages = tuple(map(types.http_message, found["messages"]))
        return types.Page(messages, found["start_seq"], found["head_seq"])

    async def message(self, id: str) -> types.Message:
        """Returns the message with this id; `NotFound` if there is none."""
        found = await self._http.ask("GET", path(self.name, "conversations", "messages", id))
        return types.http_message(found)

    async def messages(self, after: int = 0) -> AsyncIterator[types.Message]:
        """Yields the messages that exist, after the number `after`.

        From the beginning (0) it yields what is still stored.
        """
        while True:
            try:
                page = await self.read(after, limit=MESSAGES_MAX)
            except errors.Trimmed as error:
                if after or not error.start:
                    raise
                after = error.start - 1
                continue
            for message in page.messages:
                after = message.seq
                yield message
            if not page.messages or after >= page.head:
                return

    async def tail(self, after: int = 0) -> AsyncIterator[types.Message]:
        """Yields the messages after the number `after`, and then new ones as they are appended.

        It survives reconnects. `follow` shows streamed answers while they are written, too.
        """
        while True:
            try:
                leader = await self._link.leader(self._route)
                items = await leader.items(
                    wire.FOLLOW,
                    0,
                    self._route,
                    wire.read(after + 1, MESSAGES_MAX, BYTES_MAX),
                    None,
                )
                try:
                    async for payload in items:
                        for message in types.message_page(payload).messages:
                            after = message.seq
                            yield message
                finally:
                    await items.aclose()
            except errors.Trimmed as error:
                if after or not error.start:
                    raise
                after = error.start - 1
            except (errors.Unconfirmed, errors.Unavailable):
                self._link.check()
                await self._link.sleep(0.05)
            except errors.Moved:
                await self._link.look_elsewhere(self._route)
                await self._link.sleep(0.05)

    async def follow(self, after: int | str = 0) -> AsyncIterator[types.AnyEvent]:
        """Yields everything that happens after a position, and continues after a reconnect.

        `after` is the number of a message, or the `position` of an event. The events: `Event` with
        a `message`; `Head` when all existing messages have been shown; `Delta` for each chunk of an
        answer that is being streamed; `Stop` when its author was asked to stop; `Closed` when it
        has ended; `Cleared` when all messages were erased; `Retracted` when the newest messages
        were retracted.
        """
        position = str(after)
        route = path(self.name, "conversations", "messages")
        while True:
            try:
                async for kind, at, data in self._http.events(route, position=position):
                    event = _event(kind, at, data)
                    if at:
                        position = at
                    if event is not None:
                        yield event
            except (errors.Unconfirmed, errors.Unavailable, errors.Moved):
                self._link.check()
            await self._link.sleep(0.05)

    def answer(
        self,
        id: str | None = None,
        *,
        role: str = "assistant",
        author: str = "",
        tokens: int | None = None,
    ) -> Answer:
        """Streams an answer, as a context manager; see `Answer`."""
        return Answer(self, id or f"a-{uuid4().hex}", role, author, tokens)

    async def stop(self, message: str) -> None:
        """Asks the author of the streamed answer with the id `message` to stop."""
        await self._http.ask(
            "POST", path(self.name, "conversations", "messages", message, "stop"), body={}
        )

    async def context(
        self,
        budget: int | None = None,
        *,
        reserve: int | None = None,
        policy: str | None = None,
        n: int | None = None,
        keep: Sequence[str] | None = None,
        drop_first: Sequence[str] | None = None,
        keep_tool_turns: int | None = None,
        step: float | None = None,
    ) -> types.ContextWindow:
        """Returns the messages to send to a model within `budget` tokens.

        The window takes at most `budget` minus `reserve`. What is not given is taken from the
        conversation's own settings (`update(context=…)`).
        """
        params = query(
            budget=budget,
            reserve=reserve,
            policy=policy,
            n=n,
            keep=",".join(keep) if keep is not None else None,
            drop_first=",".join(drop_first) if drop_first is not None else None,
            keep_tool_turns=keep_tool_turns,
            step=step,
        )
        found = await self._http.ask(
            "GET", path(self.name, "conversations", "context"), params=params
        )
        messages = tuple(map(types.http_message, found["messages"]))
        return types.ContextWindow(messages, int(found["tokens"]), found)

    async def state(self) -> types.ConversationState:
        """Returns metadata, settings, read marks and open answers; `NotFound` if it does not
        exist."""
        return _state(await self._http.ask("GET", path(self.name, "conversations")))

    async def update(
        self, *, version: int | None = None, **settings: Any
    ) -> types.ConversationState:
        """Changes `metadata` (merged as RFC 7396), `archived`, `keep_last`, `ttl_s`, `agent`,
        `participants`, `context` and other settings.

        `version` is the one that the state must have, else `Conflict`. The conversation must exist;
        `create` makes one without messages.
        """
        headers = {} if version is None else {"if-match": f'"{version}"'}
        found = await self._http.ask(
            "PATCH", path(self.name, "conversations"), body=settings, headers=headers
        )
        return _state(found)

    async def create(self, **settings: Any) -> types.ConversationState:
        """Creates the conversation without a message, or changes its settings if it exists."""
        return _state(await self._http.ask("PUT", path(self.name, "conversations"), body=settings))

    async def mark(self, who: str, seq: int) -> None:
        """Sets the read mark of a participant: every message up to `seq` is read."""
        await self._http.ask(
            "PUT", path(self.name, "conversations", "cursors", who), body={"seq": seq}
        )

    async def summarize(
        self, text: str, *, through: int, role: str = "system", tokens: int | None = None
    ) -> None:
        """Sets the summary that replaces all messages up to the number `through` in windows; the
        messages stay."""
        message = {"role": role, "parts": [{"type": "text", "text": text}]}
        body: dict[str, Any] = {"message": message, "through_seq": through}
        if tokens is not None:
            body["tokens"] = tokens
        await self._http.ask("PUT", path(self.name, "conversations", "summary"), body=body)

    async def fork(self, id: str, *, at: int | None = None) -> Conversation:
        """Copies the conversation up to the message `at` (default the newest) to the name `id` in
        the same namespace; returns the copy."""
        body: dict[str, Any] = {"id": id}
        if at is not None:
            body["at_seq"] = at
        await self._http.ask("POST", path(self.name, "conversations", "fork"), body=body)
        org, namespace, _ = self.name.split("/")
        return Conversation(self._link, self._http, f"{org}/{namespace}/{id}")

    async def clear(self, *, expect: int | None = None) -> types.ConversationState:
        """Erases all messages. The name, the settings and the numbering stay: the next message gets
        the next number. `expect` is the number that the newest message must have."""
        headers = {} if expect is None else {"if-match": f'"{expect}"'}
        route = path(self.name, "conversations", "clear")
        return _state(await self._http.ask("POST", route, headers=headers))

    async def retract(
        self,
        *,
        expect: int,
        last: int | None = None,
        after: int | None = None,
        id: str | None = None,
    ) -> types.Retraction:
        """Retracts the newest messages: the `last` ones, or all after the number `after`; by
        default the newest one. They are left out of everything that is read, and their numbers are
        not used again; their bytes are erased by `clear` and `erase`.

        `expect` is the newest number, `head`: if it is another one, the call is refused
        (`Conflict`) and changes nothing. With an `id`, a repeated call is answered like the first
        one.
        """
        body: dict[str, Any] = {"expect": expect}
        if after is not None:
            body["after"] = after
        if last is not None or after is None:
            body["last"] = 1 if last is None else last
        if id is not None:
            body["id"] = id
        route = path(self.name, "conversations", "retract")
        found = await self._http.ask("POST", route, body=body)
        return types.Retraction(found["count"], found.get("first_seq"), found["head_seq"])

    async def erase(self) -> None:
        """Erases the conversation. Its name is not used again."""
        await self._http.ask("DELETE", path(self.name, "conversations"))


class Answer:
    """An answer that is streamed into a conversation: watchers see each chunk, and it becomes one
    message however it ends.

    ```
    async with chat.answer() as answer:
        async for piece in model.stream(window):
            await answer.text(piece)
    print(answer.seq)
    ```

    Leaving the block normally completes the message; an exception leaves it `aborted`. If it is
    stopped (`Conversation.stop`), the block ends quietly at the next chunk, and the status is
    `stopped`. The chunks are UI message chunks of the AI SDK: `text` and `reasoning` make
    them, `chunk` sends any other. A node of an earlier version gets all of them at the end.
    """

    def __init__(
        self, chat: Conversation, id: str, role: str, author: str, tokens: int | None
    ) -> None:
        self._chat = chat
        self._params = query(role=role, tokens=tokens)
        if author:
            self._params["from"] = author
        self._upload: Upload | None = None
        self._waiting: list[str] | None = None
        self._open: tuple[str, str] | None = None
        self._made = 0
        self._is_over = False
        self.id = id
        """The id of the message."""
        self.seq: int | None = None
        """The number of the message, once the block is left."""
        self.status: types.Status | None = None
        """How the message ended, once the block is left."""

    async def __aenter__(self) -> Answer:
        return self

    async def text(self, delta: str) -> None:
        """Adds text."""
        await self._part("text", delta)

    async def reasoning(self, delta: str) -> None:
        """Adds reasoning."""
        await self._part("reasoning", delta)

    async def chunk(self, chunk: Mapping[str, Any]) -> None:
        """Sends a chunk of the AI SDK, such as `{"type": "tool-input-available", …}`."""
        await self._send([*self._end_of_part(), chunk])

    async def finish(self, reason: str = "stop", **fields: Any) -> None:
        """Completes the answer; leaving the block does it, too."""
        if not self._is_over:
            end = {"type": "finish", "finishReason": reason, **fields}
            await self._end([*self._end_of_part(), end])

    async def abort(self) -> None:
        """Ends the answer as `aborted`, with what was sent so far."""
        if not self._is_over:
            await self._end([{"type": "abort"}])

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if isinstance(error, _Stopped) and error.answer is self:
            return True
        if kind is None:
            await self.finish()
        elif not self._is_over:
            await self.abort()
        return False

    async def _part(self, kind: str, delta: str) -> None:
        chunks = list[Mapping[str, Any]]()
        if self._open is None or self._open[0] != kind:
            chunks = self._end_of_part()
            self._made += 1
            self._open = (kind, f"{kind}-{self._made}")
            chunks.append({"type": f"{kind}-start", "id": self._open[1]})
        chunks.append({"type": f"{kind}-delta", "id": self._open[1], "delta": delta})
        await self._send(chunks)

    def _end_of_part(self) -> list[Mapping[str, Any]]:
        if self._open is None:
            return []
        kind, id = self._open
        self._open = None
        return [{"type": f"{kind}-end", "id": id}]

    async def _send(self, chunks: Sequence[Mapping[str, Any]], is_last: bool = False) -> None:
        if self._is_over:
            raise errors.InvalidArgument("the answer has ended")
        text = "".join(json.dumps(chunk, ensure_ascii=False) + "\n" for chunk in chunks)
        if self._waiting is not None:
            self._waiting.append(text)
            return
        if self._upload is None:
            self._upload = await self._chat._http.upload(self._path(), self._params)
        try:
            await self._upload.send(text, is_last=is_last)
        except errors.UnknownMethod:
            await self._upload.aclose()
            self._waiting = [text]
        except errors.Gone:
            await self._stop()
        else:
            if self._upload.is_answered and not is_last:
                await self._stop()

    async def _stop(self) -> None:
        """Leaves the block; raises the error if the answer was not stopped but refused."""
        await self._ended()
        raise _Stopped(self)

    async def _end(self, chunks: Sequence[Mapping[str, Any]]) -> None:
        try:
            await self._send(chunks, is_last=True)
        except _Stopped:
            return
        finally:
            self._is_over = True
        if self._waiting is None:
            await self._ended()
            return
        http = self._chat._http
        text = "".join(self._waiting)
        self._end_with(await http.ask("POST", self._path(), params=self._params, text=text))

    async def _ended(self) -> None:
        """Takes the node's answer, which comes when the message is stored."""
        self._is_over = True
        if self._upload is not None:
            self._end_with(await self._upload.answer())

    def _end_with(self, found: Mapping[str, Any]) -> None:
        self.seq = found["seq"]
        self.status = types.Status(found.get("status", "complete"))

    def _path(self) -> str:
        return path(self._chat.name, "conversations", "messages", self.id, "stream")


class _Stopped(errors.Cancelled):
    """The answer has ended at the node, because a client asked to stop it."""

    def __init__(self, answer: Answer) -> None:
        super().__init__("the answer was stopped", sent=True)
        self.answer = answer


def _state(found: Mapping[str, Any]) -> types.ConversationState:
    return types.ConversationState(
        name=found["name"],
        head=found["head_seq"],
        version=found["version"],
        metadata=found["metadata"],
        is_archived=found["archived"],
        raw=found,
    )


def _event(kind: str, at: str, data: Any) -> types.AnyEvent | None:
    if kind == "message":
        return types.Event(types.http_message(data), at)
    if kind == "head":
        return types.Head(data["head_seq"], at)
    if kind == "delta":
        return types.Delta(data["draft"], data["mid"], data["index"], data["chunk"], at)
    if kind == "stop":
        return types.Stop(data["draft"], data["mid"], at)
    if kind == "closed":
        return types.Closed(data["draft"], data.get("chunk"), at)
    if kind == "cleared":
        return types.Cleared(data["cleared_seq"], at)
    if kind == "retracted":
        return types.Retracted(data["first_seq"], data["last_seq"], at)
    if kind == "error":
        raise errors.from_problem(int(data.get("status", 500)), data)
    return None
