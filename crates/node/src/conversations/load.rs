//! Loading a conversation, and letting it go.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use conversations::record::{self, Malformed, MessageView, StateChange};
use conversations::{Conversation, State};
use journal::{ReadLimit, Status, Ticket};
use model::Name;

use super::slot::{Room, RoomGuard, Slot, Stage, loaded};
use super::unsynced::Unsynced;
use super::{Conversations, Refusal, state_of};
use crate::handle::Inner;
use crate::store::{Kind, Location, Store};

/// A conversation that nobody has used for this long is let go.
const IDLE_NS: u64 = 10_000_000_000;

/// How often those that nobody uses are looked for.
const SWEEP_NS: u64 = 1_000_000_000;

impl Conversations<'_> {
    /// Does something with the conversation of that name, which need not exist.
    pub(super) fn with_room<R>(
        &self,
        name: &str,
        then: impl FnOnce(&Arc<Slot>, &mut Room) -> R,
    ) -> Result<R, Refusal> {
        loop {
            let slot = self.store.rooms.slot(name);
            let Some(mut room) = self.store.load_room(self.inner, &slot)? else {
                continue;
            };
            room.used_ns = self.inner.ports.clock.now_ns();
            self.meet(name, &mut room)?;
            return Ok(then(&slot, &mut room));
        }
    }

    /// The same, of one that exists.
    pub(super) fn with_existing<R>(
        &self,
        name: &Name,
        then: impl FnOnce(&Arc<Slot>, &mut Room, Location) -> Result<R, Refusal>,
    ) -> Result<R, Refusal> {
        let missing = || Refusal::not_found(name.base());
        // Whatever is asked for of names that are not there leaves nothing behind.
        if self.store.find(Kind::Conversation, name.base()).is_none() {
            return Err(missing());
        }
        self.with_room(name.base(), |slot, room| {
            let location = room.location.filter(|_| room.engine.exists());
            then(slot, room, location.ok_or_else(missing)?)
        })?
    }
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

    /// The slot is not looked up any more.
    fn forget(&self, slot: &Arc<Slot>) {
        if let Entry::Occupied(entry) = self.loaded.lock().entry(slot.name.clone())
            && Arc::ptr_eq(entry.get(), slot)
        {
            entry.remove();
        }
    }
}

impl Store {
    /// `None` when the conversation was let go meanwhile.
    fn load_room<'a>(
        &self,
        inner: &Inner,
        slot: &'a Arc<Slot>,
    ) -> Result<Option<RoomGuard<'a>>, Refusal> {
        let mut stage = slot.stage.lock();
        match &*stage {
            Stage::Loaded(_) => {}
            Stage::New => {
                *stage = Stage::Loaded(Box::new(self.read_room(&slot.name)?));
                inner.need_sweep();
            }
            Stage::Gone => {
                drop(stage);
                self.rooms.forget(slot);
                return Ok(None);
            }
        }
        Ok(loaded(stage))
    }

    /// Whatever is written of it is durable, for nobody has it loaded.
    fn read_room(&self, name: &str) -> Result<Room, Refusal> {
        let location = self.find(Kind::Conversation, name);
        let engine = match location {
            Some(location) => self.read_engine(location)?,
            None => Conversation::load(State::default(), 0, 0, None),
        };
        Ok(Room {
            engine,
            location,
            events: None,
            ticket: None,
            unsynced: Unsynced::default(),
            watchers: 0,
            watching: BTreeMap::new(),
            drafts: Vec::new(),
            used_ns: 0,
        })
    }

    pub(super) fn read_engine(&self, location: Location) -> Result<Conversation, Refusal> {
        let Location { shard, stream } = location;
        let messages = self.journal.stream(shard, stream);
        let (first, next) = messages.map_or((0, 0), |it| (it.start, it.next));
        let newest = self.newest(location, first, next)?;
        let newest = newest.as_deref().map(MessageView::decode).transpose()?;
        let load = |state| Conversation::load(state, first, next, newest.as_ref());
        let mut engine = load(State::default());
        let states = Location {
            shard,
            stream: state_of(stream),
        };
        self.each_record(states, |record| {
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
        Ok(engine)
    }

    /// What must be durable before anything may be told that rests on what a conversation is.
    pub(super) fn tickets(&self, room: &Room) -> [Option<Ticket>; 2] {
        let creation = room.location.and_then(|it| self.creation(it.stream));
        [creation, room.ticket]
    }

    /// The record of the newest message, if it is kept.
    fn newest(&self, at: Location, first: u64, next: u64) -> Result<Option<Bytes>, Refusal> {
        if next <= first {
            return Ok(None);
        }
        let one = ReadLimit {
            records: 1,
            bytes: 1,
        };
        let read = self.journal.read(at.shard, at.stream, next - 1, one)?;
        Ok(read.records.into_iter().next().map(|it| it.payload))
    }

    /// Lets go of conversations that nobody uses. True as long as any is loaded.
    pub(crate) fn sweep_rooms(&self, inner: &Inner) -> bool {
        let now_ns = inner.ports.clock.now_ns();
        let swept_ns = self.rooms.swept_ns.load(Ordering::Relaxed);
        if now_ns.saturating_sub(swept_ns) < SWEEP_NS {
            return self.rooms.loaded_count() > 0;
        }
        self.rooms.swept_ns.store(now_ns, Ordering::Relaxed);
        let slots: Vec<_> = self.rooms.loaded.lock().values().cloned().collect();
        for slot in slots {
            let mut stage = slot.stage.lock();
            if let Stage::Loaded(room) = &mut *stage {
                self.retain(inner, room);
            }
            let is_idle = match &*stage {
                Stage::Loaded(room) => self.is_room_idle(room, now_ns),
                Stage::New => true,
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
