//! The followers of one connection: a FOLLOW until it is cancelled, and a READ of a topic once. Each
//! is sent items as they become available, within its credit.
//!
//! All share one bell, which rings when one of them can continue. A client that does not read, or
//! gives no credit, costs one batch for each follower.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use conversation_service::MessageFollower;
use model::ErrorCode;
use platform::{Bell, Counter};
use routing::Ticket;
use store::StreamFollower;

use super::answers::Answers;
use super::errors::ErrorAnswer;
use super::extracts::{send_page, send_records};
use super::partition::{Next, PartitionReader};

/// The number of items that are sent before the client returns credit.
const WINDOW: u32 = 64;

/// The most followers of streams and conversations, and the most readers of topics, of one
/// connection.
const FOLLOWERS_MAX: usize = 1_024;

/// The followers of one connection.
#[derive(Default)]
pub(super) struct Followers {
    list: Vec<Follower>,
    bell: Option<Arc<Bell>>,
}

struct Follower {
    tag: Ticket,
    credit: u32,
    source: Source,
}

/// The source of a follower's items.
pub(super) enum Source {
    Stream(StreamFollower),
    Messages(MessageFollower),
    Partition(Box<PartitionReader>),
}

/// The state of a follower after it was polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Polled {
    /// Items or credit are missing.
    Waits,
    /// The client does not read.
    Unread,
    Over,
}

impl Followers {
    /// Adds a follower, which is polled before the connection's task rests.
    pub(super) fn add(&mut self, tag: Ticket, source: Source) -> Result<(), ErrorAnswer> {
        let is_partition = source.is_partition();
        let same = |follower: &&Follower| follower.source.is_partition() == is_partition;
        if self.list.iter().filter(same).count() >= FOLLOWERS_MAX {
            let subject = if is_partition {
                "readers"
            } else {
                "followed streams"
            };
            let message = format!("too many {subject} on this connection (limit {FOLLOWERS_MAX})");
            return Err(ErrorAnswer::new(ErrorCode::Busy, message));
        }
        self.list.push(Follower {
            tag,
            credit: WINDOW,
            source,
        });
        self.ring();
        Ok(())
    }

    /// Ends the follower of this tag. Returns false if there is none.
    pub(super) fn end(&mut self, tag: Ticket) -> bool {
        let found = self.list.iter().position(|follower| follower.tag == tag);
        found.map(|index| self.list.swap_remove(index)).is_some()
    }

    /// Adds credit to the follower of this tag. Returns false if there is none.
    pub(super) fn credit(&mut self, tag: Ticket, items: u32) -> bool {
        let found = self.list.iter_mut().find(|follower| follower.tag == tag);
        let Some(follower) = found else {
            return false;
        };
        follower.credit = follower.credit.saturating_add(items).min(WINDOW);
        self.ring();
        true
    }

    /// Marks all followers to be polled.
    fn ring(&self) {
        if let Some(bell) = &self.bell {
            bell.note();
        }
    }

    /// Sends items to every follower if the bell has rung. Returns true if output has to wait because
    /// the client leaves too much unread.
    pub(super) fn poll(
        &mut self,
        node: &node::Node,
        answers: &mut Answers,
        cx: &Context<'_>,
    ) -> bool {
        if self.list.is_empty() {
            self.bell = None;
            return false;
        }
        let bell = self.bell.get_or_insert_with(Bell::rung);
        bell.listen(cx.waker());
        if !bell.has_rung() {
            return false;
        }
        let waker = Waker::from(bell.clone());
        let mut is_unread = false;
        self.list.retain_mut(|follower| {
            let polled = follower.poll(node, answers, &waker);
            is_unread |= polled == Polled::Unread;
            polled != Polled::Over
        });
        if is_unread {
            self.ring();
        }
        is_unread
    }
}

impl Follower {
    /// Sends the available items, as far as there is credit.
    fn poll(&mut self, node: &node::Node, answers: &mut Answers, waker: &Waker) -> Polled {
        while self.credit > 0 {
            if answers.is_unread() {
                return Polled::Unread;
            }
            match self.source.poll_next(node, answers, self.tag, waker) {
                Poll::Pending => return Polled::Waits,
                Poll::Ready(Ok(Next::Sent)) => self.credit -= 1,
                Poll::Ready(Ok(Next::Last)) => return Polled::Over,
                Poll::Ready(Ok(Next::Failed(error)) | Err(error)) => {
                    answers.fail(self.tag, error);
                    return Polled::Over;
                }
            }
        }
        Polled::Waits
    }
}

impl Source {
    fn is_partition(&self) -> bool {
        matches!(self, Self::Partition(_))
    }

    /// Sends the next item, or registers the waker.
    fn poll_next(
        &mut self,
        node: &node::Node,
        answers: &mut Answers,
        tag: Ticket,
        waker: &Waker,
    ) -> Poll<Result<Next, ErrorAnswer>> {
        match self {
            Self::Stream(follower) => follower.poll_next(waker).map(|read| {
                send_records(answers, tag, true, &read?);
                node.counters().count(Counter::Items);
                Ok(Next::Sent)
            }),
            Self::Messages(follower) => follower.poll_next(waker).map(|read| {
                send_page(answers, tag, true, &read?)?;
                node.counters().count(Counter::Items);
                Ok(Next::Sent)
            }),
            Self::Partition(reader) => reader.poll_next(answers, tag, waker),
        }
    }
}
