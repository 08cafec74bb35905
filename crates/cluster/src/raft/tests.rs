//! The adapter over the journal on simulated disks.

mod consensus;
mod crashes;
mod disk;
mod suite;

use std::sync::Arc;

use futures_util::stream;
use journal::segment::ShardEnd;
use openraft::storage::{RaftLogReader, RaftLogStorage, RaftStateMachine};
use openraft::{EntryPayload, RaftSnapshotBuilder};

use self::disk::{Running, SHARD, run};
use super::types::StoredMembership;
use super::*;
use crate::member::{Addresses, Member};

/// Returns an entry without records, as another leader has appended it.
fn blank(term: u64, index: u64) -> Entry {
    Entry {
        log_id: log_id(term, index),
        time_ms: Some(7),
        payload: EntryPayload::Blank,
    }
}

/// Returns the first block, with this number of members.
fn founding_block(count: u64) -> journal::DecidedBlock {
    let member = |id| Member {
        id,
        addresses: Addresses {
            name: format!("node-{id}"),
            link: format!("host-{id}:7402"),
            kafka: Some(format!("host-{id}:9092")),
            ..Addresses::default()
        },
    };
    let members: Vec<_> = (1..=count).map(member).collect();
    members_block(ShardEnd::default(), 0, &members, 5, 0).unwrap()
}

/// Applies entries that are in the log.
async fn apply(machine: &mut Machine, entries: Vec<Entry>) {
    let entries = entries.into_iter().map(|entry| Ok((entry, None)));
    machine.apply(stream::iter(entries)).await.unwrap();
}

#[test]
fn members_are_decoded_unchanged_and_cut_bytes_are_refused() {
    let block = founding_block(3);
    let bytes = block.as_members().unwrap();
    let (at, membership) = decode_membership(bytes.clone()).unwrap();
    assert_eq!(at, log_id(0, 0));
    assert_eq!(membership.voter_ids().collect::<Vec<_>>(), [1, 2, 3]);
    let node = membership.get_node(&2).unwrap();
    assert_eq!(node.link, "host-2:7402");
    assert_eq!(node.kafka.as_deref(), Some("host-2:9092"));
    assert_eq!(node.http, None);
    let mut again = Vec::new();
    encode_membership(at, &membership, &mut again);
    assert_eq!(again, bytes);
    for size in 0..bytes.len() {
        assert!(decode_membership(bytes.slice(..size)).is_err(), "{size}");
    }
}

#[test]
fn own_blocks_are_taken_in_order_and_refused_otherwise() {
    run(async {
        let disk = Arc::new(journal::disk::SimulatedDisk::new(1));
        let running = Running::open(&disk, 1);
        let log = running.log();
        log.append([blank(3, 0)]).unwrap();
        let reign = log.begin_reign(3).unwrap();
        assert_eq!(log.begin_reign(3), None, "a term has one reign");
        let append = || {
            let mut guard = log.journal.lock(SHARD, 1000);
            guard.append(journal::StreamId(1), None, 0, b"x").unwrap()
        };
        let first = append();
        let one = log.journal.take_closed(SHARD).unwrap();
        let second = append();
        let two = log.journal.take_closed(SHARD).unwrap();
        let entry = |block: &journal::DecidedBlock| Entry {
            log_id: log_id(block.term, block.index.0 - 1),
            time_ms: Some(block.time_ms),
            payload: EntryPayload::Normal(Block {
                time_ms: block.time_ms,
                body: block.body.clone(),
            }),
        };
        assert!(log.append([entry(&two)]).is_err(), "a gap");
        log.append([entry(&one)]).unwrap();
        assert!(log.is_current(reign));
        let status = |it: &journal::Appended| log.journal.status(it.ticket);
        assert_eq!(status(&second), journal::Status::Pending);

        // Another leader's entry ends the reign, and voids what was not taken.
        log.append([blank(4, 2)]).unwrap();
        assert!(!log.is_current(reign));
        assert_eq!(status(&first), journal::Status::Pending, "taken");
        assert_eq!(status(&second), journal::Status::Moved);
        assert_eq!(log.begin_reign(3), None, "another leader has appended");
        log.truncate_after(Some(log_id(3, 0))).unwrap();
        assert_eq!(status(&first), journal::Status::Cut);
    });
}

#[test]
fn filed_entries_are_applied_and_purged_after_a_restart() {
    run(async {
        let disk = Arc::new(journal::disk::SimulatedDisk::new(1));
        let mut running = Running::open(&disk, 1);
        let log = running.log();
        let founding = founding_block(3);
        log.journal.append_decided(SHARD, &founding).unwrap();
        let mut machine = Machine::new(log.clone()).unwrap();
        let mut store = Store::new(log.clone());
        let (applied, membership) = machine.applied_state().await.unwrap();
        assert_eq!((applied, membership), (None, StoredMembership::default()));
        let entries: Vec<_> = (1..300).map(|index| blank(2, index)).collect();
        log.append(entries).unwrap();
        let mut reader = store.get_log_reader().await;
        let all = reader.try_get_log_entries(0..300).await.unwrap();
        apply(&mut machine, all[..250].to_vec()).await;
        running.settle();
        let filed = log.journal.last_filed(SHARD);
        assert!(filed.index.0 > 1 && filed.index.0 <= 250, "{filed:?}");

        // The entries are gone before openraft was told: an error, not fewer entries.
        let lost = reader.try_get_log_entries(0..300).await;
        assert!(lost.is_err());
        let mut builder = machine.get_snapshot_builder().await;
        let snapshot = builder.build_snapshot().await.unwrap();
        assert_eq!(snapshot.meta.last_log_id, Some(log_id(2, 249)));
        store.purge(log_id(2, filed.index.0 - 1)).await.unwrap();
        let left = reader.try_get_log_entries(0..300).await.unwrap();
        assert_eq!(left, all[filed.index.0 as usize..]);
        assert!(store.purge(log_id(2, 300)).await.is_err(), "no such entry");

        let running = running.reopen(2);
        let mut machine = Machine::new(running.log()).unwrap();
        let (applied, membership) = machine.applied_state().await.unwrap();
        assert_eq!(applied, Some(log_id(2, filed.index.0 - 1)));
        assert_eq!(membership.log_id(), &Some(log_id(0, 0)));
        assert_eq!(membership.voter_ids().collect::<Vec<_>>(), [1, 2, 3]);
        let mut store = Store::new(running.log());
        let state = store.get_log_state().await.unwrap();
        assert_eq!(state.last_purged_log_id, applied);
        assert_eq!(state.last_log_id, Some(log_id(2, 299)));
    });
}

#[test]
fn snapshot_of_a_peer_is_refused() {
    run(async {
        let disk = Arc::new(journal::disk::SimulatedDisk::new(1));
        let running = Running::open(&disk, 1);
        let mut machine = Machine::new(running.log()).unwrap();
        let mut builder = machine.get_snapshot_builder().await;
        let mut meta = builder.build_snapshot().await.unwrap().meta;
        machine.install_snapshot(&meta, ()).await.unwrap();
        meta.last_log_id = Some(log_id(1, 4));
        let refused = machine.install_snapshot(&meta, ()).await;
        assert_eq!(refused.unwrap_err().kind(), std::io::ErrorKind::Unsupported);
    });
}
