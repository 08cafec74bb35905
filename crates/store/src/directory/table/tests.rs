use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::directory::entry::CARRIED_OVER;
use crate::directory::shard_of;

const SHARD_COUNT: u16 = 3;

fn entry<'a>(directory: &Directory, shard: ShardId, kind: Kind, name: &'a str) -> Entry<'a> {
    Entry {
        kind,
        number: directory.next_number(shard),
        name,
    }
}

/// Adds a stream in the shard of its name.
fn create(directory: &mut Directory, kind: Kind, name: &str) -> Location {
    let shard = shard_of(name, SHARD_COUNT);
    let entry = entry(directory, shard, kind, name);
    directory.push(shard, entry);
    Location {
        shard,
        stream: entry.number,
    }
}

#[test]
fn directory_finds_exactly_the_names_it_contains() {
    let mut directory = Directory::new(SHARD_COUNT);
    assert_eq!(directory.find(Kind::Raw, "a/b/0"), None);
    let names: Vec<_> = (0..1000).map(|number| format!("a/b/{number}")).collect();
    let names: Vec<_> = names
        .iter()
        .map(|name| (name, create(&mut directory, Kind::Raw, name)))
        .collect();
    let other = create(&mut directory, Kind::Mailbox, "a/b/7");
    for (name, location) in &names {
        assert_eq!(directory.find(Kind::Raw, name), Some(*location));
        let named = (Kind::Raw, name.to_string(), *location);
        assert_eq!(directory.named(location.stream), Some(named));
    }
    assert_eq!(directory.find(Kind::Mailbox, "a/b/7"), Some(other));
    assert_eq!(directory.find(Kind::Mailbox, "a/b/8"), None);
    assert_eq!(directory.find(Kind::Raw, "a/b/1000"), None);
    assert_eq!(
        directory.iter(Kind::Mailbox).collect::<Vec<_>>(),
        [("a/b/7", other)]
    );
    assert_eq!(
        (directory.iter(Kind::Raw).count(), directory.len()),
        (1000, 1001)
    );
    assert_eq!(directory.namespace_name_count("a/b/x"), 1001);
    assert_eq!(
        directory.list(Kind::Raw, "a/b/99", "a/b/99", 2),
        ["a/b/990", "a/b/991"]
    );
}

/// Published: clients and derived data have these numbers.
#[test]
fn numbers_of_a_shard_have_its_number_as_remainder() {
    let mut directory = Directory::new(SHARD_COUNT);
    let mut numbers = |shard: u16| {
        let shard = ShardId(shard);
        [(); 3].map(|()| {
            let entry = entry(&directory, shard, Kind::Raw, "");
            directory.push(shard, entry);
            entry.number.0
        })
    };
    assert_eq!(
        [numbers(0), numbers(1), numbers(2)],
        [[3, 6, 9], [1, 4, 7], [2, 5, 8]]
    );
}

#[test]
fn numbers_continue_above_all_numbers_of_format_1() {
    let mut directory = Directory::new(SHARD_COUNT);
    let old = Entry {
        kind: Kind::Raw,
        number: StreamId(11),
        name: "a/b/old",
    };
    directory.push(ShardId(1), old);
    for shard in 0..SHARD_COUNT {
        let end = Entry {
            kind: Kind::Void,
            number: StreamId(11),
            name: CARRIED_OVER,
        };
        assert!(directory.fits(ShardId(shard), end));
        directory.push(ShardId(shard), end);
    }
    let next = [0, 1, 2].map(|shard| directory.next_number(ShardId(shard)).0);
    assert_eq!(next, [12, 13, 14]);
    assert!(directory.is_carried_over(StreamId(11)) && !directory.is_carried_over(StreamId(12)));
    let (_, name, at) = directory.named(StreamId(11)).unwrap();
    assert_eq!((&*name, at.shard), ("a/b/old", ShardId(1)));
    assert_eq!(directory.len(), 1);
}

#[test]
fn entries_out_of_order_do_not_fit() {
    let mut directory = Directory::new(SHARD_COUNT);
    let numbered = |number| Entry {
        kind: Kind::Raw,
        number: StreamId(number),
        name: "a/b/c",
    };
    assert!(!directory.fits(ShardId(0), numbered(0)));
    directory.push(ShardId(0), numbered(6));
    assert!(!directory.fits(ShardId(0), numbered(6)));
    assert!(directory.fits(ShardId(0), numbered(7)));
    assert!(directory.fits(ShardId(1), numbered(6)));
    assert!(!directory.fits(ShardId(0), numbered(1 << 32)));
}

#[test]
fn lost_entries_have_no_names() {
    let mut directory = Directory::new(1);
    let mut entries = ShardEntries::starting_at(5);
    let first = StreamId(1);
    entries.push(Entry {
        kind: Kind::Raw,
        number: first,
        name: "a/b/first",
    });
    entries.skip_to(9);
    directory.replace(ShardId(0), entries);
    let second = create_in(&mut directory, "a/b/second");
    assert_eq!((directory.end(ShardId(0)), directory.len()), (10, 2));
    assert_eq!(directory.named(first).unwrap().1, "a/b/first");
    let mut found = Vec::new();
    directory.each(ShardId(0), 6..20, &mut |_, name, at| {
        found.push((name.to_owned(), at.stream));
    });
    assert_eq!(found, [("a/b/second".to_owned(), second)]);
}

