"""A client of the native protocol, written from docs/reference/protocol.md with the standard library alone.

`client.py HOST:PORT` tests every part of the page that a client needs, and fails at the first answer
that differs from the page.
"""

import json
import socket
import struct
import sys
import uuid

HELLO, WELCOME, CREDIT, FLOW, PING, PONG = 0x01, 0x02, 0x06, 0x07, 0x04, 0x05
BIND, SUBSCRIBE, UNSUBSCRIBE, ENDED = 0x10, 0x11, 0x12, 0x13
REQUEST, REPLY, ERROR, CANCEL = 0x20, 0x21, 0x22, 0x23
SEND, RECEIPT, WRITE = 0x30, 0x31, 0x32
APPEND, READ, FOLLOW, TAKE, SETTLE, PEEK = 0x40, 0x41, 0x42, 0x50, 0x51, 0x52
DEADLINE, METADATA, MORE, STREAM, REPORT, MEMORY, KEYED = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40
WRITTEN = 0x40
ANY, ALL, STREAM_OF_RECORDS, CONVERSATION = 0, 1, 2, 3
ANY_OFFSET = 2**64 - 1
CODES = {
    "no_responder": 1, "unknown_method": 2, "too_large": 5, "cancelled": 7, "deadline_exceeded": 8,
    "handler_error": 10, "invalid_argument": 11, "replaced": 17, "conflict": 18, "trimmed": 22,
}


def text8(text):
    return struct.pack("<B", len(text.encode())) + text.encode()


def text16(text):
    return struct.pack("<H", len(text.encode())) + text.encode()


class Reader:
    def __init__(self, data):
        self.data = data

    def take(self, layout):
        size = struct.calcsize("<" + layout)
        values = struct.unpack("<" + layout, self.data[:size])
        self.data = self.data[size:]
        return values[0] if len(values) == 1 else values

    def bytes(self, size):
        taken, self.data = self.data[:size], self.data[size:]
        assert len(taken) == size, "the payload ends too early"
        return taken

    def text8(self):
        return self.bytes(self.take("B")).decode()

    def text16(self):
        return self.bytes(self.take("H")).decode()


class Frame:
    def __init__(self, kind, flags, route, call, payload):
        self.kind, self.flags, self.route, self.call, self.payload = kind, flags, route, call, payload

    def __repr__(self):
        return f"kind {self.kind:#x} flags {self.flags:#x} call {self.call} {self.payload[:80]!r}"

    def error(self):
        assert self.kind == ERROR, self
        reader = Reader(self.payload)
        code, sent, retry_after_ms = reader.take("HBI")
        return code, reader.text16(), reader.data

    def body(self):
        """Returns the payload after the deadline and the metadata block."""
        reader = Reader(self.payload)
        if self.flags & DEADLINE:
            reader.take("I")
        if self.flags & METADATA:
            reader.bytes(reader.take("H"))
        return reader.data


class Client:
    def __init__(self, address, name=""):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.free, self.generations, self.routes = [], [], 0
        self.names = {}
        hello = b"TLPH" + struct.pack("<HHI", 1, 1, 1)
        hello += struct.pack("<IIIQI", 1 << 20, 64, 256, 1 << 20, 0) + text16("") + text16(name)
        self.send(HELLO, hello)
        welcome = self.next()
        assert welcome.kind == WELCOME, welcome
        version, role, features = Reader(welcome.payload).take("HBI")
        assert (version, role) == (1, 1), welcome

    def send(self, kind, payload=b"", flags=0, route=0, call=(0, 0)):
        header = struct.pack("<IBBHII", len(payload), kind, flags, route, *call)
        self.socket.sendall(header + payload)

    def exactly(self, size):
        data = b""
        while len(data) < size:
            piece = self.socket.recv(size - len(data))
            if not piece:
                raise EOFError
            data += piece
        return data

    def next(self):
        """Returns the next frame; answers pings, and stores the routes that the node binds."""
        while True:
            length, kind, flags, route, slot, generation = struct.unpack("<IBBHII", self.exactly(16))
            frame = Frame(kind, flags, route, (slot, generation), self.exactly(length))
            if kind == PING:
                self.send(PONG, call=frame.call)
            elif kind == BIND:
                reader = Reader(frame.payload)
                reader.take("B")
                self.names[route] = (reader.text8(), reader.text16())
            elif kind not in (CREDIT, FLOW):
                return frame

    def call(self):
        """Returns a correlation: the lowest free slot and its use count."""
        if self.free:
            slot = self.free.pop()
        else:
            slot = len(self.generations)
            self.generations.append(0)
        self.generations[slot] += 1
        return slot, self.generations[slot]

    def answer(self, call):
        """Returns the last frame of a call."""
        frame = self.next()
        assert frame.call == call, (frame, call)
        assert not frame.flags & MORE, frame
        self.free.append(call[0])
        return frame

    def ask(self, kind, payload, flags=0, route=0):
        call = self.call()
        self.send(kind, payload, flags, route, call)
        return self.answer(call)

    def bind(self, name, cast=ANY, method=""):
        self.routes += 1
        self.send(BIND, struct.pack("<B", cast) + text8(method) + text16(name), route=self.routes)
        return self.routes

    def subscribe(self, name):
        reply = self.ask(SUBSCRIBE, b"\0" + text16(name))
        assert reply.kind == REPLY, reply
        return Reader(reply.payload).text16()


