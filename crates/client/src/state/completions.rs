//! `Completions`: wakers and callbacks collected under the lock of the call table, to run after its
//! release.
//!
//! Wakers, callbacks and destructors of callers run user code. Under the lock that code could call
//! the client and deadlock.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Waker;

use bytes::Bytes;
use model::ErrorCode;
use wire::Correlation;

use crate::state::holder::Holder;
use crate::state::outcome::{Answer, Callback, OnceFunction, Outcome};
use crate::state::registry::{PendingSubscription, Receiver, Registration};
use crate::state::reply_batch::{BorrowedReply, ReplyBatch};

/// A callback to run with a copied reply.
enum DeferredFunction {
    /// Index of the callback, and the call's tag.
    Callback(u32, u64),
    Once(OnceFunction),
}

/// Work that a change of the call table leaves for after the release of its lock.
#[derive(Default)]
pub(crate) struct Completions {
    pub(crate) wakers: Vec<Waker>,
    /// Calls to cancel at the peer.
    pub(crate) cancels: Vec<Correlation>,
    /// True if a slot became free.
    pub(crate) is_room: bool,
    /// Confirmed subscriptions with their full name, and refused ones.
    pub(crate) subscription_results: Vec<(Box<PendingSubscription>, Result<String, ErrorCode>)>,
    /// Subscriptions that the node ended.
    pub(crate) ended: Vec<(Receiver, ErrorCode)>,
    /// Registrations to drop.
    pub(crate) replaced: Vec<Registration>,
    /// Callbacks of this batch with their ids; consecutive equal ones are stored once.
    functions: Vec<(u64, Arc<Callback>)>,
    borrowed: Vec<BorrowedReply>,
    borrowed_once: Vec<(OnceFunction, Range<u32>)>,
    deferred: Vec<(DeferredFunction, Outcome)>,
    dropped: Vec<Holder>,
}

impl Completions {
    /// Adds a callback for [`Completions::call_later`]; `id` identifies the function. Returns its
    /// index.
    #[inline]
    pub(crate) fn function(&mut self, id: u64, callback: &Arc<Callback>) -> u32 {
        if self.functions.last().is_none_or(|(last, _)| *last != id) {
            self.functions.push((id, callback.clone()));
        }
        self.functions.len() as u32 - 1
    }

    /// Queues the call of a callback. If `answer` lies outside `chunk`, it is copied.
    #[inline]
    pub(crate) fn call_later(&mut self, function: u32, tag: u64, answer: Answer<'_>, chunk: &[u8]) {
        match answer.as_ref().ok().and_then(|body| range_in(body, chunk)) {
            Some(Range { start, end }) => self.borrowed.push(BorrowedReply {
                function,
                tag,
                start,
                end,
            }),
            None => self.defer(DeferredFunction::Callback(function, tag), answer),
        }
    }

    /// Queues the call of `once`. If `answer` lies outside `chunk`, it is copied.
    pub(crate) fn call_once_later(&mut self, once: OnceFunction, answer: Answer<'_>, chunk: &[u8]) {
        match answer.as_ref().ok().and_then(|body| range_in(body, chunk)) {
            Some(range) => self.borrowed_once.push((once, range)),
            None => self.defer(DeferredFunction::Once(once), answer),
        }
    }

    fn defer(&mut self, deferred: DeferredFunction, answer: Answer<'_>) {
        self.deferred
            .push((deferred, answer.map(Bytes::copy_from_slice)));
    }

    /// Queues a holder to be dropped after the release of the lock.
    pub(crate) fn drop_later(&mut self, holder: Holder) {
        if !matches!(holder, Holder::Abandoned | Holder::Future(None)) {
            self.dropped.push(holder);
        }
    }

    /// Wakes all wakers and calls all callbacks. Must be called without the lock, with the chunk
    /// that was read.
    pub(crate) fn finish(&mut self, chunk: &[u8]) {
        self.dropped.clear();
        self.replaced.clear();
        for (receiver, code) in self.ended.drain(..) {
            receiver.queue.end(code);
        }
        for waker in self.wakers.drain(..) {
            waker.wake();
        }
        for replies in self
            .borrowed
            .chunk_by(|one, next| one.function == next.function)
        {
            let (_, callback) = &self.functions[replies[0].function as usize];
            call_with_batch(callback, ReplyBatch::of_replies(replies, chunk));
        }
        self.borrowed.clear();
        for (once, range) in self.borrowed_once.drain(..) {
            let reply = &chunk[range.start as usize..range.end as usize];
            call(|| once(Ok(reply)));
        }
        for (deferred, outcome) in self.deferred.drain(..) {
            let answer = match &outcome {
                Ok(body) => Ok(&body[..]),
                Err(error) => Err(error),
            };
            match deferred {
                DeferredFunction::Callback(function, tag) => {
                    let (_, callback) = &self.functions[function as usize];
                    call_with_batch(callback, ReplyBatch::of_one(tag, answer));
                }
                DeferredFunction::Once(once) => {
                    call(|| once(answer));
                }
            }
        }
        self.functions.clear();
    }
}

