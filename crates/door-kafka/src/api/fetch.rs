//! Fetch: reads record batches from partitions, and waits if there are fewer than `min.bytes`.
//!
//! Batches are sent as they are stored, long ones from the files that they are stored in. They are
//! located, or read, when their answer is the next to be sent; if the disk does not deliver them in
//! time, the answer is an error. There are no fetch sessions (KIP-227): session 0 says so, and every
//! request is a full one.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use kafka::fetch::{
    AbortedTransaction, Partition, PartitionResponse, Request, Response, TopicResponse,
};
use kafka::{ErrorCode, Records};
use tokio::time::{Instant, Sleep};
use topic_service::{Ask, BatchPlacement, FetchError, FetchLimits, Fetched, Fetching, StoredBytes};
use topics::Isolation;

use super::{find, offset, partition_in};
use crate::client::{Client, Departure};
use crate::deadline::Deadline;
use crate::errors::Coded;
use crate::reply::{Answer, Tag};

/// From this version topics are named by id.
const IDS_FROM: i16 = 13;

/// The largest answer, in bytes, even if the client accepts more: Kafka's `fetch.max.bytes`.
const SIZE_MAX: usize = 55 << 20;

/// The longest wait.
const WAIT_MAX: Duration = Duration::from_secs(300);

/// The answer in preparation.
struct Making {
    response: Response,
    /// The positions of the fetched partitions in the response (topic, partition), in the order of
    /// the fetches.
    places: Vec<(usize, usize)>,
    isolation: Isolation,
}

pub(crate) fn answer(client: &mut Client, tag: Tag, request: Request) -> Answer {
    // No session can be continued; only the session id 0 is accepted.
    if request.session_id != 0 {
        return tag.now(Response {
            error_code: ErrorCode::FetchSessionIdNotFound,
            ..Response::default()
        });
    }
    let isolation = match request.isolation_level {
        1 => Isolation::Committed,
        _ => Isolation::Uncommitted,
    };
    let wait = Duration::from_millis(u64::try_from(request.max_wait_ms).unwrap_or(0));
    let bytes_min = usize::try_from(request.min_bytes).unwrap_or(0);
    let bytes_max = usize::try_from(request.max_bytes).unwrap_or(0);
    let mut making = Making {
        response: Response::default(),
        places: Vec::new(),
        isolation,
    };
    let halt = client.halt_check();
    let (asks, is_refused) = making.look_up(client, tag.version, request, halt.is_halted());
    // An error is answered at once.
    let bytes_min = if is_refused { 0 } else { bytes_min };
    let limits = FetchLimits {
        isolation,
        bytes_min,
        bytes_max: bytes_max.min(SIZE_MAX),
        placement: BatchPlacement::AsStored,
    };
    let waiting = Waiting {
        fetching: client.topics().fetch(asks, limits),
        timer: Box::pin(tokio::time::sleep_until(
            Instant::now() + wait.min(WAIT_MAX),
        )),
        is_over: false,
        departure: client.departure(),
    };
    Answer::Later(Box::pin(async move {
        let mut records = Vec::new();
        let response = match waiting.await {
            // The client may have been halted while it waited.
            _ if halt.is_halted() => making.refuse(ErrorCode::TopicAuthorizationFailed),
            Some(fetched) => making.fill(fetched, &mut records),
            None => making.refuse(ErrorCode::KafkaStorageError),
        };
        tag.reply_around(response, records)
    }))
}

/// A fetch with its timer.
struct Waiting {
    fetching: Fetching,
    timer: Pin<Box<Sleep>>,
    /// The wait for new records is over, and the client gets the present ones; the timer is now the
    /// deadline for reading them from the disk.
    is_over: bool,
    departure: Departure,
}

impl Future for Waiting {
    /// `None` if the disk does not deliver in time.
    type Output = Option<Vec<Result<Fetched, FetchError>>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut is_due = self.timer.as_mut().poll(cx).is_ready();
        if is_due && !self.is_over {
            self.is_over = true;
            self.timer.as_mut().reset(Deadline::usual().instant());
            is_due = self.timer.as_mut().poll(cx).is_ready();
        }
        if self.is_over || self.departure.has_come() {
            self.fetching.hurry();
        }
        match self.fetching.poll_fetched(cx.waker()) {
            Poll::Pending if is_due => Poll::Ready(None),
            fetched => fetched.map(Some),
        }
    }
}

