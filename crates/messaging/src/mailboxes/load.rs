//! Loading of mailboxes.
//!
//! A mailbox whose records are in memory is loaded inline. If the disk is needed, it is read on
//! another thread, without locks. Writes that arrive meanwhile are queued with the mailbox, in
//! order, and their results are fetched later.

use std::sync::Arc;

use platform::{Counter, Later, Overloaded, Pending};
use store::{Reach, StorageError};

use super::Mailboxes;
use super::error::{LoadError, WriteError};
use super::slot::{Deferred, PendingWrite, Slot, Stage, State};
use crate::peer::Peer;

/// Maximum number of queued writes per mailbox.
const DEFERRED_MAX: usize = 8_192;

impl Mailboxes {
    /// Runs `then` with a mailbox, which need not exist. Returns `None` if the disk must be read
    /// first.
    pub(super) fn with_mailbox<R>(
        &self,
        base: &str,
        then: impl FnOnce(&Arc<Slot>, &mut State) -> R,
    ) -> Result<Option<R>, LoadError> {
        loop {
            let slot = self.slot(base);
            let mut stage = slot.stage.lock();
            if let Stage::New = &*stage
                && let Some(state) = self.read_back(base, Reach::Memory)?
            {
                *stage = Stage::Loaded(Box::new(state));
                self.platform.need_sweep();
            }
            match &mut *stage {
                Stage::Loaded(state) => {
                    state.used_ns = self.platform.now_ns();
                    return Ok(Some(then(&slot, state)));
                }
                Stage::New | Stage::Loading(_) => return Ok(None),
                Stage::Gone => {
                    drop(stage);
                    self.forget(&slot);
                }
            }
        }
    }

    /// Like [`Mailboxes::with_mailbox`], for threads that may wait for the disk.
    pub(super) fn wait_for_mailbox<R>(
        self: &Arc<Self>,
        base: &str,
        then: impl FnOnce(&Arc<Slot>, &mut State) -> R,
    ) -> Result<R, StorageError> {
        let mut then = Some(then);
        loop {
            let done = self.with_mailbox(base, |slot, state| {
                then.take().map(|then| then(slot, state))
            })?;
            if let Some(done) = done.flatten() {
                return Ok(done);
            }
            let slot = self.slot(base);
            let mut stage = slot.stage.lock();
            match &*stage {
                Stage::New => {
                    *stage = Stage::Loading(Vec::new());
                    drop(stage);
                    self.finish_loading(&slot)?;
                }
                Stage::Loading(_) => slot.loaded.wait(&mut stage),
                Stage::Loaded(_) | Stage::Gone => {}
            }
        }
    }

    /// Starts loading a mailbox, if it is not loaded. Its messages are delivered afterwards.
    pub(super) fn begin_loading(self: &Arc<Self>, base: &str) {
        let slot = self.slot(base);
        let mut stage = slot.stage.lock();
        if let Stage::New = &*stage {
            *stage = Stage::Loading(Vec::new());
            drop(stage);
            self.load_offloaded(&slot);
        }
    }

    /// Queues a write with a mailbox that is not loaded.
    pub(super) fn defer(
        self: &Arc<Self>,
        base: &str,
        bytes: Vec<u8>,
    ) -> Result<Arc<Later<PendingWrite>>, WriteError> {
        let later = Arc::new(Later::default());
        loop {
            let slot = self.slot(base);
            let mut stage = slot.stage.lock();
            let is_first = matches!(&*stage, Stage::New);
            if is_first {
                *stage = Stage::Loading(Vec::new());
            }
            match &mut *stage {
                Stage::Loading(deferred) if deferred.len() >= DEFERRED_MAX => {
                    return Err(Overloaded.into());
                }
                Stage::Loading(deferred) => deferred.push(Deferred {
                    bytes,
                    later: later.clone(),
                }),
                Stage::Loaded(state) => {
                    let written = self.write_now(&slot, state, &bytes);
                    drop(stage);
                    later.put(written);
                    return Ok(later);
                }
                Stage::New | Stage::Gone => {
                    drop(stage);
                    self.forget(&slot);
                    continue;
                }
            }
            drop(stage);
            if is_first {
                self.load_offloaded(&slot);
            }
            return Ok(later);
        }
    }

    /// Reads a mailbox in the loading stage on another thread.
    fn load_offloaded(self: &Arc<Self>, slot: &Arc<Slot>) {
        let work = {
            let (mailboxes, slot) = (self.clone(), slot.clone());
            move || {
                if mailboxes.finish_loading(&slot).is_err() {
                    mailboxes.platform.counters.count(Counter::Unreadable);
                }
            }
        };
        if let Err(overloaded) = self.platform.offload_work(Box::new(work)) {
            // The sweep tries again, for mailboxes without queued writes.
            self.fail_loading(slot, Stage::New, || overloaded.into());
            self.platform.need_sweep();
        }
    }

    /// Reads a mailbox in the loading stage on this thread, and executes its queued writes.
    fn finish_loading(self: &Arc<Self>, slot: &Arc<Slot>) -> Result<(), StorageError> {
        let state = match self.read_back(&slot.name, Reach::Disk) {
            Ok(Some(state)) => state,
            Ok(None) => unreachable!("a read from disk always completes"),
            Err(error) => {
                let error = StorageError::from(error);
                self.fail_loading(slot, Stage::Gone, || error.clone());
                self.forget(slot);
                return Err(error);
            }
        };
        let (mut writes, mut dirty) = (Vec::new(), Vec::new());
        let mut stage = slot.stage.lock();
        let before = std::mem::replace(&mut *stage, Stage::Loaded(Box::new(state)));
        if let (Stage::Loading(deferred), Stage::Loaded(state)) = (before, &mut *stage) {
            for Deferred { bytes, later } in deferred {
                writes.push((later, self.write_now(slot, state, &bytes)));
            }
            self.hand_out(slot, state, &mut dirty);
        }
        drop(stage);
        slot.loaded.notify_all();
        for (later, written) in writes {
            later.put(written);
        }
        self.finish(slot, dirty);
        self.platform.need_sweep();
        Ok(())
    }

    /// Ends a failed load: all queued writes fail with the error.
    fn fail_loading(&self, slot: &Arc<Slot>, next: Stage, error: impl Fn() -> StorageError) {
        let before = std::mem::replace(&mut *slot.stage.lock(), next);
        slot.loaded.notify_all();
        if let Stage::Loading(deferred) = before {
            for Deferred { later, .. } in deferred {
                later.put(Pending::known(Err(error().into())));
            }
        }
    }

    /// Completes work on a mailbox, which is no longer locked.
    pub(super) fn finish(self: &Arc<Self>, slot: &Arc<Slot>, dirty: Vec<Arc<Peer>>) {
        for peer in dirty {
            peer.flush();
        }
        self.fetch(slot);
    }

    fn slot(&self, base: &str) -> Arc<Slot> {
        self.loaded.get_or_insert_with(base, Slot::new)
    }

    /// Removes the slot from the loaded mailboxes.
    pub(super) fn forget(&self, slot: &Arc<Slot>) {
        self.loaded.remove(&slot.name, slot);
    }
}
