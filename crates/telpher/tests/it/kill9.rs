//! A node that is killed repeatedly under load: everything that it acknowledged is stored once, in
//! order and at its offset, and data that was read once stays.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use client::{CallError, Client, ErrorCode, Name, RecordStream, Sent};
use parking_lot::Mutex;
use rustix::process::Signal;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::support::{Node, Place};

const KILLS: usize = 20;

/// Number of writers. Half of them append to a stream, half write to a mailbox, each to its own.
const WRITERS: usize = 8;

/// Maximum number of acknowledgements between a start and a kill.
const ACKS: Range<usize> = 1..250;

/// Maximum number of records in an append.
const BATCH_MAX: u64 = 3;

/// Number of messages per read.
const PAGE: u64 = 200;

/// The target of a writer.
#[derive(Clone, Copy, Debug)]
enum WriteTarget {
    Stream,
    Mailbox,
}

/// The state of a writer.
#[derive(Debug)]
struct Writer {
    id: usize,
    kind: WriteTarget,
    /// The next number; every number is used once.
    next: u64,
    /// The numbers that must be stored, by offset.
    kept: BTreeMap<u64, u64>,
    /// The open append when the node was killed: it is stored as a whole or not at all.
    unconfirmed: Range<u64>,
    /// The numbers that must not be stored.
    refused: BTreeSet<u64>,
}

/// Counts of violations.
#[derive(Debug, Default, PartialEq, Eq)]
struct Violations {
    lost: usize,
    duplicated: usize,
    reordered: usize,
    reused: usize,
    /// Appends of which only a part is stored.
    torn: usize,
    /// Records that were never written or must not be stored.
    foreign: usize,
}

impl Writer {
    fn new(id: usize) -> Self {
        Self {
            id,
            kind: [WriteTarget::Stream, WriteTarget::Mailbox][id % 2],
            next: 0,
            kept: BTreeMap::new(),
            unconfirmed: 0..0,
            refused: BTreeSet::new(),
        }
    }

    fn name(&self) -> Name {
        Name::parse(&format!("acme/kill/w{}", self.id)).unwrap()
    }

    /// Returns a body with the writer and the number, of varying size, so that segments fill.
    fn body(&self, number: u64) -> String {
        let padding = "x".repeat((number * 37 % 1500) as usize);
        format!("{} {number} {padding}", self.id)
    }

    /// Returns the number of a body of this writer.
    fn number(&self, body: &str) -> Option<u64> {
        let number = body.split(' ').nth(1)?.parse().ok()?;
        (number < self.next && body == self.body(number)).then_some(number)
    }

    /// Returns the id of a write, which is the same for every attempt.
    fn write_id(&self, number: u64) -> [u8; 16] {
        let id = [self.id as u64, number].map(u64::to_le_bytes).concat();
        id.try_into().unwrap()
    }

    /// Returns the numbers of the next append, which is now open.
    fn begin(&mut self) -> Range<u64> {
        let count = match self.kind {
            WriteTarget::Stream => fastrand::u64(1..=BATCH_MAX),
            WriteTarget::Mailbox => 1,
        };
        self.unconfirmed = self.next..self.next + count;
        self.next += count;
        self.unconfirmed.clone()
    }

    /// Notes that the open append is on disk, with its first offset.
    fn acked(&mut self, first: u64, found: &mut Violations) {
        for (offset, number) in (first..).zip(self.unconfirmed.clone()) {
            let before = self.kept.insert(offset, number);
            found.reused += usize::from(before.is_some_and(|before| before != number));
        }
        self.unconfirmed = 0..0;
    }

    /// Compares the stored records, in the order of the read, with the expected ones. From now on
    /// all of them must be stored.
    fn check_stored(&mut self, there: &[(u64, String)], found: &mut Violations) {
        let mut seen = BTreeMap::new();
        let mut last = None;
        for (offset, body) in there {
            let number = self.number(body);
            let Some(number) = number.filter(|number| !self.refused.contains(number)) else {
                found.foreign += 1;
                continue;
            };
            if seen.insert(number, *offset).is_some() {
                found.duplicated += 1;
            } else if last > Some(number) {
                found.reordered += 1;
            }
            last = last.max(Some(number));
            let kept = *self.kept.entry(*offset).or_insert(number);
            found.reused += usize::from(kept != number);
        }
        let is_lost = |number: &&u64| !seen.contains_key(number);
        found.lost += self.kept.values().filter(is_lost).count();
        let parts = self
            .unconfirmed
            .clone()
            .filter(|number| seen.contains_key(number));
        found.torn += usize::from(![0, self.unconfirmed.clone().count()].contains(&parts.count()));
    }
}

