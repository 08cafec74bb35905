//! A copier that reads from one topic, writes to another and commits its offsets in transactions,
//! while copier and node are killed: nothing is lost or duplicated. The result is read by kcat.

use std::io::ErrorKind;
use std::time::Duration;

use kafka::{ErrorCode, Records, RequestBody};
use recordbatch::{Attributes, Batch, Builder, Producer, Template};
use rustix::process::Signal;

use super::client::{Client, good};
use super::kcat;
use crate::support::{Node, Place};

const INPUT: &str = "input";
const OUTPUT: &str = "output";
const GROUP: &str = "copiers";
const COPIER: &str = "copier";

/// Number of copied records, and bytes per read.
const RECORDS: usize = 240;
const AT_ONCE: i32 = 150;

/// Number and interval of retries until the transaction of the previous copier has ended, as in
/// Kafka's clients.
const TRIES: usize = 1_000;
const BACKOFF: Duration = Duration::from_millis(10);

/// The event at a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Nothing.
    Spared,
    /// The copier is killed before it gets the answer.
    CopierKilled,
    /// The node is killed.
    NodeKilled,
}

/// A node that is killed at random, and its copiers.
struct World<'p> {
    place: &'p Place,
    node: Option<Node>,
    random: fastrand::Rng,
    kills: [usize; 2],
}

impl World<'_> {
    fn node(&self) -> &Node {
        self.node.as_ref().unwrap()
    }

    /// Chooses the event of a step; one in sixteen is a kill of the copier or of the node.
    fn fate(&mut self) -> Fate {
        match self.random.u32(0..32) {
            0 => Fate::NodeKilled,
            1 => Fate::CopierKilled,
            _ => Fate::Spared,
        }
    }

    fn kill_node(&mut self) {
        let node = self.node.take().unwrap();
        node.signal(Signal::KILL);
        node.end();
        self.node = Some(self.place.serve(""));
    }

    /// Sends a request; the event of the step happens between the request and its answer.
    fn ask<R: RequestBody>(
        &mut self,
        client: &mut Client,
        version: i16,
        request: &R,
    ) -> std::io::Result<R::Response> {
        client.send(version, request)?;
        match self.fate() {
            Fate::Spared => client.receive::<R>(version),
            Fate::CopierKilled => {
                self.kills[0] += 1;
                Err(ErrorKind::Interrupted.into())
            }
            Fate::NodeKilled => {
                self.kills[1] += 1;
                self.kill_node();
                Err(ErrorKind::Interrupted.into())
            }
        }
    }
}

/// Starts a copier with its transactional id, and ends the transaction of the previous copier.
struct Copier {
    client: Client,
    producer_id: i64,
    epoch: i16,
    sequence: i32,
}

impl Copier {
    fn begin(world: &World<'_>) -> std::io::Result<Self> {
        use kafka::init_producer_id::Request;
        let mut client = Client::connect(world.node())?;
        let request = Request {
            transactional_id: Some(COPIER.to_owned()),
            transaction_timeout_ms: 60_000,
            ..Request::default()
        };
        // The transaction of the previous copier ends first.
        let mut tries = 0;
        let response = loop {
            client.send(4, &request)?;
            let response = client.receive::<Request>(4)?;
            match response.error_code {
                ErrorCode::ConcurrentTransactions if tries < TRIES => tries += 1,
                code => break good(code).map(|()| response)?,
            }
            std::thread::sleep(BACKOFF);
        };
        Ok(Self {
            client,
            producer_id: response.producer_id,
            epoch: response.producer_epoch,
            sequence: 0,
        })
    }

    /// Returns the committed offset of the previous copiers.
    fn position(&mut self, world: &mut World<'_>) -> std::io::Result<i64> {
        use kafka::offset_fetch::{Request, Topic};
        let topic = Topic {
            name: INPUT.to_owned(),
            partition_indexes: vec![0],
        };
        let request = Request {
            group_id: GROUP.to_owned(),
            topics: Some(vec![topic]),
            require_stable: true,
            ..Request::default()
        };
        let response = world.ask(&mut self.client, 7, &request)?;
        good(response.error_code)?;
        let partition = &response.topics[0].partitions[0];
        good(partition.error_code)?;
        Ok(partition.committed_offset.max(0))
    }

    /// Reads some values from an offset on; returns them and the offset after them.
    fn read(&mut self, world: &mut World<'_>, from: i64) -> std::io::Result<(Vec<Vec<u8>>, i64)> {
        use kafka::fetch::{Partition, Request, Topic};
        let partition = Partition {
            fetch_offset: from,
            partition_max_bytes: AT_ONCE,
            ..Partition::default()
        };
        let request = Request {
            isolation_level: 1,
            topics: vec![Topic {
                topic: INPUT.to_owned(),
                partitions: vec![partition],
                ..Topic::default()
            }],
            ..Request::default()
        };
        let response = world.ask(&mut self.client, 12, &request)?;
        let partition = &response.responses[0].partitions[0];
        good(partition.error_code)?;
        let bytes = partition.records.clone().map(Records::into_bytes);
        let bytes = bytes.unwrap_or_default();
        let (mut rest, mut values, mut end) = (&bytes[..], Vec::new(), from);
        while !rest.is_empty() {
            let (batch, behind) = Batch::split(rest).unwrap();
            for record in batch.records().unwrap() {
                let record = record.unwrap();
                if record.offset >= from {
                    values.push(record.value.unwrap().to_vec());
                    end = record.offset + 1;
                }
            }
            rest = behind;
        }
        Ok((values, end))
    }

