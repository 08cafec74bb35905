//! The answer to a Produce request whose batches are appended and not yet as durable as the client
//! wants. It waits in one allocation and without a timer of its own.

use std::task::{Context, Poll, ready};

use kafka::produce::Response;
use net::Output;
use platform::Durable;
use topic_service::ProduceError;

use super::{Waiting, refused};
use crate::deadline::Deadline;
use crate::errors::Failed;
use crate::reply::{EncodedCodes, Tag, WaitingAnswer};

/// The `acks` of a producer that waits for the disk of the partition's leader alone.
const LEADER_ONLY: i16 = 1;

/// A waiting answer; see the module's documentation.
pub(super) struct Unconfirmed {
    tag: Tag,
    deadline: Deadline,
    /// The response if everything becomes durable.
    response: Response,
    /// The record of the charge, if it has to be durable before the answer.
    charged: Option<Durable>,
    /// The pending writes, each with the index of its topic and partition in the response.
    durables: Vec<(usize, usize, Durable)>,
    /// The number of them whose outcome is known.
    known: usize,
}

impl Unconfirmed {
    pub(super) fn new(waiting: Waiting, tag: Tag, acks: i16, deadline: Deadline) -> Self {
        let mut durables = waiting.durables;
        if acks == LEADER_ONLY {
            let written = |(topic, partition, durable): (_, _, Durable)| {
                (topic, partition, durable.written_here())
            };
            durables = durables.into_iter().map(written).collect();
        }
        Self {
            tag,
            deadline,
            response: waiting.response,
            charged: waiting.charged,
            durables,
            known: 0,
        }
    }

    #[cfg(test)]
    pub(super) fn response(&self) -> &Response {
        &self.response
    }

    fn refuse_all(&mut self, failed: &Failed) {
        let topics = self.response.responses.iter_mut();
        for told in topics.flat_map(|topic| &mut topic.partition_responses) {
            *told = refused(told.index, failed.clone());
        }
    }
}

impl WaitingAnswer for Unconfirmed {
    fn deadline(&self) -> Deadline {
        self.deadline
    }

    fn poll(&mut self, cx: &mut Context<'_>, is_over: bool) -> Poll<()> {
        if let Some(charged) = &self.charged {
            let outcome = ready!(poll_durable(charged, cx, is_over));
            self.charged = None;
            if let Err(failed) = outcome {
                self.refuse_all(&failed);
                self.known = self.durables.len();
            }
        }
        while let Some((topic, partition, durable)) = self.durables.get(self.known) {
            if let Err(failed) = ready!(poll_durable(durable, cx, is_over)) {
                let told = &mut self.response.responses[*topic].partition_responses[*partition];
                *told = refused(told.index, failed);
            }
            self.known += 1;
        }
        Poll::Ready(())
    }

    fn write(&self, out: &mut Output) -> EncodedCodes {
        self.tag.encode(&self.response, out)
    }
}

/// Returns the outcome of a write once it is known, or the error of an unknown outcome if the deadline
/// `is_over`.
fn poll_durable(
    durable: &Durable,
    cx: &mut Context<'_>,
    is_over: bool,
) -> Poll<Result<(), Failed>> {
    match durable.poll_durable(cx.waker()) {
        Poll::Pending if is_over => Poll::Ready(Err(Deadline::failed::<ProduceError>())),
        polled => polled.map_err(|error| ProduceError::from(error).into()),
    }
}
