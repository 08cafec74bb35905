# Made by tools/make_sync.py from telpher/_async/_agent.py: do not edit.
"""`Agent`: a name with methods, and what it does with messages and mailbox deliveries."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, TypeVar, overload

from telpher import _errors as errors
from telpher import _scope as scope
from telpher import _telemetry as telemetry
from telpher import _wire as wire
from telpher._sync._client import Client, connect
from telpher._blocking.link import Link
from telpher._blocking.runtime import deadline, invoke, iterate, until_stopped
from telpher._body import Body, encode, to_json
from telpher._core import Inbound
from telpher._options import check_name
from telpher._schema import Signature, signature_of
from telpher._types import Delivery, delivery_of

log = logging.getLogger("telpher")
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """The request that a method answers: give a method a parameter of this type to get it."""

    body: Body
    name: str
    """The instance that was called."""
    method: str
    source: str | None
    """The caller's name, if it has one."""
    metadata: Mapping[str, bytes]
    node: Client
    """The agent's connection, for calls of its own. They inherit the deadline of this request."""
    _inbound: Inbound
    _deadline: float | None
    _link: Link

    @property
    def remaining(self) -> float | None:
        """Seconds until the caller's deadline; None if it has none."""
        return None if self._deadline is None else max(0.0, self._deadline - self._link.now())

    @property
    def is_cancelled(self) -> bool:
        """True once the caller has cancelled the call, or is gone."""
        return self._inbound.is_over


@dataclass(frozen=True, slots=True)
class Method:
    """A method of an agent."""

    name: str
    description: str
    function: Callable[..., Any]
    signature: Signature


class Agent:
    """An agent: a name, and the functions that answer for it.

    ```
    agent = telpher.sync.Agent("acme/demo/upper", description="Shouts.")

    @agent.method
    def upper(text: str) -> str:
        return text.upper()

    @agent.mailbox
    def job(message: telpher.Delivery) -> None:
        ...                       # returning acknowledges it, raising has it delivered again

    agent.serve("tcp://127.0.0.1:7400")
    ```

    Several processes with the same name are instances that share the work. Functions without
    `async` run in threads.
    """

    def __init__(self, name: str, *, description: str = "", version: str = "") -> None:
        self.name = check_name(name)
        self.description = description
        self.version = version
        self.methods: dict[str, Method] = {}
        """The methods by name, with the JSON Schema of each in `signature`."""
        self._default: Method | None = None
        self._mailbox: Method | None = None
        self._message: Method | None = None

    @overload
    def method(self, function: Function, /) -> Function: ...

    @overload
    def method(
        self,
        /,
        *,
        name: str | None = None,
        description: str | None = None,
        named: bool = False,
        default: bool = False,
    ) -> Callable[[Function], Function]: ...

    def method(
        self,
        function: Function | None = None,
        /,
        *,
        name: str | None = None,
        description: str | None = None,
        named: bool = False,
        default: bool = False,
    ) -> Function | Callable[[Function], Function]:
        """Makes a function a method of the agent, as a decorator.

        A function with one parameter gets the body as that parameter: text for `str`, bytes for
        `bytes`, else the JSON value as a value of the annotated type. With several parameters, or
        with `named=True`, the body is a JSON object with a member for each. A parameter of the type
        `Request` gets the request. A generator answers with a stream of items.

        `default=True` has the method answer requests that name no method; the only method of an
        agent does so anyway. A body that does not fit is refused with `invalid_argument`, an
        exception becomes `handler_error`.
        """

        def add(function: Function) -> Function:
            made = _method(function, name, description, named)
            self.methods[made.name] = made
            if default:
                self._default = made
            return function

        return add if function is None else add(function)

    def mailbox(self, function: Function, /) -> Function:
        """Makes a function the receiver of the agent's mailbox, as a decorator.

        Its parameter is a `Delivery`, or any type that a method may have. Returning acknowledges
        the message; raising has it delivered again after a pause, which `HandlerError(…,
        retry_after=…)` sets.
        """
        self._mailbox = _method(function, None, None, False)
        return function

    def message(self, function: Function, /) -> Function:
        """Makes a function the receiver of one-way messages (`Client.send`), as a decorator."""
        self._message = _method(function, None, None, False)
        return function

    def describe(self) -> dict[str, Any]:
        """Returns the agent's description: its methods with the JSON Schema of what they take and
        return."""
        methods = [
            {
                "name": method.name,
                "description": method.description,
                "input": method.signature.input,
                "output": method.signature.output,
                "stream": method.signature.is_stream,
            }
            for method in self.methods.values()
        ]
        return {
            "name": self.name,
            "description": self.description,
            "version": self.version,
            "methods": methods,
        }

    def _description(self) -> bytes:
        methods = [
            wire.MethodDescription(
                method.name,
                method.description,
                method.signature.is_stream,
                to_json(method.signature.input) if method.signature.input else b"",
                to_json(method.signature.output) if method.signature.output else b"",
            )
            for method in self.methods.values()
        ]
        return wire.description(self.version, self.description, methods)

    def serve(
        self,
        address: str | list[str] | None = None,
        *,
        concurrency: int = 256,
        drain: float = 5.0,
        **options: Any,
    ) -> None:
        """Connects, answers, and returns after SIGTERM or SIGINT.

        On such a signal the agent takes no more work, finishes what it has begun within `drain`
        seconds, and closes. `concurrency` requests and deliveries run at the same time at most.
        Further `options` are those of `connect`.
        """
        options.setdefault("name", self.name)
        with connect(address, requests_max=concurrency, **options) as node:
            with self.attached(node) as running:
                log.info("%s answers as %s", self.name, running.name)
                until_stopped(running.ended)
                running.drain(drain)

    def attached(self, node: Client) -> Running:
        """Answers on a connection that exists, as a context manager.

        ```
        with agent.attached(node) as running:
            print(running.name)            # the instance
        ```
        """
        return Running(self, node)


