use std::fmt::Write as _;

use super::*;
use crate::CompactionPolicy;
use crate::record::Snapshot;

mod producers;
mod properties;
mod reading;
mod retention;
mod transactions;

const LIMITS: Limits = Limits {
    producers_max: 8,
    blocks_max: 8,
    block_bytes: 100,
};

/// The size of every batch.
const SIZE: u32 = 50;

/// A record in the stream of a script.
#[derive(Clone, Copy, Debug)]
enum StreamRecord {
    Batch(BatchPosition, Batch),
    Marker(BatchPosition, Marker),
    Change(Change),
}

/// A partition and its stream.
struct World {
    partition: Partition,
    log: Vec<StreamRecord>,
    /// The newest snapshot, and how much of the log it includes.
    snapshot: Option<(Vec<u8>, usize)>,
    now_ms: i64,
    records: u64,
}

impl World {
    fn new(limits: Limits) -> Self {
        Self {
            partition: Partition::new(limits),
            log: Vec::new(),
            snapshot: None,
            now_ms: 0,
            records: 0,
        }
    }

    fn place(&mut self, offset: u64) -> BatchPosition {
        let record = self.records;
        self.records += 1;
        BatchPosition {
            offset,
            record,
            now_ms: self.now_ms,
        }
    }

    fn write(&mut self, batch: Batch) -> Result<Decision, Refusal> {
        let decision = self.partition.decide(&batch)?;
        if let Decision::Append { offset } = decision {
            let place = self.place(offset);
            self.partition.appended(place, &batch);
            self.log.push(StreamRecord::Batch(place, batch));
        }
        Ok(decision)
    }

    fn mark(&mut self, marker: Marker) -> Result<u64, Refusal> {
        let offset = self.partition.decide_marker(&marker)?;
        let place = self.place(offset);
        self.partition.marked(place, &marker);
        self.log.push(StreamRecord::Marker(place, marker));
        Ok(offset)
    }

    fn change(&mut self, change: Change) {
        let mut bytes = Vec::new();
        change.encode(&mut bytes);
        let change = Change::decode(&bytes).expect("what was written is read");
        self.partition.apply(change);
        self.log.push(StreamRecord::Change(change));
    }

    fn sync(&mut self) {
        self.partition.durable(self.partition.end());
    }

    fn keep_snapshot(&mut self) {
        self.sync();
        let mut bytes = Vec::new();
        self.partition.encode(self.records, &mut bytes);
        self.snapshot = Some((bytes, self.log.len()));
    }

    /// Restores a partition from the stream; it must be equal.
    fn restart(&mut self) {
        self.sync();
        let before = self.partition.clone();
        self.rebuild();
        assert_eq!(self.partition, before);
    }

    /// Restores a partition from the stream, with everything durable.
    fn rebuild(&mut self) {
        let limits = self.partition.limits;
        let (mut partition, known) = match &self.snapshot {
            None => (Partition::new(limits), 0),
            Some((bytes, known)) => {
                let read = Partition::decode(bytes, limits).expect("what was written is read");
                let Snapshot { records, partition } = read;
                let mut again = Vec::new();
                partition.encode(records, &mut again);
                assert_eq!(&again, bytes);
                (partition, *known)
            }
        };
        for kept in &self.log[known..] {
            match kept {
                StreamRecord::Batch(place, batch) => partition.appended(*place, batch),
                StreamRecord::Marker(place, marker) => partition.marked(*place, marker),
                StreamRecord::Change(change) => partition.apply(*change),
            }
        }
        partition.durable(partition.end());
        self.partition = partition;
    }
}

/// Runs a script against an empty partition and compares the transcript.
///
/// | line | does |
/// |---|---|
/// | `batch COUNT [MAX [BASE]]` | records without a producer, with that highest timestamp and that
/// base |
/// | `send PRODUCER EPOCH SEQUENCE COUNT` | records of a producer |
/// | `txn PRODUCER EPOCH SEQUENCE COUNT` | the same in a transaction |
/// | `commit PRODUCER EPOCH [COORDINATOR]` · `abort …` | ends it |
/// | `durable END` · `sync` | what is on disk |
/// | `reveal END` | what readers may see before it is |
/// | `delete OFFSET` · `delete all` · `leader EPOCH` · `clean OFFSET` | changes |
/// | `at TIME` · `notice` · `expire SILENT` | the time from now on; takes note of it; forgets producers |
/// | `retain MS BYTES [FRESH]` | what retention decides, `-` for no limit |
/// | `find WHAT [committed]` · `seek OFFSET` · `aborted FROM END` · `epoch EPOCH` | questions |
/// | `compact [LAG_MIN LAG_MAX SEGMENT]` | what is to be compacted, with these times of the policy |
/// | `show` · `producers` | the marks; who is known |
/// | `snapshot` · `restart` | |
#[track_caller]
fn check(script: &str, expected: &str) {
    let mut world = World::new(LIMITS);
    let mut out = String::new();
    for line in script.lines().map(str::trim).filter(|it| !it.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let answer = run(&mut world, &words);
        if !answer.is_empty() {
            writeln!(out, "{line}: {answer}").unwrap();
        }
    }
    let expected: Vec<_> = expected.lines().map(str::trim).collect();
    let expected = expected.join("\n");
    assert_eq!(out.trim(), expected.trim());
}

