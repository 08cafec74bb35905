"""Bodies: what may be sent, and what is received."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from enum import Enum
from typing import Any
from uuid import UUID

from telpher._errors import InvalidArgument

__all__ = ["Body", "encode", "to_json"]


class Body(bytes):
    """The body of a reply or a message: bytes, with views as text and as JSON.

    ```
    reply = await node.request("acme/demo/sum", {"a": 1, "b": 2})
    reply            # b'3'
    reply.text()     # '3'
    reply.json()     # 3
    ```
    """

    __slots__ = ()

    def text(self) -> str:
        """Returns the body as text (UTF-8)."""
        return self.decode()

    def json(self) -> Any:
        """Returns the JSON value that the body is."""
        try:
            return json.loads(self)
        except ValueError as error:
            raise InvalidArgument(f"the body is not JSON: {error}") from None


def encode(value: Any) -> bytes:
    """Returns the bytes of a body: bytes as they are, text in UTF-8, other values as JSON."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if value is None:
        return b""
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    return to_json(value)


def to_json(value: Any) -> bytes:
    """Returns the JSON of a value: of a dict or list, a dataclass, or a pydantic model."""
    try:
        return json.dumps(
            value, default=_plain, ensure_ascii=False, separators=(",", ":"), allow_nan=False
        ).encode()
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"the value cannot be sent as JSON: {error}") from None


def _plain(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)
    if dump is not None and not isinstance(value, type):
        return dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: getattr(value, item.name) for item in dataclasses.fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset | Sequence):
        return list(value)
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")
