//! Operations on cells other than takes: return, look, reset, grant.

use std::time::{SystemTime, UNIX_EPOCH};

use outbound::redis::Redis;
use outbound::redis::script::{Call, Script, decision};
use quota::{Bucket, Every, Kind};
use quota_service::quota_store::{
    QuotaStore, RemoteCell, RemoteDecision, RemoteTake, ReturnedLease, Verb,
};

use super::server::{SECOND, Server, eventually, remaining, runtime, slow, store};

async fn done(store: &Redis, verb: Verb, cells: Vec<RemoteCell>) -> RemoteDecision {
    let take = RemoteTake { verb, cells };
    store.decide(vec![take]).await.unwrap().remove(0)
}

fn slots(count: i64, mark: Option<u64>, lasting_ns: u64) -> RemoteCell {
    RemoteCell {
        kind: Kind::Slots { capacity: 2 },
        mark,
        lasting_ns,
        ..slow("{o}/slots", 0, count)
    }
}

fn budget(every: Every, count: i64, mark: Option<u64>) -> RemoteCell {
    let kind = Kind::Budget {
        amount: 10,
        every,
        zone: quota::Zone::UTC,
    };
    RemoteCell {
        kind,
        mark,
        ..slow("{o}/budget", 0, count)
    }
}

#[test]
fn slots_are_freed_by_release_or_expiry() {
    let server = Server::started();
    let runtime = runtime();
    let store = server.store();
    let first = runtime.block_on(async {
        let first = done(&store, Verb::Take, vec![slots(1, None, 3_600 * SECOND)]).await;
        let second = done(&store, Verb::Take, vec![slots(1, None, SECOND)]).await;
        assert_eq!((remaining(&first), remaining(&second)), (vec![1], vec![0]));
        let third = done(&store, Verb::Take, vec![slots(1, None, SECOND)]).await;
        assert_eq!((third.denied_by, third.retry_after_ns), (Some(0), None));
        first
    });
    // As if the holder of the second slot had died.
    eventually("one is free by itself", || {
        let looked = done(&store, Verb::Look, vec![slots(0, None, SECOND)]);
        remaining(&runtime.block_on(looked)) == [1]
    });
    runtime.block_on(async {
        let mark = Some(first.cells[0].mark);
        let given = |mark| done(&store, Verb::Force, vec![slots(-1, mark, SECOND)]);
        assert_eq!(
            remaining(&given(None).await),
            [1],
            "without a mark nothing is"
        );
        assert_eq!(remaining(&given(Some(7)).await), [1], "nor with another");
        assert_eq!(remaining(&given(mark).await), [2]);
        assert_eq!(remaining(&given(mark).await), [2], "once");
    });
    let lasting: i64 = server.cli(&["pttl", "{o}/slots"]).trim().parse().unwrap();
    assert!(lasting <= 3_000, "{lasting}");
}

#[test]
fn credit_taken_in_an_earlier_budget_period_is_not_refunded() {
    let server = Server::started();
    let store = server.store();
    runtime().block_on(async {
        let taken = done(&store, Verb::Take, vec![budget(Every::Day, 6, None)]).await;
        let mark = taken.cells[0].mark;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        assert!(now.as_secs() / 86_400 - mark <= 1, "the number of the day");
        let given = |mark| done(&store, Verb::Force, vec![budget(Every::Day, -2, mark)]);
        assert_eq!(remaining(&given(Some(mark - 1)).await), [4]);
        assert_eq!(remaining(&given(None).await), [4]);
        assert_eq!(remaining(&given(Some(mark)).await), [6]);
        let more = done(&store, Verb::Force, vec![budget(Every::Day, 9, None)]).await;
        assert_eq!(remaining(&more), [-3], "debt");
    });
}

/// Does something as a server does whose clock shows another time.
fn done_at(server: &Server, now_ns: u64, verb: Verb, cells: Vec<RemoteCell>) -> RemoteDecision {
    let client = redis::Client::open(server.url()).unwrap();
    let mut connection = client.get_connection().unwrap();
    let call = Call::take(&RemoteTake { verb, cells }, Some(now_ns));
    let answer = Script::default().with_source(&call).query(&mut connection);
    decision(answer.unwrap()).unwrap()
}

