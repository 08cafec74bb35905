use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Poll;

use inspect::{Request, inspect};
use journal::disk::SimulatedDisk;
use journal::disk::simulated::{Fate, Unsynced};
use journal::manifest::{self, Manifest};
use journal::{Journal, Line, LineStep, Options, SteppedJournal};
use platform::NotDurable;

use super::*;
use crate::directory::load::load;
use crate::directory::table::Directory;
use crate::directory::{Location, NamedStream};

const SHARD_COUNT: u16 = 4;
const NAME_COUNT: u64 = 41;

/// A record of a directory of format 1.
struct OldRecord {
    kind: Kind,
    shard: ShardId,
    name: String,
}

fn old_records() -> Vec<OldRecord> {
    let record = |number: u64| match number {
        // A number that was found to be used.
        17 => OldRecord {
            kind: Kind::Void,
            shard: ShardId(2),
            name: String::new(),
        },
        _ => OldRecord {
            kind: [Kind::Raw, Kind::Mailbox, Kind::Conversation][number as usize % 3],
            // Shard 3 has no streams.
            shard: ShardId((number * 7 % 3) as u16),
            name: format!("acme/demo/{number}"),
        },
    };
    (1..=NAME_COUNT).map(record).collect()
}

/// Returns the streams of [`old_records`] by name.
fn old_names() -> BTreeMap<String, (Kind, Location)> {
    let numbered = (1..).zip(old_records());
    let named = numbered.filter(|(_, record)| record.kind != Kind::Void);
    let location = |(number, record): (u64, OldRecord)| {
        let (shard, stream) = (record.shard, StreamId(number));
        (record.name, (record.kind, Location { shard, stream }))
    };
    named.map(location).collect()
}

fn open(disk: &SimulatedDisk, entropy: u64) -> SteppedJournal {
    open_with(disk, entropy, Options::default())
}

fn open_with(disk: &SimulatedDisk, entropy: u64, options: Options) -> SteppedJournal {
    let options = Options {
        journal_id: 7,
        entropy,
        shard_count: SHARD_COUNT,
        segment_size: 64 << 10,
        reserve_size: 0,
        ..options
    };
    Journal::open_stepped(Arc::new(disk.clone()), &options).unwrap()
}

fn settle(line: &mut Line) {
    while !matches!(line.step(), LineStep::Idle | LineStep::Failed) {}
}

/// Returns the disk of a node of format 1: its directory, and a record in each stream.
fn disk_of_format_1() -> SimulatedDisk {
    let disk = SimulatedDisk::new(1);
    let mut stepped = open(&disk, 1);
    for (number, record) in (1..).zip(old_records()) {
        let mut bytes = record.shard.0.to_le_bytes().to_vec();
        bytes.extend_from_slice(record.name.as_bytes());
        let mut guard = stepped.journal.lock(SHARD_1, 1_000);
        guard
            .append(DIRECTORY, None, record.kind as u8, &bytes)
            .unwrap();
        drop(guard);
        let mut guard = stepped.journal.lock(record.shard, 1_000);
        guard
            .append(StreamId(number), None, 1, record.name.as_bytes())
            .unwrap();
        drop(guard);
        settle(&mut stepped.line);
    }
    drop(stepped);
    let mut manifest = Manifest::load(&disk).unwrap().unwrap();
    manifest.version = 1;
    manifest.prepare(&disk).unwrap();
    Manifest::commit(&disk).unwrap();
    disk
}

/// Opens the journal and upgrades it, stepping its line while the upgrade waits.
fn upgraded(disk: &SimulatedDisk, entropy: u64) -> (Journal, Result<Option<u64>, OpenError>) {
    upgrade_opened(open(disk, entropy))
}

fn upgrade_opened(opened: SteppedJournal) -> (Journal, Result<Option<u64>, OpenError>) {
    let SteppedJournal { journal, line, .. } = opened;
    let line = RefCell::new(line);
    let outcome = upgrade(&journal, 2_000, &|ticket| {
        loop {
            match NotDurable::result(journal.status(ticket)) {
                Poll::Ready(result) => return result,
                Poll::Pending => {
                    line.borrow_mut().step();
                }
            }
        }
    });
    (journal, outcome)
}

fn directory(journal: &Journal) -> Directory {
    let mut directory = Directory::new(SHARD_COUNT);
    for shard in shards(journal) {
        directory.replace(shard, load(journal, shard).unwrap());
    }
    directory
}

/// Checks that the directory has the streams of format 1, with their numbers, and that new ones get
/// others.
fn assert_upgraded(journal: &Journal, case: &str) {
    let directory = directory(journal);
    let old = old_names();
    assert_eq!(directory.len(), old.len(), "{case}");
    for (name, (kind, location)) in &old {
        assert_eq!(directory.find(*kind, name), Some(*location), "{case}");
        let named = directory.named(location.stream).unwrap();
        assert_eq!(named, (*kind, name.clone(), *location), "{case}");
    }
    for shard in shards(journal) {
        assert!(directory.next_number(shard).0 > NAME_COUNT, "{case}");
    }
}

#[test]
fn directory_of_format_1_is_carried_over_with_its_numbers() {
    let disk = disk_of_format_1();
    let (journal, outcome) = upgraded(&disk, 2);
    assert_eq!(outcome.unwrap(), Some(NAME_COUNT));
    assert_upgraded(&journal, "at once");
    let start = journal.stream(SHARD_1, DIRECTORY).unwrap().start;
    assert_eq!(start, NAME_COUNT, "the old records are trimmed");
    drop(journal);
    let manifest = Manifest::load(&disk).unwrap().unwrap();
    assert_eq!(manifest.version, manifest::VERSION);
    let (journal, outcome) = upgraded(&disk, 3);
    assert_eq!(outcome.unwrap(), None, "it is carried over once");
    assert_upgraded(&journal, "after a restart");
}

