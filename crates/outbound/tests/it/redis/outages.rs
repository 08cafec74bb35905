//! Takes while the server is down, suspended or restarted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use outbound::redis::{Options, Redis};
use quota_service::quota_store::{QuotaStore, ReturnedLease};

use super::server::{Server, eventually, remaining, runtime, slow, store, take};

#[test]
fn three_stores_on_one_hot_cell_admit_exactly_its_capacity() {
    let server = Server::started();
    let admitted = runtime().block_on(async {
        let takers = (0..3).map(|_| {
            let store = server.store();
            tokio::spawn(async move {
                let mut admitted = 0;
                for _ in 0..100 {
                    let batch = (0..4).flat_map(|_| take(vec![slow("{o}/a", 700, 1)]));
                    let decided = store.decide(batch.collect()).await.unwrap();
                    admitted += decided.iter().filter(|it| it.denied_by.is_none()).count();
                }
                admitted
            })
        });
        let mut admitted = 0;
        for taker in takers.collect::<Vec<_>>() {
            admitted += taker.await.unwrap();
        }
        admitted
    });
    assert_eq!(admitted, 700);
}

#[test]
fn a_denied_take_changes_nothing_and_full_cells_expire() {
    let server = Server::started();
    runtime().block_on(async {
        let store = server.store();
        let cells = || vec![slow("{o}/wide", 100, 2), slow("{o}/narrow", 3, 2)];
        let first = store.decide(take(cells())).await.unwrap().remove(0);
        assert_eq!((first.denied_by, remaining(&first)), (None, vec![98, 1]));
        let second = store.decide(take(cells())).await.unwrap().remove(0);
        assert_eq!(
            (second.denied_by, remaining(&second)),
            (Some(1), vec![98, 1])
        );
        assert!(second.retry_after_ns.is_some());
        let mut quick = slow("{o}/quick", 100, 1);
        let quota::Kind::Bucket(bucket) = &mut quick.kind else {
            panic!("a bucket");
        };
        bucket.period_ns = 1_000;
        let third = store.decide(take(vec![quick])).await.unwrap().remove(0);
        assert_eq!(third.denied_by, None);
    });
    let lasting: i64 = server.cli(&["pttl", "{o}/quick"]).trim().parse().unwrap();
    assert!((0..=3_001).contains(&lasting), "{lasting}");
    let lasting: i64 = server.cli(&["pttl", "{o}/wide"]).trim().parse().unwrap();
    assert!(lasting > 86_400_000, "{lasting}");
}

#[test]
fn redis_restart_under_load_never_overadmits() {
    let mut server = Server::started();
    let runtime = runtime();
    let (admitted, unknown) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let takers: Vec<_> = (0..3)
        .map(|_| {
            let (store, admitted, unknown) = (server.store(), admitted.clone(), unknown.clone());
            runtime.spawn(async move {
                loop {
                    match store.decide(take(vec![slow("{o}/a", 600, 1)])).await {
                        Ok(decided) if decided[0].denied_by.is_none() => {
                            admitted.fetch_add(1, Ordering::Relaxed);
                        }
                        Ok(_) => return,
                        Err(away) => {
                            unknown.fetch_add(u64::from(away.may_be_done), Ordering::Relaxed);
                            tokio::time::sleep(Duration::from_millis(5)).await;
                        }
                    }
                }
            })
        })
        .collect();
    for share in [50, 150] {
        eventually("takes pass", || admitted.load(Ordering::Relaxed) >= share);
        server.crash();
        server.start();
    }
    runtime.block_on(async {
        for taker in takers {
            taker.await.unwrap();
        }
    });
    let (admitted, unknown) = (
        admitted.load(Ordering::Relaxed),
        unknown.load(Ordering::Relaxed),
    );
    assert!(admitted <= 600, "{admitted}");
    assert!(
        admitted + unknown >= 600,
        "{admitted} and {unknown} unknown"
    );
}

#[test]
fn a_frozen_server_fails_requests_by_the_deadline_and_recovers() {
    let server = Server::started();
    let options = Options {
        urls: vec![server.url()],
        certificate: None,
        deadline: Duration::from_millis(200),
        waiting_max: 2,
        nodes: 1,
    };
    let store = Redis::new(options).unwrap();
    let runtime = runtime();
    let ask = || runtime.block_on(store.decide(take(vec![slow("{o}/a", 10, 1)])));
    assert!(ask().is_ok());
    server.freeze(true);
    let away = ask().unwrap_err();
    assert!(away.may_be_done, "{away}");
    assert!(!store.view().is_connected && store.view().error.is_some());
    let waiting = (0..2).map(|_| store.decide(take(vec![slow("{o}/a", 10, 1)])));
    let waiting: Vec<_> = waiting.collect();
    let away = ask().unwrap_err();
    assert!(
        !away.may_be_done && away.reason.contains("too many"),
        "{away}"
    );
    drop(waiting);
    server.freeze(false);
    eventually("it answers again", || ask().is_ok());
    assert!(store.view().is_connected && store.view().error.is_none());
}

#[test]
fn a_request_to_an_unreachable_server_is_certainly_not_applied() {
    let mut server = Server::started();
    server.crash();
    let store = store(vec![server.url()], 1);
    let away = runtime().block_on(store.decide(take(vec![slow("{o}/a", 10, 1)])));
    assert!(!away.unwrap_err().may_be_done);
}

#[test]
fn leases_of_a_server_that_is_killed_under_load_are_spent_once() {
    let mut server = Server::started();
    let runtime = runtime();
    let spent = Arc::new(AtomicU64::new(0));
    let stores: Vec<Redis> = (0..3).map(|_| store(vec![server.url()], 3)).collect();
    let holders = stores.iter().map(|store| {
        let (store, spent) = (store.clone(), spent.clone());
        runtime.spawn(async move {
            let mut before = None;
            loop {
                match store.lease(slow("{o}/a", 900, 0), 3, before.take()).await {
                    Ok(lease) if lease.granted == 0 => return,
                    Ok(lease) => {
                        // All but one unit, which is returned with the next lease.
                        let now = (lease.granted - 1).max(1);
                        spent.fetch_add(now, Ordering::Relaxed);
                        before = Some(ReturnedLease { lease, spent: now });
                    }
                    // A lease that failed may have been granted, and is lost then.
                    Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
                }
            }
        })
    });
    let holders: Vec<_> = holders.collect();
    for share in [100, 300] {
        eventually("leases are spent", || {
            spent.load(Ordering::Relaxed) >= share
        });
        server.crash();
        server.start();
    }
    runtime.block_on(async {
        for holder in holders {
            holder.await.unwrap();
        }
    });
    let spent = spent.load(Ordering::Relaxed);
    // Each of the three nodes may have lost its lease and its returned credit at each restart.
    assert!((900 - 2 * 3 * 4..=900).contains(&spent), "{spent}");
    for store in stores {
        assert!(store.view().is_connected && store.view().error.is_none());
    }
}
