//! Loads and unloads conversations.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use conversations::record::{self, Malformed, MessageView, StateChange};
use conversations::{Conversation, State};
use journal::{ReadLimit, Record, Status};
use model::Name;
use store::{Kind, Location, Reach, Store};

use super::slot::{Room, RoomGuard, Rooms, Slot, Stage, loaded};
use super::unsynced::UnsyncedRecords;
use super::{ConversationError, Conversations};

/// Time after which an unused conversation is unloaded, in nanoseconds.
const IDLE_NS: u64 = 10_000_000_000;

/// Interval between two searches for unused conversations, in nanoseconds.
const SWEEP_NS: u64 = 1_000_000_000;

impl Conversations {
    /// Runs an operation on a conversation, which need not exist. It may read from the disk,
    /// without any lock.
    pub(super) fn with_room<R>(
        &self,
        name: &str,
        then: impl FnOnce(&Arc<Slot>, &mut Room) -> R,
    ) -> Result<R, ConversationError> {
        let mut then = Some(then);
        loop {
            let done = self
                .with_room_at_hand(name, |slot, room| then.take().map(|then| then(slot, room)))?;
            match done.flatten() {
                Some(done) => return Ok(done),
                None => self.fetch_room(name)?,
            }
        }
    }

    /// Like [`Conversations::with_room`], without blocking; `None` if the disk is needed first.
    pub(super) fn with_room_at_hand<R>(
        &self,
        name: &str,
        then: impl FnOnce(&Arc<Slot>, &mut Room) -> R,
    ) -> Result<Option<R>, ConversationError> {
        self.with_room_at(name, self.platform.now_ns(), then)
    }

    fn with_room_at<R>(
        &self,
        name: &str,
        now_ns: u64,
        then: impl FnOnce(&Arc<Slot>, &mut Room) -> R,
    ) -> Result<Option<R>, ConversationError> {
        loop {
            let slot = self.rooms.slot(name);
            match self.room_at_hand(&slot)? {
                SlotState::Loaded(room) => {
                    return self.use_room(name, &slot, room, now_ns, then).map(Some);
                }
                SlotState::OnDisk => return Ok(None),
                SlotState::Unloaded => {}
            }
        }
    }

    /// Like [`Conversations::with_room_at_hand`], for repeated use: tries the slot in `known` first
    /// and updates it.
    pub(super) fn with_room_again<R>(
        &self,
        name: &str,
        known: &mut Option<Arc<Slot>>,
        now_ns: u64,
        then: impl FnOnce(&Arc<Slot>, &mut Room) -> R,
    ) -> Result<Option<R>, ConversationError> {
        if let Some(slot) = known
            && let Some(room) = slot.room()
        {
            return self.use_room(name, slot, room, now_ns, then).map(Some);
        }
        self.with_room_at(name, now_ns, |slot, room| {
            *known = Some(slot.clone());
            then(slot, room)
        })
    }

    fn use_room<R>(
        &self,
        name: &str,
        slot: &Arc<Slot>,
        mut room: RoomGuard<'_>,
        now_ns: u64,
        then: impl FnOnce(&Arc<Slot>, &mut Room) -> R,
    ) -> Result<R, ConversationError> {
        room.used_ns = now_ns;
        self.meet(name, &mut room)?;
        Ok(then(slot, &mut room))
    }

    /// Like [`Conversations::with_room`], for a conversation that exists.
    pub(super) fn with_existing<R>(
        &self,
        name: &Name,
        then: impl FnOnce(&Arc<Slot>, &mut Room, Location) -> Result<R, ConversationError>,
    ) -> Result<R, ConversationError> {
        let missing = || ConversationError::not_found(name.base());
        // Requests for unknown names must leave nothing in memory.
        if self.store.find(Kind::Conversation, name.base()).is_none() {
            return Err(missing());
        }
        self.with_room(name.base(), |slot, room| {
            let location = room.location.filter(|_| room.engine.exists());
            then(slot, room, location.ok_or_else(missing)?)
        })?
    }

    /// Returns whether the conversation is loaded, or can be without reading from the disk.
    pub fn is_at_hand(&self, name: &Name) -> Result<bool, ConversationError> {
        if self.store.find(Kind::Conversation, name.base()).is_none() {
            return Ok(true);
        }
        let room = self.with_room_at_hand(name.base(), |_, _| ())?;
        Ok(room.is_some())
    }

    /// Loads a conversation, if it exists. It may read from the disk.
    pub fn load(&self, name: &Name) -> Result<(), ConversationError> {
        match self.store.find(Kind::Conversation, name.base()) {
            Some(_) => self.with_room(name.base(), |_, _| ()),
            None => Ok(()),
        }
    }
}

/// The newest message of a conversation.
enum Newest {
    Message(Record),
    /// No message is stored.
    Absent,
    /// The newest message is only on disk.
    OutOfReach,
}

/// The state of a slot, without reading from the disk.
enum SlotState<'a> {
    Loaded(RoomGuard<'a>),
    /// The conversation must be read from the disk.
    OnDisk,
    /// The slot was unloaded meanwhile.
    Unloaded,
}

impl Rooms {
    fn slot(&self, name: &str) -> Arc<Slot> {
        self.loaded.get_or_insert_with(name, Slot::new)
    }

    /// Removes the slot from the map.
    fn forget(&self, slot: &Arc<Slot>) {
        self.loaded.remove(&slot.name, slot);
    }
}

