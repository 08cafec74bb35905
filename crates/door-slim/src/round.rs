//! The rounds of the clients' tasks: a thread's buffers, and the queues that it has begun.

use std::cell::RefCell;
use std::sync::Arc;

use door::drop_at_pass_end;
use slim::Forward;

use super::outlet::SlimOutlet;

/// The number of clients for which a thread sends after one round. The tasks of the others are
/// woken, so that the threads share the work.
const DIRECT_COUNT_MAX: usize = 8;

thread_local! {
    static ROUND: RefCell<Round> = RefCell::default();
}

/// Buffers for one round of a client's task.
#[derive(Default)]
pub(super) struct Round {
    pub(super) forward: Forward,
    pub(super) scratch: Vec<u8>,
    /// Clients whose queues were empty before the round.
    pub(super) dirty: Vec<Arc<SlimOutlet>>,
    /// The receivers of a message.
    pub(super) receivers: Vec<Arc<SlimOutlet>>,
    /// Clients whose queues are flushed at the end of the thread's pass.
    unflushed: Vec<Arc<SlimOutlet>>,
}

impl Round {
    /// Calls `work` with the thread's buffers; rounds do not nest.
    pub(super) fn with<T>(work: impl FnOnce(&mut Self) -> T) -> T {
        let (done, is_flush_new) = ROUND.with_borrow_mut(|round| {
            let done = work(round);
            (done, round.end())
        });
        if is_flush_new && !drop_at_pass_end(|| Flush) {
            drop(Flush);
        }
        done
    }

    /// Wakes the receivers for which this thread does not send. Returns whether there are others,
    /// and were none before.
    fn end(&mut self) -> bool {
        let was_empty = self.unflushed.is_empty();
        for (index, outlet) in self.dirty.drain(..).enumerate() {
            match index < DIRECT_COUNT_MAX && outlet.is_direct() {
                true => self.unflushed.push(outlet),
                false => outlet.wake(),
            }
        }
        was_empty && !self.unflushed.is_empty()
    }
}

/// Flushes the queues of the thread's rounds when it is dropped: all that its clients have sent to
/// one receiver in a pass is one write.
struct Flush;

impl Drop for Flush {
    fn drop(&mut self) {
        // Not under the thread's borrow.
        let mut unflushed = ROUND.with_borrow_mut(|round| std::mem::take(&mut round.unflushed));
        for outlet in unflushed.drain(..) {
            outlet.flush();
        }
        ROUND.with_borrow_mut(|round| {
            if round.unflushed.is_empty() {
                round.unflushed = unflushed;
            }
        });
    }
}
