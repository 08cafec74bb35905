"""Serializes the bodies of imports, which schemathesis cannot do by itself: a JSON value on each line."""

import json

import schemathesis


@schemathesis.serializer(
    "application/jsonl",
    "application/x-ndjson",
    "application/json-lines",
    "application/x-jsonlines",
)
def json_lines(_context, value):
    values = value if isinstance(value, list) else [value]
    return "\n".join(json.dumps(it) for it in values).encode()
