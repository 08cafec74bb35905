"""The connection without a socket: correlation, windows, credit, bytes in any pieces."""

from __future__ import annotations

import pytest

from telpher import _core as core
from telpher import _errors as errors
from telpher import _wire as wire

WINDOW = wire.Window(1 << 16, 100, 16, 4096, 0)
ROUTE = (wire.ANY, "acme/demo/echo", "")


def welcome(frame_size_max: int = 1 << 20, calls_max: int = 8, credit: int = 4) -> bytes:
    window = (
        frame_size_max.to_bytes(4, "little")
        + calls_max.to_bytes(4, "little")
        + credit.to_bytes(4, "little")
        + (1000).to_bytes(8, "little")
        + bytes(4)
    )
    payload = b"\1\0" + b"\1" + bytes(4) + window + bytes(8) + b"\4test"
    return wire.frame(wire.WELCOME, payload)


def connected(calls_max: int = 8) -> core.Connection:
    connection = core.Connection(WINDOW, "", "", 64)
    connection.take_out()
    assert connection.receive(welcome(calls_max=calls_max)) == []
    return connection


def ask(connection: core.Connection, token: object, deadline: float = 1e9) -> int:
    return connection.request(wire.REQUEST, 0, ROUTE, b"x", None, b"", token, deadline)


def reply(slot: int, generation: int, body: bytes = b"y", flags: int = 0) -> bytes:
    return wire.frame(wire.REPLY, body, flags, 0, slot, generation)


def test_slots_are_dense_and_generations_count_their_uses() -> None:
    connection = connected()
    assert [ask(connection, at) for at in "abc"] == [0, 1, 2]
    assert connection.receive(reply(1, 1)) == [(core.DONE, "b", b"y")]
    assert ask(connection, "d") == 1
    assert connection.receive(reply(1, 1)) == [], "an answer of an older generation is dropped"
    assert connection.receive(reply(1, 2)) == [(core.DONE, "d", b"y")]


def test_bytes_in_any_pieces_give_the_same_events() -> None:
    whole = b"".join(reply(slot, 1, bytes([slot]) * 300) for slot in range(5))
    for size in (1, 7, 16, 17, 316, 10_000):
        connection = connected()
        for token in range(5):
            ask(connection, token)
        events = list[core.Event]()
        for at in range(0, len(whole), size):
            events += connection.receive(whole[at : at + size])
        assert [(token, len(body)) for _, token, body in events] == [(n, 300) for n in range(5)]


def test_room_is_bounded_by_the_window_of_the_peer() -> None:
    connection = connected(calls_max=2)
    ask(connection, "a")
    ask(connection, "b")
    assert connection.room == 0
    connection.receive(reply(0, 1))
    assert connection.room == 1


def test_cancelled_call_occupies_its_slot_until_the_peer_answers() -> None:
    connection = connected(calls_max=1)
    connection.cancel(ask(connection, "a"), "a")
    assert connection.room == 0
    assert connection.take_out().endswith(wire.frame(wire.CANCEL, slot=0, generation=1))
    assert connection.receive(reply(0, 1)) == []
    assert connection.room == 1


def test_expired_call_is_cancelled_and_the_next_deadline_is_known() -> None:
    connection = connected()
    ask(connection, "a", deadline=5.0)
    ask(connection, "b", deadline=9.0)
    late, soonest = connection.expired(6.0)
    assert ([token for token, _ in late], soonest) == (["a"], 9.0)


def test_lost_connection_knows_what_was_never_written() -> None:
    connection = connected()
    ask(connection, "written")
    connection.take_out()
    ask(connection, "not written")
    assert connection.lose() == [("written", True), ("not written", False)]


def test_body_above_the_peers_limit_is_refused_and_leaves_no_slot_in_use() -> None:
    connection = core.Connection(WINDOW, "", "", 64)
    connection.receive(welcome(frame_size_max=100))
    with pytest.raises(errors.TooLarge) as refused:
        connection.request(wire.REQUEST, 0, ROUTE, bytes(200), None, b"", "a", 1e9)
    assert not refused.value.may_have_been_executed
    assert connection.in_flight == 0


