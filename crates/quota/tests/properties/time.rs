//! Properties of clocks that step, and of weights.

use proptest::prelude::*;
use quota::{Decision, Every, Unit};

use crate::world::{SECOND, World, bucket, budget, limit};

proptest! {
    #[test]
    fn clock_step_back_refills_nothing(
        script in prop::collection::vec((0_u64..100 * SECOND, 1_u64..20), 1..100),
    ) {
        let mut world = World::new(vec![
            limit("a", "*/*/*", Unit::REQUESTS, bucket(20, 3, SECOND)),
            limit("b", "*/*/*", Unit::TOKENS, budget(50, Every::Minute)),
        ]);
        // The latest time seen when each take was admitted: time advances in no other way.
        let mut latest = 0;
        let mut admitted: Vec<(u64, u64)> = Vec::new();
        let mut spent = [0; 2];
        for (now, count) in script {
            latest = latest.max(now);
            if world.take("a/b/c", &[(Unit::REQUESTS, count)], now) == Decision::Admitted {
                admitted.push((latest, count));
            }
            if world.take("a/b/c", &[(Unit::TOKENS, count)], now) == Decision::Admitted {
                spent[usize::from(latest >= 60 * SECOND)] += count;
            }
        }
        prop_assert!(spent[0] <= 50 && spent[1] <= 50, "{spent:?}");
        for first in 0..admitted.len() {
            let mut sum = 0;
            for (at, count) in &admitted[first..] {
                sum += count;
                let passed = at - admitted[first].0;
                prop_assert!(sum * SECOND <= 20 * SECOND + passed * 3);
            }
        }
    }

    #[test]
    fn a_weight_multiplies_the_refill(weight in 1_u32..1_000, seconds in 0_u64..1_000) {
        let mut heavy = limit("a", "*/*/*", Unit::TOKENS, bucket(1_000_000, 2, SECOND));
        heavy.weight = weight;
        let mut world = World::new(vec![heavy]);
        let _ = world.take("a/b/c", &[(Unit::TOKENS, 1_000_000)], 0);
        let left = world.peek("a/b/c", seconds * SECOND)[0].0;
        prop_assert_eq!(left, i128::from((u64::from(weight) * 2 * seconds).min(1_000_000)));
    }
}
