//! The calls of one connection: who waits for which answer.
//!
//! A slab: a call's correlation is its slot and how often the slot was used, so a late answer
//! never meets the wrong call and nothing is hashed. A slot is free again when nobody holds it
//! *and* the peer has answered: a call that was given up leaves a tombstone until then.
//!
//! The table only keeps and changes; whoever is to be woken or called back is handed out in
//! [`Completed`] and reached after the lock is released.

use std::task::Waker;

use bytes::Bytes;
use model::ErrorCode;
use wire::Correlation;

use crate::CallError;
use crate::clock::{Millis, NEVER, Timeout};
use crate::completed::{Completed, Once};
use crate::functions::{Functions, Place};
use crate::items::Items;
use crate::registry::{Joining, Purpose};

/// What a call comes to.
pub(crate) type Outcome = Result<Bytes, CallError>;

/// An answer as it lies in what was read.
pub(crate) type Answer<'a> = Result<&'a [u8], CallError>;

/// No slot.
const NONE: u32 = u32::MAX;

pub(crate) struct Pending {
    slots: Vec<Slot>,
    /// The first slot that is not in use; it knows the next.
    free: u32,
    occupied: usize,
    /// Slots whose deadline still counts from the flush that is to come.
    fresh: Vec<u32>,
    /// No call's deadline is earlier. Exact after a sweep.
    deadline_min: Option<Millis>,
    /// The functions of [`Holder::Callback`].
    pub(crate) functions: Functions,
}

struct Slot {
    generation: u32,
    /// The batch of bytes in which the call was queued.
    batch: u32,
    /// While the slot is fresh: how long the call may take. Afterwards: until when.
    deadline: Millis,
    /// The peer owes the last answer.
    is_open: bool,
    holder: Holder,
}

/// Who wants to know what comes of a call.
pub(crate) enum Holder {
    /// The slot is not in use; the next one that is not.
    Free(u32),
    /// Nobody any more.
    Nobody,
    /// A future, once it has been polled.
    Future(Option<Waker>),
    /// A future, and the outcome is here.
    Done(Outcome),
    /// A function that was registered for many calls, and the call's tag.
    Callback(Place, u64),
    /// A function for this call.
    Once(Once),
    /// A stream.
    Stream(Box<Items>),
    /// A subscription that is being made. It has no deadline: when nobody waits for it any more
    /// it is ended as soon as it is confirmed.
    Joining(Box<Joining>),
}

/// A call whose time was up.
pub(crate) struct Expired {
    pub(crate) correlation: Correlation,
    pub(crate) batch: u32,
}

impl Default for Pending {
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

impl Pending {
    /// Slots in use.
    pub(crate) fn occupied(&self) -> usize {
        self.occupied
    }

    /// Whether calls wait to be stamped with the time.
    pub(crate) fn has_fresh(&self) -> bool {
        !self.fresh.is_empty()
    }

    /// Whether nobody waits for an outcome that is not here.
    pub(crate) fn is_quiet(&self) -> bool {
        !self.slots.iter().any(Slot::waits)
    }

    pub(crate) fn deadline_min(&self) -> Option<Millis> {
        self.deadline_min
    }

    /// Takes the lowest slot that is not in use, so that slots stay dense. `holder` makes who
    /// waits, in its place: it is larger than what is known of it here.
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
        slot.holder = holder(&mut self.functions);
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

    /// Lets the deadlines of fresh calls count from `start`.
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

    /// The holder of a call that has not been released.
    pub(crate) fn holder(&mut self, correlation: Correlation) -> Option<&mut Holder> {
        self.slot(correlation).map(|slot| &mut slot.holder)
    }

    /// An answer arrived; `more` says that it is not the last.
    #[inline]
    pub(crate) fn answer(
        &mut self,
        correlation: Correlation,
        more: bool,
        answer: Answer<'_>,
        chunk: &[u8],
        completed: &mut Completed,
    ) {
        let Some(slot) = self.slots.get_mut(correlation.slot as usize) else {
            return;
        };
        // A slot that is not in use is not open either.
        if slot.generation != correlation.generation || !slot.is_open {
            return;
        }
        if more {
            return self.take_item(correlation, answer, chunk, completed);
        }
        slot.is_open = false;
        match &mut slot.holder {
            &mut Holder::Callback(place, tag) => {
                slot.holder = Holder::Free(std::mem::replace(&mut self.free, correlation.slot));
                self.occupied -= 1;
                completed.is_room = true;
                let function = self.functions.leave(place, completed);
                completed.hit(function, tag, answer, chunk);
            }
            Holder::Future(waker) => {
                completed.wakers.extend(waker.take());
                slot.holder = Holder::Done(answer.map(Bytes::copy_from_slice));
            }
            _ => self.settle(correlation, answer, chunk, completed),
        }
    }

    /// An answer arrived that is not the last.
    fn take_item(
        &mut self,
        correlation: Correlation,
        answer: Answer<'_>,
        chunk: &[u8],
        completed: &mut Completed,
    ) {
        let goes_on = match self.holder(correlation) {
            None | Some(Holder::Nobody | Holder::Done(_)) => true,
            Some(Holder::Stream(items)) => items.push(answer, completed),
            Some(_) => {
                self.settle(correlation, Err(unexpected_item()), chunk, completed);
                false
            }
        };
        if !goes_on {
            completed.cancels.push(correlation);
        }
    }

