use proptest::prelude::*;

use super::*;
use crate::context::{Kinds, Policy, Strategy as Taken};
use crate::delivery::{Change, DeadLetter, OnBusy, Options};
use crate::state::{Cleared, Cursors, Lifecycle, Origin, Settings, State, Summary};
use crate::{NewMessage, PartFact, PartKind, Retracted, SeqRange, Status, Stub};

mod golden;

fn encoded(encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(&mut bytes);
    bytes
}

fn facts() -> impl Strategy<Value = Vec<PartFact>> {
    let fact = (0..9usize, any::<u32>(), any::<u64>(), any::<u8>());
    let fact = fact.prop_map(|(kind, size, call, stub)| PartFact {
        kind: PartKind::ALL[kind],
        size,
        call,
        stub: Stub::from_bits(stub),
    });
    prop::collection::vec(fact, 0..20)
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..60)
}

fn state() -> impl Strategy<Value = State> {
    let numbers = (any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>());
    let lifecycle = prop_oneof![
        Just(Lifecycle::Open),
        Just(Lifecycle::Archived),
        Just(Lifecycle::Copying),
        Just(Lifecycle::Erased),
    ];
    let origin = prop::option::of((".{0,20}", any::<u64>()));
    let cleared = prop::option::of((any::<u64>(), any::<u64>()));
    let cleared = (cleared, retracted());
    let summary = prop::option::of((any::<u64>(), any::<u32>(), any::<bool>(), bytes()));
    let cursors = prop::collection::btree_map(".{0,20}", any::<u64>(), 0..10);
    let taken = prop_oneof![
        Just(Taken::Budget),
        any::<u32>().prop_map(|count| Taken::LastN { count }),
        any::<u32>().prop_map(|count| Taken::SkipParts { count }),
        Just(Taken::Manual),
    ];
    let policy = (taken, any::<[u32; 3]>(), 0..512u16, any::<u16>());
    let settings = (".{0,30}", policy, bytes());
    let rest = (origin, (summary, cleared), cursors, settings);
    (numbers, lifecycle, rest).prop_map(|((base, version, created_ms, ttl_ms), lifecycle, rest)| {
        let (origin, (summary, (cleared, retracted)), cursors, settings) = rest;
        let (agent, policy, metadata) = settings;
        let (strategy, [budget, reserve, keep_tool_turns], kinds, step_permille) = policy;
        let mut marks = Cursors::default();
        for (who, seq) in cursors {
            marks.set(&who, seq);
        }
        State {
            base,
            version,
            created_ms,
            lifecycle,
            origin: origin.map(|(conversation, seq)| Origin { conversation, seq }),
            metadata,
            settings: Settings {
                ttl_ms,
                keep_last: version,
                keep_bytes: created_ms,
                participants: vec![agent.clone(); usize::from(kinds % 4)],
                agent,
                context: Policy {
                    strategy,
                    budget,
                    reserve,
                    keep: vec!["system".to_owned(); usize::from(kinds % 3)],
                    drop_first: Kinds::from_bits(kinds).unwrap(),
                    keep_tool_turns,
                    step_permille,
                },
            },
            summary: summary.map(|(through_seq, tokens, is_estimated, message)| Summary {
                through_seq,
                tokens,
                is_estimated,
                message,
            }),
            cleared: cleared.map(|(through_seq, at_ms)| Cleared { through_seq, at_ms }),
            retracted,
            cursors: marks,
        }
    })
}

fn retracted() -> impl Strategy<Value = Retracted> {
    let ranges = prop::collection::vec((1..1_000_000_u64, 0..9_u64), 0..20);
    ranges.prop_map(|ranges| {
        ranges
            .into_iter()
            .fold(Retracted::default(), |retracted, (first, more)| {
                let last = first + more;
                retracted.with(SeqRange { first, last }, 0)
            })
    })
}

