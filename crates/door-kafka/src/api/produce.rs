//! Produce: appends record batches to partitions, answered when their topic's durability is
//! reached.
//!
//! `acks=1` waits for the disk of this node, `acks=all` until the batches are committed; on a node
//! that is alone, both are the same moment.
//!
//! The batches of one read share one sync with those of other connections. A client without
//! acknowledgements (`acks=0`) learns of an error by the end of the connection, as in Kafka. When
//! too much waits for the disk, or a batch has to be decompressed, the request waits ([`Stalled`]).
//! It waits no longer than its timeout: a batch that is appended and not durable by then is
//! answered with REQUEST_TIMED_OUT, and may still become durable.

mod pending;
mod stalled;
mod unconfirmed;

use std::sync::Arc;
use std::task::{Poll, Waker};

use bytes::Bytes;
use kafka::produce::{
    Partition, PartitionResponse, RecordError, Request, Response, Topic as TopicRequest,
    TopicResponse, VERSION_MIN,
};
use kafka::{ErrorCode, Records};
use platform::Durable;
use recordbatch::Rejected;
use tokio::sync::Semaphore;
use topic_service::{
    FoundTopic, Placed, ProduceError, Producing, Storage, Topic, UnknownPartition,
};

use pending::PendingBatch;
use stalled::Stalled;
use unconfirmed::Unconfirmed;

use super::{asked_topic, offset, partition_of};
use crate::client::Client;
use crate::deadline::Deadline;
use crate::errors::Failed;
use crate::outcome::{Fatal, Handled};
use crate::reply::{Answer, Tag};

/// From this version a request may name topics by id.
const IDS_FROM: i16 = 13;

/// Below this version a client does not know zstd (KIP-110).
const ZSTD_FROM: i16 = 7;

/// The largest decompressed size of all batches of a request, as a multiple of their size, and the
/// size that is always allowed.
const UNPACKED_RATIO_MAX: usize = 64;
const UNPACKED_SIZE_MIN: usize = 64 << 20;

/// The position of the compression in the bytes of a batch, and its values.
const ATTRIBUTES_AT: usize = 22;
const COMPRESSION_MASK: u8 = 0b111;
const ZSTD: u8 = 4;

/// The context that all batches of a request share.
struct Context<'a> {
    producing: &'a mut Producing,
    /// Permits for decompression.
    unpackings: &'a Arc<Semaphore>,
    transactional_id: Option<&'a str>,
    version: i16,
    acks: i16,
    /// The reason why nothing of the request is appended.
    refused: Option<Failed>,
}

/// An answer of which some partitions wait.
#[derive(Default)]
struct Waiting {
    response: Response,
    /// The pending writes, each with the index of its topic and partition in the response.
    durables: Vec<(usize, usize, Durable)>,
    /// The batches that are not appended yet, with their topics: the first waits for something, the
    /// others for the first.
    queued: Vec<(Arc<Topic>, PendingBatch)>,
    /// The record of the charge, if it has to be durable before the answer.
    charged: Option<Durable>,
    /// The number of bytes to which compressed batches of the request may still expand.
    unpacked_left: usize,
}

/// The outcome of appending a batch.
enum Appended {
    Placed(Placed),
    /// There is no room for it, or it has to be decompressed first.
    Queued,
    /// The batch is invalid. The log start of its partition is included where Kafka returns it.
    Refused(ProduceError, Option<u64>),
}

pub(crate) fn handle(client: &mut Client, tag: Tag, request: Request) -> Result<Handled, Fatal> {
    let Request {
        transactional_id,
        acks,
        timeout_ms,
        topic_data,
    } = request;
    let mut waiting = Waiting::default();
    let refused = match client.charge(records_size(&topic_data)) {
        Ok(charge) => {
            waiting.response.throttle_time_ms = charge.throttle_time_ms();
            waiting.charged = charge.durable;
            None
        }
        Err(failed) => Some(failed),
    };
    let (producing, unpackings) = client.producing_parts();
    let mut context = Context {
        unpackings,
        producing,
        transactional_id: transactional_id.as_deref(),
        version: tag.version,
        acks,
        refused,
    };
    waiting.unpacked_left = unpacked_size_max(&topic_data);
    waiting.response.responses.reserve_exact(topic_data.len());
    let counts = topic_data.iter().map(|topic| topic.partition_data.len());
    waiting.durables.reserve_exact(counts.sum());
    for topic in topic_data {
        let (asked, missing) = asked_topic(&topic.name, topic.topic_id, tag.version >= IDS_FROM);
        let found = context.producing.find(asked);
        let place = found.as_ref().map(FoundTopic::topic).ok_or(missing);
        waiting.append(&mut context, topic, place);
        if let Some(found) = found {
            context.producing.keep(found);
        }
    }
    if waiting.queued.is_empty() {
        let deadline = || Deadline::asked_of_disk(timeout_ms);
        let answer = waiting.into_answer(tag, acks, deadline);
        return answer.map(Handled::Answer);
    }
    let deadline = Deadline::asked(timeout_ms);
    let stalled = Stalled::new(waiting, tag, transactional_id, acks, deadline);
    Ok(Handled::Stalled(Box::new(stalled)))
}

