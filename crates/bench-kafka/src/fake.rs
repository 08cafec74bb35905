//! In-memory broker of one topic, with faults that the benchmark must detect.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use bytes::BytesMut;
use kafka::{
    ErrorCode, Records, Request, api_versions, decode_request, encode_response, fetch,
    list_offsets, metadata, produce, take_frame,
};
use parking_lot::Mutex;
use recordbatch::{Batch, PatchedBatch};

/// Fault of the broker, applied to its third batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    None,
    /// Acknowledges a batch and drops it.
    Lose,
    /// Stores a batch twice.
    Double,
    /// Acknowledges a batch with a wrong offset.
    Misplace,
    /// Flips a bit of a batch.
    Damage,
    /// Acknowledges a batch with a negative offset.
    Negative,
    /// Rejects a batch.
    Refuse,
}

/// A running broker; a connection ends when its client closes it.
pub(super) struct FakeBroker {
    pub(super) address: String,
}

pub(super) const TOPIC: &str = "fake";

struct State {
    address: String,
    fault: Fault,
    batches: u32,
    /// Bytes of the batches and end offset, by partition.
    partitions: Vec<(Vec<u8>, i64)>,
}

impl FakeBroker {
    pub(super) fn start(partitions: usize, fault: Fault) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let state = State {
            address: address.clone(),
            fault,
            batches: 0,
            partitions: vec![(Vec::new(), 0); partitions],
        };
        let state = Arc::new(Mutex::new(state));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let state = state.clone();
                thread::spawn(move || serve(stream, &state));
            }
        });
        Self { address }
    }
}

fn serve(mut stream: TcpStream, state: &Mutex<State>) {
    let mut arrived = BytesMut::new();
    let mut chunk = [0; 16 << 10];
    while let Ok(size @ 1..) = stream.read(&mut chunk) {
        arrived.extend_from_slice(&chunk[..size]);
        let mut out = Vec::new();
        while let Some(frame) = take_frame(&mut arrived, 1 << 20).unwrap() {
            let (header, request) = decode_request(&frame).unwrap();
            let (version, id) = (header.version, header.correlation_id);
            state.lock().answer(&mut out, version, id, request);
        }
        if stream.write_all(&out).is_err() {
            return;
        }
    }
}

impl State {
    fn answer(&mut self, out: &mut Vec<u8>, version: i16, id: i32, request: Request) {
        match request {
            Request::ApiVersions(_) => {
                encode_response(out, version, id, &api_versions::Response::of_table()).unwrap();
            }
            Request::Metadata(_) => encode_response(out, version, id, &self.metadata()).unwrap(),
            Request::ListOffsets(asked) => {
                encode_response(out, version, id, &self.offsets(&asked)).unwrap();
            }
            Request::Produce(asked) => {
                let is_answered = asked.acks != 0;
                let answer = self.produce(asked);
                if is_answered {
                    encode_response(out, version, id, &answer).unwrap();
                }
            }
            Request::Fetch(asked) => {
                encode_response(out, version, id, &self.fetch(&asked)).unwrap();
            }
            other => panic!("{other:?} is not served"),
        }
    }

    fn metadata(&self) -> metadata::Response {
        let (host, port) = self.address.split_once(':').unwrap();
        let partition = |partition_index| metadata::Partition {
            partition_index,
            leader_id: 1,
            ..metadata::Partition::default()
        };
        metadata::Response {
            brokers: vec![metadata::Broker {
                node_id: 1,
                host: host.to_owned(),
                port: port.parse().unwrap(),
                rack: None,
            }],
            topics: vec![metadata::Topic {
                name: Some(TOPIC.to_owned()),
                partitions: (0..self.partitions.len() as i32).map(partition).collect(),
                ..metadata::Topic::default()
            }],
            ..metadata::Response::default()
        }
    }

    fn offsets(&self, asked: &list_offsets::Request) -> list_offsets::Response {
        let answer = |one: &list_offsets::Partition| list_offsets::PartitionResponse {
            partition_index: one.partition_index,
            offset: match one.timestamp {
                -1 => self.partitions[one.partition_index as usize].1,
                _ => 0,
            },
            ..list_offsets::PartitionResponse::default()
        };
        list_offsets::Response {
            topics: vec![list_offsets::TopicResponse {
                name: TOPIC.to_owned(),
                partitions: asked.topics[0].partitions.iter().map(answer).collect(),
            }],
            ..list_offsets::Response::default()
        }
    }

    fn produce(&mut self, asked: produce::Request) -> produce::Response {
        let mut answers = Vec::new();
        // In an order of its own: the client must not rely on it.
        for one in asked
            .topic_data
            .into_iter()
            .flat_map(|topic| topic.partition_data)
            .rev()
        {
            let bytes = one.records.unwrap().into_bytes().to_vec();
            self.batches += 1;
            let fault = match self.batches {
                3 => self.fault,
                _ => Fault::None,
            };
            let kept = self.keep(one.index as usize, bytes.clone(), fault);
            if fault == Fault::Double {
                self.keep(one.index as usize, bytes, Fault::None);
            }
            answers.push(produce::PartitionResponse {
                index: one.index,
                error_code: match fault {
                    Fault::Refuse => ErrorCode::NotLeaderOrFollower,
                    _ => ErrorCode::None,
                },
                base_offset: match fault {
                    Fault::Negative => -1,
                    Fault::Misplace => kept + 1_000_000,
                    _ => kept,
                },
                ..produce::PartitionResponse::default()
            });
        }
        produce::Response {
            responses: vec![produce::TopicResponse {
                name: TOPIC.to_owned(),
                partition_responses: answers,
                ..produce::TopicResponse::default()
            }],
            ..produce::Response::default()
        }
    }

    fn keep(&mut self, partition: usize, bytes: Vec<u8>, fault: Fault) -> i64 {
        let (log, end) = &mut self.partitions[partition];
        let base = *end;
        if matches!(fault, Fault::Lose | Fault::Refuse) {
            return base;
        }
        let (produced, _) = Batch::split(&bytes).unwrap();
        let count = produced.header().count;
        let mut placed = PatchedBatch::new(&produced);
        placed.place(base, 0);
        let mut bytes = placed.to_vec();
        if fault == Fault::Damage {
            *bytes.last_mut().unwrap() ^= 1;
        }
        log.extend_from_slice(&bytes);
        *end += i64::from(count);
        base
    }

    fn fetch(&self, asked: &fetch::Request) -> fetch::Response {
        let answer = |one: &fetch::Partition| {
            let (log, end) = &self.partitions[one.partition as usize];
            let is_before = |batch: &Batch<'_>| batch.header().last_offset() < one.fetch_offset;
            let all = recordbatch::Batches::new(log).map(Result::unwrap);
            let from: usize = all
                .take_while(is_before)
                .map(|batch| batch.bytes().len())
                .sum();
            let size = (log.len() - from).min(one.partition_max_bytes as usize);
            let records = bytes::Bytes::copy_from_slice(&log[from..from + size]);
            fetch::PartitionResponse {
                partition_index: one.partition,
                high_watermark: *end,
                records: Some(Records::from(records)),
                ..fetch::PartitionResponse::default()
            }
        };
        fetch::Response {
            responses: vec![fetch::TopicResponse {
                topic: TOPIC.to_owned(),
                partitions: asked.topics[0].partitions.iter().map(answer).collect(),
                ..fetch::TopicResponse::default()
            }],
            ..fetch::Response::default()
        }
    }
}