fn unix_ns() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    now.as_nanos() as u64
}

const DAY_NS: u64 = 86_400 * SECOND;

#[test]
fn redis_clock_set_back_delays_a_budget_at_most_one_period() {
    let server = Server::started();
    let store = server.store();
    let ahead_ns = unix_ns() + 5 * 365 * DAY_NS;
    let before = done_at(
        &server,
        ahead_ns,
        Verb::Take,
        vec![budget(Every::Day, 6, None)],
    );
    assert_eq!(remaining(&before), [4]);
    runtime().block_on(async {
        let denied = done(&store, Verb::Take, vec![budget(Every::Day, 5, None)]).await;
        assert_eq!((denied.denied_by, remaining(&denied)), (Some(0), vec![4]));
        let stored = server.cli(&["get", "{o}/budget"]);
        let mark: u64 = stored.split(' ').nth(2).unwrap().parse().unwrap();
        let day = unix_ns() / DAY_NS;
        assert!(
            day - mark % (1 << 32) <= 1,
            "a denial moves it, too: {stored}"
        );
        let retry_after_ns = denied.retry_after_ns.unwrap();
        assert!(retry_after_ns <= DAY_NS, "{retry_after_ns}");
        let taken = done(&store, Verb::Take, vec![budget(Every::Day, 1, None)]).await;
        assert_eq!(remaining(&taken), [3], "what was spent stays spent");
        let day = taken.cells[0].mark % (1 << 32);
        assert!(unix_ns() / DAY_NS - day <= 1, "the number of the day");
        // What was taken while the clock was ahead is not given back to this day.
        let given = |mark| done(&store, Verb::Force, vec![budget(Every::Day, -1, mark)]);
        assert_eq!(remaining(&given(Some(before.cells[0].mark)).await), [3]);
        assert_eq!(remaining(&given(Some(taken.cells[0].mark)).await), [4]);
    });
}

#[test]
fn redis_clock_set_back_does_not_stop_bucket_refill() {
    let server = Server::started();
    let store = server.store();
    let bucket = |count| RemoteCell {
        kind: Kind::Bucket(Bucket {
            capacity: 10,
            amount: 1,
            period_ns: SECOND / 100,
        }),
        ..slow("{o}/bucket", 0, count)
    };
    let ahead_ns = unix_ns() + 5 * 365 * DAY_NS;
    let emptied = done_at(&server, ahead_ns, Verb::Take, vec![bucket(10)]);
    assert_eq!(remaining(&emptied), [0]);
    let runtime = runtime();
    runtime.block_on(async {
        let denied = done(&store, Verb::Take, vec![bucket(10)]).await;
        assert_eq!(remaining(&denied), [0], "nothing is minted");
        let retry_after_ns = denied.retry_after_ns.unwrap();
        assert!(retry_after_ns <= SECOND / 10, "{retry_after_ns}");
    });
    eventually("it is full again", || {
        remaining(&runtime.block_on(done(&store, Verb::Look, vec![bucket(0)]))) == [10]
    });
}

#[test]
fn small_redis_clock_step_back_refills_nothing() {
    let server = Server::started();
    let store = server.store();
    let bucket = |count| RemoteCell {
        kind: Kind::Bucket(Bucket {
            capacity: 10,
            amount: 1,
            period_ns: SECOND / 100,
        }),
        ..slow("{o}/bucket", 0, count)
    };
    let runtime = runtime();
    // The connection is open, so that the take follows at once.
    runtime.block_on(done(&store, Verb::Look, vec![bucket(0)]));
    let ahead_ns = unix_ns() + 5 * SECOND / 2;
    let emptied = done_at(&server, ahead_ns, Verb::Take, vec![bucket(10)]);
    assert_eq!(remaining(&emptied), [0]);
    let denied = runtime.block_on(done(&store, Verb::Take, vec![bucket(10)]));
    let retry_after_ns = denied.retry_after_ns.unwrap();
    assert!(retry_after_ns > SECOND / 10, "{retry_after_ns}");
}

