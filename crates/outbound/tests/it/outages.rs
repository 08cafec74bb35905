//! A database that is down, restarted, slow, suspended, or not the expected one.

use crate::MESSAGES;
use crate::node::{Home, Node};
use crate::postgres::{Postgres, eventually};

#[test]
fn archiving_starts_when_an_unreachable_database_becomes_available() {
    let mut postgres = Postgres::new();
    let home = Home::new();
    let node = Node::archived(&home, &postgres);
    node.append_many("acme/chat/a", 400);
    eventually("the failure is visible", || {
        let view = node.archive();
        view.error.is_some() && view.lag_events == 400 && !view.is_connected
    });
    postgres.start();
    node.settle(&postgres);
    assert_eq!(postgres.sql(MESSAGES), "400|400|1|400");
    eventually("the failure is over", || {
        let view = node.archive();
        view.error.is_none() && view.lag_events == 0 && view.is_connected
    });
}

#[test]
fn messages_are_archived_once_across_database_crashes() {
    let mut postgres = Postgres::started();
    let home = Home::new();
    let node = Node::archived(&home, &postgres);
    for _ in 0..3 {
        node.append_many("acme/chat/a", 1_000);
        postgres.crash();
        node.append_many("acme/chat/a", 1_000);
        postgres.start();
    }
    node.settle(&postgres);
    assert_eq!(postgres.sql(MESSAGES), "6000|6000|1|6000");
    assert!(node.archive().errors > 0);
}

#[test]
fn a_locked_archive_table_does_not_delay_acknowledgements() {
    let postgres = Postgres::started();
    let home = Home::new();
    let node = Node::archived(&home, &postgres);
    node.append_many("acme/chat/a", 1);
    node.settle(&postgres);
    let hold = "BEGIN; LOCK TABLE telpher.messages IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(600)";
    let busy = postgres.begin(hold);
    let held = "SELECT count(*) FROM pg_locks WHERE granted AND mode = 'AccessExclusiveLock'
        AND relation = 'telpher.messages'::regclass";
    eventually("the table is held", || postgres.sql(held) == "1");
    // Each append waits for its acknowledgement.
    node.append_many("acme/chat/a", 5_000);
    eventually("the statements are given up", || node.archive().errors >= 2);
    let error = node.archive().error.unwrap();
    assert!(error.contains("timeout"), "{error}");
    let end =
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)%'
        AND pid <> pg_backend_pid()";
    postgres.sql(end);
    drop(busy);
    node.settle(&postgres);
    assert_eq!(postgres.sql(MESSAGES), "5001|5001|1|5001");
}

#[test]
fn a_frozen_database_does_not_delay_acknowledgements() {
    let postgres = Postgres::started();
    let home = Home::new();
    let node = Node::archived(&home, &postgres);
    node.append_many("acme/chat/a", 1);
    node.settle(&postgres);
    postgres.freeze(true);
    let before = node.archive();
    // Each append waits for its acknowledgement.
    node.append_many("acme/chat/a", 10_000);
    assert_eq!(
        node.archive().messages,
        before.messages,
        "it does stand still"
    );
    eventually("it is given up", || node.archive().errors > before.errors);
    postgres.freeze(false);
    node.settle(&postgres);
    assert_eq!(postgres.sql(MESSAGES), "10001|10001|1|10001");
}

#[test]
fn an_archive_of_a_different_history_is_refused_without_writes() {
    let postgres = Postgres::started();
    let node = Node::archived(&Home::of(7), &postgres);
    node.append_many("acme/chat/a", 10);
    node.settle(&postgres);
    drop(node);
    for count in [3, 30] {
        let home = Home::of(7);
        let node = Node::archived(&home, &postgres);
        node.append_many("acme/chat/a", count);
        eventually("it is told", || {
            let error = node.archive().error.unwrap_or_default();
            error.contains("not in this journal")
        });
        assert_eq!(node.archive().batches, 0);
    }
    assert_eq!(postgres.sql(MESSAGES), "10|10|1|10");
}

#[test]
fn tables_of_a_newer_version_are_refused_by_name() {
    let postgres = Postgres::started();
    let home = Home::new();
    let node = Node::archived(&home, &postgres);
    node.append_many("acme/chat/a", 1);
    node.settle(&postgres);
    drop(node);
    postgres.sql("INSERT INTO telpher.migrations (version) VALUES (99)");
    let node = Node::archived(&home, &postgres);
    node.append_many("acme/chat/a", 1);
    eventually("it is told", || {
        let error = node.archive().error.unwrap_or_default();
        error.contains("version 99") && error.contains("newer telpher")
    });
    assert_eq!(postgres.sql(MESSAGES), "1|1|1|1");
}

#[test]
fn two_nodes_run_the_migrations_once() {
    let postgres = Postgres::started();
    let homes = [Home::new(), Home::new()];
    let nodes = homes.each_ref().map(|home| Node::archived(home, &postgres));
    for node in &nodes {
        node.append_many("acme/chat/a", 10);
    }
    for node in &nodes {
        node.settle(&postgres);
    }
    assert_eq!(postgres.sql("SELECT count(*) FROM telpher.migrations"), "1");
    assert_eq!(postgres.sql("SELECT count(*) FROM telpher.messages"), "20");
}
