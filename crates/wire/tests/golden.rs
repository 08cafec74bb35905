//! Golden bytes: encodes each example of `docs/reference/protocol.md`, compares it with the page,
//! and decodes the page's bytes back.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use model::{ErrorCode, Failure};
use wire::{
    Admitted, Append, Appended, AppendedMessages, AppendedRecords, Bind, Cast, Correlation, Costs,
    Credit, Delivery, Denied, DescribedMethod, DescribedMethods, Description, Extract, Flags,
    Goaway, Hello, Hold, Inbox, Item, Key, Kind, LimitState, MadeIds, Message, NewMessage, Outcome,
    Outcomes, Payload, Read, Receipt, Record, Role, SUBSCRIBE_WITH_SOURCE, Settle, Stored,
    Subscribe, SubscriptionEnd, TRACEPARENT, Take, Takes, TopicHeaders, TopicRecord, Wait, Welcome,
    Window, encode_extracted, encode_frame, put_extracted,
};

const PAGE: &str = include_str!("../../../docs/reference/protocol.md");

const CALL: Correlation = Correlation {
    slot: 5,
    generation: 3,
};

const WINDOW: Window = Window {
    frame_size_max: 8 << 20,
    calls_max: 65_536,
    credit_messages: 4096,
    credit_bytes: 1 << 20,
    keepalive_ms: 15_000,
};

/// Valid parts of a message.
const PARTS: &[u8] = br#"[{"type":"text","text":"Hi"}]"#;

/// The bytes of the page's block ```` ```golden NAME ````: hex pairs, `|` starts a remark.
fn golden(name: &str) -> Vec<u8> {
    let start = format!("```golden {name}\n");
    let (_, rest) = PAGE
        .split_once(&start)
        .unwrap_or_else(|| panic!("docs/reference/protocol.md has no block `{name}`"));
    let (block, _) = rest.split_once("```").unwrap();
    block
        .lines()
        .flat_map(|line| line.split('|').next().unwrap().split_whitespace())
        .map(|pair| u8::from_str_radix(pair, 16).unwrap())
        .collect()
}

#[track_caller]
fn check(name: &str, encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(&mut bytes);
    let hex = |bytes: &[u8]| {
        let pairs: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        pairs
            .chunks(16)
            .map(|line| line.join(" "))
            .collect::<Vec<_>>()
            .join("\n")
    };
    assert_eq!(hex(&bytes), hex(&golden(name)), "{name}");
    let mut inbox = Inbox::new(1 << 20);
    let mut frames = inbox.feed(&bytes);
    let Some(Item::Frame(header, payload)) = frames.next() else {
        panic!("{name} is one frame")
    };
    assert_eq!(header.encode(), bytes[..16]);
    payload.to_vec()
}

#[test]
fn hello() {
    let hello = Hello {
        version_min: 1,
        version_max: 1,
        features: 0,
        window: WINDOW,
        token: "tlp_x",
        name: "acme/demo/bob",
    };
    let payload = check("HELLO", |out| hello.encode(out));
    assert_eq!(Hello::decode(&payload), Ok(hello));
}

#[test]
fn welcome() {
    let welcome = Welcome {
        version: 1,
        role: Role::Node,
        features: 0,
        window: WINDOW,
        connection: 7,
        software: "telpher",
    };
    let payload = check("WELCOME", |out| welcome.encode(out));
    assert_eq!(Welcome::decode(&payload), Ok(welcome));
}

#[test]
fn bind() {
    let bind = Bind {
        route: 1,
        cast: Cast::Any,
        method: "add",
        name: "acme/demo/sum",
    };
    let payload = check("BIND", |out| bind.encode(out));
    assert_eq!(Bind::decode(1, &payload), Ok(bind));
    assert!(Bind::decode(0, &payload).is_err());
}