#[test]
fn credit_taken_or_leased_before_a_reset_is_not_refunded() {
    let server = Server::started();
    let store = server.store();
    runtime().block_on(async {
        for every in [Every::Day, Every::Never] {
            let taken = done(&store, Verb::Take, vec![budget(every, 6, None)]).await;
            let leased = store.lease(budget(every, 0, None), 1, None).await.unwrap();
            assert_eq!((remaining(&taken), leased.granted), (vec![4], 1));
            let reset = done(&store, Verb::Reset, vec![budget(every, 0, None)]).await;
            assert_eq!(remaining(&reset), [10]);
            let kept = done(&store, Verb::Take, vec![budget(every, 8, None)]).await;
            assert_eq!(remaining(&kept), [2]);
            let mark = Some(taken.cells[0].mark);
            let given = done(&store, Verb::Force, vec![budget(every, -6, mark)]).await;
            assert_eq!(remaining(&given), [2]);
            let unspent = ReturnedLease {
                lease: leased,
                spent: 0,
            };
            let back = store.lease(budget(every, 0, None), 0, Some(unspent)).await;
            assert_eq!(back.unwrap().have, 2);
            let mark = Some(kept.cells[0].mark);
            let given = done(&store, Verb::Force, vec![budget(every, -8, mark)]).await;
            assert_eq!(remaining(&given), [10]);
            server.cli(&["flushall"]);
        }
    });
}

#[test]
fn a_grant_may_exceed_the_capacity_until_taken_or_reset() {
    let server = Server::started();
    let store = server.store();
    runtime().block_on(async {
        let cells = |count| vec![slow("{o}/a", 10, count), budget(Every::Never, count, None)];
        let granted = done(&store, Verb::Grant, cells(5)).await;
        assert_eq!(remaining(&granted), [15, 15]);
        let taken = done(&store, Verb::Take, cells(8)).await;
        assert_eq!((taken.denied_by, remaining(&taken)), (None, vec![7, 7]));
        let taken = done(&store, Verb::Take, cells(7)).await;
        assert_eq!((taken.denied_by, remaining(&taken)), (None, vec![0, 0]));
        let reset = done(&store, Verb::Reset, cells(0)).await;
        assert_eq!(remaining(&reset), [10, 10]);
        done(&store, Verb::Grant, vec![slow("{o}/b", 10, 5)]).await;
    });
    // The granted credit outlives the expiry of its key.
    assert_eq!(server.cli(&["pttl", "{o}/b"]).trim(), "-1");
}

#[test]
fn look_creates_no_key_and_a_short_shadow_cell_is_reported() {
    let server = Server::started();
    let store = server.store();
    runtime().block_on(async {
        let shadow = |count| RemoteCell {
            is_enforced: false,
            ..slow("{o}/shadow", 3, count)
        };
        let looked = done(&store, Verb::Look, vec![shadow(0)]).await;
        assert_eq!(
            (remaining(&looked), looked.cells[0].touched_ns),
            (vec![3], None)
        );
        assert_eq!(server.cli(&["dbsize"]).trim(), "0");
        let cells = vec![slow("{o}/a", 10, 4), shadow(4)];
        let taken = done(&store, Verb::Take, cells).await;
        assert_eq!((taken.denied_by, remaining(&taken)), (None, vec![6, 3]));
        let short: Vec<bool> = taken.cells.iter().map(|cell| cell.is_short).collect();
        assert_eq!(short, [false, true]);
    });
}

#[test]
fn a_changed_capacity_applies_at_once_and_usage_is_preserved() {
    let server = Server::started();
    let (old, new) = (store(vec![server.url()], 2), store(vec![server.url()], 2));
    runtime().block_on(async {
        let take = |store, capacity, count| async move {
            remaining(&done(store, Verb::Take, vec![slow("{o}/a", capacity, count)]).await)
        };
        assert_eq!(take(&old, 100, 80).await, [20]);
        assert_eq!(take(&new, 250, 1).await, [169]);
        assert_eq!(take(&old, 50, 0).await, [-31]);
        assert_eq!(take(&new, 250, 0).await, [169]);
    });
}
