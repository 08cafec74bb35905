//! Properties of random histories: the views do not depend on how they were built.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::crash::Disk;
use super::model::World;
use crate::catch_up::{BatchOutcome, CatchUp, WatchedScopes};
use crate::entry::ArchiveState;
use crate::file::{self, ViewsLocation, database};
use crate::scope::Scope;
use crate::source::Source;
use crate::tables::{Fact, Sync, Tables};

const PEOPLE: [&str; 4] = ["alice", "bob", "carol", ""];
const JOURNAL: u64 = 7;
const CACHE: usize = 1 << 20;

#[derive(Clone, Debug)]
enum Step {
    Say {
        index: usize,
        at_ms: u64,
        from: usize,
    },
    Put {
        index: usize,
        value: u8,
        is_archived: bool,
        ttl_ms: u64,
    },
    Name {
        index: usize,
        who: usize,
        agent: usize,
    },
    Read {
        index: usize,
        who: usize,
        seq: u64,
    },
    Retract {
        index: usize,
        at_ms: u64,
        count: u64,
    },
    Erase {
        index: usize,
    },
    /// Some batches are applied.
    Take {
        count: usize,
        is_synced: bool,
    },
    /// The process crashes, and a random part of the unsynced data is lost.
    Crash {
        dice: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let index = 0..5usize;
    let who = 0..3usize;
    prop_oneof![
        12 => (index.clone(), 0..40u64, 0..4usize)
            .prop_map(|(index, at_ms, from)| Step::Say { index, at_ms, from }),
        3 => (index.clone(), 0..3u8, any::<bool>(), 0..3u64).prop_map(
            |(index, value, is_archived, ttl_ms)| Step::Put { index, value, is_archived, ttl_ms }
        ),
        2 => (index.clone(), who.clone(), 0..4usize)
            .prop_map(|(index, who, agent)| Step::Name { index, who, agent }),
        6 => (index.clone(), who, 0..12u64)
            .prop_map(|(index, who, seq)| Step::Read { index, who, seq }),
        3 => (index.clone(), 0..40u64, 1..4u64)
            .prop_map(|(index, at_ms, count)| Step::Retract { index, at_ms, count }),
        1 => index.prop_map(|index| Step::Erase { index }),
        6 => (1..4usize, any::<bool>())
            .prop_map(|(count, is_synced)| Step::Take { count, is_synced }),
        2 => any::<u64>().prop_map(|dice| Step::Crash { dice }),
    ]
}

fn open(disk: &Disk) -> Tables {
    let database = database(disk.clone(), CACHE).unwrap();
    Tables::new(database, JOURNAL).unwrap().unwrap()
}

fn take(tables: &Tables, world: &World, catch_up: &mut CatchUp, sync: Sync) -> BatchOutcome {
    let nobody = BTreeSet::new();
    let mut watched = WatchedScopes {
        scopes: &nobody,
        changed: Vec::new(),
    };
    catch_up.step(tables, world, sync, &mut watched).unwrap()
}

fn take_all(tables: &Tables, world: &World, catch_up: &mut CatchUp) {
    while take(tables, world, catch_up, Sync::Later) == BatchOutcome::Applied {}
}

fn apply(world: &mut World, step: &Step) {
    match *step {
        Step::Say { index, at_ms, from } => world.append_message(index, at_ms, PEOPLE[from]),
        Step::Put {
            index,
            value,
            is_archived,
            ttl_ms,
        } => world.put(index, |known| {
            known.labels = vec![("k".to_owned(), value.to_string())];
            known.is_archived = is_archived;
            known.ttl_ms = ttl_ms;
        }),
        Step::Name { index, who, agent } => world.put(index, |known| {
            known.participants = vec![PEOPLE[who].to_owned()];
            PEOPLE[agent].clone_into(&mut known.agent);
        }),
        Step::Read { index, who, seq } => world.read(index, PEOPLE[who], seq),
        Step::Retract {
            index,
            at_ms,
            count,
        } => world.retract(index, at_ms, count),
        Step::Erase { index } => world.erase(index),
        Step::Take { .. } | Step::Crash { .. } => {}
    }
}

/// Checks that the views equal the model.
fn check(tables: &Tables, world: &World) {
    let namespace = Scope::namespace("a/b");
    let both = [ArchiveState::Open, ArchiveState::Archived];
    let numbers = |scope, archive_states: &[ArchiveState]| -> Vec<u64> {
        let places = tables.newest(scope, archive_states, None, 100).unwrap();
        places.into_iter().map(|it| it.number).collect()
    };
    assert_eq!(numbers(namespace, &both), world.newest(|_, _| true));
    let archived = world.newest(|known, _| known.is_archived);
    assert_eq!(numbers(namespace, &[ArchiveState::Archived]), archived);
    for value in ["0", "1", "2"] {
        let is_labelled = |known: &crate::source::ConversationFacts, _| {
            known.labels.iter().any(|(_, it)| it == value)
        };
        let found = numbers(namespace.label("k", value), &both);
        assert_eq!(found, world.newest(is_labelled));
    }
    for who in &PEOPLE[..3] {
        let scope = namespace.participant(who);
        let takes_part = |_: &_, index| world.unread(index, who).is_some();
        assert_eq!(numbers(scope, &both), world.newest(takes_part), "{who}");
        for index in 0..world.conversations.len() {
            let number = World::number(index);
            let participant = tables.participant(number, scope).unwrap();
            let unread = participant.map(|it| {
                let row = tables.row(number).unwrap().unwrap();
                it.unread(1, &row)
            });
            assert_eq!(unread, world.unread(index, who), "{who} in {index}");
        }
        let due = tables.oldest(namespace.due(who), 100).unwrap();
        let due: Vec<_> = due.into_iter().rev().map(|it| it.number).collect();
        let is_due = |known: &crate::source::ConversationFacts, index: usize| {
            let mut messages = (1..).zip(&world.conversations[index].messages);
            let said =
                messages.any(|(seq, message)| message.1 != *who && !known.retracted.contains(seq));
            known.agent == *who && world.unread(index, who).map_or(said, |it| it > 0)
        };
        assert_eq!(due, world.newest(is_due), "due to {who}");
    }
    let over: Vec<_> = world.expiry().into_values().flatten().collect();
    assert_eq!(tables.expired(u64::MAX, 100).unwrap(), over);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// After any crash, the views that caught up equal rebuilt views and the model.
    #[test]
    fn view_caught_up_after_crashes_equals_a_rebuilt_view(
        steps in proptest::collection::vec(step(), 1..60),
        batch in 1..6usize,
    ) {
        let (mut world, mut disk) = (World::default(), Disk::default());
        let (mut tables, mut catch_up) = (open(&disk), CatchUp::with_batch_size(batch));
        for step in &steps {
            apply(&mut world, step);
            match step {
                Step::Take { count, is_synced } => {
                    let sync = if *is_synced { Sync::Now } else { Sync::Later };
                    for _ in 0..*count {
                        take(&tables, &world, &mut catch_up, sync);
                    }
                }
                Step::Crash { dice } => {
                    disk = disk.crash(&mut fastrand::Rng::with_seed(*dice));
                    std::mem::forget(tables);
                    (tables, catch_up) = (open(&disk), CatchUp::with_batch_size(batch));
                }
                _ => {}
            }
        }
        take_all(&tables, &world, &mut catch_up);
        let anew = open(&Disk::default());
        take_all(&anew, &world, &mut CatchUp::default());
        prop_assert_eq!(tables.dump(), anew.dump());
        check(&tables, &world);
    }
}

/// A view is built while the directory is long and events continue.
#[test]
fn changes_during_a_view_build_are_included() {
    let mut world = World::default();
    for index in 0..20 {
        world.append_message(index, index as u64, "alice");
    }
    let tables = open(&Disk::default());
    let mut catch_up = CatchUp::with_batch_size(4);
    let mut index = 0;
    while take(&tables, &world, &mut catch_up, Sync::Later) == BatchOutcome::Applied {
        if index < 12 {
            world.append_message(19 - index, 100 + index as u64, "bob");
            world.append_message(20 + index, 100 + index as u64, "carol");
        }
        index += 1;
    }
    assert!(index > 12);
    check(&tables, &world);
}

#[test]
fn a_watcher_is_notified_of_its_inbox_only() {
    let mut world = World::default();
    world.append_message(0, 1, "alice");
    world.append_message(1, 1, "bob");
    let tables = open(&Disk::default());
    let mut catch_up = CatchUp::default();
    take_all(&tables, &world, &mut catch_up);
    let alice = Scope::namespace("a/b").participant("alice");
    let scopes = BTreeSet::from([alice]);
    let mut changed_scopes = |world: &World| {
        let mut watched = WatchedScopes {
            scopes: &scopes,
            changed: Vec::new(),
        };
        catch_up
            .step(&tables, world, Sync::Later, &mut watched)
            .unwrap();
        watched.changed
    };
    world.append_message(1, 2, "bob");
    assert_eq!(changed_scopes(&world), []);
    world.append_message(0, 2, "bob");
    world.append_message(0, 3, "bob");
    assert_eq!(changed_scopes(&world), [(alice, World::number(0))]);
    world.read(0, "alice", 3);
    assert_eq!(changed_scopes(&world), [(alice, World::number(0))]);
    world.erase(0);
    assert_eq!(changed_scopes(&world), [(alice, World::number(0))]);
    world.append_message(1, 4, "alice");
    assert_eq!(changed_scopes(&world), [(alice, World::number(1))]);
}

#[test]
fn inboxes_beyond_1000_writers_match_a_rebuilt_view() {
    let mut world = World::default();
    let names: Vec<&'static str> = (0..1_100).map(|it| &*format!("w{it}").leak()).collect();
    let tables = open(&Disk::default());
    let mut catch_up = CatchUp::default();
    for (at, chunk) in names.chunks(100).enumerate() {
        for name in chunk {
            world.append_message(0, at as u64, name);
            world.append_message(0, at as u64, name);
        }
        take_all(&tables, &world, &mut catch_up);
    }
    world.read(0, "w1050", 2_101);
    world.read(0, "w3", 7);
    world.put(0, |known| known.participants.push("w1060".to_owned()));
    take_all(&tables, &world, &mut catch_up);
    world.append_message(0, 100, "w1050");
    take_all(&tables, &world, &mut catch_up);
    let anew = open(&Disk::default());
    take_all(&anew, &world, &mut CatchUp::default());
    assert_eq!(tables.dump(), anew.dump());
    let unread = |who| {
        let scope = Scope::namespace("a/b").participant(who);
        let participant = tables.participant(World::number(0), scope).unwrap();
        let row = tables.row(World::number(0)).unwrap().unwrap();
        participant.map(|it| it.unread(1, &row))
    };
    for who in ["w1", "w3", "w1050", "w1060"] {
        assert_eq!(unread(who), world.unread(0, who), "{who}");
    }
    assert_eq!(unread("w1070"), None);
}

#[test]
fn view_of_another_journal_or_history_is_rejected() {
    let disk = Disk::default();
    let mut world = World::default();
    world.append_message(0, 1, "alice");
    world.append_message(0, 1, "alice");
    let tables = open(&disk);
    take_all(&tables, &world, &mut CatchUp::default());
    drop(tables);
    let other = database(Disk::of(disk.bytes()), CACHE).unwrap();
    assert!(Tables::new(other, JOURNAL + 1).unwrap().is_none());
    let tables = open(&disk);
    let mut shorter = World::default();
    shorter.append_message(0, 1, "alice");
    let nobody = BTreeSet::new();
    let mut watched = WatchedScopes {
        scopes: &nobody,
        changed: Vec::new(),
    };
    let lost = CatchUp::default().step(&tables, &shorter, Sync::Later, &mut watched);
    assert!(
        matches!(lost, Err(crate::catch_up::Failure::Lost)),
        "{lost:?}"
    );
    assert_eq!(shorter.numbers_end(), 4);
}

/// A flipped bit is detected before the file is used, or lies in unused bytes.
#[test]
fn damaged_view_file_is_rebuilt() {
    let mut world = World::default();
    for index in 0..300 {
        world.append_message(index, index as u64, "alice");
        world.put(index, |known| known.ttl_ms = 5);
    }
    let anew = open(&Disk::default());
    take_all(&anew, &world, &mut CatchUp::default());
    let dir = tempfile::tempdir().unwrap();
    let place = ViewsLocation::Directory(dir.path().join("views"));
    let path = dir.path().join("views/conversations");
    let made = file::open(&place, JOURNAL, CACHE).unwrap();
    take_all(&made, &world, &mut CatchUp::default());
    drop(made);
    let whole = std::fs::read(&path).unwrap();
    let used: Vec<usize> = (0..whole.len()).filter(|at| whole[*at] != 0).collect();
    let mut rebuilt = 0;
    for seed in 0..60 {
        let mut dice = fastrand::Rng::with_seed(seed);
        let mut bytes = whole.clone();
        match seed % 3 {
            0 => bytes.truncate(dice.usize(..bytes.len())),
            1 => bytes[used[dice.usize(..used.len())]] ^= 1 << dice.u8(..8),
            _ => bytes[used[dice.usize(..used.len())]] = dice.u8(..),
        }
        std::fs::write(&path, &bytes).unwrap();
        let tables = file::open(&place, JOURNAL, CACHE).unwrap();
        rebuilt += usize::from(tables.fact(Fact::Build).unwrap() == Some(1));
        take_all(&tables, &world, &mut CatchUp::default());
        assert_eq!(tables.dump(), anew.dump(), "seed {seed}");
    }
    assert!(rebuilt > 20, "{rebuilt}");
}

/// A crash while the file is created leaves it without a magic number, or shorter than one.
#[test]
fn file_of_an_interrupted_creation_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let place = ViewsLocation::Directory(dir.path().to_path_buf());
    for size in [1, 8, 512, 1 << 20] {
        std::fs::write(dir.path().join("conversations"), vec![0; size]).unwrap();
        let tables = file::open(&place, JOURNAL, CACHE).unwrap();
        assert_eq!(tables.fact(Fact::Build).unwrap(), Some(1), "{size} bytes");
    }
}
