"""Types of a method: JSON Schema from its annotations, and values from JSON.

Known are the types of JSON, `bytes`, dataclasses, TypedDict, pydantic models, enums, `Literal`,
unions, `datetime`, `date` and `UUID`, and lists, tuples, sets and dicts of them.
`Annotated[T, "text"]` adds a description.
"""

from __future__ import annotations

import base64
import dataclasses
import enum
import inspect
import json
import types as builtin
import typing
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints
from uuid import UUID

from telpher._body import Body
from telpher._errors import InvalidArgument

_SCALARS: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    None: {"type": "null"},
    type(None): {"type": "null"},
    bytes: {"type": "string", "contentEncoding": "base64"},
    datetime: {"type": "string", "format": "date-time"},
    date: {"type": "string", "format": "date"},
    UUID: {"type": "string", "format": "uuid"},
}
_LISTS = (list, tuple, set, frozenset, Sequence)
_STREAMS = (
    AsyncIterator,
    Iterator,
    typing.get_origin(typing.AsyncGenerator),
    typing.get_origin(typing.Generator),
    typing.get_origin(typing.AsyncIterable),
    typing.get_origin(typing.Iterable),
)


class _Missing:
    def __repr__(self) -> str:
        return "…"


MISSING = _Missing()


def is_model(annotation: Any) -> bool:
    """True for a pydantic model."""
    return isinstance(annotation, type) and hasattr(annotation, "model_validate")


def is_object(annotation: Any) -> bool:
    """True for a type whose JSON is an object with named members."""
    return (
        is_model(annotation)
        or typing.is_typeddict(annotation)
        or (isinstance(annotation, type) and dataclasses.is_dataclass(annotation))
    )


def schema_of(annotation: Any) -> dict[str, Any]:
    """Returns the JSON Schema of a type."""
    definitions = dict[str, Any]()
    schema = _schema(annotation, definitions)
    if definitions:
        schema = {**schema, "$defs": definitions}
    return schema


def _schema(annotation: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    if annotation in (Any, inspect.Parameter.empty, Body):
        return {}
    try:
        if annotation in _SCALARS:
            return dict(_SCALARS[annotation])
    except TypeError:
        pass
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is typing.Annotated:
        schema = _schema(args[0], definitions)
        texts = [extra for extra in args[1:] if isinstance(extra, str)]
        return {**schema, "description": texts[0]} if texts else schema
    if origin in (Union, builtin.UnionType):
        return {"anyOf": [_schema(arg, definitions) for arg in args]}
    if origin is Literal:
        return {"enum": list(args)}
    if origin in (typing.Required, typing.NotRequired):
        return _schema(args[0], definitions)
    if origin in _LISTS or annotation in _LISTS:
        if origin is tuple and args and args[-1] is not Ellipsis:
            items = [_schema(arg, definitions) for arg in args]
            return {"type": "array", "prefixItems": items, "minItems": len(items), "items": False}
        item = _schema(args[0], definitions) if args else {}
        unique = {"uniqueItems": True} if origin in (set, frozenset) else {}
        return {"type": "array", **({"items": item} if item else {}), **unique}
    if origin in (dict, Mapping) or annotation in (dict, Mapping):
        value = _schema(args[1], definitions) if len(args) == 2 else {}
        return {"type": "object", **({"additionalProperties": value} if value else {})}
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return {"enum": [member.value for member in annotation]}
    if is_model(annotation):
        found = dict(annotation.model_json_schema())
        definitions.update(found.pop("$defs", {}))
        definitions[annotation.__name__] = found
        return {"$ref": f"#/$defs/{annotation.__name__}"}
    if is_object(annotation):
        name = annotation.__name__
        if name not in definitions:
            definitions[name] = {}
            definitions[name] = _object_schema(annotation, definitions)
        return {"$ref": f"#/$defs/{name}"}
    return {}


def _object_schema(annotation: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    members = fields_of(annotation)
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: _schema(kind, definitions) for name, (kind, _) in members.items()},
    }
    required = [name for name, (_, default) in members.items() if default is MISSING]
    if required:
        schema["required"] = required
    return schema


