use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::name::EncodedName;

fn key(agent: u64, id: Option<u128>) -> Key {
    let prefix = [1, 2, agent];
    Key { prefix, id }
}

fn named(key: Key) -> Name<'static> {
    let id = key.id.map(|id| [(id >> 64) as u64, id as u64]);
    let prefix = key.prefix;
    Name {
        encoded: EncodedName { prefix, id },
        texts: None,
    }
}

/// A table whose peers are the connection numbers.
fn subscribe(table: &mut Table<u64>, key: Key, connection: u64, id: u64) {
    table
        .subscribe(&named(key), connection, id, &connection, usize::MAX)
        .unwrap();
}

fn all(table: &Table<u64>, key: Key, sender: u64) -> BTreeSet<u64> {
    table.all(&key, sender).copied().collect()
}

#[test]
fn a_single_receiver_is_the_named_instance_or_round_robin() {
    let mut table = Table::default();
    for connection in 1..=3 {
        subscribe(&mut table, key(1, Some(connection.into())), connection, 7);
    }
    let one = |key: Key, sender| table.any(&key, sender).next().copied();
    assert_eq!(one(key(1, Some(2)), 9), Some(2));
    assert_eq!(one(key(1, Some(2)), 2), None);
    assert_eq!(one(key(1, Some(4)), 9), None);
    assert_eq!(one(key(2, None), 9), None);
    let turns: Vec<_> = (0..6).filter_map(|_| one(key(1, None), 9)).collect();
    assert_eq!(turns, [1, 2, 3, 1, 2, 3]);
    assert!((0..6).all(|_| one(key(1, None), 2) != Some(2)));
}

#[test]
fn anycast_offers_every_instance_as_a_candidate() {
    let mut table = Table::default();
    for connection in 1..=3 {
        subscribe(&mut table, key(1, Some(connection.into())), connection, 7);
    }
    let candidates: BTreeSet<_> = table.any(&key(1, None), 9).copied().collect();
    assert_eq!(candidates, BTreeSet::from([1, 2, 3]));
}

#[test]
fn a_name_without_an_id_matches_every_instance_once() {
    let mut table = Table::default();
    subscribe(&mut table, key(1, Some(1)), 1, 7);
    subscribe(&mut table, key(1, Some(2)), 1, 8);
    subscribe(&mut table, key(1, Some(3)), 2, 7);
    subscribe(&mut table, key(1, None), 3, 7);
    assert_eq!(all(&table, key(1, None), 9), BTreeSet::from([1, 2, 3]));
    assert_eq!(table.all(&key(1, None), 9).count(), 3);
    assert_eq!(all(&table, key(1, None), 1), BTreeSet::from([2, 3]));
    // A subscriber to the name without an id is not an instance.
    assert_eq!(all(&table, key(1, Some(9)), 9), BTreeSet::new());
}

#[test]
fn many_connections_may_subscribe_to_one_channel() {
    let mut table = Table::default();
    let channel = key(5, Some(77));
    for connection in 0..100 {
        subscribe(&mut table, channel, connection, 1);
    }
    assert_eq!(all(&table, channel, 3).len(), 99);
    for connection in (0..100).filter(|connection| connection % 3 != 0) {
        table.unsubscribe(channel, connection, 1).unwrap();
    }
    assert_eq!(
        all(&table, channel, 3),
        (0..100).filter(|it| it % 3 == 0 && *it != 3).collect()
    );
    (0..100).for_each(|connection| table.remove(connection));
    assert_eq!((table.name_count(), table.subscription_count()), (0, 0));
}

#[test]
fn a_name_stays_subscribed_until_its_last_subscription_id_is_removed() {
    let mut table = Table::default();
    let name = key(1, Some(1));
    // A replayed subscription has the number 0.
    for id in [0, 7, 8, 7] {
        subscribe(&mut table, name, 1, id);
    }
    assert_eq!(table.subscription_count(), 3);
    assert_eq!(table.unsubscribe(name, 1, 9), Err(Unknown(9)));
    assert_eq!(table.unsubscribe(name, 2, 7), Err(Unknown(7)));
    assert_eq!(table.unsubscribe(key(2, None), 1, 7), Err(Unknown(7)));
    assert_eq!(table.unsubscribe(key(1, None), 1, 7), Err(Unknown(7)));
    for id in [7, 0] {
        assert_eq!(table.unsubscribe(name, 1, id), Ok(()));
        assert_eq!(all(&table, name, 9), BTreeSet::from([1]));
    }
    assert_eq!(table.unsubscribe(name, 1, 8), Ok(()));
    assert_eq!(all(&table, name, 9), BTreeSet::new());
    assert_eq!(table.unsubscribe(name, 1, 8), Err(Unknown(8)));
}

#[test]
fn the_subscriptions_of_a_connection_are_limited() {
    let mut table = Table::default();
    let mut subscribe = |agent, id| table.subscribe(&named(key(agent, None)), 1, id, &1u64, 2);
    assert_eq!(subscribe(1, 1), Ok(()));
    assert_eq!(subscribe(1, 2), Ok(()));
    assert_eq!(subscribe(1, 2), Ok(()));
    assert_eq!(subscribe(2, 1), Err(SubscribeError::TooMany(2)));
    assert_eq!(table.name_count(), 1);
}

