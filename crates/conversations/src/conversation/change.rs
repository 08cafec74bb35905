//! Changes of a conversation's state.

use super::Conversation;
use crate::decision::Refusal;
use crate::limits::{Limits, is_who};
use crate::record::StateChange;
use crate::retracted::Retracted;
use crate::state::{Change, Cleared, Lifecycle, Settings, State};

/// Number of changes after which a snapshot is written.
const CHANGES_MAX: u32 = 64;

/// Maximum size of the participants' names in the settings, in bytes, each counted with its length
/// prefix.
const PARTICIPANTS_SIZE_MAX: usize = 16 << 10;

/// The record to append to the stream of state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Update {
    /// No record: the state is unchanged.
    Nothing,
    /// A record with the tag [`crate::record::CHANGE`].
    Change {
        /// The record's bytes.
        bytes: Vec<u8>,
        /// The participant whose cursor moves.
        who: String,
        /// The message to which the cursor moves.
        seq: u64,
    },
    /// A record with the tag [`crate::record::SNAPSHOT`], which makes all earlier records obsolete.
    Snapshot {
        /// The record's bytes.
        bytes: Vec<u8>,
        /// The state in the snapshot.
        state: Box<State>,
    },
}

/// Implements [`Conversation::decide_change`].
pub(super) fn decide(
    conversation: &Conversation,
    expect: Option<u64>,
    change: &Change,
    limits: &Limits,
    now_ms: u64,
) -> Result<Update, Refusal> {
    let state = &conversation.state;
    let version = state.version;
    if state.lifecycle == Lifecycle::Erased {
        return Err(Refusal::Gone);
    }
    let creates = matches!(change, Change::Put { .. } | Change::Copy { .. });
    if !conversation.exists() && !creates {
        return Err(Refusal::Missing);
    }
    if let Some(expected) = expect.filter(|it| *it != version) {
        return Err(Refusal::VersionMismatch { version, expected });
    }
    if let Change::Cursor { who, seq } = change {
        return move_cursor(conversation, who, *seq, limits);
    }
    let mut next = state.clone();
    if let Change::Clear { expect } = change {
        clear(conversation, &mut next, *expect, now_ms)?;
    } else {
        change_all(conversation, &mut next, change, limits)?;
    }
    if next == *state && conversation.exists() {
        return Ok(Update::Nothing);
    }
    next.version += 1;
    if !conversation.exists() {
        next.created_ms = now_ms;
    }
    Ok(snapshot(next))
}

fn clear(
    conversation: &Conversation,
    next: &mut State,
    expect: Option<u64>,
    now_ms: u64,
) -> Result<(), Refusal> {
    let head = conversation.head;
    match next.lifecycle {
        Lifecycle::Open => {}
        Lifecycle::Archived => return Err(Refusal::Archived),
        Lifecycle::Copying => return Err(Refusal::Copying),
        Lifecycle::Erased => return Err(Refusal::Gone),
    }
    if let Some(expected) = expect.filter(|it| *it != head) {
        return Err(Refusal::SeqMismatch { head, expected });
    }
    if head > next.cleared_seq() || next.summary.is_some() {
        next.summary = None;
        next.retracted = Retracted::default();
        next.cleared = Some(Cleared {
            through_seq: head,
            at_ms: now_ms,
        });
    }
    Ok(())
}

fn move_cursor(
    conversation: &Conversation,
    who: &str,
    seq: u64,
    limits: &Limits,
) -> Result<Update, Refusal> {
    let (head, cursors) = (conversation.head, &conversation.state.cursors);
    if conversation.state.lifecycle == Lifecycle::Copying {
        return Err(Refusal::Copying);
    }
    if !is_who(who) {
        return Err(Refusal::Who);
    }
    if seq > head {
        return Err(Refusal::BeyondHead { head });
    }
    let max = limits.cursors_max;
    match cursors.get(who) {
        Some(known) if known >= seq => return Ok(Update::Nothing),
        None if cursors.0.len() >= max => return Err(Refusal::Cursors { max }),
        _ => {}
    }
    if conversation.changes + 1 >= CHANGES_MAX {
        let mut next = conversation.state.clone();
        next.cursors.set(who, seq);
        return Ok(snapshot(next));
    }
    let mut bytes = Vec::new();
    StateChange::Cursor { who, seq }.encode(&mut bytes);
    Ok(Update::Change {
        bytes,
        who: who.to_owned(),
        seq,
    })
}