#[test]
fn journal_without_names_needs_no_upgrade() {
    let (journal, outcome) = upgraded(&SimulatedDisk::new(1), 1);
    assert_eq!(outcome.unwrap(), None);
    assert_eq!(directory(&journal).len(), 0);
}

#[test]
fn upgrade_waits_for_room_in_the_queue() {
    for queue_bytes_max in [200, 400, 1_000] {
        let disk = disk_of_format_1();
        let options = Options {
            queue_bytes_max,
            ..Options::default()
        };
        let (journal, outcome) = upgrade_opened(open_with(&disk, 2, options));
        assert_eq!(outcome.unwrap(), Some(NAME_COUNT));
        assert_upgraded(&journal, "small queue");
    }
}

#[test]
fn numbers_of_records_without_a_name_are_not_used_again() {
    let disk = disk_of_format_1();
    let SteppedJournal {
        journal, mut line, ..
    } = open(&disk, 2);
    let unnamed = [
        (1, NAME_COUNT + 9),
        (2, (NAME_COUNT + 5) | 1 << 63),
        (0, 1 << 62),
    ];
    for (shard, stream) in unnamed {
        let mut guard = journal.lock(ShardId(shard), 1_000);
        guard.append(StreamId(stream), None, 1, b"x").unwrap();
        drop(guard);
        settle(&mut line);
    }
    drop((journal, line));
    let (journal, outcome) = upgraded(&disk, 3);
    outcome.unwrap();
    let directory = directory(&journal);
    let next = shards(&journal).map(|it| directory.next_number(it).0);
    let highest = NAME_COUNT + 9;
    assert_eq!(next.min(), Some(highest + 1));
    assert!(directory.is_carried_over(StreamId(highest)));
}

#[test]
fn upgrade_is_completed_after_a_crash_at_any_disk_call() {
    let disk = disk_of_format_1();
    disk.record();
    let (_, outcome) = upgraded(&disk, 2);
    outcome.unwrap();
    let trace = disk.take_trace().unwrap();
    assert!(trace.len() > 10, "{} calls", trace.len());
    let mut completed = 0;
    for (count, before) in trace.prefixes().enumerate() {
        // A write of the blocks of several shards may retain the first ones only.
        let sectors = (0..=24).step_by(2);
        let others = [Fate::Lost, Fate::Kept, Fate::Torn(100)];
        for (sectors, other) in sectors.flat_map(|it| others.map(|other| (it, other))) {
            let case = format!("{sectors} sectors, others {other:?}, before call {count}");
            let disk = before.fork();
            let end = 8 + sectors;
            disk.crash_with(|unsynced| match unsynced {
                Unsynced::Sector { sector, .. } if *sector < end => Fate::Kept,
                Unsynced::Sector { sector, .. } if *sector == end => Fate::Torn(100),
                Unsynced::Sector { .. } => Fate::Lost,
                _ => other,
            });
            let (journal, outcome) = upgraded(&disk, 3);
            completed += usize::from(
                outcome
                    .unwrap_or_else(|it| panic!("{case}: {it}"))
                    .is_some(),
            );
            assert_upgraded(&journal, &case);
        }
    }
    assert!(completed > 0, "no crash interrupted the upgrade");
}

#[test]
fn failed_disk_fails_the_upgrade() {
    use journal::disk::simulated::{Fault, Kind as Call};
    let disk = disk_of_format_1();
    let SteppedJournal {
        journal, mut line, ..
    } = open(&disk, 2);
    settle(&mut line);
    disk.fail_always(Fault::Broken, |call| call.kind == Call::Write);
    let line = RefCell::new(line);
    let outcome = upgrade(&journal, 2_000, &|ticket| {
        line.borrow_mut().step();
        match NotDurable::result(journal.status(ticket)) {
            Poll::Ready(result) => result,
            Poll::Pending => Ok(()),
        }
    });
    assert!(
        matches!(outcome, Err(OpenError::Upgrade(NotDurable::Failed))),
        "{outcome:?}"
    );
}

/// Every step of the upgrade is a directory that `telpher inspect` and a backup can read.
#[test]
fn inspection_finds_the_same_names_before_and_after_the_upgrade() {
    let names = |disk: &SimulatedDisk| {
        let request = Request {
            stream: Some(DIRECTORY),
            progress: &mut |_, _| {},
        };
        let found = inspect(disk, request).unwrap();
        assert!(found.is_whole(), "{:?} {:?}", found.damage, found.missing);
        let decode = |((shard, offset), (tag, bytes)): (&(ShardId, u64), &(u8, Vec<u8>))| {
            let named = NamedStream::decode(*shard, *offset, *tag, bytes)?;
            Some((named.name, (named.shard, named.stream)))
        };
        let names: BTreeMap<_, _> = found.records.iter().filter_map(decode).collect();
        (found.format_version, names)
    };
    let disk = disk_of_format_1();
    let (version, old) = names(&disk);
    assert_eq!((version, old.len() as u64), (1, NAME_COUNT));
    disk.record();
    drop(upgraded(&disk, 2));
    for before in disk.take_trace().unwrap().prefixes() {
        before.crash_with(|_| Fate::Kept);
        assert_eq!(names(&before).1, old);
    }
    assert_eq!(names(&disk), (manifest::VERSION, old));
}