impl Making {
    /// Prepares all answers and fetches; returns whether any was refused.
    fn look_up(
        &mut self,
        client: &Client,
        version: i16,
        request: Request,
        is_halted: bool,
    ) -> (Vec<Ask>, bool) {
        let has_ids = version >= IDS_FROM;
        let (mut asks, mut is_refused) = (Vec::new(), false);
        for topic in request.topics {
            let found = match is_halted {
                true => Err(ErrorCode::TopicAuthorizationFailed),
                false => find(client.topics(), &topic.topic, topic.topic_id, has_ids),
            };
            let at = self.response.responses.len();
            let mut partitions = Vec::with_capacity(topic.partitions.len());
            for asked in topic.partitions {
                let index = asked.partition;
                let ask = found.clone().and_then(|topic| {
                    let partition = partition_in(&topic, index)?;
                    ask(topic, partition, &asked)
                });
                partitions.push(match ask {
                    Ok(ask) => {
                        self.places.push((at, partitions.len()));
                        asks.push(ask);
                        empty(index)
                    }
                    Err(code) => {
                        is_refused = true;
                        refused(index, code)
                    }
                });
            }
            self.response.responses.push(TopicResponse {
                topic: topic.topic,
                topic_id: topic.topic_id,
                partitions,
            });
        }
        (asks, is_refused)
    }

    /// Returns the answer without its records, which are added to `records`.
    fn fill(
        mut self,
        fetched: Vec<Result<Fetched, FetchError>>,
        records: &mut Vec<StoredBytes>,
    ) -> Response {
        for ((topic, partition), fetched) in self.places.into_iter().zip(fetched) {
            let place = &mut self.response.responses[topic].partitions[partition];
            *place = match fetched {
                Ok(fetched) => filled(place.partition_index, fetched, self.isolation, records),
                Err(error) => refused(place.partition_index, error.code()),
            };
        }
        self.response
    }

    fn refuse(mut self, code: ErrorCode) -> Response {
        for (topic, partition) in self.places {
            let place = &mut self.response.responses[topic].partitions[partition];
            *place = refused(place.partition_index, code);
        }
        self.response
    }
}

fn ask(
    topic: std::sync::Arc<topic_service::Topic>,
    partition: u32,
    asked: &Partition,
) -> Result<Ask, ErrorCode> {
    let Ok(from) = u64::try_from(asked.fetch_offset) else {
        return Err(ErrorCode::OffsetOutOfRange);
    };
    Ok(Ask {
        topic,
        partition,
        offset: from,
        bytes_max: usize::try_from(asked.partition_max_bytes).unwrap_or(0),
        leader_epoch: Some(asked.current_leader_epoch).filter(|epoch| *epoch >= 0),
    })
}

/// Returns an answer without records: the field is present and empty.
fn empty(index: i32) -> PartitionResponse {
    PartitionResponse {
        partition_index: index,
        high_watermark: -1,
        records: Some(Records::default()),
        ..PartitionResponse::default()
    }
}

fn refused(index: i32, error_code: ErrorCode) -> PartitionResponse {
    PartitionResponse {
        error_code,
        ..empty(index)
    }
}

fn filled(
    index: i32,
    fetched: Fetched,
    isolation: Isolation,
    records: &mut Vec<StoredBytes>,
) -> PartitionResponse {
    let size = fetched.size();
    records.extend(fetched.batches);
    let aborted = fetched.aborted.into_iter();
    let aborted = aborted.map(|(producer, first)| AbortedTransaction {
        producer_id: producer.0,
        first_offset: offset(first),
    });
    PartitionResponse {
        partition_index: index,
        high_watermark: offset(fetched.high_watermark),
        last_stable_offset: offset(fetched.last_stable),
        log_start_offset: offset(fetched.log_start),
        aborted_transactions: (isolation == Isolation::Committed).then(|| aborted.collect()),
        records: Some(Records::left_out(size)),
        ..PartitionResponse::default()
    }
}