type Shared = Arc<Mutex<Writer>>;

#[test]
fn acked_writes_survive_twenty_kills() {
    let place = Place::new();
    let writers: Vec<Shared> = (0..WRITERS)
        .map(|id| Arc::new(Mutex::new(Writer::new(id))))
        .collect();
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build().unwrap();
    for kill in 0..KILLS {
        let node = place.serve("--data data");
        runtime.block_on(async {
            check(&node, &writers, kill).await;
            write_until_killed(node, &writers).await;
        });
    }
    let node = place.serve("--data data");
    runtime.block_on(check(&node, &writers, KILLS));
    node.stop().expect(0);
    let kept: usize = writers.iter().map(|writer| writer.lock().kept.len()).sum();
    eprintln!("{KILLS} kills, {kept} records and messages");
    assert!(kept > KILLS, "little was written");
    let inspected = place.run("inspect data --json").expect(0).json();
    assert_eq!(inspected["whole"], true, "{inspected:#}");
}

#[test]
fn every_violation_is_counted() {
    let judged = |there: &[(u64, u64)]| {
        let mut writer = Writer::new(0);
        (writer.next, writer.unconfirmed) = (6, 2..4);
        writer.kept = BTreeMap::from([(0, 0), (1, 1)]);
        writer.refused = BTreeSet::from([5]);
        let there: Vec<_> = there
            .iter()
            .map(|&(offset, number)| (offset, writer.body(number)))
            .collect();
        let mut found = Violations::default();
        writer.check_stored(&there, &mut found);
        found
    };
    let none = Violations::default;
    assert_eq!(judged(&[(0, 0), (1, 1)]), none());
    assert_eq!(judged(&[(0, 0), (1, 1), (2, 2), (3, 3)]), none());
    assert_eq!(judged(&[(0, 0)]), Violations { lost: 1, ..none() });
    let twice = judged(&[(0, 0), (1, 1), (2, 1)]);
    assert_eq!(
        twice,
        Violations {
            duplicated: 1,
            ..none()
        }
    );
    let torn = judged(&[(0, 0), (1, 1), (2, 2)]);
    assert_eq!(torn, Violations { torn: 1, ..none() });
    let swapped = judged(&[(0, 1), (1, 0)]);
    let wanted = Violations {
        reordered: 1,
        reused: 2,
        ..none()
    };
    assert_eq!(swapped, wanted);
    for number in [5, 6] {
        let foreign = judged(&[(0, 0), (1, 1), (2, number)]);
        assert_eq!(
            foreign,
            Violations {
                foreign: 1,
                ..none()
            }
        );
    }
}

/// Repeats writes with unknown outcome, and reads everything back.
async fn check(node: &Node, writers: &[Shared], kills: usize) {
    let client = Client::connect(node.url("native")).await.unwrap();
    let mut found = Violations::default();
    for writer in writers {
        let (name, kind) = {
            let writer = writer.lock();
            (writer.name(), writer.kind)
        };
        let there = match kind {
            WriteTarget::Stream => records(&client.stream(name.as_str()).unwrap()).await,
            WriteTarget::Mailbox => messages(&client, &name).await,
        };
        writer.lock().check_stored(&there, &mut found);
        if let WriteTarget::Mailbox = kind {
            write_again(&client, writer, &there, &mut found).await;
        }
    }
    assert_eq!(found, Violations::default(), "after {kills} kills");
}

async fn write_again(
    client: &Client,
    writer: &Shared,
    there: &[(u64, String)],
    found: &mut Violations,
) {
    let (name, unconfirmed) = {
        let writer = writer.lock();
        (writer.name(), writer.unconfirmed.clone())
    };
    for number in unconfirmed {
        let (id, body) = {
            let writer = writer.lock();
            (writer.write_id(number), writer.body(number))
        };
        let is_there = there.iter().any(|(_, other)| *other == body);
        let written = client.write(&name, body).id(id).await.unwrap();
        assert_eq!(written.is_duplicate, is_there, "write {number} of {name}");
        writer.lock().acked(written.offset, found);
    }
}