fn letter() -> impl Strategy<Value = DeadLetter> {
    (any::<[u64; 3]>(), any::<u32>(), any::<u16>()).prop_map(
        |([from_seq, to_seq, at_ms], attempts, status)| DeadLetter {
            from_seq,
            to_seq,
            attempts,
            status,
            at_ms,
        },
    )
}

fn agent() -> impl Strategy<Value = AgentState> {
    let pending = (any::<[u64; 2]>(), any::<[u32; 2]>()).prop_map(
        |([from_seq, to_seq], [attempts, interrupts])| PendingState {
            from_seq,
            to_seq,
            attempts,
            interrupts,
        },
    );
    (
        any::<[u64; 4]>(),
        any::<[u32; 4]>(),
        0..3u8,
        bytes(),
        prop::collection::btree_map(any::<u16>(), any::<u64>(), 0..5),
        prop::collection::btree_map(any::<u64>(), pending, 0..5),
        prop::collection::btree_map(any::<u64>(), letter(), 0..5),
    )
        .prop_map(
            |(times, limits, on_busy, settings, cursors, pending, dead)| AgentState {
                options: Options {
                    debounce_ms: times[0],
                    max_wait_ms: times[1],
                    on_busy: OnBusy::from_u8(on_busy).unwrap(),
                    attempts_max: limits[0],
                    pause_ms: times[2],
                    pause_ms_max: times[3],
                    calls_max: limits[1],
                    pending_max: limits[2],
                    dead_max: limits[3],
                },
                settings,
                cursors,
                pending,
                dead,
            },
        )
}

fn change() -> impl Strategy<Value = Change> {
    (
        0..6u8,
        any::<u64>(),
        any::<u64>(),
        any::<[u32; 2]>(),
        letter(),
    )
        .prop_map(
            |(what, conversation, through_seq, [attempts, interrupts], letter)| match what {
                0 => Change::Answered {
                    conversation,
                    through_seq,
                },
                1 => Change::Again {
                    conversation,
                    attempts,
                    interrupts,
                },
                2 => Change::Dead {
                    conversation,
                    letter,
                },
                3 => Change::Revived { conversation },
                4 => Change::Discarded { conversation },
                _ => Change::Forgotten { conversation },
            },
        )
}