def test_frame_above_the_own_limit_is_skipped_and_fails_only_its_call() -> None:
    connection = connected()
    ask(connection, "a")
    ask(connection, "b")
    large = reply(0, 1, bytes(1 << 17))
    events = list[core.Event]()
    for at in range(0, len(large), 1000):
        events += connection.receive(large[at : at + 1000])
    events += connection.receive(reply(1, 1))
    assert isinstance(events[0][2], errors.TooLarge)
    assert events[1] == (core.DONE, "b", b"y")


def test_one_way_messages_use_credit_until_the_peer_returns_it() -> None:
    connection = connected()
    for _ in range(4):
        assert connection.has_credit(10, ROUTE)
        connection.send(ROUTE, bytes(10), b"")
    assert not connection.has_credit(10, ROUTE)
    events = connection.receive(wire.frame(wire.CREDIT, wire.credit(2, 20)))
    assert events == [(core.CREDITED, None, None)]
    assert connection.has_credit(10, ROUTE)


def test_full_subscribers_pause_a_route() -> None:
    connection = connected()
    connection.send(ROUTE, b"1", b"")
    connection.receive(wire.frame(wire.FLOW, b"\1", route=1))
    assert not connection.has_credit(1, ROUTE)
    assert connection.has_credit(1, (wire.ANY, "acme/demo/other", ""))
    connection.receive(wire.frame(wire.FLOW, b"\0", route=1))
    assert connection.has_credit(1, ROUTE)


def test_consumed_messages_return_credit_after_a_quarter_of_the_window() -> None:
    connection = connected()
    connection.receive(wire.bind(1, wire.ANY, "", "acme/demo/sink/i"))
    events = connection.receive(b"".join(wire.frame(wire.SEND, b"12", route=1) for _ in range(4)))
    for _, inbound, _ in events[:3]:
        connection.consume(inbound)
    assert not connection.out
    connection.consume(events[3][1])
    assert connection.take_out() == wire.frame(wire.CREDIT, wire.credit(4, 8))


def test_peer_that_ignores_the_window_is_a_violation() -> None:
    connection = connected()
    connection.receive(wire.bind(1, wire.ANY, "", "acme/demo/sink/i"))
    with pytest.raises(errors.ProtocolError):
        connection.receive(b"".join(wire.frame(wire.SEND, b"", route=1) for _ in range(17)))


@pytest.mark.parametrize(
    "garbage",
    [b"HTTP/1.1 400 Bad Request\r\n\r\n", bytes(64), b"\xff" * 64, wire.frame(wire.REPLY)],
)
def test_first_bytes_of_another_protocol_are_refused(garbage: bytes) -> None:
    connection = core.Connection(WINDOW, "", "", 64)
    with pytest.raises(errors.ProtocolError):
        connection.receive(garbage)


def test_unknown_kinds_are_skipped_only_with_bit_7() -> None:
    connection = connected()
    assert connection.receive(wire.frame(0xFE, b"later")) == []
    with pytest.raises(errors.ProtocolError):
        connection.receive(wire.frame(0x7E, b""))


def test_truncated_payloads_are_a_violation() -> None:
    for payload in (b"", b"\1", b"\1\0\0\0"):
        with pytest.raises(errors.ProtocolError):
            wire.extract(payload or b"\0")
        with pytest.raises(errors.ProtocolError):
            wire.read_error(payload)


def test_routes_above_the_maximum_replace_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "ROUTES_MAX", 2)
    connection = connected()
    for name in "abc":
        connection.send((wire.ALL, f"acme/demo/{name}", ""), b"", b"")
    connection.take_out()
    connection.send((wire.ALL, "acme/demo/c", ""), b"", b"")
    data = connection.take_out()
    assert data == wire.frame(wire.SEND, b"", route=1)
