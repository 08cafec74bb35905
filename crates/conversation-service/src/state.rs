//! Changes a conversation's state, and erases conversations.

use conversations::record::{self, DraftClose, EventRef, EventTag};
use conversations::{Change, Lifecycle, Status, Update};
use journal::{AppendError, Guard, ShardId, StreamId, Ticket};
use model::Name;
use platform::Counter;
use store::{AppendSize, Location, Store};

use super::service::check_name;
use super::slot::Room;
use super::view::{View, check_alive, view};
use super::write::AppendTarget;
use super::{ConversationError, Conversations, Pending};

/// The result of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeResult {
    /// True if the change created the conversation.
    pub is_created: bool,
    /// The conversation after the change.
    pub view: View,
}

impl Conversations {
    /// Changes the state of a conversation, if it has the expected version. [`Change::Put`] creates
    /// the conversation if it does not exist.
    pub fn change(
        &self,
        name: &Name,
        expect: Option<u64>,
        change: &Change,
    ) -> Result<Pending<ChangeResult>, ConversationError> {
        check_name(name)?;
        match change {
            Change::Put { .. } => self.with_room(name.base(), |_, room| {
                self.change_room(name, room, expect, change)
            })?,
            Change::Copy { .. } | Change::Copied { .. } => Err(ConversationError::CopyRequested),
            Change::Cursor { .. }
            | Change::Summarize(_)
            | Change::Descend(_)
            | Change::Clear { .. }
            | Change::Erase => self.with_existing(name, |_, room, _| {
                self.change_room(name, room, expect, change)
            }),
        }
    }

    pub(super) fn change_room(
        &self,
        name: &Name,
        room: &mut Room,
        expect: Option<u64>,
        change: &Change,
    ) -> Result<Pending<ChangeResult>, ConversationError> {
        let now_ms = self.platform.unix_ms();
        let is_created = !room.engine.exists();
        let limits = &self.options().limits;
        let outcome = match room.engine.decide_change(expect, change, limits, now_ms) {
            Err(refused) => Err(refused.into()),
            Ok(update) => {
                self.update_room(room, name.base(), update, now_ms)?;
                self.platform.counters.count(Counter::ConversationChanges);
                let view = view(name.base(), room);
                Ok(ChangeResult { is_created, view })
            }
        };
        Ok(Pending::new(&self.store.journal, room.ticket, outcome))
    }

    /// Erases all messages and the summary of a conversation whose newest message has the expected
    /// number: their bytes leave the disk, and numbering continues. Open drafts become messages
    /// after the clear.
    pub fn clear(
        &self,
        name: &Name,
        expect: Option<u64>,
    ) -> Result<Pending<ChangeResult>, ConversationError> {
        self.change(name, None, &Change::Clear { expect })
    }

    /// Erases a conversation: its bytes leave the disk, and its name is not used again.
    pub fn delete(&self, name: &Name) -> Result<Pending<()>, ConversationError> {
        let pending = self.with_existing(name, |_, room, _| {
            check_alive(room)?;
            self.change_room(name, room, None, &Change::Erase)
        })?;
        Ok(pending.map(|_| ()))
    }
}

impl Conversations {
    /// Writes an update and its event under one guard, and applies it to the engine.
    pub(super) fn update_room(
        &self,
        room: &mut Room,
        name: &str,
        update: Update,
        now_ms: u64,
    ) -> Result<(), ConversationError> {
        if update == Update::Nothing {
            return Ok(());
        }
        let size = update_size(&update, room.drafts.len());
        let target = AppendTarget {
            writer: &*self.store.journal,
            name,
            now_ms,
        };
        let (guard, location) = self.lock_room(room, target, size)?;
        let written = self.write_update(guard, location, room, &update, size);
        let ticket =
            written.map_err(|error| ConversationError::from(self.store.append_error(error)))?;
        room.ticket = Some(ticket);
        let is_cleared = is_clear(room, &update);
        room.engine.changed(update);
        if is_cleared {
            room.wake_watchers();
        }
        if room.engine.state().lifecycle == Lifecycle::Erased {
            room.end_drafts();
        }
        self.touch(room);
        Ok(())
    }

