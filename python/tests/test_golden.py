"""Golden bytes: every example of docs/reference/protocol.md, encoded and decoded.

The Rust tests (`crates/wire/tests/golden.rs`) use the same blocks of the same page.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from telpher import _core as core
from telpher import _errors as errors
from telpher import _wire as wire

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "protocol.md"


def blocks() -> dict[str, bytes]:
    found = dict[str, bytes]()
    for name, text in re.findall(r"```golden ([^\n]+)\n(.*?)```", PAGE.read_text(), re.S):
        digits = "".join(line.partition("|")[0] for line in text.splitlines())
        found[name] = bytes.fromhex(digits)
    return found


GOLDEN = blocks()
WINDOW = wire.Window(8 << 20, 65_536, 4096, 1 << 20, 15_000)
CALL: dict[str, Any] = {"slot": 5, "generation": 3}
PARTS = b'[{"type":"text","text":"Hi"}]'
NAME = "acme/demo/sum"
INSTANCE = "acme/demo/sum/i-1"
TRACE = wire.metadata({"traceparent": "00-1-2-01"})
HEADERS = [("trace", b"7f"), ("none", None)]
KEYED = wire.topic_record(b"c7", b"hi", HEADERS)


def u32(value: int) -> bytes:
    return value.to_bytes(4, "little")


def u64(value: int) -> bytes:
    return value.to_bytes(8, "little")


ENCODED: dict[str, bytes] = {
    "HELLO": wire.hello(WINDOW, "tlp_x", "acme/demo/bob", features=0),
    "BIND": wire.bind(1, wire.ANY, "add", NAME),
    "BIND to a stream": wire.bind(2, wire.RECORDS, "", "acme/demo/log"),
    "BIND to a conversation": wire.bind(3, wire.CONVERSATION, "", "acme/demo/talk"),
    "BIND to a topic": wire.bind(4, wire.TOPIC, "", "orders"),
    "SUBSCRIBE": wire.frame(wire.SUBSCRIBE, wire.subscribe(wire.WITH_SOURCE, NAME), **CALL),
    "SUBSCRIBE with a description": wire.frame(
        wire.SUBSCRIBE,
        wire.subscribe(wire.WITH_SOURCE | wire.DESCRIBED, NAME)
        + wire.description(
            "1.2.0",
            "Numbers",
            [wire.MethodDescription("add", "Sums", False, b'{"type":"array"}', b"")],
        ),
        **CALL,
    ),
    "UNSUBSCRIBE": wire.frame(wire.UNSUBSCRIBE, wire.text16(INSTANCE), **CALL),
    "REQUEST": wire.frame(
        wire.REQUEST,
        u32(10_000) + len(TRACE).to_bytes(2, "little") + TRACE + b"1+1",
        wire.DEADLINE | wire.METADATA,
        1,
        **CALL,
    ),
    "REPLY": wire.frame(wire.REPLY, b"2", **CALL),
    "ERROR": wire.frame(wire.ERROR, wire.error(3, "full", False, 250, b"?"), **CALL),
    "CANCEL": wire.frame(wire.CANCEL, **CALL),
    "CREDIT for a stream": wire.frame(wire.CREDIT, wire.credit(32, 0), **CALL),
    "SEND": wire.frame(wire.SEND, b"hi", wire.REPORT, 1, **CALL),
    "WRITE": wire.frame(wire.WRITE, b"hi", wire.MEMORY, 1, **CALL),
    "WRITE to disk": wire.frame(
        wire.WRITE, wire.key(b"0123456789abcdef", 60_000) + b"hi", wire.KEYED, 1, **CALL
    ),
    "APPEND": wire.frame(wire.APPEND, wire.append(7, [b"one", b""]), 0, 2, **CALL),
    "READ": wire.frame(wire.READ, wire.read(7, 100, 65_536), 0, 2, **CALL),
    "FOLLOW": wire.frame(wire.FOLLOW, wire.read(7, 100, 65_536), 0, 2, **CALL),
    "APPEND to a conversation": wire.frame(
        wire.APPEND,
        wire.append(41, [wire.new_message(12, "m7", "user", "alice", b"{}", PARTS)]),
        0,
        3,
        **CALL,
    ),
    "APPEND to a topic": wire.frame(
        wire.APPEND,
        wire.append(None, [KEYED, wire.topic_record(b"c7", None, partition=2)]),
        0,
        4,
        **CALL,
    ),
    "TAKE": wire.frame(
        wire.TAKE,
        wire.take("acme/demo/bob?run=7", {"requests": 1, "tokens": 500}, hold_ms=30_000, id="t1"),
        **CALL,
    ),
    "SETTLE": wire.frame(wire.SETTLE, wire.settle(7, {"tokens": 340}), **CALL),
    "PEEK": wire.frame(wire.PEEK, wire.text16("acme/demo/bob"), **CALL),
    "REQUEST with an upload": wire.frame(
        wire.REQUEST,
        wire.upload("/v1/conversations/c-1/messages/a-1/stream", "u-1"),
        wire.STREAM,
        1,
        **CALL,
    ),
    "UPLOAD": wire.frame(
        wire.REQUEST,
        wire.piece("u-1", '{"type":"text-start","id":"t"}\n', False),
        0,
        2,
        **CALL,
    ),
    "UPLOAD at the end": wire.frame(
        wire.REQUEST, wire.piece("u-1", '{"type":"finish"}\n', True), 0, 2, **CALL
    ),
    "CREDIT": wire.frame(wire.CREDIT, wire.credit(32, 2048)),
    "PING": wire.frame(wire.PING, **CALL),
    "PONG": wire.frame(wire.PONG, **CALL),
    "GOAWAY": wire.frame(wire.GOAWAY, wire.make_goaway(14, 5000, "", "bye")),
}

HOLD = 7 << 64 | 8
LIMITS = [
    wire.LimitState("agent-rps", "requests", False, False, 99, 100, 100_000_000),
    wire.LimitState("org-tpm", "tokens", False, True, -20, 40_000, None),
]
DENIED = wire.Refusal("org-tpm", "tokens", False, 120, 500, 570_000_000)

DECODED: dict[str, tuple[Any, Any]] = {
    "WELCOME": (wire.welcome, wire.Welcome(1, 1, 0, WINDOW, 7, "telpher")),
    "SUBSCRIBED": (lambda it: wire.Reader(it).text16(), INSTANCE),
    "ENDED": (wire.ended, (17, INSTANCE)),
    "RECEIPT": (wire.receipt, (2, 1)),
    "COPIES": (lambda it: wire.Reader(it).u32(), 2),
    "STORED": (wire.stored, (7, True)),
    "DELIVERY": (
        lambda it: wire.delivery(wire.split(wire.DEADLINE, it)[2]),
        (7, 2, 1_700_000_000_000, b"hi"),
    ),
    "APPENDED": (wire.appended, (7, 9)),
    "EXTRACT": (
        wire.extract,
        wire.Extract(
            5,
            9,
            [wire.Item(7, 1_700_000_000_000, b"one"), wire.Item(8, 1_700_000_000_000, b"")],
        ),
    ),
    "APPENDED to a conversation": (wire.appended_messages, (42, 43, 0, [])),
    "APPENDED to a conversation, an id made": (
        wire.appended_messages,
        (42, 43, 0, ["m-1f2e"]),
    ),
    "EXTRACT of a conversation": (
        lambda it: wire.stored_message(wire.extract(it).items[0].data),
        wire.StoredMessage(0, 1, 3, "m7", "user", "alice", b"", PARTS),
    ),
    "EXTRACT of a topic": (
        wire.extract,
        wire.Extract(5, 43, [wire.Item(42, 1_700_000_000_000, KEYED)]),
    ),
    "TAKE reply, admitted": (
        wire.outcomes,
        [wire.Admitted(True, False, HOLD, 60_000, LIMITS)],
    ),
    "TAKE reply, denied and refused": (
        wire.outcomes,
        [DENIED, wire.Undecided(6, "`acme` is halted")],
    ),
    "SETTLED": (lambda it: it, b"\x01"),
    "FLOW": (lambda it: it, b"\x01"),
    "APPENDED to a topic": (
        lambda it: [wire.Reader(it[at : at + 4]).u32() for at in (0, 12)],
        [1, 2],
    ),
    "CREDIT": (wire.read_credit, (32, 2048)),
    "GOAWAY": (wire.goaway, (14, 5000, "", "bye")),
    "BIND": (wire.bound, (0, "add", NAME)),
}


@pytest.mark.parametrize("block", ENCODED)
def test_encoded_frame_equals_the_page(block: str) -> None:
    assert ENCODED[block].hex(" ") == GOLDEN[block].hex(" ")


@pytest.mark.parametrize("block", DECODED)
def test_payload_of_the_page_is_decoded(block: str) -> None:
    decode, expected = DECODED[block]
    data = GOLDEN[block]
    length = int.from_bytes(data[:4], "little")
    assert length == len(data) - 16
    assert decode(data[16:]) == expected


def test_error_frame_of_the_page_becomes_an_exception() -> None:
    error = wire.read_error(GOLDEN["ERROR"][16:])
    assert isinstance(error, errors.Busy)
    assert (error.message, error.retry_after, error.details) == ("full", 0.25, b"?")
    assert not error.may_have_been_executed and error.retry == "safe"


def test_every_block_of_the_page_is_used() -> None:
    assert GOLDEN.keys() == ENCODED.keys() | DECODED.keys()


def test_request_of_the_core_has_the_layout_of_the_page() -> None:
    connection = core.Connection(WINDOW, "", "", 64)
    connection.receive(GOLDEN["WELCOME"])
    connection.take_out()
    route = (wire.ANY, NAME, "add")
    connection.request(wire.REQUEST, 0, route, b"1+1", 10_000, TRACE, object(), 0.0)
    bind, request = GOLDEN["BIND"], bytearray(GOLDEN["REQUEST"])
    request[8:16] = u32(0) + u32(1)
    assert connection.take_out() == bind + bytes(request)