def failed(frame, code):
    number, message, details = frame.error()
    assert number == CODES[code], (number, message)
    return details


def calls(address):
    caller, responder = Client(address, "acme/demo/caller"), Client(address, "acme/demo/sum")
    full = responder.subscribe("acme/demo/sum")
    assert full.startswith("acme/demo/sum/"), full
    route = caller.bind("acme/demo/sum", method="add")
    trace = text8("traceparent") + struct.pack("<H", 9) + b"00-1-2-01"
    call = caller.call()
    asked = struct.pack("<I", 10_000) + struct.pack("<H", len(trace)) + trace + b"1+1"
    caller.send(REQUEST, asked, DEADLINE | METADATA, route, call)
    request = responder.next()
    assert request.kind == REQUEST and request.body() == b"1+1", request
    assert responder.names[request.route] == ("add", full), responder.names
    responder.send(REPLY, b"2", call=request.call)
    assert caller.answer(call).payload == b"2"
    call = caller.call()
    caller.send(REQUEST, b"1/0", 0, route, call)
    request = responder.next()
    refusal = struct.pack("<HBI", CODES["handler_error"], 1, 0) + text16("no") + b"why"
    responder.send(ERROR, refusal, call=request.call)
    assert failed(caller.answer(call), "handler_error") == b"why"
    failed(caller.ask(REQUEST, b"", route=caller.bind("acme/demo/nobody")), "no_responder")
    failed(caller.ask(REQUEST, b"", route=caller.bind("two/parts")), "invalid_argument")
    call = caller.call()
    caller.send(REQUEST, b"forget it", 0, route, call)
    request = responder.next()
    caller.send(CANCEL, call=call)
    failed(caller.answer(call), "cancelled")
    cancel = responder.next()
    assert (cancel.kind, cancel.call) == (CANCEL, request.call), cancel
    # A late answer is ignored.
    responder.send(REPLY, b"late", call=request.call)
    streamed(caller, responder, route)
    assert responder.ask(UNSUBSCRIBE, text16(full)).kind == REPLY
    # A name of one part is below default/default.
    assert responder.subscribe("nope").startswith("default/default/nope/")


def streamed(caller, responder, route):
    """Streams 300 items, with credit for 64 at a time."""
    call = caller.call()
    caller.send(REQUEST, b"count", STREAM, route, call)
    request = responder.next()
    assert request.flags & STREAM, request
    credit, sent, received, returned = 64, 0, 0, 0
    while received < 300:
        while sent < min(credit, 300):
            responder.send(REPLY, struct.pack("<I", sent), MORE, call=request.call)
            sent += 1
        item = caller.next()
        assert item.call == call and item.flags & MORE, item
        assert item.payload == struct.pack("<I", received), item
        received += 1
        if received % 32 == 0:
            caller.send(CREDIT, struct.pack("<IQ", 32, 0), call=call)
            returned += 32
            credit += credit_of(responder, request.call)
    responder.send(REPLY, b"", call=request.call)
    assert caller.answer(call).payload == b""


