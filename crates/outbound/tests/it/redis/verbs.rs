//! Operations on cells other than takes: return, look, reset, grant.

use std::time::{SystemTime, UNIX_EPOCH};

use node::ports::quota_store::{
    QuotaStore, RemoteCell, RemoteDecision, RemoteTake, Returned, Verb,
};
use outbound::redis::Redis;
use quota::{Every, Kind};

use super::server::{SECOND, Server, eventually, left, runtime, slow, store};

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
fn slots_are_free_when_they_are_given_back_and_by_themselves_when_nobody_does() {
    let server = Server::started();
    let runtime = runtime();
    let store = server.store();
    let first = runtime.block_on(async {
        let first = done(&store, Verb::Take, vec![slots(1, None, 3_600 * SECOND)]).await;
        let second = done(&store, Verb::Take, vec![slots(1, None, SECOND)]).await;
        assert_eq!((left(&first), left(&second)), (vec![1], vec![0]));
        let third = done(&store, Verb::Take, vec![slots(1, None, SECOND)]).await;
        assert_eq!((third.denied_by, third.retry_after_ns), (Some(0), None));
        first
    });
    // As if the holder of the second slot had died.
    eventually("one is free by itself", || {
        let looked = done(&store, Verb::Look, vec![slots(0, None, SECOND)]);
        left(&runtime.block_on(looked)) == [1]
    });
    runtime.block_on(async {
        let mark = Some(first.cells[0].mark);
        let given = |mark| done(&store, Verb::Force, vec![slots(-1, mark, SECOND)]);
        assert_eq!(left(&given(None).await), [1], "without a mark nothing is");
        assert_eq!(left(&given(Some(7)).await), [1], "nor with another");
        assert_eq!(left(&given(mark).await), [2]);
        assert_eq!(left(&given(mark).await), [2], "once");
    });
    let lasting: i64 = server.cli(&["pttl", "{o}/slots"]).trim().parse().unwrap();
    assert!(lasting <= 3_000, "{lasting}");
}

#[test]
fn what_was_taken_from_a_stretch_that_is_over_is_not_given_back() {
    let server = Server::started();
    let store = server.store();
    runtime().block_on(async {
        let taken = done(&store, Verb::Take, vec![budget(Every::Day, 6, None)]).await;
        let mark = taken.cells[0].mark;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        assert!(now.as_secs() / 86_400 - mark <= 1, "the number of the day");
        let given = |mark| done(&store, Verb::Force, vec![budget(Every::Day, -2, mark)]);
        assert_eq!(left(&given(Some(mark - 1)).await), [4]);
        assert_eq!(left(&given(None).await), [4]);
        assert_eq!(left(&given(Some(mark)).await), [6]);
        let more = done(&store, Verb::Force, vec![budget(Every::Day, 9, None)]).await;
        assert_eq!(left(&more), [-3], "debt");
    });
}

#[test]
fn what_was_taken_or_leased_before_a_reset_is_not_given_back_behind_it() {
    let server = Server::started();
    let store = server.store();
    runtime().block_on(async {
        for every in [Every::Day, Every::Never] {
            let taken = done(&store, Verb::Take, vec![budget(every, 6, None)]).await;
            let leased = store.lease(budget(every, 0, None), 1, None).await.unwrap();
            assert_eq!((left(&taken), leased.granted), (vec![4], 1));
            let reset = done(&store, Verb::Reset, vec![budget(every, 0, None)]).await;
            assert_eq!(left(&reset), [10]);
            let kept = done(&store, Verb::Take, vec![budget(every, 8, None)]).await;
            assert_eq!(left(&kept), [2]);
            let mark = Some(taken.cells[0].mark);
            let given = done(&store, Verb::Force, vec![budget(every, -6, mark)]).await;
            assert_eq!(left(&given), [2]);
            let unspent = Returned {
                lease: leased,
                spent: 0,
            };
            let back = store.lease(budget(every, 0, None), 0, Some(unspent)).await;
            assert_eq!(back.unwrap().have, 2);
            let mark = Some(kept.cells[0].mark);
            let given = done(&store, Verb::Force, vec![budget(every, -8, mark)]).await;
            assert_eq!(left(&given), [10]);
            server.cli(&["flushall"]);
        }
    });
}

#[test]
fn a_grant_lies_above_the_capacity_until_it_is_taken_and_a_reset_makes_new() {
    let server = Server::started();
    let store = server.store();
    runtime().block_on(async {
        let cells = |count| vec![slow("{o}/a", 10, count), budget(Every::Never, count, None)];
        let granted = done(&store, Verb::Grant, cells(5)).await;
        assert_eq!(left(&granted), [15, 15]);
        let taken = done(&store, Verb::Take, cells(8)).await;
        assert_eq!((taken.denied_by, left(&taken)), (None, vec![7, 7]));
        let taken = done(&store, Verb::Take, cells(7)).await;
        assert_eq!((taken.denied_by, left(&taken)), (None, vec![0, 0]));
        let reset = done(&store, Verb::Reset, cells(0)).await;
        assert_eq!(left(&reset), [10, 10]);
        done(&store, Verb::Grant, vec![slow("{o}/b", 10, 5)]).await;
    });
    // The granted credit outlives the expiry of its key.
    assert_eq!(server.cli(&["pttl", "{o}/b"]).trim(), "-1");
}

#[test]
fn a_look_makes_nothing_and_a_shadow_that_was_short_says_so() {
    let server = Server::started();
    let store = server.store();
    runtime().block_on(async {
        let shadow = |count| RemoteCell {
            is_enforced: false,
            ..slow("{o}/shadow", 3, count)
        };
        let looked = done(&store, Verb::Look, vec![shadow(0)]).await;
        assert_eq!((left(&looked), looked.cells[0].touched_ns), (vec![3], None));
        assert_eq!(server.cli(&["dbsize"]).trim(), "0");
        let cells = vec![slow("{o}/a", 10, 4), shadow(4)];
        let taken = done(&store, Verb::Take, cells).await;
        assert_eq!((taken.denied_by, left(&taken)), (None, vec![6, 3]));
        let short: Vec<bool> = taken.cells.iter().map(|cell| cell.is_short).collect();
        assert_eq!(short, [false, true]);
    });
}

#[test]
fn another_capacity_counts_at_once_and_what_was_used_stays_used() {
    let server = Server::started();
    let (old, new) = (store(vec![server.url()], 2), store(vec![server.url()], 2));
    runtime().block_on(async {
        let take = |store, capacity, count| async move {
            left(&done(store, Verb::Take, vec![slow("{o}/a", capacity, count)]).await)
        };
        assert_eq!(take(&old, 100, 80).await, [20]);
        assert_eq!(take(&new, 250, 1).await, [169]);
        assert_eq!(take(&old, 50, 0).await, [-31]);
        assert_eq!(take(&new, 250, 0).await, [169]);
    });
}
