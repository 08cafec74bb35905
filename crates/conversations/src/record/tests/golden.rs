//! The layouts of records on disk; these bytes are never regenerated.

use super::*;

#[track_caller]
fn assert_golden(bytes: &[u8], expected: &[&[u8]]) {
    assert_eq!(bytes, expected.concat());
}

#[test]
fn a_message() {
    let facts = [
        PartFact {
            kind: PartKind::Text,
            size: 0x0102,
            call: 0,
            stub: Stub::NONE,
        },
        PartFact {
            kind: PartKind::ToolResult,
            size: 3,
            call: 0x1122_3344_5566_7788,
            stub: Stub::NONE,
        },
        PartFact {
            kind: PartKind::ToolPair,
            size: 4096,
            call: 1,
            stub: Stub::new(4096, 100),
        },
    ];
    let message = NewMessage {
        id: None,
        role: "user",
        from: "alice",
        tokens: None,
        facts: &facts,
        parts: b"[1]",
        metadata: b"{}",
    };
    let links = Links {
        event: 9,
        tokens_before: 0x0203,
        instruction: 4,
    };
    let bytes = encoded(|out| message.encode("m-1", Status::Stopped, links, out));
    let expected: &[&[u8]] = &[
        b"\x03\x01\x01\0\0\0",
        b"\x09\0\0\0\0\0\0\0\x03\x02\0\0\0\0\0\0\x04\0\0\0\0\0\0\0",
        b"\x03m-1\x04user\x05\0alice",
        b"\x02\0\0\0{}",
        b"\x03\0",
        b"\0\x02\x01\0\0\0\0\0\0\0\0\0\0",
        b"\x03\x03\0\0\0\x88\x77\x66\x55\x44\x33\x22\x11",
        // The class of its stub, 128 bytes, is the 5th.
        b"\x54\0\x10\0\0\x01\0\0\0\0\0\0\0",
        b"[1]",
    ];
    assert_golden(&bytes, expected);
}

#[test]
fn the_numbers_of_stored_enums_are_stable() {
    let statuses = ["complete", "interrupted", "aborted", "stopped"];
    for (number, name) in (0..).zip(statuses) {
        let status = Status::from_u8(number).unwrap();
        assert_eq!((status as u8, status.as_str()), (number, name));
    }
    assert_eq!(Status::from_u8(4), None);
    let kinds = [
        PartKind::Text,
        PartKind::Reasoning,
        PartKind::ToolCall,
        PartKind::ToolResult,
        PartKind::ToolPair,
        PartKind::File,
        PartKind::Source,
        PartKind::Data,
        PartKind::Other,
    ];
    for (number, kind) in (0..).zip(kinds) {
        assert_eq!(
            (kind as u8, PartKind::from_u8(number)),
            (number, Some(kind))
        );
    }
    assert_eq!(PartKind::from_u8(9), None);
    let tags = [EventTag::Message, EventTag::State, EventTag::Erased];
    for (number, tag) in (1..).zip(tags) {
        assert_eq!((tag as u8, EventTag::from_u8(number)), (number, Some(tag)));
    }
    assert_eq!((MESSAGE, SNAPSHOT, CHANGE), (1, 1, 2));
    assert_eq!((DRAFT_OPEN, DRAFT_CHUNKS, DRAFT_CLOSE), (1, 2, 3));
    assert_eq!((DRAFT_CARRIED, DRAFT_ERASE), (4, 5));
    // FNV-1a, as its authors publish it.
    assert_eq!(crate::call_hash("a"), 0xaf63_dc4c_8601_ec8c);
    assert_eq!(crate::call_hash("foobar"), 0x8594_4171_f739_67e8);
}

