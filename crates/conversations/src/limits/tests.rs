use super::*;
use crate::message::{PartFact, PartKind, Stub};

const LIMITS: Limits = Limits {
    batch_messages_max: 3,
    batch_bytes_max: 20,
    message_bytes_max: 10,
    metadata_bytes_max: 4,
    parts_max: 2,
    cursors_max: 1,
    drafts_max: 1,
    draft_bytes_max: 1,
};

const MESSAGE: NewMessage<'_> = NewMessage {
    id: Some("m-1"),
    role: "user",
    from: "alice",
    tokens: None,
    facts: &[],
    parts: b"123456",
    metadata: b"",
};

#[track_caller]
fn check(batch: &[NewMessage<'_>], expected: &str) {
    let said = match LIMITS.check(batch) {
        Ok(()) => "fine".to_owned(),
        Err(invalid) => invalid.to_string(),
    };
    assert_eq!(said, expected);
}

#[test]
fn a_batch_is_bounded() {
    check(&[MESSAGE; 3], "fine");
    check(&[], "message 0: the batch is empty");
    check(
        &[MESSAGE; 4],
        "message 3: too many messages in the batch (limit 3, conversation.batch_messages_max)",
    );
    let large = NewMessage {
        parts: b"1234567",
        ..MESSAGE
    };
    check(
        &[large; 3],
        "message 2: the batch is larger than 20 bytes (conversation.batch_size_max)",
    );
}

#[test]
fn a_message_is_bounded() {
    let message = NewMessage {
        metadata: b"1234",
        ..MESSAGE
    };
    check(&[message], "fine");
    let message = NewMessage {
        parts: b"1234567",
        ..message
    };
    check(
        &[MESSAGE, message],
        "message 1: 11 bytes exceed the limit of 10 (conversation.message_size_max)",
    );
    let message = NewMessage {
        metadata: b"12345",
        ..MESSAGE
    };
    check(
        &[message],
        "message 0: metadata of 5 bytes exceeds the limit of 4 (conversation.metadata_size_max)",
    );
    let fact = PartFact {
        kind: PartKind::Text,
        size: 1,
        call: 0,
        stub: Stub::NONE,
    };
    let message = NewMessage {
        facts: &[fact; 3],
        ..MESSAGE
    };
    check(
        &[message],
        "message 0: 3 parts exceed the limit of 2 (conversation.parts_max)",
    );
}

#[test]
fn invalid_ids_roles_and_authors_are_refused() {
    fn id(id: &str) -> NewMessage<'_> {
        NewMessage {
            id: Some(id),
            ..MESSAGE
        }
    }
    let problem = "message 0: invalid id: use 1 to 128 characters of A-Z a-z 0-9 . _ : -";
    for text in ["a", "A.b_c:d-9", &"x".repeat(128)] {
        check(&[id(text)], "fine");
    }
    for text in ["", "a b", "a/b", "ä", "a\n", &"x".repeat(129)] {
        check(&[id(text)], problem);
    }
    check(
        &[NewMessage {
            id: None,
            ..MESSAGE
        }],
        "fine",
    );
    let problem = "message 0: invalid role: use 1 to 32 characters of a-z 0-9 _ -";
    for role in ["", "User", "a b", &"x".repeat(33)] {
        check(&[NewMessage { role, ..MESSAGE }], problem);
    }
    let problem = "message 0: invalid author: use at most 256 bytes without control characters";
    for from in ["", "a/b/c", "Alice Ä.", &"x".repeat(256)] {
        check(&[NewMessage { from, ..MESSAGE }], "fine");
    }
    for from in ["a\n", "\u{7f}", &"x".repeat(257)] {
        check(&[NewMessage { from, ..MESSAGE }], problem);
    }
}

#[test]
fn missing_token_counts_are_estimated() {
    let tokens = |size| crate::estimated_tokens(size);
    assert_eq!((tokens(0), tokens(1), tokens(4), tokens(5)), (1, 1, 1, 2));
    assert_eq!(tokens(usize::MAX), u32::MAX);
    assert_eq!(MESSAGE.tokens(), (2, true));
    let message = NewMessage {
        tokens: Some(0),
        ..MESSAGE
    };
    assert_eq!(message.tokens(), (0, false));
}

#[test]
fn accepted_messages_fit_in_a_record() {
    let limits = Limits::default();
    assert_eq!(limits.fitting(8 << 20), limits);
    for record in [0, 1_000, 2_000, 8_192, 40_000, 1 << 20] {
        let fitting = limits.fitting(record);
        let parts = fitting.message_bytes_max / 20;
        let facts = 13 * parts.min(limits.parts_max);
        let size = fitting.message_bytes_max + facts;
        assert!(size + 1_024 <= record.max(1_024), "{record}: {fitting:?}");
        assert!(fitting.draft_bytes_max <= record);
    }
}