#[test]
fn subscribe() {
    let subscribe = Subscribe {
        options: SUBSCRIBE_WITH_SOURCE,
        name: "acme/demo/sum",
        description: None,
    };
    let payload = check("SUBSCRIBE", |out| subscribe.encode(CALL, out));
    assert_eq!(Subscribe::decode(&payload), Ok(subscribe));
    let mut buffer = Vec::new();
    let add = DescribedMethod {
        name: "add",
        is_streamed: false,
        text: "Sums",
        input: r#"{"type":"array"}"#,
        output: "",
    };
    let described = Subscribe {
        options: SUBSCRIBE_WITH_SOURCE,
        name: "acme/demo/sum",
        description: Some(Description {
            version: "1.2.0",
            text: "Numbers",
            methods: DescribedMethods::encode([add].into_iter(), &mut buffer),
        }),
    };
    let payload = check("SUBSCRIBE with a description", |out| {
        described.encode(CALL, out);
    });
    let decoded = Subscribe::decode(&payload).unwrap();
    assert_eq!(decoded, described);
    let methods = decoded.description.unwrap().methods;
    assert_eq!(methods.iter().collect::<Vec<_>>(), [add]);
    for length in 16..payload.len() {
        assert!(Subscribe::decode(&payload[..length]).is_err(), "{length}");
    }
    // An older node reads the name and ignores what follows.
    assert_eq!(payload[1..16], *b"\x0d\0acme/demo/sum");
    let payload = check("SUBSCRIBED", |out| {
        wire::encode_subscribed("acme/demo/sum/i-1", CALL, out);
    });
    assert_eq!(wire::decode_name(&payload), Ok("acme/demo/sum/i-1"));
    check("UNSUBSCRIBE", |out| {
        wire::encode_unsubscribe("acme/demo/sum/i-1", CALL, out)
    });
    let ended = SubscriptionEnd {
        code: ErrorCode::Replaced,
        name: "acme/demo/sum/i-1",
    };
    let payload = check("ENDED", |out| ended.encode(out));
    assert_eq!(SubscriptionEnd::decode(&payload), Ok(ended));
}

#[test]
fn request_and_its_answers() {
    let mut metadata = Vec::new();
    wire::encode_metadata(TRACEPARENT, b"00-1-2-01", &mut metadata);
    let request = Payload {
        deadline_ms: Some(10_000),
        metadata: &metadata,
        body: b"1+1",
    };
    let payload = check("REQUEST", |out| {
        request.encode(Kind::REQUEST, Flags::NONE, 1, CALL, out);
    });
    let flags = Flags::DEADLINE | Flags::METADATA;
    assert_eq!(Payload::decode(flags, &payload), Ok(request));
    check("REPLY", |out| {
        Payload::body(b"2").encode(Kind::REPLY, Flags::NONE, 0, CALL, out);
    });
    let failure = Failure {
        code: ErrorCode::Busy,
        sent: false,
        retry_after_ms: 250,
        message: "full",
        details: b"?",
    };
    let payload = check("ERROR", |out| wire::encode_failure(&failure, CALL, out));
    assert_eq!(wire::decode_failure(&payload), Ok(failure));
    check("CANCEL", |out| wire::encode_cancel(CALL, out));
    let credit = Credit {
        messages: 32,
        bytes: 0,
    };
    let payload = check("CREDIT for a stream", |out| credit.encode(CALL, out));
    assert_eq!(Credit::decode(&payload), Ok(credit));
}

#[test]
fn error_codes() {
    let rows = PAGE.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| ")?.split(" | ");
        let number: u16 = cells.next()?.parse().ok()?;
        let code = cells.next()?.strip_prefix('`')?.strip_suffix('`')?;
        Some((number, code.to_owned()))
    });
    let codes = ErrorCode::ALL.map(|code| (code.as_u16(), code.as_str().to_owned()));
    assert_eq!(rows.collect::<Vec<_>>(), codes);
}

#[test]
fn one_way() {
    check("SEND", |out| {
        Payload::body(b"hi").encode(Kind::SEND, Flags::REPORT, 1, CALL, out);
    });
    let receipt = Receipt {
        delivered: 2,
        dropped: 1,
    };
    let payload = check("RECEIPT", |out| receipt.encode(CALL, out));
    assert_eq!(Receipt::decode(&payload), Ok(receipt));
    check("WRITE", |out| {
        Payload::body(b"hi").encode(Kind::WRITE, Flags::MEMORY, 1, CALL, out);
    });
    let payload = check("COPIES", |out| wire::encode_copies(2, CALL, out));
    assert_eq!(wire::decode_copies(&payload), Ok(2));
}