#[test]
fn state_and_its_changes() {
    let mut cursors = Cursors::default();
    cursors.set("bob", 7);
    let state = State {
        base: 1,
        version: 2,
        created_ms: 3,
        lifecycle: Lifecycle::Archived,
        origin: Some(Origin {
            conversation: "a/b/c".to_owned(),
            seq: 5,
        }),
        metadata: b"{}".to_vec(),
        settings: Settings {
            ttl_ms: 4,
            keep_last: 13,
            keep_bytes: 14,
            agent: "bot".to_owned(),
            participants: vec!["al".to_owned()],
            context: Policy {
                strategy: Taken::LastN { count: 6 },
                budget: 8,
                reserve: 9,
                keep: vec!["system".to_owned()],
                drop_first: Kinds::default().with(PartKind::Reasoning),
                keep_tool_turns: 10,
                step_permille: 250,
            },
        },
        summary: Some(Summary {
            through_seq: 11,
            tokens: 12,
            is_estimated: true,
            message: b"s".to_vec(),
        }),
        cleared: None,
        retracted: Retracted::default(),
        cursors,
    };
    let bytes = encoded(|out| state.encode(out));
    let expected: &[&[u8]] = &[
        b"\x01\x03",
        b"\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0",
        b"\x02\0\0\0{}",
        b"\x04\0\0\0\0\0\0\0\x0d\0\0\0\0\0\0\0\x0e\0\0\0\0\0\0\0\x03\0bot",
        b"\x01\0\x02\0al",
        b"\x01\x06\0\0\0\x08\0\0\0\x09\0\0\0\x02\0\x0a\0\0\0\xfa\0\x01\x06system",
        b"\x05\0a/b/c\x05\0\0\0\0\0\0\0",
        b"\x0b\0\0\0\0\0\0\0\x0c\0\0\0\x01\x01\0\0\0s",
        b"\x01\0\0\0\x03\0bob\x07\0\0\0\0\0\0\0",
    ];
    assert_golden(&bytes, expected);
    let cleared = State {
        cleared: Some(Cleared {
            through_seq: 41,
            at_ms: 42,
        }),
        ..State::default()
    };
    let bytes = encoded(|out| cleared.encode(out));
    let before = encoded(|out| State::default().encode(out));
    let (body, cursors) = before.split_at(before.len() - 4);
    assert_eq!((bytes[1], before[1], cursors), (4, 0, &[0; 4][..]));
    let expected: &[&[u8]] = &[
        &body[..1],
        b"\x04",
        &body[2..],
        b"\x29\0\0\0\0\0\0\0\x2a\0\0\0\0\0\0\0",
        cursors,
    ];
    assert_golden(&bytes, expected);
    let change = StateChange::Cursor { who: "bob", seq: 7 };
    let bytes = encoded(|out| change.encode(out));
    assert_golden(&bytes, &[b"\x01\x03\0bob\x07\0\0\0\0\0\0\0"]);
}

#[test]
fn events_and_drafts() {
    let event = EventRef {
        conversation: 1,
        offset: 2,
    };
    assert_golden(&event.encode(), &[b"\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0"]);
    let open = DraftOpen {
        conversation: 1,
        opened_ms: 2,
        id: "m",
        role: "assistant",
        from: "bot",
        metadata: b"{}",
    };
    let expected: &[&[u8]] = &[
        b"\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0",
        b"\x01m\x09assistant\x03\0bot{}",
    ];
    assert_golden(&encoded(|out| open.encode(out)), expected);
    let carried = DraftCarried { draft: 7, open };
    let expected: &[&[u8]] = &[b"\x07\0\0\0\0\0\0\0", expected[0], expected[1]];
    assert_golden(&encoded(|out| carried.encode(out)), expected);
    let chunks = DraftChunks {
        draft: 3,
        first: 4,
        lines: b"{}\n[]\n",
    };
    let expected = b"\x03\0\0\0\0\0\0\0\x04\0\0\0{}\n[]\n";
    assert_golden(&encoded(|out| chunks.encode(out)), &[expected]);
    assert!(DraftChunks::decode(&expected[..expected.len() - 1]).is_err());
    let close = DraftClose {
        draft: 3,
        status: Status::Aborted,
        seq: 5,
    };
    let expected = b"\x03\0\0\0\0\0\0\0\x02\x05\0\0\0\0\0\0\0";
    assert_golden(&close.encode(), &[expected]);
}