fn create_in(directory: &mut Directory, name: &str) -> StreamId {
    let entry = entry(directory, ShardId(0), Kind::Raw, name);
    directory.push(ShardId(0), entry);
    entry.number
}

#[test]
fn replaced_entries_of_a_shard_leave_no_names() {
    let mut directory = Directory::new(2);
    let raw = |number, name| Entry {
        kind: Kind::Raw,
        number: StreamId(number),
        name,
    };
    let entries = |all: &[Entry<'_>]| {
        let mut entries = ShardEntries::default();
        all.iter().for_each(|it| entries.push(*it));
        entries
    };
    directory.push(ShardId(0), raw(2, "a/b/other"));
    let [first, cut, new] = [raw(1, "a/b/first"), raw(3, "a/b/cut"), raw(3, "a/c/new")];
    directory.replace(ShardId(1), entries(&[first, cut]));
    assert_eq!(
        (directory.len(), directory.namespace_name_count("a/b/x")),
        (3, 3)
    );
    directory.replace(ShardId(1), entries(&[first, new]));
    assert_eq!(directory.find(Kind::Raw, "a/b/cut"), None);
    assert_eq!(directory.named(StreamId(3)).unwrap().1, "a/c/new");
    assert_eq!(
        (directory.len(), directory.namespace_name_count("a/b/x")),
        (3, 2)
    );
    assert_eq!(directory.namespace_name_count("a/c/x"), 1);
    directory.replace(ShardId(1), entries(&[first]));
    assert_eq!((directory.len(), directory.end(ShardId(1))), (2, 1));
    assert_eq!(directory.find(Kind::Raw, "a/c/new"), None);
    directory.replace(ShardId(1), entries(&[first, cut]));
    for name in ["a/b/first", "a/b/cut", "a/b/other"] {
        assert!(directory.find(Kind::Raw, name).is_some(), "{name}");
    }
    assert_eq!(directory.namespace_name_count("a/c/x"), 0);
}

/// A step of a model: a stream is created in a shard, or a number is found to be used.
#[derive(Clone, Copy, Debug)]
enum Step {
    Create(u16),
    Void(u16),
}

fn step(shard_count: u16) -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..shard_count).prop_map(Step::Create),
        1 => (0..shard_count).prop_map(Step::Void),
    ]
}

fn worlds() -> impl Strategy<Value = (u16, Vec<u16>, Vec<Step>)> {
    (1_u16..65).prop_flat_map(|count| {
        let old = proptest::collection::vec(0..count, 0..40);
        let steps = proptest::collection::vec(step(count), 0..200);
        (Just(count), old, steps)
    })
}

proptest! {
    /// Numbers are unique over all shards, after an upgrade too, and the table is a map.
    #[test]
    fn any_order_of_creations_gives_unique_numbers((count, old, steps) in worlds()) {
        let mut directory = Directory::new(count);
        let mut model: HashMap<String, Location> = HashMap::new();
        let mut numbers: HashMap<StreamId, ShardId> = HashMap::new();
        for (index, shard) in old.iter().enumerate() {
            let (shard, number) = (ShardId(*shard), StreamId(index as u64 + 1));
            let name = format!("old/{index}/x");
            directory.push(shard, Entry { kind: Kind::Raw, number, name: &name });
            model.insert(name, Location { shard, stream: number });
            numbers.insert(number, shard);
        }
        for shard in (0..count).filter(|_| !old.is_empty()) {
            let number = StreamId(old.len() as u64);
            let end = Entry { kind: Kind::Void, number, name: CARRIED_OVER };
            directory.push(ShardId(shard), end);
        }
        for (index, step) in steps.iter().enumerate() {
            let (shard, kind) = match step {
                Step::Create(shard) => (ShardId(*shard), Kind::Raw),
                Step::Void(shard) => (ShardId(*shard), Kind::Void),
            };
            let name = format!("new/{index}/x");
            let number = directory.next_number(shard);
            let entry = Entry { kind, number, name: if kind == Kind::Void { "" } else { &name } };
            prop_assert!(directory.fits(shard, entry));
            directory.push(shard, entry);
            prop_assert_eq!(numbers.insert(number, shard), None);
            if kind == Kind::Raw {
                model.insert(name, Location { shard, stream: number });
            }
        }
        prop_assert_eq!(directory.len(), model.len());
        let highest = numbers.keys().max().map_or(0, |it| it.0);
        prop_assert_eq!(directory.number_max(), highest);
        for (name, location) in &model {
            prop_assert_eq!(directory.find(Kind::Raw, name), Some(*location));
            let named = (Kind::Raw, name.clone(), *location);
            prop_assert_eq!(directory.named(location.stream), Some(named));
        }
        let all: HashMap<_, _> = directory.iter(Kind::Raw).map(|(name, at)| (name.to_owned(), at)).collect();
        prop_assert_eq!(all, model);
    }
}
