//! A request that waits for room: too much waits for the disk already.
//!
//! Its connection takes in nothing behind it, so that batches keep their order and what waits is
//! bounded; other connections go on. It waits for as long as the request says. What has found no room
//! by then is answered with REQUEST_TIMED_OUT, after which producers try again.

use std::pin::Pin;
use std::task::{Context as TaskContext, Poll, Waker};

use tokio::time::Sleep;

use super::{Appended, Context, Left, Waiting, refused_as};
use crate::kafka::client::{Client, Departure};
use crate::kafka::deadline::Deadline;
use crate::kafka::dispatch::Fatal;
use crate::kafka::reply::{Answer, Tag};

/// See the module's documentation.
pub(in crate::kafka) struct Stalled {
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

    /// Goes on as far as there is room; the answer, once all is appended or nothing is waited for any
    /// more. Until then the disk wakes `disk`.
    pub(in crate::kafka) fn poll(
        &mut self,
        client: &mut Client,
        cx: &mut TaskContext<'_>,
        disk: &Waker,
    ) -> Poll<Result<Answer, Fatal>> {
        self.append(client);
        if self.waiting.left.is_empty() || self.is_late(&client.departure(), cx) {
            let waiting = std::mem::take(&mut self.waiting);
            return Poll::Ready(waiting.into_answer(self.tag, self.acks, self.deadline));
        }
        // What this connection has appended itself may be all that is waited for.
        client.end_round();
        if client.topics().poll_room(disk).is_ready() {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    fn is_late(&mut self, departure: &Departure, cx: &mut TaskContext<'_>) -> bool {
        departure.has_come() || self.timer.as_mut().poll(cx).is_ready()
    }

    /// Appends what there is room for, in its order.
    fn append(&mut self, client: &mut Client) {
        let mut context = Context {
            producing: client.producing(),
            transactional_id: self.transactional_id.as_deref(),
            version: self.tag.version,
            acks: self.acks,
            refused: None,
        };
        let mut left = std::mem::take(&mut self.waiting.left).into_iter();
        while let Some(Left {
            place,
            topic,
            index,
            batch,
        }) = left.next()
        {
            let response = match context.append(&topic, index, &batch) {
                Appended::Placed(placed) => self.waiting.placed(place, index, placed),
                Appended::Busy => {
                    let again = Left {
                        place,
                        topic,
                        index,
                        batch,
                    };
                    self.waiting.left = std::iter::once(again).chain(left).collect();
                    return;
                }
                Appended::Refused(error, log_start) => refused_as(index, error, log_start),
            };
            let (topic, partition) = place;
            self.waiting.response.responses[topic].partition_responses[partition] = response;
        }
    }
}
