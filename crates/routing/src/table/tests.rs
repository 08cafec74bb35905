use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

const NOBODY: ConnectionId = ConnectionId(0);

/// Runs a script of lines and returns the transcript: `+NAME@CONN` subscribes, `-NAME@CONN`
/// unsubscribes, `?NAME@CONN` prints the candidates of an anycast, `*NAME@CONN` of a multicast.
fn check(script: &str, expected: &str) {
    let mut table = Table::<u64>::default();
    let mut transcript = Vec::new();
    for step in script.split_whitespace() {
        let (verb, rest) = step.split_at(1);
        let (name, connection) = rest.split_once('@').unwrap();
        let name = Name::parse(name).unwrap();
        let id: u64 = connection.parse().unwrap();
        let connection = ConnectionId(id);
        let line = match verb {
            "+" => match table.subscribe(name, connection, false, id).replaced {
                Some(old) => format!("replaced:{}", old.peer),
                None => "ok".to_owned(),
            },
            "-" => match table.unsubscribe(&name, connection) {
                Some(_) => "ok".to_owned(),
                None => "none".to_owned(),
            },
            _ => {
                let target = table.target(&name);
                let found: Vec<_> = match verb {
                    "?" => table.any(&target, connection).take(1).collect(),
                    _ => table.all(&target, connection).collect(),
                };
                let found: Vec<_> = found.iter().map(|s| s.peer.to_string()).collect();
                table.release(target);
                format!("[{}]", found.join(","))
            }
        };
        transcript.push(line);
    }
    assert_eq!(transcript.join(" "), expected);
}

#[test]
fn anycast_rotates_over_instances_except_the_sender() {
    check(
        "+a/b/c/1@1 +a/b/c/2@2 +a/b/c/3@3 ?a/b/c@9 ?a/b/c@9 ?a/b/c@9 ?a/b/c@9",
        "ok ok ok [1] [2] [3] [1]",
    );
    check("+a/b/c/1@1 ?a/b/c@1 *a/b/c@1", "ok [] []");
    check("+a/b/c/1@1 +a/b/c/2@2 ?a/b/c@1 ?a/b/c@1", "ok ok [2] [2]");
}

#[test]
fn unicast_reaches_the_named_instance_only() {
    check(
        "+a/b/c/1@1 +a/b/c/2@2 ?a/b/c/2@9 ?a/b/c/2@9 ?a/b/c/7@9",
        "ok ok [2] [2] []",
    );
}

#[test]
fn multicast_reaches_every_subscriber_but_the_sender() {
    check(
        "+a/b/c/1@1 +a/b/c/2@2 +a/b/c/3@3 *a/b/c@2 *a/b/c/3@2",
        "ok ok ok [1,3] [3]",
    );
}

#[test]
fn resubscribe_replaces_and_the_old_connection_cannot_unsubscribe() {
    check(
        "+a/b/c/1@1 +a/b/c/1@2 -a/b/c/1@1 *a/b/c@9 -a/b/c/1@2 *a/b/c@9",
        "ok replaced:1 none [2] ok []",
    );
}

/// Sends a number of messages to a name without subscribers, and disconnects.
fn send_undeliverable(table: &mut Table<()>, name: &str, count: u64) {
    let target = table.target(&Name::parse(name).unwrap());
    table.count_undeliverable(&target, count);
    table.release(target);
}

fn undeliverable_names(table: &Table<()>) -> Vec<(String, u64)> {
    let names = table.names().into_iter();
    names
        .map(|(base, undeliverable_names, _)| (base.to_string(), undeliverable_names))
        .collect()
}

#[test]
fn first_names_are_sorted_limited_and_chosen() {
    let mut table = Table::<()>::default();
    for name in ["a/b/d", "b/b/c", "a/b/c", "a/b/e"] {
        table.target(&Name::parse(name).unwrap());
    }
    send_undeliverable(&mut table, "a/b/b", 1);
    let first = |limit, prefix: &str| {
        let names = table.first_names(limit, |(base, ..)| base.starts_with(prefix));
        Vec::from_iter(names.into_iter().map(|(base, ..)| base.to_string()))
    };
    assert_eq!(first(3, "a/"), ["a/b/b", "a/b/c", "a/b/d"]);
    assert_eq!(first(9, "a/b/d"), ["a/b/d"]);
    assert_eq!(first(0, "a/"), [""; 0]);
    assert_eq!(first(5, "").len(), 5);
}

