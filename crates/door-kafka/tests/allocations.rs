//! Allocations of a Produce request with one record, as counted by an allocator.
//!
//! The node serves its connection on the thread of the test, and only allocations of that thread
//! are counted: the journal's threads work at their own pace.

#![expect(clippy::unwrap_used, reason = "what goes wrong in a test ends it")]

use std::future::poll_fn;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use door::PassEnd;
use door_kafka::{Arrived, Door, NoUsers, Options};
use door_testing::{CountingAllocator, ManualClock, allocated};
use journal::Journal;
use journal::disk::SimulatedDisk;
use kafka::{ErrorCode, RequestBody, create_topics, produce};
use net::Stream;
use node::{Node, Parts, StorageParts};
use recordbatch::{Builder, Template};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const ROUNDS: u64 = 200;
/// Largest number of allocations of a request.
const ALLOCATIONS_MAX: u64 = 11;
/// Largest number of allocations of a request if many connections share a round of the write-ahead
/// log.
const ALLOCATIONS_IN_PASS_MAX: u64 = 9;

/// A connection to the node, and what was received of it.
struct Client {
    stream: Stream,
    arrived: BytesMut,
}

/// Returns connections to a node that this thread serves.
fn connect(count: usize) -> Vec<Client> {
    let clock = Arc::new(ManualClock::default());
    let options = door_testing::journal_options(1);
    let disk = Arc::new(SimulatedDisk::new(7));
    let (journal, _) = Journal::open(disk, &options, || 0).unwrap();
    let storage = StorageParts::new(Arc::new(journal));
    let ports = door_testing::ports(clock, 1 << 32);
    let node = Node::open(Parts::with_storage(ports, storage)).unwrap();
    let topics = node.topics().unwrap();
    let gate = Arc::new(door::Open);
    let door = Door::new(node, topics, gate, Arc::new(NoUsers), Options::default());
    let connect = |_| {
        let (near, stream) = net::inproc::pair("test");
        let (door, local) = (door.clone(), "127.0.0.1:9092".parse().unwrap());
        tokio::spawn(async move { door.serve(Arrived { stream, local }).await });
        Client {
            stream: near,
            arrived: BytesMut::new(),
        }
    };
    (0..count).map(connect).collect()
}

fn encoded<R: RequestBody>(version: i16, request: &R) -> Vec<u8> {
    let mut bytes = Vec::new();
    kafka::encode_request(&mut bytes, version, 1, Some("test"), request).unwrap();
    bytes
}

impl Client {
    fn send(&self, request: &[u8]) {
        let sent = self.stream.sink.try_write(request);
        assert_eq!(sent.unwrap(), request.len());
    }

    /// Returns the frame of the next answer.
    async fn frame(&mut self) -> Bytes {
        let mut chunk = [0; 2_048];
        loop {
            if let Some(frame) = kafka::take_frame(&mut self.arrived, chunk.len()).unwrap() {
                return frame;
            }
            let read = poll_fn(|cx| self.stream.source.poll_read(cx, &mut chunk));
            let count = read.await.unwrap();
            self.arrived.extend_from_slice(&chunk[..count]);
        }
    }
}

fn create_topic() -> create_topics::Request {
    let topic = create_topics::Topic {
        name: "t".to_owned(),
        num_partitions: 1,
        replication_factor: 1,
        ..create_topics::Topic::default()
    };
    create_topics::Request {
        topics: vec![topic],
        ..create_topics::Request::default()
    }
}

fn produce() -> produce::Request {
    let mut builder = Builder::new();
    builder.push(1_700_000_000_000, Some(b"key"), Some(&[7; 256]), &[]);
    let mut batch = Vec::new();
    builder.finish(&Template::default(), &mut batch);
    produce::Request {
        acks: -1,
        timeout_ms: 30_000,
        topic_data: vec![produce::Topic {
            name: "t".to_owned(),
            partition_data: vec![produce::Partition {
                index: 0,
                records: Some(Bytes::from(batch).into()),
            }],
            ..produce::Topic::default()
        }],
        ..produce::Request::default()
    }
}

/// Returns the allocations of a request when so many connections each send one in a pass.
async fn allocations_of_a_request(connections: usize) -> u64 {
    let mut clients = connect(connections);
    clients[0].send(&encoded(7, &create_topic()));
    clients[0].frame().await;
    let request = encoded(9, &produce());
    let mut sum = 0;
    for number in 0..2 * ROUNDS {
        let mut frames = Vec::with_capacity(connections);
        let before = allocated();
        clients.iter().for_each(|client| client.send(&request));
        for client in &mut clients {
            frames.push(client.frame().await);
        }
        if number >= ROUNDS {
            sum += allocated() - before;
        }
        for frame in frames {
            let (_, response) = kafka::decode_response::<produce::Request>(&frame, 9).unwrap();
            let partition = &response.responses[0].partition_responses[0];
            assert_eq!(partition.error_code, ErrorCode::None);
        }
    }
    sum / (ROUNDS * connections as u64)
}

#[tokio::test]
async fn a_produce_request_of_one_record_allocates_little() {
    let one = allocations_of_a_request(1).await;
    // As on the threads of a node.
    tokio::spawn(PassEnd::new());
    let of_many = allocations_of_a_request(20).await;
    println!("allocations of a produce request: {one}, of 20 in a pass: {of_many} each");
    assert!(one <= ALLOCATIONS_MAX, "{one}");
    assert!(of_many <= ALLOCATIONS_IN_PASS_MAX, "{of_many}");
}