impl Conversations {
    fn room_at_hand<'a>(&self, slot: &'a Arc<Slot>) -> Result<SlotState<'a>, ConversationError> {
        let mut stage = slot.stage.lock();
        match &*stage {
            Stage::Loaded(_) => {}
            Stage::New => match self.read_room(Reach::Memory, &slot.name)? {
                Some(room) => {
                    *stage = Stage::Loaded(Box::new(room));
                    self.platform.need_sweep();
                }
                None => return Ok(SlotState::OnDisk),
            },
            Stage::Gone => {
                drop(stage);
                self.rooms.forget(slot);
                return Ok(SlotState::Unloaded);
            }
        }
        Ok(loaded(stage).map_or(SlotState::Unloaded, SlotState::Loaded))
    }

    /// Reads a conversation that is not loaded, without any lock. A slot that is still new
    /// afterwards was new throughout, so no write was missed.
    fn fetch_room(&self, name: &str) -> Result<(), ConversationError> {
        let slot = self.rooms.slot(name);
        let read = self.read_room(Reach::Disk, name);
        let mut stage = slot.stage.lock();
        if let Stage::New = &*stage
            && let Some(mut room) = read?
        {
            room.used_ns = self.platform.now_ns();
            *stage = Stage::Loaded(Box::new(room));
            self.platform.need_sweep();
        }
        Ok(())
    }

    /// Reads a conversation; all of its writes are durable, because it is not loaded. `None` if it
    /// is out of reach.
    fn read_room(&self, reach: Reach, name: &str) -> Result<Option<Room>, ConversationError> {
        let location = self.store.find(Kind::Conversation, name);
        let read = match location {
            Some(location) => self.read_engine_within(reach, location)?,
            None => Some((Conversation::load(State::default(), 0, 0, None), 0)),
        };
        Ok(read.map(|(engine, said_ms)| Room {
            engine,
            location,
            events: None,
            ticket: None,
            unsynced: UnsyncedRecords::default(),
            watchers: 0,
            watching: BTreeMap::new(),
            drafts: Vec::new(),
            said_ms,
            used_ns: 0,
        }))
    }

    pub(super) fn read_engine(
        &self,
        location: Location,
    ) -> Result<Conversation, ConversationError> {
        match self.read_engine_within(Reach::Disk, location)? {
            Some((engine, _)) => Ok(engine),
            None => unreachable!("the disk is as far as anything is"),
        }
    }

    /// Reads the engine and the time of the newest message; `None` if they are out of reach.
    fn read_engine_within(
        &self,
        reach: Reach,
        location: Location,
    ) -> Result<Option<(Conversation, u64)>, ConversationError> {
        let Location { shard, stream } = location;
        let messages = self.store.journal.stream(shard, stream);
        let (first, next) = messages.map_or((0, 0), |it| (it.start, it.next));
        let newest = match self.newest(reach, location, first, next)? {
            Newest::Message(record) => Some(record),
            Newest::Absent => None,
            Newest::OutOfReach => return Ok(None),
        };
        let said_ms = newest.as_ref().map_or(0, |it| it.time_ms);
        let newest = newest.as_ref().map(|it| MessageView::decode(&it.payload));
        let newest = newest.transpose()?;
        let load = |state| Conversation::load(state, first, next, newest.as_ref());
        let mut engine = load(State::default());
        let states = Location {
            shard,
            stream: Store::companion(stream),
        };
        let read = self.store.each_record_within(reach, states, |record| {
            match record.tag {
                record::SNAPSHOT => {
                    engine = load(State::decode(&record.payload)?);
                }
                record::CHANGE => {
                    engine.restore_change(&StateChange::decode(&record.payload)?);
                }
                _ => return Err(Malformed { what: "record" }.into()),
            }
            Ok::<_, ConversationError>(())
        })?;
        Ok(read.map(|()| (engine, said_ms)))
    }

    /// Reads the newest message.
    fn newest(
        &self,
        reach: Reach,
        at: Location,
        first: u64,
        next: u64,
    ) -> Result<Newest, ConversationError> {
        if next <= first {
            return Ok(Newest::Absent);
        }
        let one = ReadLimit {
            records: 1,
            bytes: 1,
        };
        let Some(read) = self.store.read_within(reach, at, next - 1, one)? else {
            return Ok(Newest::OutOfReach);
        };
        let record = read.records.into_iter().next();
        Ok(record.map_or(Newest::Absent, Newest::Message))
    }

    /// Unloads unused conversations. Returns whether any is loaded.
    pub(super) fn sweep_rooms(&self) -> bool {
        let now_ns = self.platform.now_ns();
        let swept_ns = self.rooms.swept_ns.load(Ordering::Relaxed);
        if now_ns.saturating_sub(swept_ns) < SWEEP_NS {
            return self.rooms.loaded_count() > 0;
        }
        self.rooms.swept_ns.store(now_ns, Ordering::Relaxed);
        for slot in self.rooms.loaded.all() {
            // The conversation is in use.
            let Some(mut stage) = slot.stage.try_lock() else {
                continue;
            };
            if let Stage::Loaded(room) = &mut *stage {
                self.retain(room);
            }
            let is_idle = match &*stage {
                Stage::Loaded(room) => self.is_room_idle(room, now_ns),
                // A larger count means that another thread is reading it from the disk.
                Stage::New => Arc::strong_count(&slot) <= 2,
                Stage::Gone => continue,
            };
            if is_idle {
                *stage = Stage::Gone;
                drop(stage);
                self.rooms.forget(&slot);
            }
        }
        self.rooms.loaded_count() > 0
    }

    fn is_room_idle(&self, room: &Room, now_ns: u64) -> bool {
        let is_over = |ticket| self.store.journal.status(ticket) != Status::Pending;
        room.watchers == 0
            && room.drafts.is_empty()
            && now_ns.saturating_sub(room.used_ns) >= IDLE_NS
            && room.ticket.is_none_or(is_over)
    }
}
