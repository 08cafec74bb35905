//! Waiting for new events in any conversation.

use std::task::Waker;

use ::journal::{Follow, Following, StreamId};

use super::{Partition, Partitions};
use crate::Conversations;

/// A registered waker; dropping this ends the registration.
#[must_use = "nobody is woken once it is dropped"]
pub struct EventWait {
    conversations: Conversations,
    followings: Vec<Following>,
}

impl Conversations {
    /// Registers the waker for an event at or after `next` in any partition, or a new partition;
    /// `None` if there is one already. If too many wakers follow streams of this node, the waker
    /// may not be woken: poll again after a while.
    pub fn wait_for_events(
        &self,
        partitions: &Partitions,
        next: impl Fn(&Partition) -> u64,
        waker: &Waker,
    ) -> Option<EventWait> {
        let mut waiting = EventWait {
            conversations: self.clone(),
            followings: self.store.follow_all_names(&partitions.searched, waker)?,
        };
        for partition in &partitions.found {
            let journal = &self.store.journal;
            let stream = StreamId(partition.number);
            match journal.follow(partition.shard, stream, next(partition), waker) {
                Follow::Waiting(following) => waiting.followings.push(following),
                Follow::Ready => return None,
                Follow::Refused => break,
            }
        }
        Some(waiting)
    }
}

impl Drop for EventWait {
    fn drop(&mut self) {
        for following in &self.followings {
            self.conversations.store.unfollow(following);
        }
    }
}

impl std::fmt::Debug for EventWait {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EventWait({} streams)", self.followings.len())
    }
}