    /// Writes the values and commits the offset in one transaction.
    fn write(
        &mut self,
        world: &mut World<'_>,
        values: &[Vec<u8>],
        end: i64,
    ) -> std::io::Result<()> {
        self.add_output(world)?;
        self.produce(world, values)?;
        self.commit_offset(world, end)?;
        use kafka::end_txn::Request;
        let request = Request {
            transactional_id: COPIER.to_owned(),
            producer_id: self.producer_id,
            producer_epoch: self.epoch,
            committed: true,
        };
        good(world.ask(&mut self.client, 3, &request)?.error_code)
    }

    fn add_output(&mut self, world: &mut World<'_>) -> std::io::Result<()> {
        use kafka::add_partitions_to_txn::{Request, Topic};
        let request = Request {
            v3_and_below_transactional_id: COPIER.to_owned(),
            v3_and_below_producer_id: self.producer_id,
            v3_and_below_producer_epoch: self.epoch,
            v3_and_below_topics: vec![Topic {
                name: OUTPUT.to_owned(),
                partitions: vec![0],
            }],
            ..Request::default()
        };
        let response = world.ask(&mut self.client, 3, &request)?;
        let topic = &response.results_by_topic_v3_and_below[0];
        good(topic.results_by_partition[0].partition_error_code)
    }

    fn produce(&mut self, world: &mut World<'_>, values: &[Vec<u8>]) -> std::io::Result<()> {
        use kafka::produce::{Partition, Request, Topic};
        let mut builder = Builder::new();
        for value in values {
            builder.push(1, None, Some(value), &[]);
        }
        let mut bytes = Vec::new();
        let template = Template {
            attributes: Attributes::default().transactional(),
            producer: Some(Producer {
                id: self.producer_id,
                epoch: self.epoch,
                sequence: self.sequence,
            }),
            ..Template::default()
        };
        builder.finish(&template, &mut bytes);
        self.sequence += values.len() as i32;
        let partition = Partition {
            index: 0,
            records: Some(bytes::Bytes::from(bytes).into()),
        };
        let request = Request {
            transactional_id: Some(COPIER.to_owned()),
            acks: -1,
            timeout_ms: 20_000,
            topic_data: vec![Topic {
                name: OUTPUT.to_owned(),
                partition_data: vec![partition],
                ..Topic::default()
            }],
        };
        let response = world.ask(&mut self.client, 9, &request)?;
        good(response.responses[0].partition_responses[0].error_code)
    }

    fn commit_offset(&mut self, world: &mut World<'_>, end: i64) -> std::io::Result<()> {
        use kafka::{add_offsets_to_txn, txn_offset_commit};
        let request = add_offsets_to_txn::Request {
            transactional_id: COPIER.to_owned(),
            producer_id: self.producer_id,
            producer_epoch: self.epoch,
            group_id: GROUP.to_owned(),
        };
        good(world.ask(&mut self.client, 3, &request)?.error_code)?;
        let partition = txn_offset_commit::Partition {
            partition_index: 0,
            committed_offset: end,
            ..txn_offset_commit::Partition::default()
        };
        let request = txn_offset_commit::Request {
            transactional_id: COPIER.to_owned(),
            group_id: GROUP.to_owned(),
            producer_id: self.producer_id,
            producer_epoch: self.epoch,
            topics: vec![txn_offset_commit::Topic {
                name: INPUT.to_owned(),
                partitions: vec![partition],
            }],
            ..txn_offset_commit::Request::default()
        };
        let response = world.ask(&mut self.client, 3, &request)?;
        good(response.topics[0].partitions[0].error_code)
    }
}

/// Copies until everything is copied or the copier is killed.
fn copy(world: &mut World<'_>) -> std::io::Result<()> {
    let mut copier = Copier::begin(world)?;
    let mut position = copier.position(world)?;
    while position < RECORDS as i64 {
        let (values, end) = copier.read(world, position)?;
        assert!(!values.is_empty(), "{position} is there");
        copier.write(world, &values, end)?;
        position = end;
    }
    Ok(())
}

#[test]
fn records_copied_in_transactions_are_exactly_once_across_kills() {
    let place = Place::new();
    let mut world = World {
        place: &place,
        node: Some(place.serve("--topics-partitions 1")),
        random: fastrand::Rng::with_seed(7),
        kills: [0, 0],
    };
    let input: String = (0..RECORDS).map(|it| format!("{it}\n")).collect();
    let words = format!("-P -t {INPUT} -X batch.num.messages=4");
    kcat(&place, world.node(), &words, &input).expect(0);
    kcat(&place, world.node(), &format!("-L -t {OUTPUT}"), "").expect(0);
    let mut rounds = 0;
    while let Err(error) = copy(&mut world) {
        rounds += 1;
        assert!(rounds < 500, "{error}, after {:?} kills", world.kills);
    }
    let [copiers, nodes] = world.kills;
    assert!(copiers >= 3 && nodes >= 3, "{:?}", world.kills);
    let words = format!("-C -t {OUTPUT} -o beginning -e -q -u -X isolation.level=read_committed");
    let ended = kcat(&place, world.node(), &words, "");
    assert_eq!(ended.expect(0).stdout, input);
    world.node.take().unwrap().stop().expect(0);
}
