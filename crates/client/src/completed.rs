//! What a change of the table of calls leads to outside of its lock.
//!
//! Wakers, callbacks and whatever a caller left behind run code that is not ours; under the lock
//! it could come back and wait for itself. So the table only collects them here.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Waker;

use bytes::Bytes;
use model::ErrorCode;
use wire::Correlation;

use crate::CallError;
use crate::pending::{Answer, Holder, Outcome};
use crate::registry::{Joining, Receiver, Registration};

/// A function that is called for every answer of many calls, with the call's tag.
pub(crate) type Callback = dyn Fn(u64, Result<&[u8], &CallError>) + Send + Sync;

/// A function that is called for one answer.
pub(crate) type Once = Box<dyn FnOnce(Result<&[u8], &CallError>) + Send>;

/// A function to call.
enum Fired {
    /// By its index.
    Callback(u32, u64),
    Once(Once),
}

/// A reply that lies whole in the chunk, and the function that takes it there: nothing is copied.
struct Hit {
    /// Index of the callback.
    function: u32,
    tag: u64,
    start: u32,
    end: u32,
}

#[derive(Default)]
pub(crate) struct Completed {
    pub(crate) wakers: Vec<Waker>,
    /// Calls of which the peer should be told that nobody waits any more.
    pub(crate) cancels: Vec<Correlation>,
    /// A slot became free.
    pub(crate) is_room: bool,
    /// Subscriptions that were confirmed, under which full name, or refused.
    pub(crate) joined: Vec<(Box<Joining>, Result<String, ErrorCode>)>,
    /// Subscriptions that ended without being asked to.
    pub(crate) ended: Vec<(Receiver, ErrorCode)>,
    /// Registrations that are not needed any more.
    pub(crate) replaced: Vec<Registration>,
    /// The callbacks of this batch, each with the number that tells it from the others; several
    /// in a row of the same are kept once.
    functions: Vec<(u64, Arc<Callback>)>,
    hits: Vec<Hit>,
    hits_once: Vec<(Once, Range<u32>)>,
    fired: Vec<(Fired, Outcome)>,
    dropped: Vec<Holder>,
}

impl Completed {
    /// Notes a callback that is about to be hit; `id` is its own. Returns its index.
    #[inline]
    pub(crate) fn function(&mut self, id: u64, callback: &Arc<Callback>) -> u32 {
        if self.functions.last().is_none_or(|(last, _)| *last != id) {
            self.functions.push((id, callback.clone()));
        }
        self.functions.len() as u32 - 1
    }

    /// Calls a callback that was noted, later; `answer` lies in `chunk` or elsewhere.
    #[inline]
    pub(crate) fn hit(&mut self, function: u32, tag: u64, answer: Answer<'_>, chunk: &[u8]) {
        match answer.as_ref().ok().and_then(|body| range_in(body, chunk)) {
            Some(Range { start, end }) => self.hits.push(Hit {
                function,
                tag,
                start,
                end,
            }),
            None => self.fire(Fired::Callback(function, tag), answer),
        }
    }

    /// Calls `once` later; `answer` lies in `chunk` or elsewhere.
    pub(crate) fn hit_once(&mut self, once: Once, answer: Answer<'_>, chunk: &[u8]) {
        match answer.as_ref().ok().and_then(|body| range_in(body, chunk)) {
            Some(range) => self.hits_once.push((once, range)),
            None => self.fire(Fired::Once(once), answer),
        }
    }

    fn fire(&mut self, fired: Fired, answer: Answer<'_>) {
        self.fired.push((fired, answer.map(Bytes::copy_from_slice)));
    }

    /// Drops what a caller left behind, later.
    pub(crate) fn drop_later(&mut self, holder: Holder) {
        if !matches!(holder, Holder::Nobody | Holder::Future(None)) {
            self.dropped.push(holder);
        }
    }

    /// Wakes and calls everybody. To be called without the lock, with the chunk that was read.
    pub(crate) fn finish(&mut self, chunk: &[u8]) {
        self.dropped.clear();
        self.replaced.clear();
        for (receiver, code) in self.ended.drain(..) {
            receiver.mailbox.end(code);
        }
        for waker in self.wakers.drain(..) {
            waker.wake();
        }
        for hit in self.hits.drain(..) {
            let reply = &chunk[hit.start as usize..hit.end as usize];
            let (_, callback) = &self.functions[hit.function as usize];
            call(|| callback(hit.tag, Ok(reply)));
        }
        for (once, range) in self.hits_once.drain(..) {
            let reply = &chunk[range.start as usize..range.end as usize];
            call(|| once(Ok(reply)));
        }
        for (fired, outcome) in self.fired.drain(..) {
            let answer = match &outcome {
                Ok(body) => Ok(&body[..]),
                Err(error) => Err(error),
            };
            call(|| match fired {
                Fired::Callback(function, tag) => self.functions[function as usize].1(tag, answer),
                Fired::Once(once) => once(answer),
            });
        }
        self.functions.clear();
    }
}

/// A callback that panics harms neither the connection nor the other callbacks; the panic hook has
/// told about it.
fn call(callback: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(callback));
}

/// Where `part` lies in `whole`, if it does.
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
    fn a_part_is_found_in_its_whole_only() {
        let whole = [1, 2, 3, 4];
        let other = [2, 3];
        assert_eq!(range_in(&whole[1..3], &whole), Some(1..3));
        assert_eq!(range_in(&whole[4..], &whole), Some(4..4));
        assert_eq!(range_in(&other, &whole), None);
        assert_eq!(range_in(&whole, &whole[1..]), None);
    }

    #[test]
    fn a_callback_that_panics_does_not_keep_the_others_from_running() {
        let count = Arc::new(std::sync::atomic::AtomicU64::new(0));
        let seen = count.clone();
        let callback: Arc<Callback> = Arc::new(move |tag, answer| {
            assert_ne!(tag, 1, "this one fails on purpose");
            seen.fetch_add(
                answer.unwrap().len() as u64,
                std::sync::atomic::Ordering::Relaxed,
            );
        });
        let mut completed = Completed::default();
        let chunk = *b"abcdef";
        for tag in 0..3 {
            let function = completed.function(1, &callback);
            completed.hit(function, tag, Ok(&chunk[..2]), &chunk);
        }
        completed.finish(&chunk);
        assert_eq!(count.load(std::sync::atomic::Ordering::Relaxed), 4);
    }
}