def credit_of(client, call):
    """Waits for credit of a stream."""
    while True:
        length, kind, flags, route, slot, generation = struct.unpack("<IBBHII", client.exactly(16))
        payload = client.exactly(length)
        if kind == CREDIT and (slot, generation) == call:
            return Reader(payload).take("IQ")[0]


def one_way(address):
    sender, receiver = Client(address), Client(address)
    receiver.subscribe("acme/demo/sink")
    route = sender.bind("acme/demo/sink")
    sender.send(SEND, b"hi", 0, route)
    frame = receiver.next()
    assert (frame.kind, frame.body()) == (SEND, b"hi"), frame
    receiver.send(CREDIT, struct.pack("<IQ", 1, 2))
    receipt = sender.ask(SEND, b"again", REPORT, sender.bind("acme/demo/sink", ALL))
    assert (receipt.kind, Reader(receipt.payload).take("II")) == (RECEIPT, (1, 0)), receipt
    assert receiver.next().body() == b"again"
    copies = sender.ask(WRITE, b"in memory", MEMORY, route)
    assert Reader(copies.payload).take("I") == 1, copies
    frame = receiver.next()
    assert (frame.kind, frame.body()) == (SEND, b"in memory"), frame


def mailboxes(address):
    writer, reader = Client(address), Client(address)
    route = writer.bind("acme/demo/box")
    key = uuid.uuid4().bytes + struct.pack("<I", 0)
    for expected in (0, 1):
        stored = writer.ask(WRITE, key + b"kept", KEYED, route)
        offset, flags = Reader(stored.payload).take("QB")
        assert flags == expected, (offset, flags)
    reader.subscribe("acme/demo/box")
    for delivery in (1, 2):
        frame = reader.next()
        assert frame.kind == REQUEST and frame.flags & WRITTEN, frame
        body = Reader(frame.body())
        assert body.take("QIQ")[:2] == (offset, delivery), frame
        assert body.data == b"kept", frame
        if delivery == 1:
            refusal = struct.pack("<HBI", CODES["handler_error"], 1, 1) + text16("later")
            reader.send(ERROR, refusal, call=frame.call)
        else:
            reader.send(REPLY, b"", call=frame.call)


def records(reader, count):
    found = []
    for _ in range(count):
        offset, time_ms, length = reader.take("QQI")
        assert time_ms > 1_700_000_000_000, time_ms
        found.append((offset, reader.bytes(length)))
    return found


def append(expected, records):
    body = struct.pack("<QI", expected, len(records))
    return body + b"".join(struct.pack("<I", len(record)) + record for record in records)


def streams(address):
    client = Client(address)
    route = client.bind("acme/demo/log", STREAM_OF_RECORDS)
    appended = client.ask(APPEND, append(0, [b"one", b""]), route=route)
    assert Reader(appended.payload).take("QQ") == (0, 2), appended
    details = failed(client.ask(APPEND, append(7, [b"x"]), route=route), "conflict")
    assert Reader(details).take("Q") == 2
    extract = Reader(client.ask(READ, struct.pack("<QII", 0, 100, 65536), route=route).payload)
    assert extract.take("QQ") == (0, 2)
    assert records(extract, 2) == [(0, b"one"), (1, b"")] and extract.data == b""
    call = client.call()
    client.send(FOLLOW, struct.pack("<QII", 0, 1, 65536), 0, route, call)
    writer = Client(address)
    into = writer.bind("acme/demo/log", STREAM_OF_RECORDS)
    for expected in (b"one", b"", b"three"):
        if expected == b"three":
            assert writer.ask(APPEND, append(ANY_OFFSET, [b"three"]), route=into).kind == REPLY
        item = client.next()
        assert item.call == call and item.flags & MORE, item
        followed = Reader(item.payload)
        followed.take("QQ")
        assert records(followed, 1)[0][1] == expected, item
        client.send(CREDIT, struct.pack("<IQ", 1, 0), call=call)
    client.send(CANCEL, call=call)
    failed(client.answer(call), "cancelled")


def message(tokens, id, role, author, metadata, parts):
    body = struct.pack("<I", tokens) + text8(id) + text8(role) + text16(author)
    return body + struct.pack("<I", len(metadata)) + metadata + json.dumps(parts).encode()


