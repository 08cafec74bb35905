//! Loading a mailbox, and letting it go.

use std::collections::btree_map::Entry as MapEntry;
use std::sync::Arc;

use ::mailbox::record::{self, Malformed};
use ::mailbox::{Limits, Mailbox, Span, Written};
use journal::{ReadError, ReadLimit, Status};
use model::{ErrorCode, Name};
use parking_lot::{MappedMutexGuard, MutexGuard};

use super::directory::{Kind, Location};
use super::mailbox::{Instance, Methods, Progress, Slot, Stage, State};
use super::{Store, unreadable};
use crate::handle::Inner;

/// A mailbox that nobody has used for this long is let go.
const IDLE_NS: u64 = 10_000_000_000;

/// What is read of a mailbox at a time.
const CHUNK: ReadLimit = ReadLimit {
    records: 4_096,
    bytes: 1 << 20,
};

/// Why a mailbox cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub(super) enum LoadError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

impl From<LoadError> for (ErrorCode, String) {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Read(error) => unreadable(&error),
            LoadError::Malformed(error) => (ErrorCode::Internal, error.to_string()),
        }
    }
}

impl Store {
    /// The mailbox of that name, which need not exist; locked and loaded.
    pub(super) fn open_mailbox<R>(
        &self,
        inner: &Inner,
        base: &str,
        then: impl FnOnce(&Arc<Slot>, &mut State) -> R,
    ) -> Result<R, LoadError> {
        loop {
            let slot = self.slot(base);
            let Some(mut state) = self.load(inner, &slot)? else {
                continue;
            };
            state.used_ns = inner.ports.clock.now_ns();
            return Ok(then(&slot, &mut state));
        }
    }

    fn slot(&self, base: &str) -> Arc<Slot> {
        let mut loaded = self.loaded.lock();
        if let Some(slot) = loaded.get(base) {
            return slot.clone();
        }
        let name: Arc<str> = base.into();
        let slot = Arc::new(Slot {
            name: name.clone(),
            stage: parking_lot::Mutex::new(Stage::New),
        });
        loaded.insert(name, slot.clone());
        slot
    }

