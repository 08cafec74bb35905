//! Order in which the repeats of several cases run.
//!
//! Machines drift: they warm up, throttle, get neighbours. Repeats are therefore interleaved, and every
//! other round runs backwards (A B C, C B A, …), so that a steady drift adds the same to each case.

/// Returns the order of a suite: `(position of the case, repeat from 1)`.
pub fn interleaved(cases: usize, repeats: u32) -> impl Iterator<Item = (usize, u32)> {
    (1..=repeats).flat_map(move |repeat| {
        (0..cases).map(move |position| {
            let backwards = repeat % 2 == 0;
            (
                if backwards {
                    cases - 1 - position
                } else {
                    position
                },
                repeat,
            )
        })
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn two_cases_run_a_b_b_a() {
        let order: Vec<_> = interleaved(2, 3).collect();
        assert_eq!(order, [(0, 1), (1, 1), (1, 2), (0, 2), (0, 3), (1, 3)]);
    }

    proptest! {
        #[test]
        fn a_steady_drift_adds_the_same_to_every_case(cases in 1usize..8, pairs in 1u32..6) {
            let mut drift = vec![0; cases];
            for (order, (case, _)) in interleaved(cases, 2 * pairs).enumerate() {
                drift[case] += order;
            }
            prop_assert!(drift.iter().all(|sum| *sum == drift[0]));
        }

        #[test]
        fn every_case_runs_every_repeat_once(cases in 0usize..8, repeats in 0u32..8) {
            let mut order: Vec<_> = interleaved(cases, repeats).collect();
            order.sort_unstable();
            let all: Vec<_> =
                (0..cases).flat_map(|case| (1..=repeats).map(move |repeat| (case, repeat))).collect();
            prop_assert_eq!(order, all);
        }
    }
}