#[test]
fn mailboxes() {
    let key = Key {
        id: *b"0123456789abcdef",
        ttl_ms: 60_000,
    };
    let payload = check("WRITE to disk", |out| {
        let payload = Payload::body(b"hi");
        payload.encode_prefixed(&key.encode(), Kind::WRITE, Flags::KEYED, 1, CALL, out);
    });
    assert_eq!(Key::split(&payload), Ok((key, &b"hi"[..])));
    let stored = Stored {
        offset: 7,
        is_duplicate: true,
    };
    let payload = check("STORED", |out| stored.encode(CALL, out));
    assert_eq!(Stored::decode(&payload), Ok(stored));
    let delivery = Delivery {
        offset: 7,
        delivery: 2,
        written_ms: 1_700_000_000_000,
    };
    let message = Payload {
        deadline_ms: Some(30_000),
        metadata: &[],
        body: b"hi",
    };
    let payload = check("DELIVERY", |out| {
        let prefix = delivery.encode();
        message.encode_prefixed(&prefix, Kind::REQUEST, Flags::WRITTEN, 1, CALL, out);
    });
    let message = Payload::decode(Flags::DEADLINE | Flags::WRITTEN, &payload).unwrap();
    assert_eq!(Delivery::split(message.body), Ok((delivery, &b"hi"[..])));
}

#[test]
fn streams() {
    let bind = Bind {
        route: 2,
        cast: Cast::Stream,
        method: "",
        name: "acme/demo/log",
    };
    let payload = check("BIND to a stream", |out| bind.encode(out));
    assert_eq!(Bind::decode(2, &payload), Ok(bind));

    let records: [&[u8]; 2] = [b"one", b""];
    let payload = check("APPEND", |out| {
        let mut body = Vec::new();
        Append::encode(Some(7), &records, &mut body);
        Payload::body(&body).encode(Kind::APPEND, Flags::NONE, 2, CALL, out);
    });
    let append = Append::decode(&payload).unwrap();
    assert_eq!((append.expected, append.count), (Some(7), 2));
    assert_eq!(append.records().collect::<Vec<_>>(), records);
    let appended = Appended { first: 7, next: 9 };
    let payload = check("APPENDED", |out| appended.encode(CALL, out));
    assert_eq!(Appended::decode(&payload), Ok(appended));

    let read = Read {
        from: 7,
        records_max: 100,
        bytes_max: 65_536,
    };
    let payload = check("READ", |out| {
        Payload::body(&read.encode()).encode(Kind::READ, Flags::NONE, 2, CALL, out);
    });
    assert_eq!(Read::decode(&payload), Ok(read));
    check("FOLLOW", |out| {
        Payload::body(&read.encode()).encode(Kind::FOLLOW, Flags::NONE, 2, CALL, out);
    });
    let record = |offset, bytes| Record {
        offset,
        time_ms: 1_700_000_000_000,
        bytes,
    };
    let records = [record(7, b"one"), record(8, b"")];
    let payload = check("EXTRACT", |out| {
        Extract::encode(5, 9, records.into_iter(), Flags::NONE, CALL, out);
    });
    let extract = Extract::decode(&payload).unwrap();
    assert_eq!((extract.start, extract.next), (5, 9));
    assert_eq!(extract.records().collect::<Vec<_>>(), records);
}

