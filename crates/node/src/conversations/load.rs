//! Loads and unloads conversations.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use conversations::record::{self, Malformed, MessageView, StateChange};
use conversations::{Conversation, State};
use journal::{ReadLimit, Record, Status, Ticket};
use model::Name;

use super::slot::{Room, RoomGuard, Slot, Stage, loaded};
use super::unsynced::Unsynced;
use super::{Conversations, Refusal, state_of};
use crate::node::Inner;
use crate::store::{Kind, Location, Reach, Store};

/// Time after which an unused conversation is unloaded, in nanoseconds.
const IDLE_NS: u64 = 10_000_000_000;

/// Interval between two searches for unused conversations, in nanoseconds.
const SWEEP_NS: u64 = 1_000_000_000;

impl Conversations<'_> {
    /// Runs an operation on a conversation, which need not exist. It may read from the disk,
    /// without any lock.
    pub(super) fn with_room<R>(
        &self,
        name: &str,
        then: impl FnOnce(&Arc<Slot>, &mut Room) -> R,
    ) -> Result<R, Refusal> {
        let mut then = Some(then);
        loop {
            let done = self
                .with_room_at_hand(name, |slot, room| then.take().map(|then| then(slot, room)))?;
            match done.flatten() {
                Some(done) => return Ok(done),
                None => self.store.fetch_room(self.inner, name)?,
            }
        }
    }

    /// Like [`Conversations::with_room`], without blocking; `None` if the disk is needed first.
    pub(super) fn with_room_at_hand<R>(
        &self,
        name: &str,
        then: impl FnOnce(&Arc<Slot>, &mut Room) -> R,
    ) -> Result<Option<R>, Refusal> {
        loop {
            let slot = self.store.rooms.slot(name);
            match self.store.room_at_hand(self.inner, &slot)? {
                AtHand::Is(room) => return self.use_room(name, &slot, room, then).map(Some),
                AtHand::Later => return Ok(None),
                AtHand::Gone => {}
            }
        }
    }

    /// Like [`Conversations::with_room_at_hand`], for repeated use: tries the slot in `known` first
    /// and updates it.
    pub(super) fn with_room_again<R>(
        &self,
        name: &str,
        known: &mut Option<Arc<Slot>>,
        then: impl FnOnce(&Arc<Slot>, &mut Room) -> R,
    ) -> Result<Option<R>, Refusal> {
        if let Some(slot) = known
            && let Some(room) = slot.room()
        {
            return self.use_room(name, slot, room, then).map(Some);
        }
        self.with_room_at_hand(name, |slot, room| {
            *known = Some(slot.clone());
            then(slot, room)
        })
    }

    fn use_room<R>(
        &self,
        name: &str,
        slot: &Arc<Slot>,
        mut room: RoomGuard<'_>,
        then: impl FnOnce(&Arc<Slot>, &mut Room) -> R,
    ) -> Result<R, Refusal> {
        room.used_ns = self.now_ns();
        self.meet(name, &mut room)?;
        Ok(then(slot, &mut room))
    }

    /// Like [`Conversations::with_room`], for a conversation that exists.
    pub(super) fn with_existing<R>(
        &self,
        name: &Name,
        then: impl FnOnce(&Arc<Slot>, &mut Room, Location) -> Result<R, Refusal>,
    ) -> Result<R, Refusal> {
        let missing = || Refusal::not_found(name.base());
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
    pub fn is_at_hand(&self, name: &Name) -> Result<bool, Refusal> {
        if self.store.find(Kind::Conversation, name.base()).is_none() {
            return Ok(true);
        }
        let room = self.with_room_at_hand(name.base(), |_, _| ())?;
        Ok(room.is_some())
    }

    /// Loads a conversation, if it exists. It may read from the disk.
    pub fn load(&self, name: &Name) -> Result<(), Refusal> {
        match self.store.find(Kind::Conversation, name.base()) {
            Some(_) => self.with_room(name.base(), |_, _| ()),
            None => Ok(()),
        }
    }
}

/// The state of a slot, without reading from the disk.
enum AtHand<'a> {
    Is(RoomGuard<'a>),
    /// The conversation must be read from the disk.
    Later,
    /// The slot was unloaded meanwhile.
    Gone,
}

impl super::Rooms {
    fn slot(&self, name: &str) -> Arc<Slot> {
        let mut loaded = self.loaded.lock();
        if let Some(slot) = loaded.get(name) {
            return slot.clone();
        }
        let slot = Arc::new(Slot::new(name.into()));
        loaded.insert(slot.name.clone(), slot.clone());
        slot
    }

    /// Removes the slot from the map.
    fn forget(&self, slot: &Arc<Slot>) {
        if let Entry::Occupied(entry) = self.loaded.lock().entry(slot.name.clone())
            && Arc::ptr_eq(entry.get(), slot)
        {
            entry.remove();
        }
    }
}