    /// Gives the holder its outcome, whatever the peer still owes.
    fn settle(
        &mut self,
        correlation: Correlation,
        answer: Answer<'_>,
        chunk: &[u8],
        completed: &mut Completed,
    ) {
        let Some(slot) = self.slot(correlation) else {
            return;
        };
        match std::mem::replace(&mut slot.holder, Holder::Nobody) {
            Holder::Future(waker) => {
                slot.holder = Holder::Done(answer.map(Bytes::copy_from_slice));
                completed.wakers.extend(waker);
            }
            Holder::Callback(place, tag) => {
                let function = self.functions.leave(place, completed);
                completed.hit(function, tag, answer, chunk);
            }
            Holder::Once(once) => completed.hit_once(once, answer, chunk),
            Holder::Stream(mut items) => {
                items.end(answer.map(|_| ()), completed);
                slot.holder = Holder::Stream(items);
            }
            Holder::Joining(mut joining) => {
                let name = match &answer {
                    Ok(payload) => wire::decode_name(payload)
                        .map(str::to_owned)
                        .map_err(|_| ErrorCode::Protocol),
                    Err(error) => Err(error.code),
                };
                completed.wakers.extend(joining.waker.take());
                if let Purpose::New = joining.purpose {
                    slot.holder = Holder::Done(answer.map(Bytes::copy_from_slice));
                }
                completed.joined.push((joining, name));
            }
            // An outcome that is here already stays the only one.
            holder @ (Holder::Done(_) | Holder::Nobody | Holder::Free(_)) => slot.holder = holder,
        }
        self.release_if_over(correlation, completed);
    }

    /// The outcome and the deadline, when the outcome is here; the slot is released then.
    pub(crate) fn take(
        &mut self,
        correlation: Correlation,
        completed: &mut Completed,
    ) -> Option<(Outcome, Millis)> {
        let slot = self.slots.get_mut(correlation.slot as usize)?;
        if slot.generation != correlation.generation || !matches!(slot.holder, Holder::Done(_)) {
            return None;
        }
        let deadline = slot.deadline;
        let next = match slot.is_open {
            true => Holder::Nobody,
            false => {
                self.occupied -= 1;
                completed.is_room = true;
                Holder::Free(std::mem::replace(&mut self.free, correlation.slot))
            }
        };
        match std::mem::replace(&mut slot.holder, next) {
            Holder::Done(outcome) => Some((outcome, deadline)),
            _ => unreachable!("the holder is `Done`"),
        }
    }

    /// The holder gives up. Returns whether the peer should be told.
    pub(crate) fn abandon(&mut self, correlation: Correlation, completed: &mut Completed) -> bool {
        let Some(slot) = self.slot(correlation) else {
            return false;
        };
        if let Holder::Joining(joining) = &mut slot.holder {
            joining.waker = None;
            joining.purpose = Purpose::Unwanted;
            return false;
        }
        let holder = std::mem::replace(&mut slot.holder, Holder::Nobody);
        // A future that has its outcome because its time was up told the peer then.
        let is_told = matches!(&holder, Holder::Done(_))
            || matches!(&holder, Holder::Stream(items) if items.is_ended());
        let is_open = slot.is_open;
        completed.drop_later(holder);
        self.release_if_over(correlation, completed);
        is_open && !is_told
    }

    /// Ends the calls whose time is up with `error(batch)`; the peer still owes their answers. The time
    /// of those that are fresh begins.
    pub(crate) fn expire(
        &mut self,
        now: Millis,
        error: impl Fn(u32) -> CallError,
        completed: &mut Completed,
    ) -> Vec<Expired> {
        let mut expired = Vec::new();
        if self.deadline_min.is_none_or(|earliest| now < earliest) {
            return expired;
        }
        // `now` is rounded down, and a start is rounded up.
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
            expired.push(Expired { correlation, batch });
            self.settle(correlation, Err(error(batch)), &[], completed);
        }
        expired
    }

    /// The connection is gone: every call ends with `error(batch)`, and nothing is owed any more.
    pub(crate) fn fail_all(
        &mut self,
        now: Millis,
        error: impl Fn(u32) -> CallError,
        completed: &mut Completed,
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
                    self.settle(correlation, Err(error), &[], completed);
                }
                false => self.release_if_over(correlation, completed),
            }
        }
    }

    fn slot(&mut self, correlation: Correlation) -> Option<&mut Slot> {
        self.slots
            .get_mut(correlation.slot as usize)
            .filter(|slot| slot.generation == correlation.generation)
            .filter(|slot| !matches!(slot.holder, Holder::Free(_)))
    }

    fn release_if_over(&mut self, correlation: Correlation, completed: &mut Completed) {
        let index = correlation.slot;
        let slot = &mut self.slots[index as usize];
        if !slot.is_open && matches!(slot.holder, Holder::Nobody) {
            slot.holder = Holder::Free(self.free);
            self.free = index;
            self.occupied -= 1;
            completed.is_room = true;
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

    /// Whether somebody waits for an outcome that is not here.
    fn waits(&self) -> bool {
        match &self.holder {
            Holder::Free(_) | Holder::Nobody | Holder::Done(_) => false,
            Holder::Stream(items) => !items.is_ended(),
            _ => true,
        }
    }
}

fn unexpected_item() -> CallError {
    let message = "the responder sent a stream to a call that takes one reply: use `stream`";
    CallError::new(ErrorCode::Protocol, message).with_sent(crate::Sent::Yes)
}

#[cfg(test)]
mod tests;