fn run(world: &mut World, words: &[&str]) -> String {
    let number = |at: usize| words.get(at).map(|it| it.parse::<i64>().expect("a number"));
    let offset = |at: usize| number(at).map(|it| it as u64);
    match words[0] {
        "batch" => {
            let batch = Batch {
                offsets: number(1).expect("a count") as u32,
                size: SIZE,
                timestamp_max: number(2).unwrap_or(world.now_ms),
                timestamp_base: number(3).or(number(2)).unwrap_or(world.now_ms),
                producer: None,
                is_transactional: false,
            };
            decided(world.write(batch))
        }
        "send" | "txn" => {
            let producer = Sequenced {
                id: ProducerId(number(1).expect("a producer")),
                epoch: number(2).expect("an epoch") as i16,
                sequence: number(3).expect("a sequence") as i32,
            };
            let batch = Batch {
                offsets: number(4).expect("a count") as u32,
                size: SIZE,
                timestamp_max: world.now_ms,
                timestamp_base: world.now_ms,
                producer: Some(producer),
                is_transactional: words[0] == "txn",
            };
            decided(world.write(batch))
        }
        "commit" | "abort" => {
            let marker = Marker {
                id: ProducerId(number(1).expect("a producer")),
                epoch: number(2).expect("an epoch") as i16,
                ending: match words[0] {
                    "commit" => Ending::Commit,
                    _ => Ending::Abort,
                },
                coordinator_epoch: number(3).unwrap_or(0) as i32,
                size: SIZE,
                timestamp: world.now_ms,
            };
            match world.mark(marker) {
                Ok(offset) => offset.to_string(),
                Err(refusal) => refusal.to_string(),
            }
        }
        "durable" => {
            world.partition.durable(offset(1).expect("an end"));
            String::new()
        }
        "reveal" => {
            world.partition.show(offset(1).expect("an end"));
            String::new()
        }
        "sync" => {
            world.sync();
            String::new()
        }
        "at" => {
            world.now_ms = number(1).expect("a time");
            String::new()
        }
        "expire" => {
            let silent_ms = number(1).expect("a time");
            world.partition.expire(world.now_ms, silent_ms);
            String::new()
        }
        "notice" => {
            world.partition.notice_time(world.now_ms);
            String::new()
        }
        "snapshot" => {
            world.keep_snapshot();
            String::new()
        }
        "restart" => {
            world.restart();
            String::new()
        }
        _ => run_change_or_query(world, words),
    }
}

/// Runs the commands for changes and queries.
fn run_change_or_query(world: &mut World, words: &[&str]) -> String {
    let number = |at: usize| words.get(at).and_then(|it| it.parse::<i64>().ok());
    let offset = |at: usize| number(at).expect("an offset") as u64;
    let partition = &world.partition;
    match words[0] {
        "delete" => match partition.decide_delete(number(1).map(|it| it as u64)) {
            Ok(change) => changed(world, change),
            Err(error) => error.to_string(),
        },
        "retain" => {
            let retention = Retention {
                ms: number(1),
                bytes: number(2).map(|it| it as u64),
                fresh_ms: number(3).unwrap_or(0),
            };
            let change = partition.decide_retention(retention, world.now_ms);
            changed(world, change)
        }
        "leader" => {
            let (epoch, start) = (offset(1) as i32, partition.end());
            world.change(Change::Leader { epoch, start });
            String::new()
        }
        "clean" => {
            world.change(Change::Cleaned(offset(1)));
            String::new()
        }
        "find" => {
            let isolation = match words.last() {
                Some(&"committed") => Isolation::Committed,
                _ => Isolation::Uncommitted,
            };
            let what = match words[1] {
                "earliest" => Find::Earliest,
                "latest" => Find::Latest,
                "max" => Find::MaxTimestamp,
                time => Find::Time(time.parse().expect("a time")),
            };
            format!("{:?}", partition.find(what, isolation))
        }
        "seek" => match partition.seek(offset(1)) {
            Ok(record) => format!("from batch {record}"),
            Err(error) => error.to_string(),
        },
        "aborted" => {
            let all = partition.aborted(offset(1), offset(2));
            let all: Vec<_> = all.map(|(id, first)| (id.0, first)).collect();
            format!("{all:?}")
        }
        "epoch" => format!("{:?}", partition.end_of_epoch(offset(1) as i32)),
        "compact" => {
            let policy = CompactionPolicy {
                dirty_ratio_min: 0.5,
                lag_ms_min: number(1).unwrap_or(0),
                lag_ms_max: number(2).unwrap_or(i64::MAX),
                segment_ms: number(3).unwrap_or(i64::MAX),
            };
            let decided = partition.decide_compaction(&policy, world.now_ms);
            format!("{:?}", decided.map(|(range, _)| range))
        }
        "show" => format!(
            "{} {} {} {}, {} bytes",
            partition.log_start(),
            partition.last_stable(),
            partition.high_watermark(),
            partition.end(),
            partition.size(),
        ),
        "producers" => {
            let mut all: Vec<_> = partition.producers().collect();
            all.sort_unstable_by_key(|it| it.id);
            let one = |it: &ProducerView| {
                let start = it.transaction_start.map(|it| format!(" since {it}"));
                let (id, start) = (it.id.0, start.unwrap_or_default());
                format!("{id} at {}.{}{start}", it.epoch, it.last_sequence)
            };
            all.iter().map(one).collect::<Vec<_>>().join(", ")
        }
        other => panic!("{other} is no command"),
    }
}

fn decided(decision: Result<Decision, Refusal>) -> String {
    match decision {
        Ok(Decision::Append { offset }) => offset.to_string(),
        Ok(Decision::Duplicate { offset, end, .. }) => format!("{offset} once {end} is durable"),
        Err(refusal) => refusal.to_string(),
    }
}

fn changed(world: &mut World, change: Option<Change>) -> String {
    let Some(change) = change else {
        return "nothing".to_owned();
    };
    world.change(change);
    format!("{change:?}")
}