/// Returns the size of all records of a request, in bytes.
fn records_size(topics: &[TopicRequest]) -> u64 {
    let partitions = topics.iter().flat_map(|topic| &topic.partition_data);
    let records = partitions.filter_map(|partition| partition.records.as_ref());
    records.map(|records| records.size() as u64).sum()
}

impl Waiting {
    fn append(
        &mut self,
        context: &mut Context<'_>,
        request: TopicRequest,
        topic: Result<&Arc<Topic>, ErrorCode>,
    ) {
        let at = self.response.responses.len();
        let mut partition_responses = Vec::with_capacity(request.partition_data.len());
        for Partition { index, records } in request.partition_data {
            let place = (at, partition_responses.len());
            partition_responses.push(match context.check(topic, index, records) {
                Ok((topic, batch)) => self.append_one(context, topic, place, index, batch),
                Err(failed) => refused(index, failed),
            });
        }
        self.response.responses.push(TopicResponse {
            name: request.name,
            topic_id: request.topic_id,
            partition_responses,
        });
    }

    /// Appends a batch, unless it has to wait for something or for an earlier batch.
    fn append_one(
        &mut self,
        context: &mut Context<'_>,
        topic: &Arc<Topic>,
        place: (usize, usize),
        index: i32,
        batch: Bytes,
    ) -> PartitionResponse {
        let mut pending = PendingBatch::new(place, index, batch);
        let appended = match self.queued.is_empty() {
            true => context.append(topic, &mut pending, &mut self.unpacked_left, Waker::noop()),
            false => Appended::Queued,
        };
        match appended {
            Appended::Placed(placed) => self.placed(place, index, placed),
            Appended::Queued => {
                self.queued.push((topic.clone(), pending));
                refused(index, ProduceError::from(Storage::Busy).into())
            }
            Appended::Refused(error, log_start) => refused_as(index, error, log_start),
        }
    }

    fn placed(&mut self, place: (usize, usize), index: i32, placed: Placed) -> PartitionResponse {
        let response = placed_at(index, &placed);
        self.durables.push((place.0, place.1, placed.durable));
        response
    }

    /// Returns the answer, after all batches were appended or refused. It waits for the disk until
    /// `deadline`.
    fn into_answer(
        self,
        tag: Tag,
        acks: i16,
        deadline: impl FnOnce() -> Deadline,
    ) -> Result<Answer, Fatal> {
        match acks {
            0 => self.into_silence(),
            _ if self.durables.is_empty() && self.charged.is_none() => Ok(tag.now(self.response)),
            _ => {
                let unconfirmed = Unconfirmed::new(self, tag, acks, deadline());
                Ok(Answer::Waiting(Box::new(unconfirmed)))
            }
        }
    }

    /// Returns no answer; an error ends the connection, since it cannot be answered.
    fn into_silence(self) -> Result<Answer, Fatal> {
        let topics = self.response.responses.iter();
        let mut partitions = topics.flat_map(|topic| &topic.partition_responses);
        match partitions.find(|partition| partition.error_code.is_error()) {
            None => Ok(Answer::Never),
            Some(failed) => {
                let message = failed.error_message.as_deref().unwrap_or_default();
                Err(Fatal::new(format!(
                    "a batch without acks failed: {message}"
                )))
            }
        }
    }
}