async fn records(stream: &RecordStream) -> Vec<(u64, String)> {
    let mut all = Vec::new();
    loop {
        let read = stream.read(all.len() as u64).await.unwrap();
        if read.records.is_empty() {
            assert_eq!((read.start, read.next), (0, all.len() as u64));
            return all;
        }
        for record in read.records {
            assert_eq!(record.offset, all.len() as u64, "offsets are dense");
            let body = String::from_utf8(record.body.to_vec()).unwrap();
            all.push((record.offset, body));
        }
    }
}

async fn messages(client: &Client, name: &Name) -> Vec<(u64, String)> {
    let system = client.caller("telpher/system/node").unwrap();
    let mut all: Vec<(u64, String)> = Vec::new();
    loop {
        let from = all.last().map_or(0, |(offset, _)| offset + 1);
        let question = serde_json::json!({ "name": name.as_str(), "from": from, "limit": PAGE });
        let answer = match system.call("messages", question.to_string()).await {
            Ok(answer) => answer,
            // The mailbox has never been written to.
            Err(error) if error.code == ErrorCode::NotFound => return all,
            Err(error) => panic!("{error}"),
        };
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        let page = answer["messages"].as_array().unwrap();
        if page.is_empty() {
            return all;
        }
        all.extend(page.iter().map(|message| {
            let body = message["body"].as_str().unwrap_or_default();
            (message["offset"].as_u64().unwrap(), body.to_owned())
        }));
    }
}

/// Runs all writers, and kills the node at a random time.
async fn write_until_killed(node: Node, writers: &[Shared]) {
    let (acks, mut acked) = mpsc::unbounded_channel();
    let mut tasks = Vec::new();
    for writer in writers {
        let client = Client::connect(node.url("native")).await.unwrap();
        tasks.push(tokio::spawn(write(client, writer.clone(), acks.clone())));
    }
    drop(acks);
    for _ in 0..fastrand::usize(ACKS) {
        acked.recv().await.expect("a writer ended before the kill");
    }
    tokio::time::sleep(Duration::from_micros(fastrand::u64(..3_000))).await;
    // No writer starts another write, because the writers run on this thread.
    acked.close();
    node.signal(Signal::KILL);
    node.end();
    for task in tasks {
        task.await.unwrap();
    }
}

/// Writes until the receiver of counts is gone.
async fn write(client: Client, writer: Shared, acks: mpsc::UnboundedSender<()>) {
    let name = writer.lock().name();
    while !acks.is_closed() {
        let outcome = write_one(&client, &name, &writer).await;
        let mut writer = writer.lock();
        match outcome {
            Ok(first) => {
                let mut found = Violations::default();
                writer.acked(first, &mut found);
                assert_eq!(found, Violations::default(), "offset {first} of {name}");
                // The counting side may have killed the node already.
                let _ = acks.send(());
            }
            Err(error) => {
                assert!(acks.is_closed(), "not killed, and yet: {error}");
                if error.sent == Sent::No {
                    let refused = std::mem::take(&mut writer.unconfirmed);
                    writer.refused.extend(refused);
                }
                return;
            }
        }
    }
}

/// Returns the offset of a write.
async fn write_one(client: &Client, name: &Name, writer: &Shared) -> Result<u64, CallError> {
    let (kind, bodies, id) = {
        let mut writer = writer.lock();
        let numbers = writer.begin();
        let id = writer.write_id(numbers.start);
        let bodies: Vec<_> = numbers.map(|number| writer.body(number)).collect();
        (writer.kind, bodies, id)
    };
    match kind {
        WriteTarget::Stream => {
            let stream = client.stream(name.as_str()).unwrap();
            stream.append(&bodies).await.map(|appended| appended.first)
        }
        WriteTarget::Mailbox => {
            let write = client.write(name, &bodies[0]).id(id);
            write.await.map(|written| written.offset)
        }
    }
}