#[test]
fn conversations() {
    check("BIND to a conversation", |out| {
        Bind {
            route: 3,
            cast: Cast::Conversation,
            method: "",
            name: "acme/demo/talk",
        }
        .encode(out);
    });
    let new = NewMessage {
        id: "m7",
        role: "user",
        from: "alice",
        tokens: Some(12),
        metadata: b"{}",
        parts: PARTS,
    };
    let mut record = Vec::new();
    new.encode(&mut record);
    let mut body = Vec::new();
    Append::encode(Some(41), &[&record], &mut body);
    let payload = check("APPEND to a conversation", |out| {
        Payload::body(&body).encode(Kind::APPEND, Flags::NONE, 3, CALL, out);
    });
    let append = Append::decode(&payload).unwrap();
    let decoded = append.records().map(NewMessage::decode);
    assert_eq!(decoded.collect::<Vec<_>>(), [Ok(new)]);
    let appended = AppendedMessages {
        first: 42,
        next: 43,
        deduplicated: 0,
        made: MadeIds::default(),
    };
    let payload = check("APPENDED to a conversation", |out| {
        appended.encode(CALL, out);
    });
    assert_eq!(AppendedMessages::decode(&payload), Ok(appended));
    let mut made = Vec::new();
    let appended = AppendedMessages {
        made: MadeIds::encode(["m-1f2e"], &mut made),
        ..appended
    };
    let payload = check("APPENDED to a conversation, an id made", |out| {
        appended.encode(CALL, out);
    });
    let decoded = AppendedMessages::decode(&payload).unwrap();
    assert_eq!(decoded, appended);
    assert_eq!(decoded.made.iter().collect::<Vec<_>>(), ["m-1f2e"]);
    assert!(AppendedMessages::decode(&payload[..payload.len() - 1]).is_err());
    let message = Message {
        status: 0,
        tokens: 3,
        is_estimated: true,
        id: "m7",
        role: "user",
        from: "alice",
        metadata: b"",
        parts: PARTS,
    };
    let payload = check("EXTRACT of a conversation", |out| {
        let messages = [(42, 1_700_000_000_000, message)].into_iter();
        Message::encode_extract(1, 43, messages, Flags::NONE, CALL, out);
    });
    let extract = Extract::decode(&payload).unwrap();
    let record = extract.records().next().unwrap();
    assert_eq!((record.offset, record.time_ms), (42, 1_700_000_000_000));
    assert_eq!(Message::decode(record.bytes), Ok(message));
    let nothing = NewMessage {
        tokens: None,
        ..new
    };
    let mut record = Vec::new();
    nothing.encode(&mut record);
    assert_eq!(NewMessage::decode(&record), Ok(nothing));
}

#[test]
fn topics() {
    let bind = Bind {
        route: 4,
        cast: Cast::Topic,
        method: "",
        name: "orders",
    };
    let payload = check("BIND to a topic", |out| bind.encode(out));
    assert_eq!(Bind::decode(4, &payload), Ok(bind));

    let mut buffer = Vec::new();
    let headers = [("trace", Some(&b"7f"[..])), ("none", None)];
    let keyed = TopicRecord {
        partition: None,
        key: Some(b"c7"),
        headers: TopicHeaders::encode(headers.into_iter(), &mut buffer),
        value: Some(b"hi"),
    };
    let gone = TopicRecord {
        partition: Some(2),
        key: Some(b"c7"),
        ..TopicRecord::default()
    };
    let encoded = |record: TopicRecord<'_>| {
        let mut out = Vec::new();
        record.encode(&mut out);
        assert_eq!(TopicRecord::decode(&out), Ok(record));
        out
    };
    let payload = check("APPEND to a topic", |out| {
        let mut body = Vec::new();
        Append::encode(None, &[encoded(keyed), encoded(gone)], &mut body);
        Payload::body(&body).encode(Kind::APPEND, Flags::NONE, 4, CALL, out);
    });
    let append = Append::decode(&payload).unwrap();
    let records: Vec<_> = append.records().map(TopicRecord::decode).collect();
    assert_eq!(records, [Ok(keyed), Ok(gone)]);
    assert_eq!(keyed.headers.iter().collect::<Vec<_>>(), headers);
    let places = [(1, 42), (2, 7)];
    let payload = check("APPENDED to a topic", |out| {
        AppendedRecords::encode(places.into_iter(), CALL, out);
    });
    let appended = AppendedRecords::decode(&payload).unwrap();
    assert_eq!(appended.places().collect::<Vec<_>>(), places);
    assert!(AppendedRecords::decode(&payload[1..]).is_err());
    let payload = check("EXTRACT of a topic", |out| {
        let mut records = Vec::new();
        put_extracted(42, 1_700_000_000_000, &keyed, &mut records);
        encode_extracted(5, 43, &records, Flags::NONE, CALL, out);
    });
    let extract = Extract::decode(&payload).unwrap();
    assert_eq!((extract.start, extract.next), (5, 43));
    let record = extract.records().next().unwrap();
    assert_eq!((record.offset, record.time_ms), (42, 1_700_000_000_000));
    assert_eq!(TopicRecord::decode(record.bytes), Ok(keyed));
}