impl Context<'_> {
    /// Checks that a batch may be appended; returns its topic and its bytes.
    fn check<'t>(
        &self,
        topic: Result<&'t Arc<Topic>, ErrorCode>,
        index: i32,
        records: Option<Records>,
    ) -> Result<(&'t Arc<Topic>, Bytes), Failed> {
        let failed = |code: ErrorCode, message: &str| Failed::new(code, message);
        if self.version < VERSION_MIN {
            let message = "only record batches of format 2 are supported (Produce 3 and later)";
            return Err(failed(ErrorCode::UnsupportedVersion, message));
        }
        if !matches!(self.acks, -1..=1) {
            let message = "acks must be 0, 1 or -1 (all)";
            return Err(failed(ErrorCode::InvalidRequiredAcks, message));
        }
        let unknown = |code| failed(code, "there is no such topic or partition");
        if let Some(refused) = &self.refused {
            return Err(refused.clone());
        }
        let topic = topic.map_err(unknown)?;
        partition_of(index).map_err(unknown)?;
        let batch = records.map(Records::into_bytes).unwrap_or_default();
        if batch.is_empty() {
            return Err(ProduceError::NotOne.into());
        }
        let is_zstd = batch
            .get(ATTRIBUTES_AT)
            .is_some_and(|attributes| attributes & COMPRESSION_MASK == ZSTD);
        if is_zstd && self.version < ZSTD_FROM {
            let message = "zstd needs Produce 7 or later";
            return Err(failed(ErrorCode::UnsupportedCompressionType, message));
        }
        Ok((topic, batch))
    }

    /// Appends a batch, or returns why not. The waker is woken once the batch is prepared.
    fn append(
        &mut self,
        topic: &Arc<Topic>,
        pending: &mut PendingBatch,
        unpacked_left: &mut usize,
        waker: &Waker,
    ) -> Appended {
        let Ok(partition) = u32::try_from(pending.index) else {
            return Appended::Refused(UnknownPartition.into(), None);
        };
        let topics = self.producing.topics();
        match pending.poll_prepared(topic, topics, self.unpackings, unpacked_left, waker) {
            Poll::Pending => return Appended::Queued,
            Poll::Ready(Err(error)) => return self.refused(topic, partition, error),
            Poll::Ready(Ok(())) => {}
        }
        let transactional_id = self.transactional_id;
        match self
            .producing
            .append_prepared(topic, partition, &pending.batch, transactional_id)
        {
            Ok(placed) => Appended::Placed(placed),
            Err(ProduceError::Storage(Storage::Busy)) => Appended::Queued,
            Err(error) => self.refused(topic, partition, error),
        }
    }

    fn refused(&self, topic: &Topic, partition: u32, error: ProduceError) -> Appended {
        let is_told = is_told_with_its_start(&error);
        let view = self.producing.topics().view(topic, partition).ok();
        let log_start = view.filter(|_| is_told).map(|view| view.log_start);
        Appended::Refused(error, log_start)
    }
}

/// Returns the largest decompressed size of all batches of a request: above what producers send,
/// and within what a second or two of work can do for a request of usual size.
fn unpacked_size_max(topics: &[TopicRequest]) -> usize {
    let partitions = topics.iter().flat_map(|topic| &topic.partition_data);
    let sizes = partitions.filter_map(|it| it.records.as_ref().map(Records::size));
    let size: usize = sizes.sum();
    size.saturating_mul(UNPACKED_RATIO_MAX)
        .max(UNPACKED_SIZE_MIN)
}

/// Returns whether Kafka includes the log start in the answer with this error: it does once it has
/// looked into the batch.
fn is_told_with_its_start(error: &ProduceError) -> bool {
    match error {
        ProduceError::Rejected(
            Rejected::Size { .. } | Rejected::Unpacked { .. } | Rejected::Checksum,
        ) => false,
        ProduceError::Rejected(_)
        | ProduceError::Record(_)
        | ProduceError::NoKey { .. }
        | ProduceError::Refused(_) => true,
        ProduceError::Unknown(_)
        | ProduceError::Malformed(_)
        | ProduceError::ReadOnly(_)
        | ProduceError::NotOne
        | ProduceError::Transaction(_)
        | ProduceError::Storage(_)
        | ProduceError::NotDurable(_) => false,
    }
}

#[cfg(test)]
mod tests;

fn placed_at(index: i32, placed: &Placed) -> PartitionResponse {
    PartitionResponse {
        index,
        base_offset: offset(placed.offset),
        log_append_time_ms: placed.append_time_ms.unwrap_or(-1),
        log_start_offset: offset(placed.log_start),
        ..PartitionResponse::default()
    }
}

/// Names the invalid records, where they are known (KIP-467): clients report the error for those,
/// and for the others that they were in the same batch.
fn refused_as(index: i32, error: ProduceError, log_start: Option<u64>) -> PartitionResponse {
    let (indexes, message) = match &error {
        ProduceError::NoKey { indexes } => {
            (&indexes[..], "a record of a compacted topic needs a key")
        }
        _ => (&[][..], ""),
    };
    let records = indexes.iter().map(|index| RecordError {
        batch_index: *index,
        batch_index_error_message: Some(message.to_owned()),
    });
    PartitionResponse {
        log_start_offset: log_start.map_or(-1, offset),
        record_errors: records.collect(),
        ..refused(index, error.into())
    }
}

fn refused(index: i32, failed: Failed) -> PartitionResponse {
    PartitionResponse {
        index,
        error_code: failed.code,
        base_offset: -1,
        error_message: Some(failed.message),
        ..PartitionResponse::default()
    }
}
