//! A client in bare messages.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use kafka::{ErrorCode, RequestBody};
use net::{Sink, Source, Stream};
use recordbatch::{Builder, Template};

pub(crate) struct Client {
    source: Box<dyn Source>,
    sink: std::sync::Arc<dyn Sink>,
    arrived: BytesMut,
    sent: i32,
}

/// Longer than the door has anybody wait who says nothing else than Kafka does.
const ANSWER_WAIT: Duration = Duration::from_secs(90);

/// Largest answer that a test expects.
const FRAME_SIZE_MAX: usize = 64 << 20;

impl Client {
    pub(crate) fn new(stream: Stream) -> Self {
        Self {
            source: stream.source,
            sink: stream.sink,
            arrived: BytesMut::new(),
            sent: 0,
        }
    }

    /// Sends all the raw bytes, unless the node closes the connection.
    pub(crate) async fn raw(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match self.sink.try_write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    let writable = std::future::poll_fn(|cx| self.sink.poll_writable(cx));
                    writable.await.unwrap();
                }
                Err(_) => return,
            }
        }
    }

    /// Sends a request and says its number.
    pub(crate) async fn send<R: RequestBody>(&mut self, version: i16, request: &R) -> i32 {
        self.sent += 1;
        let mut bytes = Vec::new();
        let client_id = Some("test");
        kafka::encode_request(&mut bytes, version, self.sent, client_id, request).unwrap();
        self.raw(&bytes).await;
        self.sent
    }

    /// The next answer, without its size; `None` at the end of the connection.
    pub(crate) async fn frame(&mut self) -> Option<Bytes> {
        loop {
            if let Some(frame) = kafka::take_frame(&mut self.arrived, FRAME_SIZE_MAX).unwrap() {
                return Some(frame);
            }
            let mut chunk = vec![0; 64 << 10];
            let source = &mut self.source;
            let read = std::future::poll_fn(|cx| source.poll_read(cx, &mut chunk));
            let read = tokio::time::timeout(ANSWER_WAIT, read).await;
            let count = read.expect("nothing arrived").ok()?;
            if count == 0 {
                return None;
            }
            self.arrived.extend_from_slice(&chunk[..count]);
        }
    }

    /// The next answer, which is to a request of that kind and version.
    pub(crate) async fn receive<R: RequestBody>(&mut self, version: i16) -> (i32, R::Response) {
        let frame = self.frame().await.expect("the connection has ended");
        kafka::decode_response::<R>(&frame, version).unwrap()
    }

    /// Asks, and waits for the answer.
    pub(crate) async fn ask<R: RequestBody>(&mut self, version: i16, request: &R) -> R::Response {
        let number = self.send(version, request).await;
        let (answered, response) = self.receive::<R>(version).await;
        assert_eq!(answered, number);
        response
    }

    /// Whether the connection has ended and nothing more comes.
    pub(crate) async fn is_closed(&mut self) -> bool {
        self.frame().await.is_none()
    }

    /// Whatever was sent before has been taken in: this was answered behind it, by another
    /// connection or by this one.
    pub(crate) async fn flush_requests(&mut self) {
        let request = kafka::api_versions::Request::default();
        self.ask(0, &request).await;
    }

    pub(crate) async fn create_topic(&mut self, name: &str) {
        use kafka::create_topics::{Request, Topic};
        let topic = Topic {
            name: name.to_owned(),
            num_partitions: 1,
            replication_factor: 1,
            ..Topic::default()
        };
        let topics = vec![topic];
        let request = Request {
            topics,
            ..Request::default()
        };
        self.send(7, &request).await;
    }

    pub(crate) async fn created(&mut self) {
        use kafka::create_topics::Request;
        let (_, response) = self.receive::<Request>(7).await;
        assert_eq!(response.topics[0].error_code, ErrorCode::None);
    }
}

/// A batch of one record.
pub(crate) fn batch(value: &[u8]) -> Bytes {
    let mut builder = Builder::new();
    builder.push(1_700_000_000_000, Some(b"key"), Some(value), &[]);
    let mut out = Vec::new();
    builder.finish(&Template::default(), &mut out);
    out.into()
}

/// A batch for the first partition of a topic.
pub(crate) fn produce(topic: &str, acks: i16, records: Bytes) -> kafka::produce::Request {
    use kafka::produce::{Partition, Request, Topic};
    let partition = Partition {
        index: 0,
        records: Some(records.into()),
    };
    Request {
        acks,
        timeout_ms: 1_000,
        topic_data: vec![Topic {
            name: topic.to_owned(),
            partition_data: vec![partition],
            ..Topic::default()
        }],
        ..Request::default()
    }
}

/// Everything of the first partition of a topic, from an offset on.
pub(crate) fn fetch(topic: &str, offset: i64, max_wait_ms: i32) -> kafka::fetch::Request {
    use kafka::fetch::{Partition, Request, Topic};
    let partition = Partition {
        partition: 0,
        fetch_offset: offset,
        partition_max_bytes: 1 << 20,
        ..Partition::default()
    };
    Request {
        max_wait_ms,
        min_bytes: 1,
        topics: vec![Topic {
            topic: topic.to_owned(),
            partitions: vec![partition],
            ..Topic::default()
        }],
        ..Request::default()
    }
}
