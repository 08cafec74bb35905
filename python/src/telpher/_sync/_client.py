# Made by tools/make_sync.py from telpher/_async/_client.py: do not edit.
"""`connect` and `Client`: requests, messages, and the ways to everything else."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Generator, Mapping, Sequence
from hashlib import blake2b
from types import TracebackType
from typing import Any
from uuid import UUID, uuid4

from telpher import _errors as errors
from telpher import _telemetry as telemetry
from telpher import _types as types
from telpher import _wire as wire
from telpher._sync._conversation import Conversation
from telpher._sync._http import Http, collection, query
from telpher._sync._quota import Quota
from telpher._sync._records import Records
from telpher._sync._subscription import Subscription
from telpher._blocking.link import Link
from telpher._body import Body, encode
from telpher._core import Route
from telpher._options import (
    WRITE_RETRY,
    Options,
    RetryPolicy,
    check_name,
    make_options,
)
from telpher._scope import current, limit


def connect(
    address: str | Sequence[str] | None = None,
    *,
    name: str | None = None,
    token: str | None = None,
    timeout: float | None = 10.0,
    in_flight_max: int = 16_384,
    requests_max: int = 1_024,
    frame_size_max: int = 8 << 20,
    keepalive: float = 15.0,
    connect_timeout: float = 5.0,
    reconnect: tuple[float, float] = (0.05, 5.0),
    tls: ssl.SSLContext | str | None = None,
) -> Client:
    """Connects to a node, as a context manager.

    ```
    with telpher.sync.connect("tcp://127.0.0.1:7400", name="acme/demo/asker") as node:
        reply = node.request("acme/demo/upper", "hello")
    ```

    The address is `tcp://HOST:PORT`, `tls://HOST:PORT` or `unix:///PATH`; for a cluster give all
    nodes, as a list or separated by commas. Without one, TELPHER_URL or `tcp://127.0.0.1:7400` is
    used. Connecting fails at once if no address answers; a connection that is lost later is
    opened again with random pauses between zero and `reconnect` seconds, doubling from the first
    to the second value, while calls wait until their deadline.

    `name` is the name under which this client sends, `token` its bearer token (default:
    TELPHER_TOKEN). `timeout` is the default deadline of a call in seconds; None for none.
    `in_flight_max` calls are in flight at most, further ones wait; `requests_max` is how many
    requests the node may hand to this client's subscriptions at the same time. `tls` is an
    `ssl.SSLContext`, or the PEM file of the authorities to trust.
    """
    options = make_options(
        address,
        name=name,
        token=token,
        timeout=timeout,
        in_flight_max=in_flight_max,
        requests_max=requests_max,
        frame_size_max=frame_size_max,
        keepalive=keepalive,
        connect_timeout=connect_timeout,
        reconnect=reconnect,
        tls=tls,
    )
    return _open(options)


def _open(options: Options) -> Client:
    link = Link(options)
    try:
        link.connect()
    except BaseException:
        link.close()
        raise
    return Client(link)


class Client:
    """A connection to a node, from `connect`. One is enough for a program: it is not blocked by
    slow calls, and everything on it runs concurrently."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._http = Http(link)
        self._routes: dict[tuple[str, str], Route] = {}
        self.quota = Quota(link, self._http)
        """Quotas: take, hold, peek, usage."""

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection; calls in flight fail as `unconfirmed`."""
        self._link.close()

    @property
    def is_connected(self) -> bool:
        """True while there is a connection."""
        return self._link.connection is not None

    def request(
        self,
        target: str,
        body: Any = b"",
        *,
        method: str = "",
        timeout: float | None = None,
        metadata: Mapping[str, str | bytes] | None = None,
        retry: RetryPolicy | None = None,
    ) -> Body:
        """Calls an agent and returns its reply.

        `body` is bytes, text, or anything with a JSON form: a dict, a dataclass, a pydantic model.
        The reply is `Body`: bytes with `text()` and `json()`. The call has exactly one outcome: a
        reply, or an error that says whether it may have been executed. Cancelling the task cancels
        the call at the agent; `timeout` seconds is the deadline, which the agent gets to know, and
        a call from within a handler never outlives the request that the handler answers.
        """
        key = (target, method)
        route = self._routes.get(key)
        if route is None:
            route = self._route(target, method)
        link = self._link
        payload = body if type(body) is bytes else encode(body)
        if timeout is None:
            timeout = link.options.timeout
        scope = current.get()
        if scope is None and retry is None and metadata is None and not telemetry.is_active():
            return Body(link.call(wire.REQUEST, 0, route, payload, timeout))
        return self._traced(route, payload, limit(timeout), metadata, retry)

    def _traced(
        self,
        route: Route,
        payload: bytes,
        timeout: float | None,
        metadata: Mapping[str, str | bytes] | None,
        retry: RetryPolicy | None,
    ) -> Body:
        link = self._link
        until = None if timeout is None else link.now() + timeout
        made = 0
        with telemetry.client_span("request", route[1], route[2]) as trace:
            block = wire.metadata({**(metadata or {}), **trace})
            while True:
                try:
                    return Body(link.call(wire.REQUEST, 0, route, payload, timeout, block))
                except errors.TelpherError as error:
                    made += 1
                    pause = None if retry is None else retry.pause(error, made)
                    left = None if until is None else until - link.now()
                    if pause is None or (left is not None and left <= pause):
                        raise
                    link.sleep(pause)
                    timeout = None if until is None else max(0.0, until - link.now())

    def stream(
        self,
        target: str,
        body: Any = b"",
        *,
        method: str = "",
        timeout: float | None = None,
        metadata: Mapping[str, str | bytes] | None = None,
    ) -> Generator[Body, None, None]:
        """Calls an agent and yields the items of its answer as they come.

        ```
        for item in node.stream("acme/demo/counter", "10", method="count"):
            print(item.json())
        ```

        Leaving the loop early cancels the call. The agent is at most 64 items ahead of the reader.
        There is no deadline unless `timeout` sets one for the whole answer.
        """
        route = self._route(target, method)
        with telemetry.client_span("stream", target, method) as trace:
            block = wire.metadata({**(metadata or {}), **trace})
            items = self._link.items(
                wire.REQUEST, wire.STREAM, route, encode(body), limit(timeout), block
            )
            try:
                for item in items:
                    yield Body(item)
            finally:
                items.close()

    def send(
        self,
        target: str,
        body: Any = b"",
        *,
        all: bool = False,
        timeout: float | None = None,
        metadata: Mapping[str, str | bytes] | None = None,
    ) -> None:
        """Sends a message to one instance of an agent, or to `all`. Nothing acknowledges it.

        It returns when there was room for the message, and waits while every subscriber is full.
        """
        route: Route = (wire.ALL if all else wire.ANY, check_name(target), "")
        block = self._metadata(metadata)
        timeout = limit(self._link.options.timeout if timeout is None else timeout)
        self._link.send(route, encode(body), timeout, block)

    def send_reported(
        self,
        target: str,
        body: Any = b"",
        *,
        all: bool = False,
        timeout: float | None = None,
        metadata: Mapping[str, str | bytes] | None = None,
    ) -> types.Receipt:
        """Sends a message, and returns for how many subscribers it was queued and dropped."""
        route: Route = (wire.ALL if all else wire.ANY, check_name(target), "")
        timeout = limit(self._link.options.timeout if timeout is None else timeout)
        block = self._metadata(metadata)
        payload = self._link.send_answered(
            wire.SEND, wire.REPORT, route, encode(body), timeout, block
        )
        return types.Receipt(*wire.receipt(payload))

    def write(
        self,
        target: str,
        body: Any = b"",
        *,
        id: str | bytes | UUID | None = None,
        ttl: float | None = None,
        timeout: float | None = None,
        metadata: Mapping[str, str | bytes] | None = None,
        retry: RetryPolicy | None = WRITE_RETRY,
    ) -> types.Stored:
        """Writes a message to the mailbox of an agent; returns when it is on disk.

        It waits there until an instance acknowledges it. The `id` makes a repetition safe (any text
        or UUID; one is made if none is given, and failures are repeated with it). `ttl` is after
        how many seconds it expires.
        """
        route: Route = (wire.ANY, check_name(target), "")
        key = wire.key(_id(id), 0 if ttl is None else max(1, int(ttl * 1000)))
        timeout = limit(self._link.options.timeout if timeout is None else timeout)
        until = None if timeout is None else self._link.now() + timeout
        payload = key + encode(body)
        block = self._metadata(metadata)
        made = 0
        while True:
            try:
                answer = self._link.send_answered(
                    wire.WRITE, wire.KEYED, route, payload, timeout, block
                )
                return types.Stored(*wire.stored(answer))
            except errors.TelpherError as error:
                made += 1
                pause = None if retry is None else retry.pause(error, made)
                left = None if until is None else until - self._link.now()
                if pause is None or (left is not None and left <= pause):
                    raise
                self._link.sleep(pause)
                timeout = None if until is None else max(0.0, until - self._link.now())

    def write_in_memory(
        self,
        target: str,
        body: Any = b"",
        *,
        timeout: float | None = None,
        metadata: Mapping[str, str | bytes] | None = None,
    ) -> int:
        """Writes a message for a current subscriber; returns how many it was queued for, 0 or 1.
        It is not stored."""
        route: Route = (wire.ANY, check_name(target), "")
        timeout = limit(self._link.options.timeout if timeout is None else timeout)
        payload = self._link.send_answered(
            wire.WRITE, wire.MEMORY, route, encode(body), timeout, self._metadata(metadata)
        )
        return wire.Reader(payload).u32()

    def subscribe(self, name: str) -> Subscription:
        """Subscribes to a name, as a context manager that is an iterator of its messages.

        With an instance in the name (`acme/demo/worker/i-1`) it is that instance, else the node
        chooses one. To answer requests, `Agent` is more comfortable.
        """
        return Subscription(self._link, check_name(name))

    def conversation(self, name: str) -> Conversation:
        """Returns the conversation `org/namespace/x`; a name of one part is in
        `default/default`."""
        return Conversation(self._link, self._http, _thing(name))

    def records(self, name: str) -> Records:
        """Returns the stream of records `org/namespace/x`."""
        return Records(self._link, _thing(name))

    def conversations(
        self,
        namespace: str = "default/default",
        *,
        metadata: Mapping[str, str] | None = None,
        archived: bool | None = None,
    ) -> Iterator[types.ListedConversation]:
        """Yields the conversations of a namespace, newest activity first.

        `metadata` filters by values: `{"user": "alice"}`, `{"team.id": "7"}`; all must match.
        """
        params = query(archived=archived, limit=100)
        params |= {f"metadata.{key}": value for key, value in (metadata or {}).items()}
        while True:
            found = self._http.ask(
                "GET", collection(namespace, "conversations"), params=params
            )
            for line in found["conversations"]:
                yield types.ListedConversation(line["id"], line)
            if not found.get("next"):
                return
            params["after"] = found["next"]

    def inbox(
        self,
        who: str,
        namespace: str = "default/default",
        *,
        unread: bool | None = None,
        archived: bool | None = None,
    ) -> Iterator[types.InboxLine]:
        """Yields the conversations of a participant, with the number of unread messages."""
        params = query(unread=unread, archived=archived, limit=100)
        while True:
            found = self._http.ask("GET", collection(namespace, "inbox", who), params=params)
            for line in found["lines"]:
                yield types.InboxLine(line["id"], line["unread"], line)
            if not found.get("next"):
                return
            params["after"] = found["next"]

    def http(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = 10.0,
    ) -> Any:
        """Asks a route of the node's HTTP API over this connection; returns the JSON of its answer.

        ```
        node.http("GET", "/v1/agents")
        ```

        `/openapi.json` of a node describes every route.
        """
        return self._http.ask(
            method, path, params=params, body=body, headers=headers, timeout=timeout
        )

    def _route(self, target: str, method: str) -> Route:
        route: Route = (wire.ANY, check_name(target), method)
        if len(self._routes) > 10_000:
            self._routes.clear()
        self._routes[target, method] = route
        return route

    def _metadata(self, metadata: Mapping[str, str | bytes] | None) -> bytes:
        trace = telemetry.current()
        if not metadata and not trace:
            return b""
        return wire.metadata({**(metadata or {}), **trace})


def _id(id: str | bytes | UUID | None) -> bytes:
    """Returns the 16 bytes of an id: those of a UUID, or a hash of a text."""
    if id is None:
        return uuid4().bytes
    if isinstance(id, UUID):
        return id.bytes
    if isinstance(id, bytes):
        if len(id) != 16:
            raise errors.InvalidArgument(f"an id has 16 bytes, this one has {len(id)}")
        return id
    return blake2b(id.encode(), digest_size=16).digest()


def _thing(name: str) -> str:
    full = check_name(name)
    if full.count("/") != 2:
        raise errors.InvalidArgument(f"{name!r} has an instance: use org/namespace/x")
    return full