fn change_all(
    conversation: &Conversation,
    next: &mut State,
    change: &Change,
    limits: &Limits,
) -> Result<(), Refusal> {
    if next.lifecycle == Lifecycle::Copying
        && !matches!(change, Change::Copied { .. } | Change::Erase)
    {
        return Err(Refusal::Copying);
    }
    match change {
        Change::Cursor { .. } => unreachable!("a cursor moves on its own"),
        Change::Clear { .. } => unreachable!("a clear is decided on its own"),
        Change::Put {
            metadata,
            settings,
            is_archived,
        } => {
            if let Some(metadata) = metadata {
                check_size("metadata", metadata.len(), limits.metadata_bytes_max)?;
                next.metadata.clone_from(metadata);
            }
            if let Some(settings) = settings {
                check_settings(settings)?;
                next.settings.clone_from(settings);
            }
            if let Some(is_archived) = is_archived {
                next.lifecycle = match is_archived {
                    true => Lifecycle::Archived,
                    false => Lifecycle::Open,
                };
            }
        }
        Change::Summarize(summary) => {
            if let Some(summary) = summary {
                let head = conversation.head;
                check_size("summary", summary.message.len(), limits.message_bytes_max)?;
                if summary.through_seq > head {
                    return Err(Refusal::BeyondHead { head });
                }
            }
            next.summary.clone_from(summary);
        }
        Change::Descend(origin) => next.origin = Some(origin.clone()),
        Change::Copy {
            origin,
            metadata,
            settings,
        } => {
            if conversation.exists() {
                return Err(Refusal::Exists);
            }
            check_size("metadata", metadata.len(), limits.metadata_bytes_max)?;
            check_settings(settings)?;
            next.lifecycle = Lifecycle::Copying;
            next.origin = Some(origin.clone());
            next.metadata.clone_from(metadata);
            next.settings.clone_from(settings);
        }
        Change::Copied { retracted } => {
            if next.lifecycle == Lifecycle::Copying {
                next.lifecycle = Lifecycle::Open;
                next.retracted = retracted.clone();
            }
        }
        Change::Erase => {
            // The tombstone contains nothing of the erased conversation.
            *next = State {
                base: next.base,
                version: next.version,
                lifecycle: Lifecycle::Erased,
                ..State::default()
            };
        }
    }
    Ok(())
}

fn check_settings(settings: &Settings) -> Result<(), Refusal> {
    let Settings {
        agent,
        participants,
        ..
    } = settings;
    let is_wrong = |who: &String| !is_who(who);
    if !agent.is_empty() && is_wrong(agent) || participants.iter().any(is_wrong) {
        return Err(Refusal::Who);
    }
    let size = participants.iter().map(|it| it.len() + 2).sum();
    check_size("participants", size, PARTICIPANTS_SIZE_MAX)?;
    Ok(settings.context.check()?)
}

fn check_size(what: &'static str, size: usize, max: usize) -> Result<(), Refusal> {
    match size <= max {
        true => Ok(()),
        false => Err(Refusal::Size { what, size, max }),
    }
}

pub(super) fn snapshot(state: State) -> Update {
    let mut bytes = Vec::new();
    state.encode(&mut bytes);
    Update::Snapshot {
        bytes,
        state: Box::new(state),
    }
}

/// Implements [`Conversation::changed`].
pub(super) fn apply(conversation: &mut Conversation, update: Update) {
    match update {
        Update::Nothing => {}
        Update::Change { who, seq, .. } => {
            conversation.state.cursors.set(&who, seq);
            conversation.changes += 1;
        }
        Update::Snapshot { state, .. } => {
            let is_cleared = state.cleared != conversation.state.cleared;
            conversation.state = *state;
            conversation.changes = 0;
            if is_cleared && conversation.state.cleared.is_some() {
                // The same as after a restart, when there is no newest message to read them from.
                (conversation.tokens, conversation.instruction) = (0, 0);
                conversation.trimmed(conversation.head + 1);
                conversation.unsettled.clear();
            }
            if conversation.state.lifecycle == Lifecycle::Erased {
                conversation.trimmed(conversation.head + 1);
            }
        }
    }
}
