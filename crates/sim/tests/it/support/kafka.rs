//! A Kafka client that knows no more than one request at a time.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::time::Duration;

use bytes::BytesMut;
use kafka::{ErrorCode, RequestBody};
use net::Stream;
use recordbatch::{Batch, Batches, Builder, Template};
use sim::Dialer;

use super::write;

/// Pause before a request is sent again.
const PAUSE: Duration = Duration::from_millis(20);

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Largest answer, in bytes.
const FRAME_SIZE_MAX: usize = 64 << 20;

/// A client that connects again after its connection was lost.
pub(crate) struct Kafka {
    dialer: Dialer,
    stream: Option<Stream>,
    arrived: BytesMut,
    sent: i32,
}

impl Kafka {
    pub(crate) fn new(dialer: Dialer) -> Self {
        Self {
            dialer,
            stream: None,
            arrived: BytesMut::new(),
            sent: 0,
        }
    }

    /// Asks until there is an answer. A request whose connection was lost is sent again, so it may
    /// be executed several times. `lost` is called each time.
    pub(crate) async fn ask<R: RequestBody>(
        &mut self,
        version: i16,
        request: &R,
        mut lost: impl FnMut(),
    ) -> R::Response {
        loop {
            if let Some(response) = self.try_ask(version, request).await {
                return response;
            }
            lost();
            self.stream = None;
            self.arrived.clear();
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Asks until the answer has no error code. Every other code must be retriable. `again` is called
    /// before each repetition.
    pub(crate) async fn ask_until_done<R: RequestBody>(
        &mut self,
        version: i16,
        request: &R,
        code: impl Fn(&R::Response) -> ErrorCode,
        mut again: impl FnMut(),
    ) -> R::Response {
        loop {
            let response = self.ask(version, request, &mut again).await;
            match code(&response) {
                ErrorCode::None => return response,
                code => assert!(code.is_retriable(), "{code:?}"),
            }
            again();
            pause().await;
        }
    }

    async fn try_ask<R: RequestBody>(&mut self, version: i16, request: &R) -> Option<R::Response> {
        if self.stream.is_none() {
            self.stream = self.dialer.kafka().ok();
        }
        let stream = self.stream.as_mut()?;
        self.sent += 1;
        let mut bytes = Vec::new();
        let id = Some("sim");
        kafka::encode_request(&mut bytes, version, self.sent, id, request).unwrap();
        write(&*stream.sink, &bytes).await?;
        let answer = tokio::time::timeout(PATIENCE, next(stream, &mut self.arrived));
        let frame = answer.await.expect("every request is answered")?;
        let (number, response) = kafka::decode_response::<R>(&frame, version).unwrap();
        assert_eq!(number, self.sent);
        Some(response)
    }
}

impl Drop for Kafka {
    fn drop(&mut self) {
        if let Some(stream) = &self.stream {
            stream.sink.close();
        }
    }
}

async fn next(stream: &mut Stream, arrived: &mut BytesMut) -> Option<bytes::Bytes> {
    loop {
        if let Some(frame) = kafka::take_frame(arrived, FRAME_SIZE_MAX).unwrap() {
            return Some(frame);
        }
        let mut chunk = vec![0; 64 << 10];
        let read = poll_fn(|cx| stream.source.poll_read(cx, &mut chunk));
        match read.await {
            Ok(0) | Err(_) => return None,
            Ok(count) => arrived.extend_from_slice(&chunk[..count]),
        }
    }
}

/// Pauses before a request is sent again whose answer has a retriable error code.
pub(crate) async fn pause() {
    tokio::time::sleep(PAUSE).await;
}

/// Creates a topic with one partition, unless it exists.
pub(crate) async fn create(kafka: &mut Kafka, name: &str) {
    use kafka::create_topics::{Request, Topic};
    let topic = Topic {
        name: name.to_owned(),
        num_partitions: 1,
        replication_factor: 1,
        ..Topic::default()
    };
    let request = Request {
        topics: vec![topic],
        ..Request::default()
    };
    let response = kafka.ask(7, &request, || {}).await;
    let code = response.topics[0].error_code;
    assert!(
        [ErrorCode::None, ErrorCode::TopicAlreadyExists].contains(&code),
        "{code:?}"
    );
}

/// Returns a produce request of one batch.
pub(crate) fn produce(
    topic: &str,
    values: &[String],
    template: &Template,
) -> kafka::produce::Request {
    use kafka::produce::{Partition, Request, Topic};
    let mut builder = Builder::new();
    for value in values {
        builder.push(1_700_000_000_000, None, Some(value.as_bytes()), &[]);
    }
    let mut batch = Vec::new();
    builder.finish(template, &mut batch);
    let partition = Partition {
        index: 0,
        records: Some(bytes::Bytes::from(batch).into()),
    };
    Request {
        acks: -1,
        timeout_ms: 10_000,
        topic_data: vec![Topic {
            name: topic.to_owned(),
            partition_data: vec![partition],
            ..Topic::default()
        }],
        ..Request::default()
    }
}

/// Reads all visible records from an offset on: offset and value of each. With `committed`, only
/// those that a reader of committed records is shown.
pub(crate) async fn read(
    kafka: &mut Kafka,
    topic: &str,
    from: i64,
    committed: bool,
) -> Vec<(i64, String)> {
    use kafka::fetch::{Partition, Request, Topic};
    let (mut records, mut next) = (Vec::new(), from);
    loop {
        let partition = Partition {
            fetch_offset: next,
            partition_max_bytes: 1 << 20,
            ..Partition::default()
        };
        let request = Request {
            max_bytes: 1 << 20,
            isolation_level: i8::from(committed),
            topics: vec![Topic {
                topic: topic.to_owned(),
                partitions: vec![partition],
                ..Topic::default()
            }],
            ..Request::default()
        };
        let mut response = kafka.ask(11, &request, || {}).await;
        let partition = response.responses.remove(0).partitions.remove(0);
        assert_eq!(partition.error_code, ErrorCode::None, "{topic} {next}");
        let end = match committed {
            true => partition.last_stable_offset,
            false => partition.high_watermark,
        };
        let bytes = partition
            .records
            .map(|it| it.pieces().flatten().copied().collect());
        let bytes: Vec<u8> = bytes.unwrap_or_default();
        let aborted = partition.aborted_transactions.unwrap_or_default();
        let mut aborted: Vec<_> = aborted
            .iter()
            .map(|it| (it.first_offset, it.producer_id))
            .collect();
        aborted.sort_unstable();
        let after = take(&bytes, next, aborted, &mut records);
        assert!(
            after > next || after >= end,
            "a fetch at {next} returns nothing"
        );
        next = after;
        if next >= end {
            return records;
        }
    }
}

/// Takes the records of a fetch, without those of aborted transactions. Returns the next offset.
fn take(
    bytes: &[u8],
    from: i64,
    aborted: Vec<(i64, i64)>,
    records: &mut Vec<(i64, String)>,
) -> i64 {
    let (mut aborted, mut ending) = (aborted.into_iter().peekable(), BTreeSet::new());
    let mut next = from;
    for batch in Batches::new(bytes) {
        let batch: Batch<'_> = batch.unwrap();
        assert!(batch.is_intact());
        let header = batch.header();
        let producer = header.producer().map(|it| it.id);
        while let Some((_, id)) = aborted.next_if(|(first, _)| *first <= header.last_offset()) {
            ending.insert(id);
        }
        next = header.last_offset() + 1;
        if header.attributes.is_control() {
            producer.inspect(|id| {
                ending.remove(id);
            });
            continue;
        }
        if header.attributes.is_transactional() && producer.is_some_and(|it| ending.contains(&it)) {
            continue;
        }
        for record in batch.records().unwrap() {
            let record = record.unwrap();
            if record.offset >= from {
                let value = String::from_utf8_lossy(record.value.unwrap());
                records.push((record.offset, value.into_owned()));
            }
        }
    }
    next
}
