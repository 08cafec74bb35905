use quota::{Factor, Override, Prefix};

use super::*;
use crate::{ChangeError, EventKind, WatchItem};

#[test]
fn new_policies_apply_at_once_unless_the_version_conflicts() {
    let world = world(&[bucket("agent", 10, "0/s")]);
    let quotas = world.node.quotas();
    assert_eq!(drain(&world.node, "a/b/c"), 10);
    let version = quotas.policies().version();
    let raised = read(&[bucket("agent", 25, "0/s")]);
    let applied = quotas
        .set_policies(raised.clone(), Some(version), BY)
        .unwrap();
    assert_eq!(applied.version, version + 1);
    assert_eq!(drain(&world.node, "a/b/c"), 15);
    let late = quotas.set_policies(raised, Some(version), BY);
    assert!(matches!(late, Err(ChangeError::Conflict { version: 2 })));
}

#[test]
fn factor_override_halt_and_reset_change_the_admitted_count() {
    let world = world(&[bucket("agent", 10, "10/s")]);
    let (node, quotas) = (&world.node, world.node.quotas());
    assert_eq!(drain(node, "a/b/c"), 10);
    let half = Factor::new(1, 2).unwrap();
    let _ = quotas.set_factor("agent", half, None, BY).unwrap();
    world.pass_ms(1_000);
    assert_eq!(drain(node, "a/b/c"), 5);

    let prefix = Prefix::parse("a/b/c").unwrap();
    let change = Override {
        capacity: Some(30),
        refill: None,
        grant: 0,
        until_ns: quotas.now_ns() + 1_000_000_000,
        by: "root".into(),
        reason: "launch".into(),
    };
    let _ = quotas.set_override("agent", prefix, change).unwrap();
    assert_eq!(drain(node, "a/b/c"), 20);
    let _ = quotas.clear_override("agent", prefix, BY).unwrap();
    assert_eq!(remaining(node, "a/b/c"), [-20]);
    let _ = quotas.reset(&Subject::parse("a/b/c").unwrap(), BY).unwrap();
    assert_eq!(remaining(node, "a/b/c"), [10]);

    let org = Prefix::parse("a").unwrap();
    let _ = quotas.halt(org, BY).unwrap();
    let halted = take(node, "a/b/c", &[(Unit::REQUESTS, 1)]).outcome;
    assert!(matches!(halted, Outcome::Halted { .. }));
    let _ = quotas.resume(org, BY).unwrap();
    assert!(is_admitted(node, "a/b/c"));
}

#[test]
fn quota_watcher_gets_events_and_the_count_of_missed_ones() {
    let warned = LimitConfig {
        warn: vec!["0.5".to_owned()],
        ..bucket("agent", 4, "0/s")
    };
    let world = world(&[warned]);
    let mut watch = world.node.quotas().watch().unwrap();
    assert_eq!(watch.next(Waker::noop()), None);
    drain(&world.node, "a/b/c");
    let mut next = || match watch.next(Waker::noop()) {
        Some(WatchItem::Event(event)) => event.kind,
        other => panic!("nothing happened: {other:?}"),
    };
    assert!(matches!(next(), EventKind::Threshold { share: 500, .. }));
    assert!(matches!(next(), EventKind::Denied { .. }));
    for _ in 0..5_000 {
        is_admitted(&world.node, "a/b/c");
    }
    assert_eq!(
        watch.next(Waker::noop()),
        Some(WatchItem::Missed(5_000 - 4_096))
    );
    assert!(matches!(
        watch.next(Waker::noop()),
        Some(WatchItem::Event(_))
    ));
}

#[test]
fn quota_change_is_audited_durably_before_it_is_acknowledged() {
    let mut on_disk = OnDisk::new(&[bucket("agent", 10, "1/s")]);
    let applied = on_disk
        .node()
        .quotas()
        .halt(Prefix::parse("a").unwrap(), BY)
        .unwrap();
    let durable = applied.durable.unwrap();
    assert_eq!(is_durable(&durable), None);
    on_disk.sync();
    assert_eq!(is_durable(&durable), Some(true));
    let on_disk = on_disk.crash(&[bucket("agent", 10, "1/s")]);
    assert!(!is_admitted(on_disk.node(), "a/b/c"));
    let (_, audits) = on_disk.node().quotas().audit(0, 10).unwrap();
    let told: Vec<_> = audits
        .iter()
        .map(|audit| (&*audit.by, &*audit.what))
        .collect();
    assert_eq!(told, [("configuration", "policies 1"), ("root", "halt a")]);
}

#[test]
fn expired_override_is_removed_and_its_usage_still_counts() {
    let world = world(&[bucket("agent", 10, "0/s")]);
    let quotas = world.node.quotas();
    let change = |capacity, until_ns| Override {
        capacity: Some(capacity),
        refill: Some((0, 7)),
        grant: 0,
        until_ns,
        by: "root".into(),
        reason: "launch".into(),
    };
    let prefixes = ["a/b/c", "a/b/d"].map(|text| Prefix::parse(text).unwrap());
    let soon_ns = quotas.now_ns() + 1_000_000_000;
    for prefix in prefixes {
        let _ = quotas
            .set_override("agent", prefix, change(30, soon_ns))
            .unwrap();
        assert_eq!(drain(&world.node, prefix.name), 30);
    }
    world.pass_ms(2_000);
    let _ = quotas
        .set_override("agent", prefixes[0], change(35, u64::MAX))
        .unwrap();
    assert_eq!(quotas.rules().overrides().len(), 1);
    assert_eq!(remaining(&world.node, "a/b/c"), [5]);
    assert_eq!(remaining(&world.node, "a/b/d"), [-20]);
}