class Running:
    """An agent that answers, from `Agent.attached`."""

    def __init__(self, agent: Agent, node: Client) -> None:
        self._agent = agent
        self._node = node
        self._link = node._link
        self.ended = self._link.new_inbox()
        self.name = agent.name
        """The full name, with the instance."""

    def __enter__(self) -> Running:
        agent = self._agent
        options = wire.WITH_SOURCE | wire.DESCRIBED
        self.name = self._link.subscribe(agent.name, options, self, agent._description())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._link.unsubscribe(self.name)

    def drain(self, seconds: float) -> None:
        """Takes no more work, and waits for what has begun."""
        self._link.drain(seconds)

    def end(self, error: errors.TelpherError) -> None:
        log.error("%s has ended: %s", self.name, error)
        self.ended.end(error)

    def receive(self, inbound: Inbound) -> None:
        if inbound.generation:
            self._link.run(self._answer, inbound)
        else:
            self._link.run(self._take, inbound)

    def _take(self, inbound: Inbound) -> None:
        method = self._agent._message
        try:
            if method is not None:
                self._call(method, inbound, inbound.body, "receive", None)
        except errors.TelpherError as error:
            log.warning("%s: a message was refused: %s", self.name, error.message)
        except Exception:
            log.exception("%s: a message failed", self.name)
        finally:
            self._link.consume(inbound)

    def _answer(self, inbound: Inbound) -> None:
        try:
            self._dispatch(inbound)
        except (errors.HandlerError, errors.InvalidArgument, errors.UnknownMethod) as error:
            executed = isinstance(error, errors.HandlerError)
            self._link.fail(inbound, error, executed)
        except TimeoutError as error:
            if self._is_late(inbound):
                late = errors.DeadlineExceeded("the deadline passed in the handler", sent=True)
                self._link.fail(inbound, late)
            else:
                self._fail(inbound, error)
        except Exception as error:
            self._fail(inbound, error)
        except BaseException:
            self._link.fail(inbound, errors.Cancelled("the handler was cancelled", sent=True))
            raise

    def _is_late(self, inbound: Inbound) -> bool:
        return inbound.until is not None and self._link.now() >= inbound.until

    def _fail(self, inbound: Inbound, error: Exception) -> None:
        log.exception("%s: %s failed", self.name, inbound.method or "a request")
        text = str(error).partition("\nhint: ")[0]
        failed = errors.HandlerError(f"{type(error).__name__}: {text}" if text else repr(error))
        self._link.fail(inbound, failed)

    def _dispatch(self, inbound: Inbound) -> None:
        agent = self._agent
        if inbound.flags & wire.WRITTEN:
            if agent._mailbox is None:
                raise errors.HandlerError(f"{agent.name} has no mailbox function", retry_after=60.0)
            message = delivery_of(inbound)
            self._call(agent._mailbox, inbound, message.body, "deliver", message)
            self._link.reply(inbound, b"")
            return
        method = agent.methods.get(inbound.method)
        if method is None and not inbound.method:
            method = agent._default
            if method is None and len(agent.methods) == 1:
                (method,) = agent.methods.values()
        if method is None:
            known = ", ".join(agent.methods) or "none"
            asked = repr(inbound.method) if inbound.method else "that a request without one names"
            raise errors.UnknownMethod(f"{agent.name} has no method {asked} (it has: {known})")
        if method.signature.is_stream and not inbound.flags & wire.STREAM:
            raise errors.InvalidArgument(
                f"{method.name} answers with a stream: call it with `stream`"
            )
        body = self._call(method, inbound, inbound.body, "answer", None)
        self._link.reply(inbound, b"" if body is None else encode(body))

    def _call(
        self,
        method: Method,
        inbound: Inbound,
        body: bytes,
        operation: str,
        message: Delivery | None,
    ) -> Any:
        metadata = wire.read_metadata(inbound.metadata) if inbound.metadata else {}
        seconds = None if inbound.deadline_ms is None else inbound.deadline_ms / 1000
        until = None if seconds is None else self._link.now() + seconds
        inbound.until = until
        special: Any = message
        if method.signature.special is not None and message is None:
            source = metadata.get("source")
            special = Request(
                Body(body),
                inbound.name,
                inbound.method,
                source.decode() if source else None,
                metadata,
                self._node,
                inbound,
                until,
                self._link,
            )
        arguments = method.signature.arguments(body, special)
        with telemetry.server_span(operation, inbound.name, inbound.method, metadata) as trace:
            token = scope.current.set(scope.Scope(scope.after(seconds), trace))
            try:
                with deadline(seconds):
                    made = invoke(method.function, arguments)
                    if not method.signature.is_stream:
                        return made
                    items = iterate(made)
                    try:
                        for item in items:
                            self._link.reply_item(inbound, encode(item))
                    finally:
                        items.close()
                    return None
            finally:
                scope.current.reset(token)


def _method(
    function: Callable[..., Any], name: str | None, description: str | None, named: bool
) -> Method:
    text = description if description is not None else inspect.getdoc(function) or ""
    signature = signature_of(function, (Request, Delivery), named)
    return Method(name or function.__name__, text, function, signature)
