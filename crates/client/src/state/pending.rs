//! `PendingCalls`: table of the calls of one connection.
//!
//! The table is a slab. A call's correlation is its slot and the generation of the slot, so a late
//! answer never matches a newer call, and no hashing is needed. A slot becomes free when its holder
//! is gone *and* the peer has answered; a call that was given up occupies its slot until then.
//!
//! The table runs no user code. Wakers and callbacks are collected in [`Completions`] and run after
//! the lock is released.

use bytes::Bytes;
use model::ErrorCode;
use wire::Correlation;

use crate::CallError;
use crate::state::clock::{Millis, NEVER, Timeout};
use crate::state::completions::Completions;
use crate::state::functions::Functions;
use crate::state::holder::Holder;
use crate::state::outcome::{Answer, Outcome};
use crate::state::registry::Purpose;

/// Index for the end of the free list.
const NONE: u32 = u32::MAX;

/// Table of the calls of one connection.
pub(crate) struct PendingCalls {
    slots: Vec<Slot>,
    /// First free slot; each free slot has the index of the next.
    free: u32,
    occupied: usize,
    /// Slots whose deadline counts from the next flush.
    fresh: Vec<u32>,
    /// Lower bound of the deadlines; exact after a sweep.
    deadline_min: Option<Millis>,
    /// Functions of [`Holder::Callback`].
    pub(crate) functions: Functions,
}

/// A slot of the table, in a cache line of its own.
#[repr(align(64))]
struct Slot {
    generation: u32,
    /// Batch of bytes in which the call was queued.
    batch: u32,
    /// Duration of the call while the slot is fresh; its deadline afterwards.
    deadline: Millis,
    /// True until the peer has sent the last answer.
    is_open: bool,
    holder: Holder,
}

/// A call whose deadline has passed.
pub(crate) struct ExpiredCall {
    pub(crate) correlation: Correlation,
    pub(crate) batch: u32,
}

impl Default for PendingCalls {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free: NONE,
            occupied: 0,
            fresh: Vec::new(),
            deadline_min: None,
            functions: Functions::default(),
        }
    }
}

impl PendingCalls {
    /// Returns the number of slots in use.
    pub(crate) fn occupied(&self) -> usize {
        self.occupied
    }

    /// True if calls wait for their start time.
    pub(crate) fn has_fresh(&self) -> bool {
        !self.fresh.is_empty()
    }

    /// True if no call waits for an outcome.
    pub(crate) fn is_quiet(&self) -> bool {
        !self.slots.iter().any(Slot::waits)
    }

    pub(crate) fn deadline_min(&self) -> Option<Millis> {
        self.deadline_min
    }

    /// Takes a free slot. The free list makes recently used slots come first, which keeps the slots
    /// dense. `holder` constructs the holder in place, because it is larger than its captures.
    #[inline]
    pub(crate) fn insert(
        &mut self,
        holder: impl FnOnce(&mut Functions) -> Holder,
        batch: u32,
        timeout: Timeout,
    ) -> Correlation {
        self.occupied += 1;
        if self.free == NONE {
            self.free = self.slots.len() as u32;
            self.slots.push(Slot::unused());
        }
        let index = self.free;
        let slot = &mut self.slots[index as usize];
        match slot.holder {
            Holder::Free(next) => self.free = next,
            _ => unreachable!("a slot of the free list is free"),
        }
        set_without_drop(&mut slot.holder, holder(&mut self.functions));
        slot.generation = slot.generation.wrapping_add(1).max(1);
        slot.batch = batch;
        slot.deadline = timeout.end(0);
        slot.is_open = true;
        if slot.deadline != NEVER {
            self.fresh.push(index);
        }
        Correlation {
            slot: index,
            generation: slot.generation,
        }
    }

    /// Sets the deadlines of fresh calls to their duration after `start`.
    pub(crate) fn stamp(&mut self, start: Millis) {
        for index in self.fresh.drain(..) {
            let slot = &mut self.slots[index as usize];
            slot.deadline += start;
            if self
                .deadline_min
                .is_none_or(|earliest| slot.deadline < earliest)
            {
                self.deadline_min = Some(slot.deadline);
            }
        }
    }

    /// Returns the holder of a call in the table.
    pub(crate) fn holder(&mut self, correlation: Correlation) -> Option<&mut Holder> {
        self.slot(correlation).map(|slot| &mut slot.holder)
    }

