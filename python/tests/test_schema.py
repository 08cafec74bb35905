"""Types of methods: JSON Schema from annotations, values from JSON, and what is refused."""

from __future__ import annotations

import enum
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NotRequired, TypedDict
from uuid import UUID

import pydantic
import pytest

from telpher import InvalidArgument
from telpher._body import Body, encode
from telpher._schema import convert, schema_of, signature_of


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    y: int = 0
    tags: list[str] = field(default_factory=list)


class Job(TypedDict):
    id: int
    note: NotRequired[str]


class Order(pydantic.BaseModel):
    item: str
    count: int = pydantic.Field(1, ge=1)


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        (str, {"type": "string"}),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (list[float], {"type": "array", "items": {"type": "number"}}),
        (dict[str, bool], {"type": "object", "additionalProperties": {"type": "boolean"}}),
        (Literal["a", 1], {"enum": ["a", 1]}),
        (Colour, {"enum": ["red", "blue"]}),
        (Annotated[str, "a city"], {"type": "string", "description": "a city"}),
        (Any, {}),
    ],
)
def test_schema_of_a_type(kind: Any, schema: dict[str, Any]) -> None:
    assert schema_of(kind) == schema


def test_schema_of_objects_is_in_definitions() -> None:
    point = schema_of(list[Point])
    assert point["items"] == {"$ref": "#/$defs/Point"}
    assert point["$defs"]["Point"]["required"] == ["x"]
    job = schema_of(Job)["$defs"]["Job"]
    assert job["required"] == ["id"]
    assert job["properties"]["note"] == {"type": "string"}
    order = schema_of(Order)["$defs"]["Order"]
    assert order["properties"]["count"]["minimum"] == 1


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (int, 3, 3),
        (float, 3, 3.0),
        (list[int], [1, 2], [1, 2]),
        (tuple[int, str], [1, "a"], (1, "a")),
        (Point, {"x": 1}, Point(1)),
        (list[Point], [{"x": 1, "tags": ["a"]}], [Point(1, 0, ["a"])]),
        (Job, {"id": 1}, {"id": 1}),
        (Order, {"item": "book"}, Order(item="book", count=1)),
        (Colour, "red", Colour.RED),
        (int | str, "a", "a"),
        (UUID, "00000000-0000-0000-0000-000000000001", UUID(int=1)),
    ],
)
def test_json_becomes_a_typed_value(kind: Any, value: Any, expected: Any) -> None:
    assert convert(kind, value) == expected


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        (int, "3", "not a whole number"),
        (int, True, "not a whole number"),
        (list[int], [1, "x"], r"body\[1\]"),
        (Point, {}, "no member 'x'"),
        (Point, {"x": 1, "z": 2}, "unknown member 'z'"),
        (Order, {"item": "book", "count": 0}, "count"),
        (Literal["a"], "b", "not one of 'a'"),
        (Colour, "green", "not a Colour"),
        (int | None, "x", "not a whole number"),
    ],
)
def test_json_that_does_not_fit_is_refused_with_its_place(
    kind: Any, value: Any, words: str
) -> None:
    with pytest.raises(InvalidArgument, match=words):
        convert(kind, value)


def test_one_parameter_is_the_body_and_several_are_members() -> None:
    def upper(text: str) -> str:
        return text

    def place(order: Order, urgent: bool = False) -> None:
        pass

    def raw(body: bytes) -> bytes:
        return body

    one = signature_of(upper, (), False)
    assert one.arguments(b"hi", None) == {"text": "hi"}
    assert one.input == {"type": "string"}
    two = signature_of(place, (), False)
    assert two.arguments(b'{"order":{"item":"a"}}', None) == {"order": Order(item="a", count=1)}
    assert two.input["required"] == ["order"]
    assert signature_of(raw, (), False).arguments(b"\0", None) == {"body": b"\0"}
    named = signature_of(upper, (), True)
    assert named.arguments(b'{"text":"hi"}', None) == {"text": "hi"}
    with pytest.raises(InvalidArgument, match="not JSON"):
        two.arguments(b"{", None)
    with pytest.raises(InvalidArgument, match="an object with the arguments"):
        two.arguments(b"[]", None)


def test_generators_are_streams_of_their_items() -> None:
    async def count(n: int) -> AsyncIterator[int]:
        yield n

    found = signature_of(count, (), False)
    assert found.is_stream
    assert found.output == {"type": "integer"}


def test_functions_with_variable_parameters_are_refused() -> None:
    def anything(*rest: int) -> None:
        pass

    with pytest.raises(InvalidArgument, match=r"\*rest"):
        signature_of(anything, (), False)


def test_bodies_are_bytes_text_or_json() -> None:
    assert encode(b"\0") == b"\0"
    assert encode("é") == "é".encode()
    assert encode(None) == b""
    assert encode(bytearray(b"x")) == b"x"
    assert encode({"a": [1, Point(1), Colour.RED, Order(item="b", count=2)]}) == (
        b'{"a":[1,{"x":1,"y":0,"tags":[]},"red",{"item":"b","count":2}]}'
    )
    with pytest.raises(InvalidArgument, match="object has no JSON form"):
        encode({"a": object()})
    with pytest.raises(InvalidArgument):
        encode(float("nan"))
    assert Body(b'{"a":1}').json() == {"a": 1}
    with pytest.raises(InvalidArgument):
        Body(b"{").json()