#[test]
fn a_retraction() {
    let retraction = Retraction {
        first_seq: 0x0203,
        count: 4,
    };
    let view = MessageView {
        links: Links {
            event: 9,
            tokens_before: 8,
            instruction: 7,
        },
        ..MessageView::of_retraction("r-1", retraction)
    };
    let bytes = encoded(|out| view.encode(out));
    let expected: &[&[u8]] = &[
        b"\0\x04\0\0\0\0",
        b"\x09\0\0\0\0\0\0\0\x08\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0",
        b"\x03\x02\0\0\0\0\0\0\x04\0\0\0\0\0\0\0",
        b"\x03r-1\0\0\0",
        b"\0\0\0\0\0\0",
    ];
    assert_golden(&bytes, expected);
    assert_eq!(MessageView::decode(&bytes), Ok(view));
    assert_eq!(crate::record::retraction(&bytes), Some(retraction));
    assert_eq!(crate::record::retraction(&bytes[..40]), None);
    assert_eq!(crate::record::retraction(b"\0\x01"), None);
}

#[test]
fn state_with_retracted_messages() {
    let ranges = [(2, 3), (5, 0x0607)].map(|(first, last)| SeqRange { first, last });
    let state = State {
        retracted: Retracted::from_ranges(ranges.to_vec()).unwrap(),
        ..State::default()
    };
    let plain = encoded(|out| State::default().encode(out));
    let bytes = encoded(|out| state.encode(out));
    let (before, cursors) = plain.split_at(plain.len() - 4);
    let mut before = before.to_vec();
    before[1] = 8;
    let expected: &[&[u8]] = &[
        &before,
        b"\x02\0",
        b"\x02\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0",
        b"\x05\0\0\0\0\0\0\0\x07\x06\0\0\0\0\0\0",
        cursors,
    ];
    assert_golden(&bytes, expected);
    assert_eq!(State::decode(&bytes), Ok(state));
    // The ranges must be in order.
    let mut wrong = bytes.clone();
    wrong[before.len() + 2] = 6;
    assert!(State::decode(&wrong).is_err());
}

#[test]
fn an_agent_and_its_changes() {
    let letter = DeadLetter {
        from_seq: 1,
        to_seq: 2,
        attempts: 3,
        status: 500,
        at_ms: 4,
    };
    let pending = PendingState {
        from_seq: 5,
        to_seq: 6,
        attempts: 7,
        interrupts: 8,
    };
    let state = AgentState {
        options: Options {
            debounce_ms: 1,
            max_wait_ms: 2,
            on_busy: OnBusy::Reject,
            attempts_max: 5,
            pause_ms: 3,
            pause_ms_max: 4,
            calls_max: 6,
            pending_max: 7,
            dead_max: 8,
        },
        settings: b"url".to_vec(),
        cursors: [(2, 9)].into(),
        pending: [(10, pending)].into(),
        dead: [(11, letter)].into(),
    };
    let expected: &[&[u8]] = &[
        b"\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0",
        b"\x02\x05\0\0\0\x06\0\0\0\x07\0\0\0\x08\0\0\0",
        b"\x03\0\0\0url",
        b"\x01\0\0\0\x02\0\x09\0\0\0\0\0\0\0",
        b"\x01\0\0\0\x0a\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x06\0\0\0\0\0\0\0\x07\0\0\0\x08\0\0\0",
        b"\x01\0\0\0\x0b\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x03\0\0\0\xf4\x01",
        b"\x04\0\0\0\0\0\0\0",
    ];
    assert_golden(&encoded(|out| state.encode(out)), expected);
    let conversation = 12;
    let changes: [(Change, &[u8]); 6] = [
        (
            Change::Answered {
                conversation,
                through_seq: 1,
            },
            b"\x01\x0c\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0",
        ),
        (
            Change::Again {
                conversation,
                attempts: 1,
                interrupts: 2,
            },
            b"\x02\x0c\0\0\0\0\0\0\0\x01\0\0\0\x02\0\0\0",
        ),
        (
            Change::Dead {
                conversation,
                letter,
            },
            b"\x03\x0c\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x03\0\0\0\xf4\x01\x04\0\0\0\0\0\0\0",
        ),
        (
            Change::Revived { conversation },
            b"\x04\x0c\0\0\0\0\0\0\0",
        ),
        (
            Change::Discarded { conversation },
            b"\x05\x0c\0\0\0\0\0\0\0",
        ),
        (
            Change::Forgotten { conversation },
            b"\x06\x0c\0\0\0\0\0\0\0",
        ),
    ];
    for (change, expected) in changes {
        assert_golden(&encoded(|out| change.encode(out)), &[expected]);
    }
}
