//! A Produce request that waits for room, because too much waits for the disk, or for the
//! decompression of its batches.
//!
//! Its connection handles no later request, so that batches keep their order and waiting data is
//! bounded; other connections continue. It waits for its timeout at most. A batch without room by
//! then is answered with REQUEST_TIMED_OUT, after which producers retry.

use std::pin::Pin;
use std::task::{Context as TaskContext, Poll, Waker};

use tokio::time::Sleep;

use super::{Appended, Context, Waiting, refused_as};
use crate::client::{Client, Departure};
use crate::deadline::Deadline;
use crate::outcome::{Fatal, Stall};
use crate::reply::{Answer, Tag};

/// A waiting Produce request.
pub(super) struct Stalled {
    waiting: Waiting,
    tag: Tag,
    transactional_id: Option<String>,
    acks: i16,
    deadline: Deadline,
    timer: Pin<Box<Sleep>>,
}

impl Stalled {
    pub(super) fn new(
        waiting: Waiting,
        tag: Tag,
        transactional_id: Option<String>,
        acks: i16,
        deadline: Deadline,
    ) -> Self {
        Self {
            waiting,
            tag,
            transactional_id,
            acks,
            deadline,
            timer: Box::pin(tokio::time::sleep_until(deadline.instant())),
        }
    }

    fn is_late(&mut self, departure: &Departure, cx: &mut TaskContext<'_>) -> bool {
        departure.has_come() || self.timer.as_mut().poll(cx).is_ready()
    }

    /// Appends batches in their order, as far as they are prepared and there is room.
    fn append(&mut self, client: &mut Client, waker: &Waker) {
        let (producing, unpackings) = client.producing_parts();
        let mut context = Context {
            unpackings,
            producing,
            transactional_id: self.transactional_id.as_deref(),
            version: self.tag.version,
            acks: self.acks,
            refused: None,
        };
        let mut batches = std::mem::take(&mut self.waiting.queued).into_iter();
        while let Some((of, mut pending)) = batches.next() {
            let (place, index) = (pending.place, pending.index);
            let left = &mut self.waiting.unpacked_left;
            let response = match context.append(&of, &mut pending, left, waker) {
                Appended::Placed(placed) => self.waiting.placed(place, index, placed),
                Appended::Queued => {
                    self.waiting.queued = std::iter::once((of, pending)).chain(batches).collect();
                    return;
                }
                Appended::Refused(error, log_start) => refused_as(index, error, log_start),
            };
            let (topic, partition) = place;
            self.waiting.response.responses[topic].partition_responses[partition] = response;
        }
    }
}

impl Stall for Stalled {
    /// Appends further batches. Returns the answer once all are appended, or the wait is over.
    fn poll(
        &mut self,
        client: &mut Client,
        cx: &mut TaskContext<'_>,
        disk: &Waker,
    ) -> Poll<Result<Answer, Fatal>> {
        self.append(client, cx.waker());
        if self.waiting.queued.is_empty() || self.is_late(&client.departure(), cx) {
            let waiting = std::mem::take(&mut self.waiting);
            return Poll::Ready(
                waiting.into_answer(self.tag, self.acks, || self.deadline.for_disk()),
            );
        }
        // The request may be waiting for appends of this connection itself, so let them go to the
        // disk.
        client.end_round();
        let first = self.waiting.queued.first();
        let waits_for_room = !first.is_some_and(|(_, pending)| pending.is_being_prepared());
        if waits_for_room && client.topics().poll_room(disk).is_ready() {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }
}
