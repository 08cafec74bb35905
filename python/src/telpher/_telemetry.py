"""OpenTelemetry spans and context, if `opentelemetry-api` is installed; else only the forwarding
of the trace that a handler was called with."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Generator, Mapping
from typing import Any

from telpher import _scope as scope

_NOTHING: Mapping[str, str | bytes] = {}
_KEYS = ("traceparent", "tracestate")


def _load() -> Any:
    try:
        propagate: Any = importlib.import_module("opentelemetry.propagate")
        trace: Any = importlib.import_module("opentelemetry.trace")
    except ImportError:
        return None
    return trace, propagate


_api: Any = None
_is_loaded = False


def _opentelemetry() -> Any:
    """Returns the API, once the program itself has imported it."""
    global _api, _is_loaded
    if not _is_loaded:
        _api, _is_loaded = _load(), True
    return _api


def is_active() -> bool:
    """True if the program uses OpenTelemetry."""
    return "opentelemetry" in sys.modules and _opentelemetry() is not None


def inherited() -> Mapping[str, str | bytes]:
    """Returns the trace of the request that is being answered."""
    now = scope.current.get()
    return _NOTHING if now is None else now.trace


def current() -> Mapping[str, str | bytes]:
    """Returns the trace of the current span, or of the request that is being answered."""
    api = _api if is_active() else None
    if api is None:
        return inherited()
    carrier = dict[str, str]()
    api[1].inject(carrier)
    return carrier or inherited()


@contextlib.contextmanager
def client_span(
    operation: str, target: str, method: str
) -> Generator[Mapping[str, str | bytes], None, None]:
    """Opens a span of a call, and yields the metadata that carry it."""
    api = _api if is_active() else None
    if api is None:
        yield inherited()
        return
    trace, _ = api
    tracer = trace.get_tracer("telpher")
    attributes = {
        "messaging.system": "telpher",
        "messaging.operation.name": operation,
        "messaging.destination.name": target,
    }
    if method:
        attributes["rpc.method"] = method
    with tracer.start_as_current_span(
        f"{operation} {target}", kind=trace.SpanKind.CLIENT, attributes=attributes
    ):
        yield current()


@contextlib.contextmanager
def server_span(
    operation: str, name: str, method: str, metadata: Mapping[str, bytes]
) -> Generator[Mapping[str, str | bytes], None, None]:
    """Opens a span of a handler, as a child of the caller's; yields what nested calls forward."""
    incoming: dict[str, str | bytes] = {key: metadata[key] for key in _KEYS if key in metadata}
    api = _api if is_active() else None
    if api is None:
        yield incoming
        return
    trace, propagate = api
    texts = {
        key: value.decode(errors="replace") if isinstance(value, bytes) else value
        for key, value in incoming.items()
    }
    context = propagate.extract(texts)
    tracer = trace.get_tracer("telpher")
    attributes = {
        "messaging.system": "telpher",
        "messaging.operation.name": operation,
        "messaging.destination.name": name,
    }
    if method:
        attributes["rpc.method"] = method
    with tracer.start_as_current_span(
        f"{operation} {name}", context=context, kind=trace.SpanKind.SERVER, attributes=attributes
    ):
        yield incoming
