//! Reads that need the disk: a connection executes one at a time, in the order of its requests.
//!
//! Reads from memory are answered at once and do not wait for these.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

use routing::Ticket;

use super::directory::Location;
use super::raw::{Range, Read, Refusal};
use super::restore::Reach;
use crate::later::Later;
use crate::node::Inner;
use crate::ports::offload::Overloaded;
use crate::turn::Turn;

/// Maximum number of waiting reads per connection; at the maximum, the node does not read from it.
const WAITING_MAX: usize = 1_024;

/// Maximum number of unread bytes at which a client still gets more records.
pub(crate) const UNREAD_SIZE_MAX: usize = 1 << 20;

/// The future result of a read.
pub(super) type Pending = Arc<Later<Result<Option<Read>, Refusal>>>;

/// The queue of a connection's reads.
#[derive(Default)]
pub(crate) struct Reads {
    waiting: VecDeque<QueuedRead>,
    /// The result of the oldest read, if it was started.
    under_way: Option<Pending>,
}

#[derive(Clone, Copy)]
struct QueuedRead {
    tag: Ticket,
    location: Option<Location>,
    range: Range,
}

impl Reads {
    pub(super) fn push(&mut self, tag: Ticket, location: Option<Location>, range: Range) {
        self.waiting.push_back(QueuedRead {
            tag,
            location,
            range,
        });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns whether the node should stop reading requests.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() >= WAITING_MAX
    }

    /// Returns the result of the oldest read, which is started if necessary; `None` until it is
    /// known.
    fn next(
        &mut self,
        inner: &Arc<Inner>,
        task: &Waker,
    ) -> Option<(Ticket, Result<Read, Refusal>)> {
        let oldest = *self.waiting.front()?;
        if self.under_way.is_none() {
            match inner.read_offloaded(oldest.location, oldest.range) {
                Ok(pending) => self.under_way = Some(pending),
                Err(overloaded) => {
                    self.waiting.pop_front();
                    return Some((oldest.tag, Err(overloaded.into())));
                }
            }
        }
        let read = self.under_way.as_ref()?.take(task)?;
        self.under_way = None;
        self.waiting.pop_front();
        Some((oldest.tag, read.transpose()?))
    }
}

impl Inner {
    /// Reads a stream on a thread that may wait for the disk.
    pub(super) fn read_offloaded(
        self: &Arc<Self>,
        location: Option<Location>,
        range: Range,
    ) -> Result<Pending, Overloaded> {
        let pending = Pending::default();
        let work = {
            let (inner, pending) = (self.clone(), pending.clone());
            move || {
                if let Some(store) = &inner.store {
                    pending.put(store.read(Reach::Disk, location, range));
                }
            }
        };
        self.offload(Box::new(work))?;
        Ok(pending)
    }
}

impl Turn<'_> {
    /// Answers completed reads, and starts the next one. Returns true if output has to wait because
    /// the client leaves too much unread.
    pub(super) fn look_after_reads(&mut self, task: &Waker) -> bool {
        while !self.local.reads.is_empty() {
            if self.peer.outlet.queued_size() > UNREAD_SIZE_MAX {
                return true;
            }
            let Some((tag, read)) = self.local.reads.next(self.inner, task) else {
                return false;
            };
            match read {
                Ok(read) => self.answer(read.outgoing(tag, false).as_outgoing()),
                Err(refusal) => self.refuse_stream(tag, &refusal),
            }
        }
        false
    }
}
