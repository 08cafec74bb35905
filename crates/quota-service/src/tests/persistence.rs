use journal::disk::simulated::{Fault, Kind as Call};

use super::*;

fn sync_limit() -> LimitConfig {
    LimitConfig {
        durability: Some("sync".to_owned()),
        ..bucket("money", 100, "0/s")
    }
}

#[test]
fn takes_older_than_100_ms_survive_a_crash() {
    let limits = [bucket("agent", 100, "0/s")];
    let mut on_disk = OnDisk::new(&limits);
    spend(on_disk.node(), "a/b/c", 30);
    on_disk.world.pass_ms(100);
    on_disk.sync();
    spend(on_disk.node(), "a/b/c", 5);
    let on_disk = on_disk.crash(&limits);
    assert_eq!(remaining(on_disk.node(), "a/b/c"), [70]);
}

#[test]
fn take_from_a_sync_limit_is_acknowledged_once_durable() {
    let mut on_disk = OnDisk::new(&[sync_limit()]);
    let taken = take(on_disk.node(), "a/b/c", &[(Unit::REQUESTS, 30)]);
    let durable = taken.durable.unwrap();
    assert_eq!(is_durable(&durable), None);
    on_disk.sync();
    assert_eq!(is_durable(&durable), Some(true));
    // No sweep has run.
    let on_disk = on_disk.crash(&[sync_limit()]);
    assert_eq!(remaining(on_disk.node(), "a/b/c"), [70]);
}

#[test]
fn take_from_a_sync_limit_fails_when_the_disk_fails() {
    let mut on_disk = OnDisk::new(&[sync_limit()]);
    let taken = take(on_disk.node(), "a/b/c", &[(Unit::REQUESTS, 30)]);
    on_disk
        .disk
        .fail_always(Fault::Broken, |call| call.kind == Call::SyncData);
    on_disk.sync();
    assert_eq!(is_durable(&taken.durable.unwrap()), Some(false));
    let later = take(on_disk.node(), "a/b/c", &[(Unit::REQUESTS, 30)]);
    assert!(matches!(later.outcome, Outcome::Unavailable { .. }));
    // The part that was not used was returned.
    assert_eq!(remaining(on_disk.node(), "a/b/c"), [70]);
}

#[test]
fn quota_usage_survives_a_clean_stop() {
    let limits = [bucket("agent", 100, "0/s")];
    let mut on_disk = OnDisk::new(&limits);
    spend(on_disk.node(), "a/b/c", 42);
    on_disk.node().quotas().flush_all();
    on_disk.sync();
    let on_disk = on_disk.crash(&limits);
    assert_eq!(remaining(on_disk.node(), "a/b/c"), [58]);
}

#[test]
fn holds_take_ids_and_slots_survive_a_crash() {
    let slots = LimitConfig {
        unit: "concurrency".to_owned(),
        refill: None,
        ..bucket("slots", 2, "")
    };
    let limits = [sync_limit(), slots];
    let mut on_disk = OnDisk::new(&limits);
    let costs = [(Unit::REQUESTS, 10), (Unit::CONCURRENCY, 1)];
    let lasting = Some(Duration::from_secs(5));
    let taken = take_with(on_disk.node(), "a/b/c", &costs, lasting, Some("x"));
    let Outcome::Admitted { hold, .. } = taken.outcome else {
        panic!("there is enough: {taken:?}");
    };
    on_disk.sync();
    let mut on_disk = on_disk.crash(&limits);
    assert_eq!(remaining(on_disk.node(), "a/b/c"), [90, 1]);
    let again = take_with(on_disk.node(), "a/b/c", &costs, lasting, Some("x"));
    let is_repeat = true;
    assert_eq!(again.outcome, Outcome::Admitted { hold, is_repeat });
    on_disk.world.pass_ms(5_200);
    assert_eq!(remaining(on_disk.node(), "a/b/c"), [90, 2]);
    on_disk.sync();
    let on_disk = on_disk.crash(&limits);
    assert_eq!(on_disk.node().quotas().hold_count(), 0);
    assert_eq!(remaining(on_disk.node(), "a/b/c"), [90, 2]);
}

#[test]
fn newest_policy_change_wins_between_configuration_and_administrator() {
    let limits = [bucket("agent", 100, "0/s")];
    let mut on_disk = OnDisk::new(&limits);
    let raised = read(&[bucket("agent", 500, "0/s")]);
    let _ = on_disk
        .node()
        .quotas()
        .set_policies(raised, None, BY)
        .unwrap();
    on_disk.sync();
    // The configuration is unchanged: the administrator's change is newer.
    let on_disk = on_disk.crash(&limits);
    assert_eq!(drain(on_disk.node(), "a/b/c"), 500);
    // The configuration changed: it is newer.
    let on_disk = on_disk.crash(&[bucket("agent", 7, "0/s")]);
    assert_eq!(drain(on_disk.node(), "a/b/d"), 7);
    assert_eq!(on_disk.node().quotas().policies().version(), 3);
}

#[test]
fn limits_without_a_configuration_survive_restarts_and_reloads() {
    let mut on_disk = OnDisk::new(&[]);
    let limits = read(&[bucket("agent", 50, "0/s")]);
    let set = on_disk.node().quotas().set_policies(limits, None, BY);
    let _ = set.unwrap();
    on_disk.sync();
    let is_changed = on_disk.node().quotas().follow_configuration(Vec::new());
    assert!(!is_changed.unwrap());
    for agent in ["a/b/c", "a/b/d"] {
        on_disk = on_disk.crash(&[]);
        assert_eq!(drain(on_disk.node(), agent), 50);
        on_disk.sync();
    }
}

#[test]
fn quota_state_stream_is_trimmed() {
    let limits = [bucket("agent", 1_000_000, "0/s")];
    let mut on_disk = OnDisk::new(&limits);
    for round in 0..300 {
        for agent in 0..300 {
            spend(on_disk.node(), &format!("a/b/agent-{agent}"), 1);
        }
        on_disk.world.pass_ms(100);
        on_disk.sync();
        assert_eq!(remaining(on_disk.node(), "a/b/agent-7"), [999_999 - round]);
    }
    let (shard, stream) = super::STATE;
    let state = on_disk.journal.stream(shard, stream).unwrap();
    assert!(state.start > 0, "nothing was trimmed of {state:?}");
    let on_disk = on_disk.crash(&limits);
    assert_eq!(remaining(on_disk.node(), "a/b/agent-7"), [999_700]);
    assert_eq!(on_disk.node().quotas().bucket_counts().buckets, 300);
}
