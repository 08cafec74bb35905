//! A Kafka client that knows no more than one request at a time.

pub(crate) mod group;

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::io;
use std::time::Duration;

use bytes::BytesMut;
use futures_util::future::BoxFuture;
use kafka::{ErrorCode, RequestBody};
use net::Stream;
use recordbatch::{Batch, Batches, Builder, Template};
use sim::{ClusterClient, Dialer};

use super::write;

/// Pause before a request is sent again.
const PAUSE: Duration = Duration::from_millis(20);

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Longest wait for an answer of a cluster, after which the client connects to another node.
const CLUSTER_PATIENCE: Duration = Duration::from_secs(5);

/// Largest answer, in bytes.
const FRAME_SIZE_MAX: usize = 64 << 20;

/// A client that connects again after its connection was lost.
pub(crate) struct Kafka {
    connect: Box<dyn FnMut() -> BoxFuture<'static, io::Result<Stream>> + Send>,
    /// A node alone answers each request of a connection that is not cut.
    is_each_answered: bool,
    stream: Option<Stream>,
    arrived: BytesMut,
    sent: i32,
}

impl Kafka {
    pub(crate) fn new(dialer: Dialer) -> Self {
        let connect = move || Box::pin(std::future::ready(dialer.kafka())) as _;
        Self {
            connect: Box::new(connect),
            is_each_answered: true,
            stream: None,
            arrived: BytesMut::new(),
            sent: 0,
        }
    }

    /// Creates a client of a cluster. It connects to the nodes that `next` returns, one after the
    /// other.
    pub(crate) fn of_cluster(
        client: ClusterClient,
        mut next: impl FnMut() -> u64 + Send + 'static,
    ) -> Self {
        let connect = move || {
            let (client, node) = (client.clone(), next());
            Box::pin(async move { client.kafka(node).await }) as _
        };
        Self {
            connect: Box::new(connect),
            is_each_answered: false,
            stream: None,
            arrived: BytesMut::new(),
            sent: 0,
        }
    }

    /// Ends the connection: the next request opens another.
    pub(crate) fn disconnect(&mut self) {
        if let Some(stream) = self.stream.take() {
            stream.sink.close();
        }
        self.arrived.clear();
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
            self.disconnect();
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
            let connected = tokio::time::timeout(CLUSTER_PATIENCE, (self.connect)()).await;
            self.stream = connected.ok()?.ok();
        }
        let stream = self.stream.as_mut()?;
        self.sent += 1;
        let mut bytes = Vec::new();
        let id = Some("sim");
        kafka::encode_request(&mut bytes, version, self.sent, id, request).unwrap();
        write(&*stream.sink, &bytes).await?;
        let patience = match self.is_each_answered {
            true => PATIENCE,
            false => CLUSTER_PATIENCE,
        };
        let answer = tokio::time::timeout(patience, next(stream, &mut self.arrived)).await;
        assert!(
            answer.is_ok() || !self.is_each_answered,
            "a request has no answer"
        );
        let frame = answer.ok()??;
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

/// Returns a produce request of one batch to the partition 0.
pub(crate) fn produce(
    topic: &str,
    values: &[String],
    template: &Template,
) -> kafka::produce::Request {
    produce_to(topic, 0, values, template)
}

/// Returns a produce request of one batch.
pub(crate) fn produce_to(
    topic: &str,
    partition: i32,
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
        index: partition,
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

/// A record that a fetch returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fetched {
    pub(crate) offset: i64,
    pub(crate) value: String,
    /// The leader epoch of its batch.
    pub(crate) epoch: i32,
}

/// Fetches once, from an offset on. Returns the records, and the high watermark unless the answer has a
/// retriable error.
pub(crate) async fn fetch(
    kafka: &mut Kafka,
    topic: &str,
    index: i32,
    from: i64,
) -> (Vec<Fetched>, Option<i64>) {
    use kafka::fetch::{Partition, Request, Topic};
    let partition = Partition {
        partition: index,
        fetch_offset: from,
        partition_max_bytes: 1 << 20,
        ..Partition::default()
    };
    let request = Request {
        max_bytes: 1 << 20,
        topics: vec![Topic {
            topic: topic.to_owned(),
            partitions: vec![partition],
            ..Topic::default()
        }],
        ..Request::default()
    };
    let mut response = kafka.ask(11, &request, || {}).await;
    if response.error_code != ErrorCode::None {
        assert!(response.error_code.is_retriable(), "{response:?}");
        return (Vec::new(), None);
    }
    let partition = response.responses.remove(0).partitions.remove(0);
    if partition.error_code != ErrorCode::None {
        assert!(partition.error_code.is_retriable(), "{partition:?}");
        return (Vec::new(), None);
    }
    let bytes = partition.records;
    let bytes: Option<Vec<u8>> = bytes.map(|it| it.pieces().flatten().copied().collect());
    let mut fetched = Vec::new();
    for batch in Batches::new(&bytes.unwrap_or_default()) {
        let batch: Batch<'_> = batch.unwrap();
        assert!(batch.is_intact());
        let epoch = batch.header().leader_epoch;
        for record in batch.records().unwrap() {
            let record = record.unwrap();
            let value = String::from_utf8_lossy(record.value.unwrap()).into_owned();
            let offset = record.offset;
            if offset >= from {
                fetched.push(Fetched {
                    offset,
                    value,
                    epoch,
                });
            }
        }
    }
    (fetched, Some(partition.high_watermark))
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