impl Store {
    fn room_at_hand<'a>(&self, inner: &Inner, slot: &'a Arc<Slot>) -> Result<AtHand<'a>, Refusal> {
        let mut stage = slot.stage.lock();
        match &*stage {
            Stage::Loaded(_) => {}
            Stage::New => match self.read_room(Reach::Memory, &slot.name)? {
                Some(room) => {
                    *stage = Stage::Loaded(Box::new(room));
                    inner.platform.need_sweep();
                }
                None => return Ok(AtHand::Later),
            },
            Stage::Gone => {
                drop(stage);
                self.rooms.forget(slot);
                return Ok(AtHand::Gone);
            }
        }
        Ok(loaded(stage).map_or(AtHand::Gone, AtHand::Is))
    }

    /// Reads a conversation that is not loaded, without any lock. A slot that is still new
    /// afterwards was new throughout, so no write was missed.
    fn fetch_room(&self, inner: &Inner, name: &str) -> Result<(), Refusal> {
        let slot = self.rooms.slot(name);
        let read = self.read_room(Reach::Disk, name);
        let mut stage = slot.stage.lock();
        if let Stage::New = &*stage
            && let Some(mut room) = read?
        {
            room.used_ns = inner.platform.ports.clock.now_ns();
            *stage = Stage::Loaded(Box::new(room));
            inner.platform.need_sweep();
        }
        Ok(())
    }

    /// Reads a conversation; all of its writes are durable, because it is not loaded. `None` if it
    /// is out of reach.
    fn read_room(&self, reach: Reach, name: &str) -> Result<Option<Room>, Refusal> {
        let location = self.find(Kind::Conversation, name);
        let read = match location {
            Some(location) => self.read_engine_within(reach, location)?,
            None => Some((Conversation::load(State::default(), 0, 0, None), 0)),
        };
        Ok(read.map(|(engine, said_ms)| Room {
            engine,
            location,
            events: None,
            ticket: None,
            unsynced: Unsynced::default(),
            watchers: 0,
            watching: BTreeMap::new(),
            drafts: Vec::new(),
            said_ms,
            used_ns: 0,
        }))
    }

    pub(super) fn read_engine(&self, location: Location) -> Result<Conversation, Refusal> {
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
    ) -> Result<Option<(Conversation, u64)>, Refusal> {
        let Location { shard, stream } = location;
        let messages = self.journal.stream(shard, stream);
        let (first, next) = messages.map_or((0, 0), |it| (it.start, it.next));
        let Some(newest) = self.newest(reach, location, first, next)? else {
            return Ok(None);
        };
        let said_ms = newest.as_ref().map_or(0, |it| it.time_ms);
        let newest = newest.as_ref().map(|it| MessageView::decode(&it.payload));
        let newest = newest.transpose()?;
        let load = |state| Conversation::load(state, first, next, newest.as_ref());
        let mut engine = load(State::default());
        let states = Location {
            shard,
            stream: state_of(stream),
        };
        let read = self.each_record_within(reach, states, |record| {
            match record.tag {
                record::SNAPSHOT => {
                    engine = load(State::decode(&record.payload)?);
                }
                record::CHANGE => {
                    engine.restore_change(&StateChange::decode(&record.payload)?);
                }
                _ => return Err(Malformed { what: "record" }.into()),
            }
            Ok::<_, Refusal>(())
        })?;
        Ok(read.map(|()| (engine, said_ms)))
    }

    /// Returns the tickets that must be durable before an answer that depends on the conversation's
    /// current state.
    pub(super) fn tickets(&self, room: &Room) -> [Option<Ticket>; 2] {
        let creation = room.location.and_then(|it| self.creation(it.stream));
        [creation, room.ticket]
    }

    /// Returns the newest message, if one is stored; the outer `None` means out of reach.
    fn newest(
        &self,
        reach: Reach,
        at: Location,
        first: u64,
        next: u64,
    ) -> Result<Option<Option<Record>>, Refusal> {
        if next <= first {
            return Ok(Some(None));
        }
        let one = ReadLimit {
            records: 1,
            bytes: 1,
        };
        let read = self.read_within(reach, at, next - 1, one)?;
        Ok(read.map(|read| read.records.into_iter().next()))
    }

    /// Unloads unused conversations. Returns whether any is loaded.
    pub(crate) fn sweep_rooms(&self, inner: &Inner) -> bool {
        let now_ns = inner.platform.ports.clock.now_ns();
        let swept_ns = self.rooms.swept_ns.load(Ordering::Relaxed);
        if now_ns.saturating_sub(swept_ns) < SWEEP_NS {
            return self.rooms.loaded_count() > 0;
        }
        self.rooms.swept_ns.store(now_ns, Ordering::Relaxed);
        let slots: Vec<_> = self.rooms.loaded.lock().values().cloned().collect();
        for slot in slots {
            // The conversation is in use.
            let Some(mut stage) = slot.stage.try_lock() else {
                continue;
            };
            if let Stage::Loaded(room) = &mut *stage {
                self.retain(inner, room);
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
        let is_over = |ticket| self.journal.status(ticket) != Status::Pending;
        room.watchers == 0
            && room.drafts.is_empty()
            && now_ns.saturating_sub(room.used_ns) >= IDLE_NS
            && room.ticket.is_none_or(is_over)
    }
}