/// Calls a callback. Returns false if it panicked. That affects neither the connection nor other
/// callbacks; the panic hook has reported it.
fn call(callback: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(callback)).is_ok()
}

/// Calls a callback with a batch. After a panic it is called again with the outcomes that it had not
/// taken.
fn call_with_batch(callback: &Arc<Callback>, mut batch: ReplyBatch<'_>) {
    loop {
        let before = batch.len();
        if call(|| callback(&mut batch)) {
            return;
        }
        if batch.len() == before {
            // The function panics before it takes an outcome. It gets each of them only once.
            batch.next();
        }
        if batch.len() == 0 {
            return;
        }
    }
}

/// Returns the range of `part` in `whole`; `None` if it lies outside.
#[inline]
fn range_in(part: &[u8], whole: &[u8]) -> Option<Range<u32>> {
    let start = part.as_ptr().addr().wrapping_sub(whole.as_ptr().addr());
    let end = start.checked_add(part.len())?;
    (end <= whole.len()).then_some(start as u32..end as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_in_finds_only_slices_of_the_same_buffer() {
        let whole = [1, 2, 3, 4];
        let other = [2, 3];
        assert_eq!(range_in(&whole[1..3], &whole), Some(1..3));
        assert_eq!(range_in(&whole[4..], &whole), Some(4..4));
        assert_eq!(range_in(&other, &whole), None);
        assert_eq!(range_in(&whole, &whole[1..]), None);
    }

    /// Calls the callback with three replies of two bytes, with the tags 0, 1 and 2.
    fn finish_three(callback: &Arc<Callback>) {
        let mut completions = Completions::default();
        let chunk = *b"abcdef";
        for tag in 0..3 {
            let function = completions.function(1, callback);
            completions.call_later(function, tag, Ok(&chunk[..2]), &chunk);
        }
        completions.finish(&chunk);
    }

    #[test]
    fn a_callback_that_panics_does_not_keep_the_others_from_running() {
        let count = Arc::new(std::sync::atomic::AtomicU64::new(0));
        let seen = count.clone();
        let callback: Arc<Callback> = Arc::new(move |batch| {
            for (tag, answer) in batch {
                assert_ne!(tag, 1, "this one fails on purpose");
                seen.fetch_add(
                    answer.unwrap().len() as u64,
                    std::sync::atomic::Ordering::Relaxed,
                );
            }
        });
        finish_three(&callback);
        assert_eq!(count.load(std::sync::atomic::Ordering::Relaxed), 4);
    }

    #[test]
    fn a_callback_that_panics_before_it_takes_an_outcome_ends() {
        let calls = Arc::new(std::sync::atomic::AtomicU64::new(0));
        let counted = calls.clone();
        let callback: Arc<Callback> = Arc::new(move |_| {
            counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            panic!("this one fails on purpose");
        });
        finish_three(&callback);
        assert_eq!(calls.load(std::sync::atomic::Ordering::Relaxed), 3);
    }

    #[test]
    fn outcomes_of_one_callback_in_a_row_are_one_batch() {
        let batches = Arc::new(parking_lot::Mutex::new(Vec::new()));
        let note = |name: &'static str| -> Arc<Callback> {
            let batches = batches.clone();
            Arc::new(move |batch| {
                let tags = batch.map(|(tag, answer)| (tag, answer.map(<[u8]>::to_vec).ok()));
                batches.lock().push((name, tags.collect::<Vec<_>>()));
            })
        };
        let (one, two) = (note("one"), note("two"));
        let mut completions = Completions::default();
        let chunk = *b"abcdef";
        for (id, callback, tag) in [(1, &one, 1), (1, &one, 2), (2, &two, 3), (1, &one, 4)] {
            let function = completions.function(id, callback);
            let reply = &chunk[tag as usize..][..1];
            completions.call_later(function, tag, Ok(reply), &chunk);
        }
        let function = completions.function(1, &one);
        completions.call_later(function, 5, Ok(b"copied"), &chunk);
        completions.finish(&chunk);
        let reply = |tag: u64, body: &[u8]| (tag, Some(body.to_vec()));
        let expected = [
            ("one", vec![reply(1, b"b"), reply(2, b"c")]),
            ("two", vec![reply(3, b"d")]),
            ("one", vec![reply(4, b"e")]),
            ("one", vec![reply(5, b"copied")]),
        ];
        assert_eq!(*batches.lock(), expected);
    }
}
