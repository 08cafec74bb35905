//! Records of conversations from any bytes: nothing panics, what decodes encodes to the same bytes,
//! and a context window over any messages stays within its budget.

use conversations::State;
use conversations::context::{Bounds, Kinds, Policy, Window};
use conversations::delivery::Change;
use conversations::draft::Recovery;
use conversations::record::{
    AgentState, DraftCarried, DraftChunks, DraftClose, DraftOpen, EventRef, MessageView,
    StateChange,
};
use conversations::resume::Position;

use crate::encoded;

/// Checks one input.
///
/// # Panics
///
/// Panics if a property does not hold.
pub fn check(input: &[u8]) {
    records(input);
    log_of_drafts(input);
    position(input);
    window(input);
}

fn records(bytes: &[u8]) {
    if let Ok(view) = MessageView::decode(bytes) {
        assert_eq!(encoded(|out| view.encode(out)), bytes);
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
    if let Ok(chunks) = DraftChunks::decode(bytes) {
        assert_eq!(encoded(|out| chunks.encode(out)), bytes);
    }
    if let Ok(carried) = DraftCarried::decode(bytes) {
        assert_eq!(encoded(|out| carried.encode(out)), bytes);
    }
    if let Ok(close) = DraftClose::decode(bytes) {
        assert_eq!(close.encode(), bytes);
    }
}

/// Recovers drafts from records, each with a length and a tag.
fn log_of_drafts(mut bytes: &[u8]) {
    let mut recovery = Recovery::new(64);
    let mut offset = 0;
    while let Some(([length, tag], rest)) = bytes.split_first_chunk() {
        let (record, rest) = rest.split_at(usize::from(*length).min(rest.len()));
        // An invalid record is an error and changes nothing.
        let _ = recovery.record(offset, *tag, record);
        offset += 1;
        bytes = rest;
    }
    for lost in recovery.finish() {
        assert!(lost.number < offset);
    }
}

fn position(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(position) = text.parse::<Position>()
    {
        assert_eq!(position.to_string().parse(), Ok(position));
    }
}

/// Cuts a context window from messages, each with a length.
fn window(bytes: &[u8]) {
    let Some(([budget, kinds, kept], mut rest)) = bytes.split_first_chunk() else {
        return;
    };
    let mut messages = Vec::new();
    while let Some((length, behind)) = rest.split_first() {
        let (record, behind) = behind.split_at(usize::from(*length).min(behind.len()));
        if let Ok(view) = MessageView::decode(record) {
            messages.push(view);
        }
        rest = behind;
    }
    let policy = Policy {
        budget: u32::from(*budget) + 1,
        drop_first: Kinds::from_bits(u16::from(*kinds)).unwrap_or_default(),
        keep_tool_turns: u32::from(*kept),
        ..Policy::default()
    };
    let bounds = Bounds {
        start: 1,
        head: messages.len() as u64,
        instruction: 0,
        summary: None,
        messages_max: 100,
    };
    let Ok(mut window) = Window::new(&policy, bounds) else {
        return;
    };
    while let Some(seq) = window.wants() {
        // A damaged link may lead to any message.
        let Some(view) = messages.get(seq as usize - 1) else {
            return;
        };
        window.look(seq, view);
    }
    if let Ok(cut) = window.cut() {
        assert!(cut.tokens <= u64::from(policy.budget));
    }
}
