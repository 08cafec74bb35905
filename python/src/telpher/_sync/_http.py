# Made by tools/make_sync.py from telpher/_async/_http.py: do not edit.
"""The HTTP routes of the node, asked over the native connection.

The agent `telpher/system/http` answers them: no HTTP library is needed, and the client's token and
name apply.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlencode
from uuid import uuid4

from telpher import _errors as errors
from telpher import _wire as wire
from telpher._blocking.items import Items
from telpher._blocking.link import Link
from telpher._body import to_json
from telpher._core import Route
from telpher._options import READ_RETRY
from telpher._scope import limit

_ROUTE: Route = (wire.ANY, "telpher/system/http", "request")
_UPLOAD: Route = (wire.ANY, "telpher/system/http", "upload")


def path(name: str, kind: str, *rest: str) -> str:
    """Returns the path of a thing by its full name."""
    org, namespace, last = name.split("/")
    parts = ["v1"] if (org, namespace) == ("default", "default") else ["v1", org, namespace]
    return "/" + "/".join(quote(part, safe=":") for part in (*parts, kind, last, *rest))


def collection(namespace: str, *kinds: str) -> str:
    """Returns the path of a collection of a namespace such as `acme/demo`."""
    org, _, space = namespace.partition("/")
    if not org or not space or "/" in space:
        raise errors.InvalidArgument(f"{namespace!r} is no namespace: use org/namespace")
    parts = ["v1"] if (org, space) == ("default", "default") else ["v1", org, space]
    return "/" + "/".join(quote(part, safe=":") for part in (*parts, *kinds))


def query(**values: Any) -> dict[str, str]:
    """Returns the parameters that are not None, as texts."""
    texts = dict[str, str]()
    for key, value in values.items():
        if isinstance(value, bool):
            texts[key] = "true" if value else "false"
        elif value is not None:
            texts[key] = str(value)
    return texts


class Answer:
    """The answer of a route: its status and headers, and the pieces of its body."""

    def __init__(self, status: int, headers: Mapping[str, str], items: Items) -> None:
        self.status = status
        self.headers = headers
        self.items = items

    def body(self) -> bytes:
        """Returns the whole body."""
        pieces = list[bytes]()
        for piece in self.items:
            pieces.append(piece)
        return b"".join(pieces)


class Http:
    """Asks HTTP routes of a node."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def open(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Any = None,
        text: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> Answer:
        """Asks a route; raises the error of an answer that is no success."""
        request: dict[str, Any] = {"method": method, "path": path}
        if params:
            request["path"] = f"{path}?{urlencode(params)}"
        if body is not None:
            request["body"] = body
        if text is not None:
            request["text"] = text
        if headers:
            request["headers"] = dict(headers)
        items = self._link.items(wire.REQUEST, wire.STREAM, _ROUTE, to_json(request), timeout)
        return answer_of(items)

    def ask(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Any = None,
        text: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = 10.0,
    ) -> Any:
        """Asks a route and returns the JSON of its answer, None if it is empty.

        GET is repeated when a connection is lost.
        """
        timeout = limit(timeout)
        until = None if timeout is None else self._link.now() + timeout
        made = 0
        while True:
            try:
                answer = self.open(
                    method,
                    path,
                    params=params,
                    body=body,
                    text=text,
                    headers=headers,
                    timeout=timeout,
                )
                data = answer.body()
                return json.loads(data) if data else None
            except (errors.Unavailable, errors.Unconfirmed) as error:
                made += 1
                pause = READ_RETRY.pause(error, made) if method == "GET" else None
                left = None if until is None else until - self._link.now()
                if pause is None or (left is not None and left <= pause):
                    raise
                self._link.sleep(pause)
                timeout = None if until is None else max(0.0, until - self._link.now())

    def upload(self, path: str, params: Mapping[str, str]) -> Upload:
        """Opens a request whose body is sent in pieces."""
        name = uuid4().hex
        asked = wire.upload(f"{path}?{urlencode(params)}", name)
        items = self._link.items(wire.REQUEST, wire.STREAM, _ROUTE, asked, None)
        return Upload(self._link, name, items)

    def events(
        self, path: str, *, params: Mapping[str, str] | None = None, position: str | None = None
    ) -> Iterator[tuple[str, str, Any]]:
        """Asks a route for its events: yields the type, the id and the data of each."""
        headers = {"accept": "text/event-stream"}
        if position is not None:
            headers["last-event-id"] = position
        answer = self.open("GET", path, params=params, headers=headers)
        parser = EventParser()
        try:
            for piece in answer.items:
                for event in parser.feed(piece):
                    yield event
        finally:
            answer.items.close()


class Upload:
    """A request whose body is being sent."""

    def __init__(self, link: Link, name: str, items: Items) -> None:
        self._link = link
        self._name = name
        self._items = items

    def send(self, text: str, *, is_last: bool = False) -> None:
        """Sends a piece of the body. Raises `Gone` if the request has ended."""
        piece = wire.piece(self._name, text, is_last)
        self._link.call(wire.REQUEST, 0, _UPLOAD, piece, self._link.options.timeout)

    @property
    def is_answered(self) -> bool:
        """True if the request has been answered; what is sent after that is ignored."""
        return self._items.has_arrived

    def answer(self) -> Any:
        """Returns the JSON of the answer; raises its error."""
        answer = answer_of(self._items)
        return json.loads(answer.body())

    def close(self) -> None:
        """Gives up the request."""
        self._items.close()


def answer_of(items: Items) -> Answer:
    """Returns the answer of a route; raises the error of an answer that is no success."""
    head = next(items, None)
    if head is None:
        raise errors.ProtocolError("the node's HTTP agent sent no answer")
    found = json.loads(head)
    status = int(found["status"])
    answer = Answer(status, found.get("headers", {}), items)
    if 200 <= status < 300 or status == 304:
        return answer
    raise _problem(status, answer.body())


def _problem(status: int, body: bytes) -> errors.TelpherError:
    try:
        document = json.loads(body)
    except ValueError:
        document = {"detail": body.decode(errors="replace")}
    return errors.from_problem(status, document)


class EventParser:
    """Splits an event stream (text/event-stream) into events."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, piece: bytes) -> list[tuple[str, str, Any]]:
        """Returns the events that are complete."""
        blocks = (self._rest + piece).split(b"\n\n")
        self._rest = blocks.pop()
        found = list[tuple[str, str, Any]]()
        for block in blocks:
            fields = {"event": "message", "id": ""}
            data = list[str]()
            for line in block.decode().split("\n"):
                key, _, value = line.partition(":")
                value = value.removeprefix(" ")
                if key == "data":
                    data.append(value)
                elif key:
                    fields[key] = value
            if data:
                found.append((fields["event"], fields["id"], json.loads("\n".join(data))))
        return found