def fields_of(annotation: Any) -> dict[str, tuple[Any, Any]]:
    """Returns the type and the default of each member of a dataclass or a TypedDict."""
    hints = get_type_hints(annotation, include_extras=True)
    if typing.is_typeddict(annotation):
        return {
            name: (kind, MISSING if _is_required(annotation, name, kind) else None)
            for name, kind in hints.items()
        }
    members = dict[str, tuple[Any, Any]]()
    for item in dataclasses.fields(annotation):
        if not item.init:
            continue
        has_default = (
            item.default is not dataclasses.MISSING
            or item.default_factory is not dataclasses.MISSING
        )
        members[item.name] = (hints[item.name], None if has_default else MISSING)
    return members


def _is_required(annotation: Any, name: str, kind: Any) -> bool:
    """True for a required member of a TypedDict, also if its annotations are texts."""
    if get_origin(kind) in (typing.Required, typing.NotRequired):
        return get_origin(kind) is typing.Required
    return name in annotation.__required_keys__


def convert(annotation: Any, value: Any, where: str = "body") -> Any:
    """Returns a JSON value as a value of a type; raises `InvalidArgument` with the place."""
    if annotation in (Any, inspect.Parameter.empty):
        return value
    origin, args = get_origin(annotation), get_args(annotation)
    if origin in (typing.Annotated, typing.Required, typing.NotRequired):
        return convert(args[0], value, where)
    if origin in (Union, builtin.UnionType):
        return _convert_union(args, value, where)
    if origin is Literal:
        if value not in args:
            raise _wrong(where, value, f"one of {', '.join(map(repr, args))}")
        return value
    if annotation in (None, type(None)):
        return _expect(where, value, type(None), "null")
    if annotation is bool:
        return _expect(where, value, bool, "a boolean")
    if annotation is int:
        return _expect(where, value, int, "a whole number")
    if annotation is float:
        if isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        return _expect(where, value, float, "a number")
    if annotation is str:
        return _expect(where, value, str, "a text")
    if annotation is bytes:
        return _parse(where, value, base64.b64decode, "base64")
    if annotation is datetime:
        return _parse(where, value, datetime.fromisoformat, "a time")
    if annotation is date:
        return _parse(where, value, date.fromisoformat, "a date")
    if annotation is UUID:
        return _parse(where, value, UUID, "a UUID")
    if origin in _LISTS or annotation in _LISTS:
        return _convert_list(origin or annotation, args, value, where)
    if origin in (dict, Mapping) or annotation in (dict, Mapping):
        found = _expect(where, value, dict, "an object")
        kind = args[1] if len(args) == 2 else Any
        return {key: convert(kind, item, f"{where}.{key}") for key, item in found.items()}
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        try:
            return annotation(value)
        except ValueError:
            raise _wrong(where, value, f"a {annotation.__name__}") from None
    if is_model(annotation):
        try:
            return annotation.model_validate(value)
        except ValueError as error:
            raise InvalidArgument(f"{where}: {error}") from None
    if is_object(annotation):
        return _convert_object(annotation, value, where)
    return value


def _convert_union(args: Sequence[Any], value: Any, where: str) -> Any:
    failure: InvalidArgument | None = None
    for arg in args:
        try:
            return convert(arg, value, where)
        except InvalidArgument as error:
            failure = failure or error
    assert failure is not None
    raise failure


def _convert_list(kind: Any, args: Sequence[Any], value: Any, where: str) -> Any:
    found = _expect(where, value, list, "an array")
    if kind is tuple and args and args[-1] is not Ellipsis:
        if len(found) != len(args):
            raise _wrong(where, value, f"an array of {len(args)}")
        each = list(args)
    else:
        each = [args[0] if args else Any] * len(found)
    items = [convert(each[at], item, f"{where}[{at}]") for at, item in enumerate(found)]
    return kind(items) if kind in (tuple, set, frozenset) else items


def _convert_object(annotation: Any, value: Any, where: str) -> Any:
    found = _expect(where, value, dict, "an object")
    members = fields_of(annotation)
    made = convert_members(members, found, where)
    return made if typing.is_typeddict(annotation) else annotation(**made)


def convert_members(
    members: Mapping[str, tuple[Any, Any]], found: Mapping[str, Any], where: str
) -> dict[str, Any]:
    """Returns the members of an object; unknown and missing ones are refused."""
    unknown = [name for name in found if name not in members]
    if unknown:
        known = ", ".join(members) or "none"
        raise InvalidArgument(f"{where} has an unknown member {unknown[0]!r} (known: {known})")
    made = dict[str, Any]()
    for name, (kind, default) in members.items():
        if name in found:
            made[name] = convert(kind, found[name], f"{where}.{name}")
        elif default is MISSING:
            raise InvalidArgument(f"{where} has no member {name!r}")
    return made


