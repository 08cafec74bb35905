use proptest::prelude::*;

use super::*;

/// Sweeps a system whose throughput is `system(rate)`, and returns a transcript of every step.
fn script(options: SweepOptions, system: impl Fn(u64) -> f64) -> String {
    let mut sweep = Sweep::new(options).unwrap();
    let mut transcript = String::new();
    while let Some(attempt) = sweep.attempt() {
        let seen = sweep.observe(system(attempt.rate)).unwrap();
        let gain = seen
            .gain_percent
            .map_or("-".into(), |gain| format!("{gain:+.0}%"));
        let mark = if seen.improved { "better" } else { "no gain" };
        let Attempt { step, phase, rate } = attempt;
        transcript += &format!("{step} {} {rate} {gain} {mark}\n", phase.name());
    }
    match sweep.outcome() {
        Some(found) => {
            let upper = found
                .rate_upper
                .map_or("?".into(), |upper| upper.to_string());
            transcript += &format!(
                "best {} [{}, {upper}]: {}\n",
                found.best_rate, found.rate_lower, found.stop_reason
            );
        }
        None => transcript += "nothing found\n",
    }
    transcript
}

fn saturating(capacity: u64) -> impl Fn(u64) -> f64 {
    move |rate| rate.min(capacity) as f64
}

#[test]
fn a_sweep_narrows_in_on_the_capacity() {
    insta::assert_snapshot!(script(SweepOptions::default(), saturating(5_000)), @r"
    1 coarse 1000 - better
    2 coarse 2000 +100% better
    3 coarse 4000 +100% better
    4 coarse 8000 +25% better
    5 coarse 16000 +0% no gain
    6 coarse 32000 +0% no gain
    7 refine 20000 +0% no gain
    8 refine 14000 +0% no gain
    9 refine 11000 +0% no gain
    10 refine 9500 +0% no gain
    best 8000 [8000, 9500]: throughput stopped improving above 8000/s; refined in 4 steps
    ");
}

#[test]
fn a_collapsing_system_is_reported_as_regressed() {
    let collapsing = |rate: u64| if rate <= 3_000 { rate as f64 } else { 1_000.0 };
    let options = SweepOptions {
        plateau_steps: 1,
        ..SweepOptions::default()
    };
    insta::assert_snapshot!(script(options, collapsing), @r"
    1 coarse 1000 - better
    2 coarse 2000 +100% better
    3 coarse 4000 -50% no gain
    4 refine 3000 +50% better
    5 refine 3500 -67% no gain
    6 refine 3250 -67% no gain
    best 3000 [3000, 3250]: throughput regressed above 2000/s; refined in 3 steps
    ");
}

#[test]
fn the_highest_rate_is_offered_once_and_ends_the_growth() {
    let options = SweepOptions {
        rate_max: Some(3_000),
        ..SweepOptions::default()
    };
    insta::assert_snapshot!(script(options, saturating(1_000_000)), @r"
    1 coarse 1000 - better
    2 coarse 2000 +100% better
    3 coarse 3000 +50% better
    best 3000 [3000, ?]: reached the highest rate allowed, 3000/s
    ");
}

#[test]
fn steps_are_limited_and_growth_is_at_least_one() {
    let options = SweepOptions {
        start_rate: 1,
        growth: 1.0,
        steps_max: 3,
        ..SweepOptions::default()
    };
    insta::assert_snapshot!(script(options, saturating(1_000_000)), @r"
    1 coarse 1 - better
    2 coarse 2 +100% better
    3 coarse 3 +50% better
    best 3 [3, ?]: reached the highest number of steps, 3
    ");
}

#[test]
fn a_dead_system_has_no_capacity() {
    insta::assert_snapshot!(script(SweepOptions::default(), |_| 0.0), @r"
    1 coarse 1000 - no gain
    2 coarse 2000 - no gain
    nothing found
    ");
}

#[test]
fn a_rate_below_a_later_gain_is_not_the_upper_end() {
    let dip = |rate: u64| {
        if rate == 2_000 {
            900.0
        } else {
            rate.min(4_000) as f64
        }
    };
    let text = script(
        SweepOptions {
            refinement_steps: 0,
            ..SweepOptions::default()
        },
        dip,
    );
    assert!(text.contains("best 4000 [4000, 16000]"), "{text}");
}

#[test]
fn all_invalid_sweep_options_are_reported_at_once() {
    let options = SweepOptions {
        start_rate: 0,
        growth: 0.5,
        plateau_steps: 0,
        plateau_threshold: f64::NAN,
        ..SweepOptions::default()
    };
    let error = Sweep::new(options).unwrap_err().to_string();
    for mistake in ["start rate", "growth", "plateau steps", "plateau threshold"] {
        assert!(error.contains(mistake), "{error}");
    }
}

proptest! {
    #[test]
    fn every_sweep_ends_within_its_steps_and_brackets_its_best(
        start_rate in 1u64..100_000,
        rate_max in prop::option::of(1u64..10_000_000),
        growth in 1.0f64..4.0,
        plateau_threshold in 0.0f64..0.5,
        plateau_steps in 1u32..4,
        steps_max in 1u32..20,
        refinement_steps in 0u32..10,
        rate_delta_min in 0u64..1_000,
        noise in prop::collection::vec(0.0f64..2.0, 32),
        capacity in 1u64..1_000_000,
    ) {
        let options = SweepOptions {
            start_rate, rate_max, growth, plateau_threshold, plateau_steps, steps_max,
            refinement_steps, rate_delta_min, repeats: 1,
        };
        let mut sweep = Sweep::new(options).unwrap();
        let mut steps = 0;
        while let Some(attempt) = sweep.attempt() {
            steps += 1;
            prop_assert!(steps <= steps_max + refinement_steps);
            prop_assert!(attempt.rate >= 1 && attempt.rate <= rate_max.unwrap_or(u64::MAX));
            let observed = attempt.rate.min(capacity) as f64 * noise[steps as usize % noise.len()];
            sweep.observe(observed);
        }
        if let Some(found) = sweep.outcome() {
            prop_assert_eq!(found.best_rate, found.rate_lower);
            prop_assert!(found.rate_upper.is_none_or(|upper| upper > found.rate_lower));
        }
        prop_assert_eq!(sweep.observe(1.0), None);
    }
}
