//! A slow, obviously correct reference limiter, which computes every take with fractions.

use proptest::prelude::*;
use quota::{Decision, Unit, When};

use crate::world::{SECOND, World, bucket, limit};

/// Credit as a fraction with the denominator `period_ns`, refilled at every step of the script.
struct ReferenceBucket {
    credit: i128,
    at: u64,
    capacity: u64,
    amount: u64,
    period_ns: u64,
}

impl ReferenceBucket {
    fn take(&mut self, count: u64, now: u64) -> bool {
        let full = i128::from(self.capacity) * i128::from(self.period_ns);
        // Advances in strides that end when the bucket is full.
        let mut left = now.saturating_sub(self.at);
        self.at = now.max(self.at);
        while left > 0 && self.credit < full {
            let stride = left.min(1_000);
            self.credit = (self.credit + i128::from(stride) * i128::from(self.amount)).min(full);
            left -= stride;
        }
        let cost = i128::from(count) * i128::from(self.period_ns);
        let passes = self.credit >= cost;
        if passes {
            self.credit -= cost;
        }
        passes
    }
}

proptest! {
    #[test]
    fn every_decision_equals_that_of_a_reference_model(
        capacity in 1_u64..50,
        amount in 0_u64..20,
        period_ns in 1_u64..5_000,
        script in prop::collection::vec((0_u64..3_000, 1_u64..60), 1..120),
    ) {
        let kind = bucket(capacity, amount, period_ns);
        let mut world = World::new(vec![limit("a", "*/*/*", Unit::REQUESTS, kind)]);
        let full = i128::from(capacity) * i128::from(period_ns);
        let mut slow = ReferenceBucket { credit: full, at: 0, capacity, amount, period_ns };
        let mut now = 0;
        for (wait, count) in script {
            now += wait;
            let decided = world.take("a/b/c", &[(Unit::REQUESTS, count)], now);
            if count > capacity {
                prop_assert!(matches!(decided, Decision::Refused(_)));
            } else {
                prop_assert_eq!(decided == Decision::Admitted, slow.take(count, now));
            }
        }
    }

    #[test]
    fn every_interval_admits_at_most_capacity_plus_refill(
        capacity in 1_u64..100,
        amount in 0_u64..50,
        period_ns in 1_u64..10_000,
        script in prop::collection::vec((0_u64..4_000, 1_u64..100), 1..80),
    ) {
        let kind = bucket(capacity, amount, period_ns);
        let mut world = World::new(vec![limit("a", "*/*/*", Unit::REQUESTS, kind)]);
        let mut admitted = Vec::new();
        let mut now = 0;
        for (wait, count) in script {
            now += wait;
            if world.take("a/b/c", &[(Unit::REQUESTS, count)], now) == Decision::Admitted {
                admitted.push((now, count));
            }
        }
        for first in 0..admitted.len() {
            let mut sum = 0;
            for (at, count) in &admitted[first..] {
                sum += i128::from(*count);
                let elapsed = i128::from(at - admitted[first].0);
                let most = i128::from(capacity) * i128::from(period_ns) + elapsed * i128::from(amount);
                prop_assert!(sum * i128::from(period_ns) <= most);
            }
        }
    }

    #[test]
    fn the_predicted_admission_time_of_a_denied_take_is_exact(
        capacity in 1_u64..1_000_000,
        amount in 0_u64..1_000_000,
        period_ns in 1_u64..100_000_000_000,
        taken in 1_u64..1_000_000,
        wanted in 1_u64..1_000_000,
        start in 0_u64..1_000_000_000,
    ) {
        prop_assume!(taken <= capacity && wanted <= capacity);
        let kind = bucket(capacity, amount, period_ns);
        let limits = || vec![limit("a", "*/*/*", Unit::REQUESTS, kind)];
        let mut world = World::new(limits());
        prop_assert_eq!(world.take("a/b/c", &[(Unit::REQUESTS, taken)], start), Decision::Admitted);
        match world.take("a/b/c", &[(Unit::REQUESTS, wanted)], start) {
            Decision::Admitted => prop_assert!(taken + wanted <= capacity),
            Decision::Denied(denied) => match denied.when {
                When::At(at) => {
                    let before = world.take("a/b/c", &[(Unit::REQUESTS, wanted)], at - 1);
                    prop_assert!(matches!(before, Decision::Denied(_)));
                    let then = world.take("a/b/c", &[(Unit::REQUESTS, wanted)], at);
                    prop_assert_eq!(then, Decision::Admitted);
                }
                when => prop_assert!(when == When::Never && amount == 0),
            },
            other => prop_assert!(false, "{other:?}"),
        }
    }
}

#[test]
fn apache_bench_is_allowed_a_hundred_and_ten_for_each_second() {
    // 1,000 requests spread evenly over 1.984 s: 119 are admitted.
    let kind = bucket(100, 10, SECOND);
    let mut world = World::new(vec![limit("a", "*/*/*", Unit::REQUESTS, kind)]);
    let end_ns = 1_984_000_000_u64;
    let admitted = (0..1_000_u64)
        .filter(|n| {
            let now = n * end_ns / 999;
            world.take("default/default/ab", &[(Unit::REQUESTS, 1)], now) == Decision::Admitted
        })
        .count();
    assert_eq!(admitted, 119);
}

#[test]
fn idle_bucket_refills_to_exactly_its_capacity() {
    for idle_s in [0, 9, 10, 11, 100, 86_400, 10 * 365 * 86_400] {
        let kind = bucket(100, 10, SECOND);
        let mut world = World::new(vec![limit("a", "*/*/*", Unit::REQUESTS, kind)]);
        let _ = world.take("a/b/c", &[(Unit::REQUESTS, 1)], 0);
        let admitted = world.drain("a/b/c", idle_s * SECOND);
        assert_eq!(admitted, if idle_s == 0 { 99 } else { 100 }, "{idle_s} s");
    }
}