def _expect(where: str, value: Any, kind: type, words: str) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise _wrong(where, value, words)
    return value


def _parse(where: str, value: Any, parse: Callable[[str], Any], words: str) -> Any:
    try:
        return parse(_expect(where, value, str, words))
    except ValueError as error:
        if isinstance(error, InvalidArgument):
            raise
        raise _wrong(where, value, words) from None


def _wrong(where: str, value: Any, words: str) -> InvalidArgument:
    return InvalidArgument(f"{where} is {json.dumps(value, default=repr)[:80]}, not {words}")


@dataclasses.dataclass(frozen=True, slots=True)
class Signature:
    """The types of a method: how its arguments come from a body, and what it returns."""

    members: Mapping[str, tuple[Any, Any]]
    """Parameters that are members of an object; empty if the body is a single value."""
    single: str | None
    """The parameter that is the whole body."""
    single_type: Any
    special: str | None
    """The parameter that gets the request or delivery itself."""
    returns: Any
    is_stream: bool
    input: Mapping[str, Any]
    output: Mapping[str, Any]

    def arguments(self, body: bytes, special: Any) -> dict[str, Any]:
        """Returns the arguments for a body."""
        given: dict[str, Any] = {} if self.special is None else {self.special: special}
        if self.single is not None:
            given[self.single] = _single(self.single_type, body)
        elif self.members:
            value = _json(body) if body else {}
            if not isinstance(value, dict):
                raise _wrong("body", value, "an object with the arguments")
            given.update(convert_members(self.members, value, "body"))
        return given


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError as error:
        raise InvalidArgument(f"the body is not JSON: {error}") from None


def _single(annotation: Any, body: bytes) -> Any:
    if annotation in (bytes, Body):
        return Body(body)
    if annotation is str:
        try:
            return body.decode()
        except UnicodeDecodeError:
            raise InvalidArgument("the body is not UTF-8") from None
    if annotation is inspect.Parameter.empty:
        return Body(body)
    return convert(annotation, _json(body))


def signature_of(function: Callable[..., Any], special: tuple[type, ...], named: bool) -> Signature:
    """Returns the types of a method.

    A function with one parameter gets the whole body as that parameter: text for `str`, bytes for
    `bytes`, else the JSON value. With more parameters, or with `named`, the body is an object with
    a member for each. A parameter of a `special` type gets the request itself.
    """
    hints = get_type_hints(function, include_extras=True)
    parameters = dict[str, tuple[Any, Any]]()
    special_name = None
    for name, parameter in inspect.signature(function).parameters.items():
        kind = hints.get(name, inspect.Parameter.empty)
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise InvalidArgument(f"{function.__name__}: a method cannot have *{name}")
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise InvalidArgument(f"{function.__name__}: {name} must not be positional-only")
        if isinstance(kind, type) and kind in special:
            special_name = name
            continue
        default = MISSING if parameter.default is parameter.empty else parameter.default
        parameters[name] = (kind, default)
    single, single_type = None, inspect.Parameter.empty
    members = parameters
    if len(parameters) == 1 and not named:
        single, (single_type, _) = next(iter(parameters.items()))
        members = {}
    returns = hints.get("return", inspect.Parameter.empty)
    is_stream = inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function)
    if get_origin(returns) in _STREAMS and get_args(returns):
        is_stream = is_stream or get_origin(returns) in (AsyncIterator, Iterator)
        returns = get_args(returns)[0]
    if single is not None:
        given = schema_of(single_type)
    elif members:
        definitions = dict[str, Any]()
        given = {
            "type": "object",
            "properties": {n: _schema(kind, definitions) for n, (kind, _) in members.items()},
            "required": [n for n, (_, default) in members.items() if default is MISSING],
            "additionalProperties": False,
        }
        if definitions:
            given["$defs"] = definitions
    else:
        given = {}
    return Signature(
        members,
        single,
        single_type,
        special_name,
        returns,
        is_stream,
        given,
        schema_of(returns),
    )