proptest! {
    #[test]
    fn an_encoded_message_decodes_to_the_same_message(
        texts in ("[a-z]{0,128}", "[a-z]{0,32}", ".{0,40}"),
        tokens in prop::option::of(any::<u32>()),
        numbers in any::<[u64; 3]>(),
        facts in facts(),
        parts in bytes(),
        metadata in bytes(),
        status in 0..4usize,
    ) {
        let (id, role, from) = texts;
        let new = NewMessage {
            id: Some(&id),
            role: &role,
            from: &from,
            tokens,
            facts: &facts,
            parts: &parts,
            metadata: &metadata,
        };
        let [event, tokens_before, instruction] = numbers;
        let links = Links { event, tokens_before, instruction };
        let status = Status::ALL[status];
        let mut bytes = encoded(|out| new.encode(&id, status, Links::default(), out));
        set_links(&mut bytes, links);
        let view = MessageView::decode(&bytes).unwrap();
        prop_assert_eq!((view.id, view.role, view.from), (&*id, &*role, &*from));
        prop_assert_eq!((view.tokens, view.is_estimated), new.tokens());
        prop_assert_eq!((view.status, view.links), (status, links));
        let read: Vec<_> = view.facts.iter().collect();
        prop_assert_eq!(&read, &facts);
        prop_assert_eq!((view.parts, view.metadata), (&parts[..], &metadata[..]));
        prop_assert!(view.is_retried_by(&new));
        prop_assert_eq!(encoded(|out| view.encode(out)), &bytes[..]);
        for length in 0..bytes.len() - parts.len() {
            prop_assert!(MessageView::decode(&bytes[..length]).is_err());
        }
    }

    #[test]
    fn a_retry_equals_the_original_in_all_author_fields(
        which in 0..5u8,
        tokens in prop::option::of(any::<u32>()),
    ) {
        let original = NewMessage {
            id: Some("a"),
            role: "user",
            from: "alice",
            tokens: Some(1),
            facts: &[],
            parts: b"p",
            metadata: b"m",
        };
        let bytes = encoded(|out| original.encode("a", Status::Complete, Links::default(), out));
        let view = MessageView::decode(&bytes).unwrap();
        let retry = NewMessage { tokens, ..original };
        prop_assert!(view.is_retried_by(&retry));
        let other = match which {
            0 => NewMessage { id: Some("b"), ..retry },
            1 => NewMessage { role: "tool", ..retry },
            2 => NewMessage { from: "", ..retry },
            3 => NewMessage { parts: b"q", ..retry },
            _ => NewMessage { metadata: b"", ..retry },
        };
        prop_assert!(!view.is_retried_by(&other));
    }

    #[test]
    fn encoded_state_decodes_to_the_same_state(state in state()) {
        let bytes = encoded(|out| state.encode(out));
        prop_assert_eq!(State::decode(&bytes), Ok(state));
        for length in 0..bytes.len() {
            prop_assert!(State::decode(&bytes[..length]).is_err());
        }
    }

    #[test]
    fn an_encoded_agent_decodes_to_the_same_agent(agent in agent(), change in change()) {
        let bytes = encoded(|out| agent.encode(out));
        prop_assert_eq!(AgentState::decode(&bytes), Ok(agent));
        for length in 0..bytes.len() {
            prop_assert!(AgentState::decode(&bytes[..length]).is_err());
        }
        let bytes = encoded(|out| change.encode(out));
        prop_assert_eq!(Change::decode(&bytes), Ok(change));
        for length in 0..bytes.len() {
            prop_assert!(Change::decode(&bytes[..length]).is_err());
        }
    }

    #[test]
    fn any_bytes_are_decoded_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        decode_all(&bytes);
    }

    #[test]
    fn changed_bytes_are_decoded_without_a_panic(
        state in state(),
        agent in agent(),
        at in any::<prop::sample::Index>(),
        byte: u8,
    ) {
        for mut bytes in [encoded(|out| state.encode(out)), encoded(|out| agent.encode(out))] {
            let at = at.index(bytes.len());
            bytes[at] = byte;
            decode_all(&bytes);
        }
    }
}

/// Decoded records encode to the same bytes.
fn decode_all(bytes: &[u8]) {
    if let Ok(view) = MessageView::decode(bytes) {
        assert_eq!(encoded(|out| view.encode(out)), bytes);
        assert_eq!(view.facts.len(), view.facts.iter().len());
    }
    if let Ok(state) = State::decode(bytes) {
        assert_eq!(State::decode(&encoded(|out| state.encode(out))), Ok(state));
    }
    if let Ok(agent) = AgentState::decode(bytes) {
        let again = encoded(|out| agent.encode(out));
        assert_eq!(AgentState::decode(&again), Ok(agent));
    }
    if let Ok(change) = Change::decode(bytes) {
        assert_eq!(encoded(|out| change.encode(out)), bytes);
    }
    if let Ok(change) = StateChange::decode(bytes) {
        assert_eq!(encoded(|out| change.encode(out)), bytes);
    }
    if let Ok(event) = EventRef::decode(bytes) {
        assert_eq!(event.encode(), bytes);
    }
    if let Ok(open) = DraftOpen::decode(bytes) {
        assert_eq!(encoded(|out| open.encode(out)), bytes);
    }
    if let Ok(carried) = DraftCarried::decode(bytes) {
        assert_eq!(encoded(|out| carried.encode(out)), bytes);
    }
    if let Ok(close) = DraftClose::decode(bytes) {
        assert_eq!(close.encode(), bytes);
    }
    if let Ok(chunks) = DraftChunks::decode(bytes) {
        assert_eq!(encoded(|out| chunks.encode(out)), bytes);
        let size: usize = chunks.iter().map(|chunk| chunk.len() + 1).sum();
        assert_eq!(size, chunks.lines.len());
    }
}