#[test]
fn unused_names_are_removed() {
    let mut table = Table::<()>::default();
    let name = Name::parse("a/b/c").unwrap();
    let target = table.target(&name);
    assert_eq!(table.names().len(), 1);
    table.release(target);
    assert!(table.names().is_empty());
}

#[test]
fn undeliverable_count_survives_the_last_sender() {
    let mut table = Table::<()>::default();
    send_undeliverable(&mut table, "a/b/c", 3);
    assert_eq!(undeliverable_names(&table), [("a/b/c".to_owned(), 3)]);
    send_undeliverable(&mut table, "a/b/c", 1);
    send_undeliverable(&mut table, "a/b/a", 1);
    let expected = [("a/b/a".to_owned(), 1), ("a/b/c".to_owned(), 4)];
    assert_eq!(undeliverable_names(&table), expected);
    // Counted once, also while the name is in use.
    let target = table.target(&Name::parse("a/b/c").unwrap());
    assert_eq!(undeliverable_names(&table), expected);
    table.release(target);
}

#[test]
fn only_the_newest_undeliverable_names_are_stored() {
    let mut table = Table::<()>::default();
    let count = undeliverable::NAMES_MAX as u64;
    for number in 0..count {
        send_undeliverable(&mut table, &format!("a/b/n{number:06}"), 1);
    }
    // The oldest name is used again, so another one is the oldest.
    send_undeliverable(&mut table, "a/b/n000000", 1);
    send_undeliverable(&mut table, "a/b/one-more", 1);
    let kept = undeliverable_names(&table);
    assert_eq!(kept.len() as u64, count);
    assert_eq!(kept[0], ("a/b/n000000".to_owned(), 2));
    assert_eq!(kept[1], ("a/b/n000002".to_owned(), 1));
    for number in 0..10 * count {
        send_undeliverable(&mut table, &format!("a/c/n{number:06}"), 1);
    }
    assert_eq!(undeliverable_names(&table).len() as u64, count);
    assert_eq!(table.entries.len(), 1);
}

proptest! {
    #[test]
    fn table_agrees_with_a_plain_set(
        steps in prop::collection::vec((0u8..4, 0u8..3, 0u8..4, 1u64..5), 0..80)
    ) {
        let mut table = Table::<u64>::default();
        let mut model = std::collections::BTreeMap::<String, u64>::new();
        for (verb, agent, instance, connection) in steps {
            let full = format!("o/n/a{agent}/i{instance}");
            let name = Name::parse(&full).unwrap();
            let id = ConnectionId(connection);
            match verb {
                0 | 1 => {
                    let replaced = table.subscribe(name, id, false, connection).replaced;
                    prop_assert_eq!(replaced.map(|s| s.peer), model.insert(full, connection));
                }
                2 => {
                    let held = model.get(&full) == Some(&connection);
                    prop_assert_eq!(table.unsubscribe(&name, id).is_some(), held);
                    if held {
                        model.remove(&full);
                    }
                }
                _ => {
                    let base = Name::parse(name.base()).unwrap();
                    let target = table.target(&base);
                    let found: BTreeSet<_> =
                        table.all(&target, NOBODY).map(|s| s.name.to_string()).collect();
                    let any: BTreeSet<_> =
                        table.any(&target, NOBODY).map(|s| s.name.to_string()).collect();
                    let prefix = format!("{base}/");
                    let expected: BTreeSet<_> =
                        model.keys().filter(|k| k.starts_with(&prefix)).cloned().collect();
                    prop_assert_eq!(&found, &expected);
                    prop_assert_eq!(&any, &expected);
                    table.release(target);
                }
            }
            prop_assert_eq!(table.subscription_count(), model.len());
        }
    }
}