    fn write_update(
        &self,
        mut guard: Guard<'_>,
        location: Location,
        room: &Room,
        update: &Update,
        size: AppendSize,
    ) -> Result<Ticket, AppendError> {
        let states = Store::companion(location.stream);
        let events = room.events.unwrap_or(location.stream);
        match update {
            Update::Nothing => Ok(guard.last_ticket(states)),
            Update::Change { bytes, .. } => {
                guard.reserve(size.bytes, size.count)?;
                let event = Event::new(&guard, location, EventTag::State);
                event.append(&mut guard, events)?;
                Ok(guard.append(states, None, record::CHANGE, bytes)?.ticket)
            }
            Update::Snapshot { bytes, state } => {
                guard.reserve(size.bytes, size.count)?;
                let tag = match state.lifecycle {
                    Lifecycle::Erased => EventTag::Erased,
                    _ => EventTag::State,
                };
                let event = Event::new(&guard, location, tag);
                event.append(&mut guard, events)?;
                let is_cleared = is_clear(room, update);
                if is_cleared {
                    guard.erase(location.stream)?;
                    self.rooms.log_erase(&mut guard, location.shard)?;
                }
                if tag == EventTag::Erased {
                    guard.erase(location.stream)?;
                    guard.erase(states)?;
                    self.end_all(&mut guard, location.shard, room)?;
                }
                let appended = guard.append(states, None, record::SNAPSHOT, bytes)?;
                match tag {
                    // Earlier snapshots may contain a summary of the erased messages.
                    EventTag::State if is_cleared => guard.erase_before(states, appended.offset)?,
                    EventTag::State => guard.trim(states, appended.offset)?,
                    EventTag::Message | EventTag::Erased => appended.ticket,
                };
                Ok(appended.ticket)
            }
        }
    }
}

impl Conversations {
    /// Writes the ends of all drafts of a conversation that is being erased.
    fn end_all(
        &self,
        guard: &mut Guard<'_>,
        shard: ShardId,
        room: &Room,
    ) -> Result<(), AppendError> {
        for open in &room.drafts {
            let close = DraftClose {
                draft: open.number,
                status: Status::Aborted,
                seq: 0,
            };
            self.rooms.log_close(guard, shard, &close)?;
        }
        self.rooms.log_erase(guard, shard)
    }
}

/// Returns whether an update clears the conversation.
fn is_clear(room: &Room, update: &Update) -> bool {
    match update {
        Update::Nothing | Update::Change { .. } => false,
        Update::Snapshot { state, .. } => {
            state.cleared.is_some() && state.cleared != room.engine.state().cleared
        }
    }
}

/// Returns the size of the records of an update of a conversation with that number of drafts.
fn update_size(update: &Update, drafts: usize) -> AppendSize {
    match update {
        Update::Nothing => AppendSize::default(),
        Update::Change { bytes, .. } => AppendSize {
            bytes: bytes.len() + EVENT_SIZE,
            count: 2,
        },
        // The event, the snapshot, the ends of drafts with a mark each, and three more marks.
        Update::Snapshot { bytes, .. } => AppendSize {
            bytes: bytes.len() + EVENT_SIZE + drafts * CLOSE_SIZE,
            count: 5 + 2 * drafts,
        },
    }
}

/// Size of an event, in bytes.
pub(super) const EVENT_SIZE: usize = 16;

/// Size of the end of a draft, in bytes.
const CLOSE_SIZE: usize = 17;

/// The event of the next record of the state.
pub(super) struct Event {
    tag: EventTag,
    reference: EventRef,
}

impl Event {
    pub(super) fn new(guard: &Guard<'_>, location: Location, tag: EventTag) -> Self {
        Self {
            tag,
            reference: EventRef {
                conversation: location.stream.0,
                offset: guard.next(Store::companion(location.stream)),
            },
        }
    }

    pub(super) fn append(
        &self,
        guard: &mut Guard<'_>,
        events: StreamId,
    ) -> Result<(), AppendError> {
        guard.append(events, None, self.tag as u8, &self.reference.encode())?;
        Ok(())
    }
}
