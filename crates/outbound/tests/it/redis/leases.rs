//! Leases: credit spent on a node was debited in Redis.

use outbound::redis::script::{Call, Script, decision, leased};
use proptest::prelude::*;
use quota::{Bucket, Kind};
use quota_service::quota_store::{Lease, QuotaStore, RemoteCell, RemoteTake, ReturnedLease, Verb};

use super::server::{SECOND, Server, runtime, slow, store, take};

#[derive(Clone, Debug)]
enum Step {
    Pass(u64),
    /// Returns the rest of the previous lease.
    Lease(usize, u64),
    /// Spends all of it, or leaves this amount.
    Spend(usize, u64),
    Die(usize),
    /// A share of the available credit, in hundredths.
    Take(u64),
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..SECOND).prop_map(Step::Pass),
        1 => (0..10 * SECOND).prop_map(Step::Pass),
        4 => (0..3_usize, 0..100_u64).prop_map(|(holder, want)| Step::Lease(holder, want)),
        6 => (0..3_usize, 0..20_u64).prop_map(|(holder, count)| Step::Spend(holder, count)),
        1 => (0..3_usize).prop_map(Step::Die),
        6 => (1..101_u64).prop_map(Step::Take),
    ]
}

/// A node with leases: the lease, its time, and the amount spent.
type Holder = Option<(Lease, u64, u64)>;

/// Admitted amounts by time.
fn admitted(
    connection: &mut redis::Connection,
    bucket: Bucket,
    nodes: u32,
    steps: &[Step],
) -> Vec<(u64, u64)> {
    redis::cmd("FLUSHALL").exec(connection).unwrap();
    let (script, mut now_ns) = (Script::default(), 1_790_000_000 * SECOND);
    let cell = |count: u64| RemoteCell {
        kind: Kind::Bucket(bucket),
        ..slow("{o}/a", 0, count as i64)
    };
    let (mut holders, mut admitted) = ([const { None::<(Lease, u64, u64)> }; 3], Vec::new());
    for step in steps {
        match *step {
            Step::Pass(ns) => now_ns += ns,
            Step::Die(holder) => holders[holder] = None,
            Step::Lease(holder, want) => {
                let before: Holder = holders[holder].take();
                let before = before.map(|(lease, _, spent)| ReturnedLease { lease, spent });
                let want = want * bucket.capacity / 60;
                let call = Call::lease(&cell(0), want, before, nodes, Some(now_ns));
                let call = script.with_source(&call);
                let lease = leased(call.query(connection).unwrap()).unwrap();
                holders[holder] = Some((lease, now_ns, 0));
            }
            Step::Spend(holder, rest) => {
                if let Some((lease, asked_ns, spent)) = &mut holders[holder]
                    && now_ns < *asked_ns + lease.lasts_ns
                {
                    let count = (lease.granted - *spent).saturating_sub(rest / 2);
                    *spent += count;
                    admitted.push((now_ns, count));
                }
            }
            Step::Take(share) => {
                let count = (bucket.capacity * share).div_ceil(100);
                let take = RemoteTake {
                    verb: Verb::Take,
                    cells: vec![cell(count)],
                };
                let call = script.with_source(&Call::take(&take, Some(now_ns)));
                let decided = decision(call.query(connection).unwrap()).unwrap();
                if decided.denied_by.is_none() {
                    admitted.push((now_ns, count));
                }
            }
        }
    }
    admitted
}

#[test]
fn leases_never_admit_more_than_capacity_plus_refill_in_any_interval() {
    let server = Server::started_with(&["--appendonly", "no"]);
    let client = redis::Client::open(server.url()).unwrap();
    let connection = std::cell::RefCell::new(client.get_connection().unwrap());
    let config = ProptestConfig {
        cases: 256,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let given = (
        1..60_u64,
        1..400_u64,
        1..3_u32,
        // Values that doubles represent exactly, and others.
        proptest::sample::select(vec![1, 1_000_000_007_u64]),
        proptest::collection::vec(any_step(), 1..60),
    );
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let ran = runner.run(&given, |(capacity, amount, nodes, scale, steps)| {
        let period_ns = SECOND;
        let (capacity, amount) = (capacity * scale, amount * scale);
        let bucket = Bucket {
            capacity,
            amount,
            period_ns,
        };
        let admitted = admitted(&mut connection.borrow_mut(), bucket, nodes, &steps);
        for (first, &(from_ns, _)) in admitted.iter().enumerate() {
            let mut sum = 0_u128;
            for &(until_ns, count) in &admitted[first..] {
                sum += u128::from(count);
                let there = u128::from(capacity) * u128::from(period_ns)
                    + u128::from(amount) * u128::from(until_ns - from_ns);
                prop_assert!(sum * u128::from(period_ns) <= there, "{:?}", admitted);
            }
        }
        Ok(())
    });
    if let Err(error) = ran {
        panic!("{error}");
    }
}

#[test]
fn leases_and_takes_together_admit_exactly_the_capacity() {
    let server = Server::started();
    let spent = runtime().block_on(async {
        let (one, two) = (store(vec![server.url()], 3), store(vec![server.url()], 3));
        let (mut spent, mut before) = (0, None);
        loop {
            let lease = one
                .lease(slow("{o}/a", 100, 0), 1_000, before)
                .await
                .unwrap();
            assert!(lease.granted <= 9, "a twelfth at most: {lease:?}");
            if lease.granted == 0 {
                assert!(lease.retry_after_ns.is_some());
                return spent;
            }
            // Half of it is spent; the rest is returned with the next lease.
            let half = lease.granted.div_ceil(2);
            before = Some(ReturnedLease { lease, spent: half });
            spent += half;
            let decided = two.decide(take(vec![slow("{o}/a", 100, 1)])).await.unwrap();
            spent += u64::from(decided[0].denied_by.is_none());
        }
    });
    assert_eq!(spent, 100);
}

#[test]
fn a_lost_lease_costs_only_its_granted_credit() {
    let server = Server::started();
    runtime().block_on(async {
        let dying = store(vec![server.url()], 2);
        let lease = dying
            .lease(slow("{o}/a", 80, 0), 1_000, None)
            .await
            .unwrap();
        assert_eq!((lease.granted, lease.have), (10, 70));
        drop(dying);
        let other = store(vec![server.url()], 2);
        let mut admitted = 0;
        while other
            .decide(take(vec![slow("{o}/a", 80, 1)]))
            .await
            .unwrap()[0]
            .denied_by
            .is_none()
        {
            admitted += 1;
        }
        assert_eq!(admitted, 70);
    });
}