/// Reference implementation of the table that searches all subscriptions.
#[derive(Default)]
struct Model(BTreeSet<(u64, Prefix, Option<u128>, u64)>);

impl Model {
    fn all(&self, key: Key, sender: u64) -> BTreeSet<u64> {
        let reached = self.0.iter().filter(|(connection, prefix, id, _)| {
            *prefix == key.prefix && (key.id.is_none() || *id == key.id) && *connection != sender
        });
        reached.map(|(connection, ..)| *connection).collect()
    }
}

proptest! {
    #[test]
    fn the_table_agrees_with_a_list_of_subscriptions(
        steps in prop::collection::vec((0u8..5, 0u64..24, 0u64..2, 0u128..4, 0u64..3), 0..300)
    ) {
        let mut table = Table::default();
        let mut model = Model::default();
        for (verb, connection, agent, id, number) in steps {
            let key = key(agent, Some(id).filter(|id| *id > 0));
            let row = (connection, key.prefix, key.id, number);
            match verb {
                0..=2 => {
                    subscribe(&mut table, key, connection, number);
                    model.0.insert(row);
                }
                3 => prop_assert_eq!(
                    table.unsubscribe(key, connection, number).is_ok(),
                    model.0.remove(&row)
                ),
                _ => {
                    table.remove(connection);
                    model.0.retain(|(other, ..)| *other != connection);
                }
            }
            let expected = model.all(key, connection);
            prop_assert_eq!(&all(&table, key, connection), &expected);
            prop_assert_eq!(table.all(&key, connection).count(), expected.len());
            let any: BTreeSet<_> = table.any(&key, connection).copied().collect();
            prop_assert_eq!(any, expected);
        }
        prop_assert_eq!(table.subscription_count(), model.0.len());
    }
}

#[test]
fn agents_are_listed_with_their_instances_and_connections() {
    let mut table = Table::default();
    let texts = ["org", "ns", "agent"];
    for (connection, id) in [(2, Some(5)), (1, Some(5)), (3, None)] {
        let name = Name::new(texts, id);
        table
            .subscribe(&name, connection, 1, &connection, 9)
            .unwrap();
    }
    let forged = Name {
        texts: Some(["org", "ns", "other"]),
        ..Name::new(texts, None)
    };
    table.subscribe(&forged, 4, 1, &4, 9).unwrap();
    let agents: Vec<_> = table.agents().collect();
    assert_eq!(agents.len(), 1);
    assert_eq!(agents[0].name, "org/ns/agent");
    let id = "00000000-0000-0000-0000-000000000005";
    let held: Vec<_> = agents[0]
        .instances
        .iter()
        .map(|it| (&*it.0, it.1))
        .collect();
    assert_eq!(held, [("", 3), ("", 4), (id, 1), (id, 2)]);
}

#[test]
fn a_name_with_mismatched_or_long_texts_is_shown_by_its_hashes() {
    let name = Name::new(["org", "ns", "agent"], Some(1));
    assert_eq!(name.agent(), "org/ns/agent");
    let long = "x".repeat(600);
    for texts in [["org", "ns", "other"], ["org", "ns", &long]] {
        let name = Name {
            texts: Some(texts),
            ..name
        };
        assert!(!name.agent().contains("ns"), "{}", name.agent());
    }
    assert!(!Name::new(["org", "ns", &long], None).agent().contains("ns"));
}

/// A peer that counts its clones.
struct Counted<'a>(&'a std::cell::Cell<usize>);

impl Clone for Counted<'_> {
    fn clone(&self) -> Self {
        self.0.set(self.0.get() + 1);
        Self(self.0)
    }
}

#[test]
fn a_subscription_costs_the_same_at_a_hundred_thousand_names() {
    const NAMES: u64 = 100_000;
    let clones = std::cell::Cell::new(0);
    let mut table = Table::default();
    // Half of the names are instances of one agent.
    let key_of = |index: u64| match index % 2 {
        0 => key(0, Some(index.into())),
        _ => key(index, None),
    };
    let mut costs = Vec::new();
    for index in 0..NAMES {
        let before = clones.get();
        let name = named(key_of(index));
        table
            .subscribe(&name, index, 1, &Counted(&clones), 9)
            .unwrap();
        costs.push(clones.get() - before);
    }
    // Existing entries are not copied.
    assert!(
        costs.iter().all(|cost| *cost == 2),
        "{:?}",
        costs.iter().max()
    );
    let before = clones.get();
    for index in 0..NAMES {
        assert_eq!(table.any(&key_of(index), NAMES).take(3).count(), 1);
        table.unsubscribe(key_of(index), index, 1).unwrap();
    }
    assert_eq!(clones.get(), before);
    assert_eq!((table.subscription_count(), table.name_count()), (0, 0));
}