#[test]
fn incomplete_or_unknown_topic_record_is_refused() {
    let decode = |bytes: &[u8]| TopicRecord::decode(bytes).is_ok();
    assert!(decode(&[0]) && decode(&[2]) && decode(&[2, 9]));
    for bytes in [
        &[][..],
        &[0, 9],
        &[16],
        &[1, 2, 0, 0, 0, 9],
        &[1, 0xff, 0xff, 0xff, 0xff],
        &[4, 1, 0],
        &[4, 0xff, 0xff, 0, 0, 0, 0, 0, 0],
        &[4, 1, 0, 1, 0, 0xff, 0, 0, 0, 0],
        &[8, 1, 2],
    ] {
        assert!(!decode(bytes), "{bytes:?}");
    }
}

/// A count or length beyond the available bytes is refused before anything is read.
#[test]
fn missing_records_are_refused() {
    let append = |expected: u64, count: u32, records: &[u8]| {
        let head = [&expected.to_le_bytes()[..], &count.to_le_bytes()].concat();
        Append::decode(&[&head[..], records].concat()).is_ok()
    };
    assert!(append(u64::MAX, 0, b""));
    assert!(append(u64::MAX, 1, b"\x01\0\0\0x"));
    assert!(!append(u64::MAX, u32::MAX, b"\x01\0\0\0x"));
    assert!(!append(u64::MAX, 1, b"\xff\xff\xff\xffx"));
    assert!(
        !append(u64::MAX, 1, b"\x01\0\0\0xy"),
        "bytes behind the last record"
    );
    assert!(!append(u64::MAX, 0, b"y"));
    let head = [0; 16];
    assert!(Extract::decode(&head).is_ok());
    assert!(Extract::decode(&[&head[..], &[0xff; 20]].concat()).is_err());
}

