use super::*;

mod joining;
mod leaving;
mod limits;
mod offsets;
mod properties;

mod restart;
mod script;
mod static_members;
mod syncing;
mod transactions;

use script::World;

/// Limits that are small enough to be reached.
pub(super) fn options() -> Options {
    Options {
        initial_rebalance_delay_ms: 0,
        new_member_timeout_ms: 300_000,
        offsets_retention_ms: 1_000_000,
        groups_max: 2,
        members_max: 3,
        protocols_max: 3,
        group_size_max: 1_000,
        offsets_max: 4,
        offset_metadata_size_max: 10,
        name_size_max: 64,
        ..Options::default()
    }
}

/// Runs a script against no groups and compares the transcript.
///
/// The member id `a#1` is the one that the client `a` got in the first join of the script. Words may
/// be followed by options: `group=g`, `gen=1`, `static=i`.
///
/// | line | does |
/// |---|---|
/// | `at TIME` | runs the timers until then, which becomes the time |
/// | `join CLIENT [as=ID] [static=I] [first] [skip] [session=MS] [rebalance=MS] [type=T] [with=P:META,…] [topics=T,…]` | |
/// | `sync ID [type=T] [protocol=P] [ID=ASSIGNMENT…]` · `beat ID` · `leave ID[/INSTANCE]…` | |
/// | `commit ID\|nobody [until=TIME] [note=TEXT] TOPIC/PARTITION=OFFSET…` | |
/// | `txn PRODUCER ID\|nobody TOPIC/PARTITION=OFFSET…` · `end PRODUCER committed\|aborted` | |
/// | `forget TOPIC/PARTITION…` · `drop TOPIC` · `delete` · `expire` | |
/// | `offsets` · `describe` · `list` · `kept` · `next` | shows |
/// | `restart` | restores all groups from the records, and checks [`Groups::records`] |
#[track_caller]
fn check(script: &str, expected: &str) {
    check_with(options(), script, expected);
}

#[track_caller]
fn check_with(options: Options, script: &str, expected: &str) {
    let mut world = World::new(options);
    for line in script.lines().map(str::trim).filter(|it| !it.is_empty()) {
        world.run(line);
    }
    let lines = |text: &str| -> Vec<String> {
        let lines = text.lines().map(str::trim).filter(|it| !it.is_empty());
        lines.map(str::to_owned).collect()
    };
    pretty(&lines(&world.out), &lines(expected));
}

#[track_caller]
fn pretty(got: &[String], expected: &[String]) {
    assert!(
        got == expected,
        "got:\n{}\n\nexpected:\n{}\n",
        got.join("\n"),
        expected.join("\n")
    );
}

/// Encodes and decodes a record, as a stream does.
pub(super) fn round_trip(record: &Record) -> Record {
    let mut bytes = Vec::new();
    record.encode(&mut bytes);
    let round_trip = Record::decode(record.tag(), &bytes).unwrap();
    assert_eq!(round_trip, *record);
    round_trip
}

pub(super) fn restored(options: &Options, log: &[Record], now_ms: u64) -> Groups {
    let mut restore = Restore::new(options.clone());
    for record in log {
        restore.record(round_trip(record));
    }
    restore.finish(now_ms)
}