def conversations(address):
    client = Client(address)
    route = client.bind("acme/demo/talk", CONVERSATION)
    parts = [{"type": "text", "text": "Hi"}]
    said = message(12, "m7", "user", "alice", b"{}", parts)
    for deduplicated in (0, 1):
        reply = client.ask(APPEND, append(ANY_OFFSET, [said]), route=route)
        assert reply.kind == REPLY, reply.error()
        assert Reader(reply.payload).take("QQI") == (1, 2, deduplicated), reply
    unnamed = message(2**32 - 1, "", "assistant", "", b"", parts)
    reply = Reader(client.ask(APPEND, append(1, [unnamed]), route=route).payload)
    assert reply.take("QQI") == (2, 3, 0)
    made = reply.text8()
    wrong = message(1, "m8", "user", "", b"", ["Hi"])
    failed(client.ask(APPEND, append(ANY_OFFSET, [wrong]), route=route), "invalid_argument")
    extract = Reader(client.ask(READ, struct.pack("<QII", 1, 10, 65536), route=route).payload)
    assert extract.take("QQ") == (1, 3)
    (first, one), (second, other) = records(extract, 2)
    assert (first, second) == (1, 2)
    one, other = Reader(one), Reader(other)
    assert one.take("BBI") == (0, 0, 12)
    assert (one.text8(), one.text8(), one.text16()) == ("m7", "user", "alice")
    assert one.bytes(one.take("I")) == b"{}" and json.loads(one.data) == parts
    status, flags, tokens = other.take("BBI")
    assert (status, flags) == (0, 1) and tokens > 0
    assert (other.text8(), other.text8()) == (made, "assistant")


def takes(address, limited):
    client = Client(address)
    costs = text8("requests") + struct.pack("<Q", 1)
    take = b"\0" + text16(limited) + struct.pack("<H", len(costs)) + costs
    reply = Reader(client.ask(TAKE, take + take).payload)
    names = [(reply.text8(), reply.text8()) for _ in range(reply.take("H"))]
    assert names == [("one-request", "requests")], names
    outcome, flags, hold, count = reply.take("BBQH")
    assert (outcome, hold, count) == (0, 0, 1)
    assert reply.take("HBqQQ")[2:4] == (0, 1)
    outcome, limit, flags, have, need, retry_after_ns = reply.take("BHBqQQ")
    assert (outcome, limit, have, need) == (1, 0, 0, 1) and retry_after_ns > 0
    assert reply.data == b""
    peeked = Reader(client.ask(PEEK, text16(limited)).payload)
    assert peeked.take("H") == 1 and peeked.text8() == "one-request"
    held = b"\1" + text16("acme/free/bob") + struct.pack("<I", 30_000) + struct.pack("<H", len(costs)) + costs
    reply = Reader(client.ask(TAKE, held).payload)
    for _ in range(reply.take("H")):
        reply.text8(), reply.text8()
    assert reply.take("BB") == (0, 4)
    low, high, ends_in_ms = reply.take("QQQ")
    assert (low, high) != (0, 0) and 0 < ends_in_ms <= 30_000
    settle = struct.pack("<QBQ", low, 2, high)
    assert client.ask(SETTLE, settle).payload == b"\1"
    assert client.ask(SETTLE, settle).payload == b"\0"


def limits(address):
    client = Client(address)
    route = client.bind("acme/demo/nobody")
    call = client.call()
    too_large = (8 << 20) + 1
    client.send(REQUEST, bytes(too_large), 0, route, call)
    failed(client.answer(call), "too_large")
    failed(client.ask(REQUEST, b"", route=route), "no_responder")
    # An unknown kind with bit 7 is skipped; one without it ends the connection.
    client.send(0xFE, b"later")
    failed(client.ask(REQUEST, b"", route=route), "no_responder")
    client.send(0x7E, b"unknown")
    assert client.next().kind == ERROR
    try:
        client.next()
        raise AssertionError("the connection goes on")
    except (EOFError, ConnectionError):
        pass


if __name__ == "__main__":
    address, limited = sys.argv[1], sys.argv[2]
    calls(address)
    one_way(address)
    mailboxes(address)
    streams(address)
    conversations(address)
    takes(address, limited)
    limits(address)
    print("ok")