    /// `None` when the mailbox was let go meanwhile.
    fn load<'a>(
        &self,
        inner: &Inner,
        slot: &'a Arc<Slot>,
    ) -> Result<Option<MappedMutexGuard<'a, State>>, LoadError> {
        let mut stage = slot.stage.lock();
        match &*stage {
            Stage::Loaded(_) => {}
            Stage::New => {
                let state = self.read_back(inner, &slot.name)?;
                *stage = Stage::Loaded(Box::new(state));
                inner.need_sweep();
            }
            Stage::Gone => {
                drop(stage);
                self.forget(slot);
                return Ok(None);
            }
        }
        Ok(loaded(stage))
    }

    /// The slot is not looked up any more.
    fn forget(&self, slot: &Arc<Slot>) {
        if let MapEntry::Occupied(entry) = self.loaded.lock().entry(slot.name.clone())
            && Arc::ptr_eq(entry.get(), slot)
        {
            entry.remove();
        }
    }

    fn read_back(&self, inner: &Inner, base: &str) -> Result<State, LoadError> {
        let options = &self.options;
        let mut mailbox = Mailbox::new(Limits {
            messages_max: options.messages_max,
            bytes_max: options.size_max,
            in_flight_max: options.in_flight_max,
            deliveries_max: options.deliveries_max,
        });
        let location = self.find(Kind::Mailbox, base);
        let mut stream = Progress::default();
        if let Some(location) = location {
            stream = self.restore(location, &mut mailbox)?;
        }
        mailbox.restored();
        let name = Name::parse(base).map_err(|_| Malformed {
            what: "name of a mailbox",
        })?;
        Ok(State {
            mailbox,
            location,
            target: inner.table.write().target(&name),
            stream,
            methods: Methods::default(),
            used_ns: 0,
        })
    }

    /// Reads every record of the stream: all of them are durable, for nobody has it loaded.
    fn restore(
        &self,
        location: Location,
        mailbox: &mut Mailbox<Instance>,
    ) -> Result<Progress, LoadError> {
        let Location { shard, stream } = location;
        let start = self.journal.stream(shard, stream).map_or(0, |it| it.start);
        let mut progress = Progress {
            span: Span::new(start),
            ticket: None,
        };
        let mut from = start;
        loop {
            let read = self.journal.read(shard, stream, from, CHUNK)?;
            let Some(last) = read.records.last() else {
                return Ok(progress);
            };
            from = last.offset + 1;
            for record in &read.records {
                let bytes = &record.payload;
                progress.span.push(record.offset, bytes.len());
                match record.tag {
                    record::WRITE => {
                        progress.span.count_write();
                        mailbox.restore(written(record.offset, bytes)?);
                    }
                    record::MOVED => {
                        let moved = record::Moved::decode(bytes)?;
                        let written = written(moved.offset, moved.write)?;
                        mailbox.restore_moved(written, record.offset, moved.standing);
                    }
                    record::NOTES => {
                        for note in record::decode_notes(bytes) {
                            mailbox.restore_note(note?);
                        }
                    }
                    record::IDS => {
                        for id in record::decode_ids(bytes) {
                            let (offset, id) = id?;
                            mailbox.restore_id(offset, id);
                        }
                    }
                    _ => return Err(Malformed { what: "record" }.into()),
                }
            }
        }
    }

    /// Looks after every mailbox that is loaded: what is due goes out, what is over is forgotten,
    /// what nobody uses is let go. True as long as there is any.
    pub(crate) fn sweep(&self, inner: &Inner) -> bool {
        let slots: Vec<_> = self.loaded.lock().values().cloned().collect();
        let mut dirty = Vec::new();
        let mut is_any_left = false;
        for slot in slots {
            let Some(mut state) = loaded(slot.stage.lock()) else {
                continue;
            };
            state.mailbox.expire(inner.ports.clock.unix_ms());
            self.hand_out(inner, &slot, &mut state, &mut dirty);
            let is_idle = self.is_idle(inner, &state);
            drop(state);
            match is_idle {
                true => self.let_go(inner, &slot),
                false => is_any_left = true,
            }
        }
        for peer in dirty {
            peer.outlet.flush();
        }
        is_any_left
    }

    fn is_idle(&self, inner: &Inner, state: &State) -> bool {
        let mailbox = &state.mailbox;
        let is_used = inner.ports.clock.now_ns().saturating_sub(state.used_ns) < IDLE_NS;
        if is_used || mailbox.in_flight() > 0 || mailbox.is_unsynced() {
            return false;
        }
        let is_synced = |ticket| self.journal.status(ticket) != Status::Pending;
        let waits = || {
            inner
                .table
                .read()
                .all(&state.target, super::hand_out::NOBODY)
                .next()
                .is_some()
        };
        state.stream.ticket.is_none_or(is_synced) && (mailbox.live() == 0 || !waits())
    }

    fn let_go(&self, inner: &Inner, slot: &Arc<Slot>) {
        let mut stage = slot.stage.lock();
        // Somebody may have come meanwhile.
        let is_idle = match &*stage {
            Stage::Loaded(state) => self.is_idle(inner, state),
            Stage::New | Stage::Gone => false,
        };
        if !is_idle {
            return;
        }
        if let Stage::Loaded(state) = std::mem::replace(&mut *stage, Stage::Gone) {
            inner.table.write().release(state.target);
        }
        drop(stage);
        self.forget(slot);
    }
}

/// What stands in the bytes of a write.
fn written(offset: u64, bytes: &[u8]) -> Result<Written<'_>, Malformed> {
    let write = record::Write::decode(bytes)?;
    Ok(Written {
        offset,
        id: write.id,
        sender: write.sender,
        size: bytes.len() as u32,
        expires_ms: write.expires_ms,
    })
}

pub(super) fn loaded(stage: MutexGuard<'_, Stage>) -> Option<MappedMutexGuard<'_, State>> {
    let state = MutexGuard::try_map(stage, |stage| match stage {
        Stage::Loaded(state) => Some(&mut **state),
        Stage::New | Stage::Gone => None,
    });
    state.ok()
}