    /// Processes an answer; `more` says that it is not the last.
    #[inline]
    pub(crate) fn answer(
        &mut self,
        correlation: Correlation,
        more: bool,
        answer: Answer<'_>,
        chunk: &[u8],
        completions: &mut Completions,
    ) {
        let Some(slot) = self.slots.get_mut(correlation.slot as usize) else {
            return;
        };
        // A free slot is never open.
        if slot.generation != correlation.generation || !slot.is_open {
            return;
        }
        if more {
            return self.take_item(correlation, answer, chunk, completions);
        }
        slot.is_open = false;
        match &mut slot.holder {
            &mut Holder::Callback(index, tag) => {
                let next = Holder::Free(std::mem::replace(&mut self.free, correlation.slot));
                set_without_drop(&mut slot.holder, next);
                self.occupied -= 1;
                completions.is_room = true;
                let function = self.functions.leave(index, completions);
                completions.call_later(function, tag, answer, chunk);
            }
            Holder::Future(waker) => {
                completions.wakers.extend(waker.take());
                slot.holder = Holder::Done(answer.map(Bytes::copy_from_slice));
            }
            _ => self.settle(correlation, answer, chunk, completions),
        }
    }

    /// Processes an answer that is not the last.
    fn take_item(
        &mut self,
        correlation: Correlation,
        answer: Answer<'_>,
        chunk: &[u8],
        completions: &mut Completions,
    ) {
        let goes_on = match self.holder(correlation) {
            None | Some(Holder::Abandoned | Holder::Done(_)) => true,
            Some(Holder::Stream(items)) => items.push(answer, &mut completions.wakers),
            Some(_) => {
                self.settle(correlation, Err(unexpected_item()), chunk, completions);
                false
            }
        };
        if !goes_on {
            completions.cancels.push(correlation);
        }
    }

    /// Gives the holder its outcome, even if the peer has not sent its last answer.
    fn settle(
        &mut self,
        correlation: Correlation,
        answer: Answer<'_>,
        chunk: &[u8],
        completions: &mut Completions,
    ) {
        let Some(slot) = self.slot(correlation) else {
            return;
        };
        match std::mem::replace(&mut slot.holder, Holder::Abandoned) {
            Holder::Future(waker) => {
                slot.holder = Holder::Done(answer.map(Bytes::copy_from_slice));
                completions.wakers.extend(waker);
            }
            Holder::Callback(index, tag) => {
                let function = self.functions.leave(index, completions);
                completions.call_later(function, tag, answer, chunk);
            }
            Holder::Once(once) => completions.call_once_later(once, answer, chunk),
            Holder::Stream(mut items) => {
                items.end(answer.map(|_| ()), &mut completions.wakers);
                slot.holder = Holder::Stream(items);
            }
            Holder::Subscribing(mut subscribing) => {
                let name = match &answer {
                    Ok(payload) => wire::decode_name(payload)
                        .map(str::to_owned)
                        .map_err(|_| ErrorCode::Protocol),
                    Err(error) => Err(error.code),
                };
                completions.wakers.extend(subscribing.waker.take());
                if let Purpose::New = subscribing.purpose {
                    slot.holder = Holder::Done(answer.map(Bytes::copy_from_slice));
                }
                completions.subscription_results.push((subscribing, name));
            }
            // The first outcome is final.
            holder @ (Holder::Done(_) | Holder::Abandoned | Holder::Free(_)) => {
                slot.holder = holder
            }
        }
        self.release_if_over(correlation, completions);
    }

    /// Takes the outcome and the deadline of a completed call and frees its slot.
    pub(crate) fn take(
        &mut self,
        correlation: Correlation,
        completions: &mut Completions,
    ) -> Option<(Outcome, Millis)> {
        let slot = self.slots.get_mut(correlation.slot as usize)?;
        if slot.generation != correlation.generation || !matches!(slot.holder, Holder::Done(_)) {
            return None;
        }
        let deadline = slot.deadline;
        let next = match slot.is_open {
            true => Holder::Abandoned,
            false => {
                self.occupied -= 1;
                completions.is_room = true;
                Holder::Free(std::mem::replace(&mut self.free, correlation.slot))
            }
        };
        match std::mem::replace(&mut slot.holder, next) {
            Holder::Done(outcome) => Some((outcome, deadline)),
            _ => unreachable!("the holder is `Done`"),
        }
    }

