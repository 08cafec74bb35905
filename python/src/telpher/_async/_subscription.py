"""Subscriptions: the messages of a name as an iterator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from telpher import _errors as errors
from telpher import _wire as wire
from telpher._asyncio.link import Link
from telpher._body import Body, encode
from telpher._core import Inbound


@dataclass(frozen=True, slots=True, eq=False)
class Incoming:
    """A message or a request of a subscription.

    A request (`is_request`) waits for `reply` or `refuse`; one that gets neither ends at its
    deadline.
    """

    body: Body
    name: str
    """The instance that received it."""
    method: str
    is_request: bool
    source: str | None
    """The sender's name."""
    metadata: Mapping[str, bytes]
    _inbound: Inbound
    _link: Link

    def text(self) -> str:
        """Returns the body as text."""
        return self.body.text()

    def json(self) -> Any:
        """Returns the JSON value that the body is."""
        return self.body.json()

    async def reply(self, body: Any = b"") -> None:
        """Answers the request; acknowledges the message of a mailbox."""
        self._link.reply(self._inbound, encode(body))

    async def refuse(self, message: str, *, retry_after: float | None = None) -> None:
        """Answers the request with an error; has the message of a mailbox delivered again."""
        error = errors.HandlerError(message, retry_after=retry_after)
        self._link.fail(self._inbound, error)


class Subscription:
    """The messages sent to a name, in order, from `Client.subscribe`.

    ```
    async with node.subscribe("acme/demo/printer") as messages:
        async for message in messages:
            print(message.text())
    ```

    It survives reconnects, and ends with `Replaced` when another connection subscribes as the same
    instance. What it has not taken fills the client's window; the node then has senders wait.
    """

    def __init__(self, link: Link, name: str) -> None:
        self._link = link
        self._inbox = link.new_inbox()
        self.name = name
        """The full name, with the instance, once it is subscribed."""

    def receive(self, inbound: Inbound) -> None:
        self._inbox.put(inbound)

    def end(self, error: errors.TelpherError) -> None:
        self._inbox.end(error)

    async def __aenter__(self) -> Subscription:
        self.name = await self._link.subscribe(self.name, wire.WITH_SOURCE, self)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> Incoming:
        inbound: Inbound = await self._inbox.get()
        metadata = wire.read_metadata(inbound.metadata) if inbound.metadata else {}
        source = metadata.get("source")
        is_request = inbound.generation != 0
        if not is_request:
            self._link.consume(inbound)
        body = inbound.body
        if is_request and inbound.flags & wire.WRITTEN:
            *_, body = wire.delivery(body)
        return Incoming(
            Body(body),
            inbound.name,
            inbound.method,
            is_request,
            source.decode() if source else None,
            metadata,
            inbound,
            self._link,
        )

    async def aclose(self) -> None:
        """Unsubscribes; requests that were not taken are refused as `unavailable`."""
        await self._link.unsubscribe(self.name)
        gone = errors.Unavailable("the subscriber has gone")
        for inbound in self._inbox.drain():
            if inbound.generation:
                self._link.fail(inbound, gone, False)
            else:
                self._link.consume(inbound)
        self._inbox.end(errors.Cancelled("the subscription was closed", sent=False))
