//! Watching a conversation: what is there, then what comes.
//!
//! Whoever watches pulls: nothing is queued for a watcher, what it is shown is read from the journal
//! at its own pace. So a watcher that does not read costs nobody anything, and what it sees has no
//! gap and nothing twice.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use bytes::Bytes;
use conversations::record::MessageView;
use journal::{Follow, Following, Health, ReadLimit, Record};
use model::{ErrorCode, Name};

use super::read::Place;
use super::slot::Slot;
use super::view::check_alive;
use super::{Conversations, Refusal};
use crate::handle::Inner;
use crate::store::Store;

/// What is read ahead.
const AHEAD: ReadLimit = ReadLimit {
    records: 64,
    bytes: 64 << 10,
};

/// Something that a watcher is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A message.
    Message(Stored),
    /// Everything that was there has been shown; what follows is new. Once.
    Head {
        /// The number of the newest message.
        head_seq: u64,
    },
}

/// A message as it lies in the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Its number.
    pub seq: u64,
    /// When it was appended, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    record: Bytes,
}

impl Stored {
    /// What it is.
    pub fn view(&self) -> Result<MessageView<'_>, Refusal> {
        Ok(MessageView::decode(&self.record)?)
    }
}

/// See the module's documentation.
pub struct Watch {
    inner: Arc<Inner>,
    slot: Arc<Slot>,
    place: Place,
    /// The message to show next.
    next: u64,
    ahead: VecDeque<Stored>,
    is_caught_up: bool,
    following: Option<Following>,
}

impl Conversations<'_> {
    /// Watches a conversation from behind a message on.
    pub fn watch(&self, name: &Name, after: u64) -> Result<Watch, Refusal> {
        let rooms = &self.store.rooms;
        self.with_existing(name, |slot, room, location| {
            check_alive(room)?;
            if after > room.engine.head() {
                let head = room.engine.head();
                return Err(conversations::Refusal::BeyondHead { head }.into());
            }
            let max = rooms.options.watchers_max;
            let count = rooms.watchers.fetch_add(1, Ordering::Relaxed);
            if count >= max {
                rooms.watchers.fetch_sub(1, Ordering::Relaxed);
                let message = format!("{max} watch conversations of this node, its limit");
                return Err(Refusal::new(ErrorCode::Busy, message));
            }
            room.watchers += 1;
            Ok(Watch {
                inner: self.inner.clone(),
                slot: slot.clone(),
                place: Place {
                    location,
                    base: room.engine.state().base,
                },
                next: after.saturating_add(1),
                ahead: VecDeque::new(),
                is_caught_up: false,
                following: None,
            })
        })
    }
}

impl Watch {
    /// The next thing to show; `None` when the watch has ended, an error is its last.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Item, Refusal>> {
        let inner = self.inner.clone();
        let Some(store) = &inner.store else {
            let message = "this node keeps nothing";
            return Poll::Ready(Err(Refusal::new(ErrorCode::Unsupported, message)));
        };
        self.end_following(store);
        loop {
            if let Some(stored) = self.ahead.pop_front() {
                self.next = stored.seq + 1;
                return Poll::Ready(Ok(Item::Message(stored)));
            }
            if let Err(refusal) = self.read_ahead(store) {
                return Poll::Ready(Err(refusal));
            }
            if !self.ahead.is_empty() {
                continue;
            }
            if !std::mem::replace(&mut self.is_caught_up, true) {
                let head_seq = self.next - 1;
                return Poll::Ready(Ok(Item::Head { head_seq }));
            }
            match self.wait(store, cx) {
                Ok(Some(following)) => {
                    self.following = Some(following);
                    return Poll::Pending;
                }
                Ok(None) => {}
                Err(refusal) => return Poll::Ready(Err(refusal)),
            }
        }
    }

    fn read_ahead(&mut self, store: &Store) -> Result<(), Refusal> {
        let records = store.messages(self.place, self.next, AHEAD)?;
        self.ahead = compact(&records, self.place);
        Ok(())
    }

    /// Has the task woken when there is more; `None` when there is already.
    fn wait(&self, store: &Store, cx: &Context<'_>) -> Result<Option<Following>, Refusal> {
        if let Health::Failed { reason } = store.journal.health() {
            let message = format!("the journal has failed: {reason}");
            return Err(Refusal::new(ErrorCode::Unavailable, message));
        }
        let location = self.place.location;
        let from = self.place.offset(self.next);
        let waker = cx.waker();
        match store
            .journal
            .follow(location.shard, location.stream, from, waker)
        {
            Follow::Waiting(following) => Ok(Some(following)),
            Follow::Ready => Ok(None),
            Follow::Refused => {
                let message = "too many follow streams of this node";
                Err(Refusal::new(ErrorCode::Busy, message))
            }
        }
    }

    fn end_following(&mut self, store: &Store) {
        if let Some(following) = self.following.take() {
            // It may have ended by itself.
            store.journal.unfollow(&following);
        }
    }
}

/// The records in memory of their own: a watcher may take its time, and the blocks are large.
fn compact(records: &[Record], place: Place) -> VecDeque<Stored> {
    let size = records.iter().map(|it| it.payload.len()).sum();
    let mut all = Vec::with_capacity(size);
    for record in records {
        all.extend_from_slice(&record.payload);
    }
    let mut rest = Bytes::from(all);
    let stored = records.iter().map(|record| Stored {
        seq: place.seq(record.offset),
        at_ms: record.time_ms,
        record: rest.split_to(record.payload.len()),
    });
    stored.collect()
}

impl Drop for Watch {
    fn drop(&mut self) {
        let inner = self.inner.clone();
        let Some(store) = &inner.store else { return };
        self.end_following(store);
        store.rooms.watchers.fetch_sub(1, Ordering::Relaxed);
        if let Some(mut room) = self.slot.room() {
            room.watchers -= 1;
            room.used_ns = inner.ports.clock.now_ns();
        }
    }
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Watch({} from {})", self.slot.name, self.next)
    }
}