    /// Gives up a call. Returns true if the peer should get a CANCEL.
    pub(crate) fn abandon(
        &mut self,
        correlation: Correlation,
        completions: &mut Completions,
    ) -> bool {
        let Some(slot) = self.slot(correlation) else {
            return false;
        };
        if let Holder::Subscribing(subscribing) = &mut slot.holder {
            subscribing.waker = None;
            subscribing.purpose = Purpose::Abandoned;
            return false;
        }
        let holder = std::mem::replace(&mut slot.holder, Holder::Abandoned);
        // An expired call was cancelled at the peer when it expired.
        let is_told = matches!(&holder, Holder::Done(_))
            || matches!(&holder, Holder::Stream(items) if items.is_ended());
        let is_open = slot.is_open;
        completions.drop_later(holder);
        self.release_if_over(correlation, completions);
        is_open && !is_told
    }

    /// Fails the calls whose deadline has passed with `error(batch)`; their slots stay open until
    /// the peer answers. Fresh calls get their start time.
    pub(crate) fn expire(
        &mut self,
        now: Millis,
        error: impl Fn(u32) -> CallError,
        completions: &mut Completions,
    ) -> Vec<ExpiredCall> {
        let mut expired = Vec::new();
        if self.deadline_min.is_none_or(|earliest| now < earliest) {
            return expired;
        }
        // `now` is rounded down; a start is rounded up.
        self.stamp(now + 1);
        self.deadline_min = None;
        for index in 0..self.slots.len() {
            let slot = &mut self.slots[index];
            if !slot.waits() || slot.deadline == NEVER {
                continue;
            }
            if slot.deadline > now {
                let earliest = self.deadline_min.unwrap_or(NEVER);
                self.deadline_min = Some(earliest.min(slot.deadline));
                continue;
            }
            let batch = slot.batch;
            let correlation = Correlation {
                slot: index as u32,
                generation: slot.generation,
            };
            expired.push(ExpiredCall { correlation, batch });
            self.settle(correlation, Err(error(batch)), &[], completions);
        }
        expired
    }

    /// Fails every call with `error(batch)` after a lost connection; no slot waits for an answer
    /// any more.
    pub(crate) fn fail_all(
        &mut self,
        now: Millis,
        error: impl Fn(u32) -> CallError,
        completions: &mut Completions,
    ) {
        self.stamp(now);
        self.deadline_min = None;
        for index in 0..self.slots.len() {
            let slot = &mut self.slots[index];
            if matches!(slot.holder, Holder::Free(_)) {
                continue;
            }
            slot.is_open = false;
            let correlation = Correlation {
                slot: index as u32,
                generation: slot.generation,
            };
            match slot.waits() {
                true => {
                    let error = error(slot.batch);
                    self.settle(correlation, Err(error), &[], completions);
                }
                false => self.release_if_over(correlation, completions),
            }
        }
    }

    fn slot(&mut self, correlation: Correlation) -> Option<&mut Slot> {
        self.slots
            .get_mut(correlation.slot as usize)
            .filter(|slot| slot.generation == correlation.generation)
            .filter(|slot| !matches!(slot.holder, Holder::Free(_)))
    }

    fn release_if_over(&mut self, correlation: Correlation, completions: &mut Completions) {
        let index = correlation.slot;
        let slot = &mut self.slots[index as usize];
        if !slot.is_open && matches!(slot.holder, Holder::Abandoned) {
            slot.holder = Holder::Free(self.free);
            self.free = index;
            self.occupied -= 1;
            completions.is_room = true;
        }
    }
}

impl Slot {
    fn unused() -> Self {
        Self {
            generation: 0,
            batch: 0,
            deadline: NEVER,
            is_open: false,
            holder: Holder::Free(NONE),
        }
    }

    /// True if the holder waits for an outcome.
    fn waits(&self) -> bool {
        match &self.holder {
            Holder::Free(_) | Holder::Abandoned | Holder::Done(_) => false,
            Holder::Stream(items) => !items.is_ended(),
            _ => true,
        }
    }
}

/// Replaces a holder that owns nothing: [`Holder::Free`] or [`Holder::Callback`].
#[inline]
fn set_without_drop(holder: &mut Holder, next: Holder) {
    debug_assert!(matches!(holder, Holder::Free(_) | Holder::Callback(..)));
    std::mem::forget(std::mem::replace(holder, next));
}

fn unexpected_item() -> CallError {
    let message = "the responder sent a stream to a call that takes one reply: use `stream`";
    CallError::new(ErrorCode::Protocol, message).with_sent(crate::Sent::Yes)
}

#[cfg(test)]
mod tests;