fn costs(costs: &[(&str, u64)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (unit, count) in costs {
        Costs::encode(unit, *count, &mut bytes);
    }
    bytes
}

#[test]
fn takes() {
    let bytes = costs(&[("requests", 1), ("tokens", 500)]);
    let take = Take {
        subject: "acme/demo/bob?run=7",
        hold_ms: Some(30_000),
        wait: None,
        id: Some("t1"),
        costs: Costs::decode(&bytes).unwrap(),
    };
    let payload = check("TAKE", |out| {
        encode_frame(out, Kind::TAKE, Flags::NONE, 0, CALL, |out| {
            take.encode(out)
        });
    });
    let takes = Takes::decode(&payload).unwrap();
    assert_eq!((takes.count, takes.iter().next()), (1, Some(take)));
    let counts: Vec<_> = take.costs.iter().collect();
    assert_eq!(counts, [("requests", 1), ("tokens", 500)]);
    let waiting = Take {
        hold_ms: None,
        wait: Some(Wait {
            wait_ms: 250,
            priority: 9,
        }),
        id: None,
        costs: Costs::decode(&[]).unwrap(),
        ..take
    };
    let mut payload = Vec::new();
    waiting.encode(&mut payload);
    take.encode(&mut payload);
    let takes = Takes::decode(&payload).unwrap();
    assert_eq!(takes.count, 2);
    assert_eq!(takes.iter().collect::<Vec<_>>(), [waiting, take]);
    payload[0] = 0x80;
    assert!(Takes::decode(&payload).is_err(), "an unknown flag");
}

const LIMITS: [(&str, &str); 2] = [("agent-rps", "requests"), ("org-tpm", "tokens")];

#[test]
fn outcomes_of_takes() {
    let states = [
        LimitState {
            limit: 0,
            is_shared: false,
            is_shadowed: false,
            have: 99,
            capacity: 100,
            reset_after_ns: Some(100_000_000),
        },
        LimitState {
            limit: 1,
            is_shared: false,
            is_shadowed: true,
            have: -20,
            capacity: 40_000,
            reset_after_ns: None,
        },
    ];
    let mut outcomes = Vec::new();
    let hold = Hold {
        id: 7 << 64 | 8,
        ends_after_ms: 60_000,
    };
    Admitted::new(Some(hold), true, false).encode(states.into_iter(), &mut outcomes);
    let payload = check("TAKE reply, admitted", |out| {
        Outcomes::encode(LIMITS.into_iter(), &outcomes, CALL, out);
    });
    let decoded = Outcomes::decode(&payload).unwrap();
    assert_eq!(decoded.limits().collect::<Vec<_>>(), LIMITS);
    let Some(Outcome::Admitted(admitted)) = decoded.iter().next() else {
        panic!("{decoded:?}")
    };
    assert_eq!((admitted.hold, decoded.count), (Some(hold), 1));
    assert_eq!((admitted.is_repeat, admitted.is_degraded), (true, false));
    assert_eq!(admitted.limit_states().collect::<Vec<_>>(), states);

    let denied = Denied {
        limit: 0,
        is_exhausted: false,
        have: 120,
        need: 500,
        retry_after_ns: Some(570_000_000),
    };
    let mut outcomes = Vec::new();
    denied.encode(&mut outcomes);
    Outcome::encode_refused(ErrorCode::Denied, "`acme` is halted", &mut outcomes);
    let payload = check("TAKE reply, denied and refused", |out| {
        Outcomes::encode(LIMITS[1..].iter().copied(), &outcomes, CALL, out);
    });
    let decoded = Outcomes::decode(&payload).unwrap();
    let refused = Outcome::Refused {
        code: ErrorCode::Denied,
        message: "`acme` is halted",
    };
    let both: Vec<_> = decoded.iter().collect();
    assert_eq!(both, [Outcome::Denied(denied), refused]);
}

/// An outcome never refers to a limit that its answer does not name.
#[test]
fn reference_to_a_missing_limit_is_refused() {
    let outcome = |limit: u16| {
        let mut outcomes = Vec::new();
        let state = LimitState {
            limit,
            is_shared: true,
            is_shadowed: false,
            have: 1,
            capacity: 1,
            reset_after_ns: None,
        };
        Admitted::new(None, false, true).encode([state].into_iter(), &mut outcomes);
        let mut frame = Vec::new();
        Outcomes::encode(LIMITS.into_iter(), &outcomes, CALL, &mut frame);
        Outcomes::decode(&frame[16..]).is_ok()
    };
    assert_eq!([0, 1, 2].map(outcome), [true, true, false]);
    assert!(Outcomes::decode(&[0xff, 0xff]).is_err(), "65,535 limits");
}

#[test]
fn settle_and_peek() {
    let bytes = costs(&[("tokens", 340)]);
    let settle = Settle {
        hold: 7,
        costs: Some(Costs::decode(&bytes).unwrap()),
    };
    let payload = check("SETTLE", |out| settle.encode(CALL, out));
    assert_eq!(Settle::decode(&payload), Ok(settle));
    let cancelled = Settle {
        hold: 7,
        costs: None,
    };
    let long = Settle {
        hold: 7 << 64 | 8,
        ..settle
    };
    for settle in [cancelled, long] {
        let mut frame = Vec::new();
        settle.encode(CALL, &mut frame);
        assert_eq!(Settle::decode(&frame[16..]), Ok(settle));
    }
    assert!(Settle::decode(&payload[..20]).is_err());
    let payload = check("SETTLED", |out| wire::encode_settled(true, CALL, out));
    assert_eq!(wire::decode_settled(&payload), Ok(true));
    assert!(wire::decode_settled(&[2]).is_err() && wire::decode_settled(&[]).is_err());
    let payload = check("PEEK", |out| wire::encode_peek("acme/demo/bob", CALL, out));
    assert_eq!(wire::decode_name(&payload), Ok("acme/demo/bob"));
}

#[test]
fn control() {
    let credit = Credit {
        messages: 32,
        bytes: 2048,
    };
    let payload = check("CREDIT", |out| credit.encode(Correlation::NONE, out));
    assert_eq!(Credit::decode(&payload), Ok(credit));
    let payload = check("FLOW", |out| wire::encode_flow(1, true, out));
    assert_eq!(wire::decode_flow(&payload), Ok(true));
    check("PING", |out| wire::encode_ping(CALL, out));
    check("PONG", |out| wire::encode_pong(CALL, out));
    let goaway = Goaway {
        code: ErrorCode::Unavailable,
        drain_ms: 5000,
        address: "",
        message: "bye",
    };
    let payload = check("GOAWAY", |out| goaway.encode(out));
    assert_eq!(Goaway::decode(&payload), Ok(goaway));
}

/// Cutting any of the page's payloads short is an error or a shorter value, never a panic.
#[test]
fn every_prefix_of_every_example_is_decoded_without_a_panic() {
    let names = PAGE
        .lines()
        .filter_map(|line| line.strip_prefix("```golden "));
    for name in names {
        let payload = &golden(name)[16..];
        for length in 0..=payload.len() {
            let cut = &payload[..length];
            let _ = Hello::decode(cut);
            let _ = Welcome::decode(cut);
            let _ = Bind::decode(1, cut);
            let _ = Subscribe::decode(cut);
            let _ = wire::decode_failure(cut);
            let _ = Credit::decode(cut);
            let _ = Receipt::decode(cut);
            let _ = Goaway::decode(cut);
            let _ = SubscriptionEnd::decode(cut);
            let _ = Payload::decode(Flags(0xff), cut);
            let _ = Key::split(cut);
            let _ = Stored::decode(cut);
            let _ = Delivery::split(cut);
            let _ = Append::decode(cut);
            let _ = Appended::decode(cut);
            let _ = Read::decode(cut);
            let _ = Extract::decode(cut);
            let _ = NewMessage::decode(cut);
            let _ = Message::decode(cut);
            let _ = AppendedMessages::decode(cut);
            let headers = TopicRecord::decode(cut).map_or(0, |it| it.headers.iter().count());
            assert!(headers <= cut.len() / 6);
            let _ = AppendedRecords::decode(cut);
            let _ = Settle::decode(cut);
            let _ = wire::decode_settled(cut);
            let takes = Takes::decode(cut).map_or(0, |takes| takes.iter().count());
            assert!(takes <= cut.len() / 5);
            let outcomes = Outcomes::decode(cut).map_or(0, |outcomes| outcomes.iter().count());
            assert!(outcomes <= cut.len() / 5);
            assert!(wire::Metadata::new(cut).iter().count() <= cut.len() / 3 + 1);
        }
    }
}

#[test]
fn requests_with_an_upload() {
    let bodies: [(&str, Flags, u16, &[u8]); 3] = [
        (
            "REQUEST with an upload",
            Flags::STREAM,
            1,
            br#"{"method":"POST","path":"/v1/conversations/c-1/messages/a-1/stream","upload":"u-1"}"#,
        ),
        (
            "UPLOAD",
            Flags::NONE,
            2,
            br#"{"upload":"u-1","text":"{\"type\":\"text-start\",\"id\":\"t\"}\n"}"#,
        ),
        (
            "UPLOAD at the end",
            Flags::NONE,
            2,
            br#"{"upload":"u-1","text":"{\"type\":\"finish\"}\n","end":true}"#,
        ),
    ];
    for (name, flags, route, body) in bodies {
        let request = Payload {
            deadline_ms: None,
            metadata: &[],
            body,
        };
        let payload = check(name, |out| {
            request.encode(Kind::REQUEST, flags, route, CALL, out)
        });
        assert_eq!(payload, body);
    }
}
