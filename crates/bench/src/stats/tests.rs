use proptest::prelude::*;

use super::*;

fn close(actual: f64, expected: f64, tolerance: f64) {
    assert!(
        (actual - expected).abs() <= tolerance,
        "{actual} is not {expected} ± {tolerance}"
    );
}

#[test]
fn student_quantiles_equal_published_tables() {
    // NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2, with more digits from R's qt().
    for (degrees, expected) in [
        (1.0, 12.706_204_736),
        (2.0, 4.302_652_730),
        (4.0, 2.776_445_105),
        (9.0, 2.262_157_163),
        (24.0, 2.063_898_562),
        (100.0, 1.983_971_519),
        (1e4, 1.960_201_240),
        (1.000_01e4, 1.960_201_238),
        (1e6, 1.959_966_357),
        (f64::INFINITY, 1.959_963_985),
    ] {
        close(student_t(degrees).unwrap(), expected, 3e-8);
    }
    assert_eq!(student_t(0.0), None);
    assert_eq!(student_t(f64::NAN), None);
}

#[test]
fn statistics_of_a_textbook_sample_are_exact() {
    // 2 4 4 4 5 5 7 9: mean 5, sum of squares 32, s² = 32/7.
    let d = describe(&[9.0, 2.0, 4.0, 4.0, 5.0, 4.0, 5.0, 7.0]).unwrap();
    assert_eq!(
        (d.count, d.mean, d.min, d.max, d.median),
        (8, 5.0, 2.0, 9.0, 4.5)
    );
    close(d.variance.unwrap(), 32.0 / 7.0, 1e-12);
    close(d.deviation.unwrap(), 2.138_089_935, 1e-9);
    close(d.variation.unwrap(), 0.427_617_987, 1e-9);
    // t(0.975, 7) = 2.364624252; margin = t·s/√8.
    let interval = d.interval.unwrap();
    close(interval.low, 5.0 - 1.787_487_9, 1e-6);
    close(interval.high, 5.0 + 1.787_487_9, 1e-6);
}

#[test]
fn single_value_has_a_mean_but_no_variance_or_interval() {
    let d = describe(&[7.0]).unwrap();
    assert_eq!((d.mean, d.median, d.min, d.max), (7.0, 7.0, 7.0, 7.0));
    assert_eq!(
        (d.variance, d.deviation, d.variation, d.interval),
        (None, None, None, None)
    );
    assert_eq!(describe(&[]), None);
    assert_eq!(describe(&[1.0, f64::NAN]), None);
}

#[test]
fn a_small_spread_around_a_large_mean_loses_no_digits() {
    let d = describe(&[1e9 + 1.0, 1e9 + 2.0, 1e9 + 3.0]).unwrap();
    assert_eq!(d.variance, Some(1.0));
}

#[test]
fn welch_degrees_and_fieller_roots_are_exact() {
    // Degrees computed apart from this code, with exact rationals.
    let a = describe(&[27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1, 21.9, 22.6]).unwrap();
    let b = describe(&[27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8]).unwrap();
    let c = compare(&a, &b, Better::Higher);
    close(c.degrees.unwrap(), 14.954_818_515_277, 1e-9);
    assert_eq!(c.verdict, Verdict::Slower);
    let (va, vb) = (a.variance.unwrap() / 10.0, b.variance.unwrap() / 7.0);
    let t = student_t(c.degrees.unwrap()).unwrap();
    let interval = c.interval.unwrap();
    for rho in [interval.low, interval.high] {
        let distance = (a.mean - rho * b.mean).abs() / (va + rho * rho * vb).sqrt();
        close(distance, t, 1e-9);
    }
}

#[test]
fn equal_samples_show_no_difference() {
    let d = describe(&[10.0, 11.0, 12.0, 9.0]).unwrap();
    let c = compare(&d, &d, Better::Higher);
    assert_eq!(c.verdict, Verdict::NoDifferenceShown);
    assert_eq!(c.ratio, Some(1.0));
    assert!(c.interval.unwrap().contains(1.0));
}

#[test]
fn a_single_run_has_no_comparison() {
    let one = describe(&[10.0]).unwrap();
    let many = describe(&[1.0, 2.0, 3.0]).unwrap();
    let c = compare(&one, &many, Better::Higher);
    assert_eq!(
        (c.ratio, c.interval, c.verdict),
        (Some(5.0), None, Verdict::NotComparable)
    );
    let zero = describe(&[0.0, 0.0]).unwrap();
    assert_eq!(
        compare(&many, &zero, Better::Higher).verdict,
        Verdict::NotComparable
    );
}

#[test]
fn lower_is_faster_for_latency() {
    let fast = describe(&[1.0, 1.1, 0.9]).unwrap();
    let slow = describe(&[2.0, 2.1, 1.9]).unwrap();
    assert_eq!(
        compare(&fast, &slow, Better::Lower).verdict,
        Verdict::Faster
    );
    assert_eq!(
        compare(&slow, &fast, Better::Lower).verdict,
        Verdict::Slower
    );
    assert_eq!(
        compare(&fast, &slow, Better::Higher).verdict,
        Verdict::Slower
    );
}

#[test]
fn samples_without_spread_differ_by_their_means_alone() {
    let (two, three) = (
        describe(&[2.0, 2.0]).unwrap(),
        describe(&[3.0, 3.0]).unwrap(),
    );
    let c = compare(&three, &two, Better::Higher);
    assert_eq!(c.verdict, Verdict::Faster);
    assert_eq!(
        c.interval,
        Some(Interval {
            low: 1.5,
            high: 1.5
        })
    );
}

#[test]
fn a_baseline_near_zero_has_no_ratio_interval() {
    let noisy = describe(&[0.1, 10.0, 0.2]).unwrap();
    let sure = describe(&[5.0, 5.1, 4.9]).unwrap();
    assert_eq!(compare(&sure, &noisy, Better::Higher).interval, None);
}

proptest! {
    #[test]
    fn the_interval_contains_one_exactly_when_no_difference_is_shown(
        a in prop::collection::vec(1.0f64..1000.0, 2..20),
        b in prop::collection::vec(1.0f64..1000.0, 2..20),
    ) {
        let c = compare(&describe(&a).unwrap(), &describe(&b).unwrap(), Better::Higher);
        if let Some(interval) = c.interval {
            let shown = c.verdict == Verdict::NoDifferenceShown;
            prop_assert_eq!(interval.contains(1.0), shown);
            prop_assert!(interval.contains(c.ratio.unwrap()));
        }
    }

    #[test]
    fn the_mean_lies_between_the_extremes_and_the_interval_around_it(
        values in prop::collection::vec(0.0f64..1e9, 2..60),
    ) {
        let d = describe(&values).unwrap();
        let slack = d.max * 1e-12;
        prop_assert!(d.min <= d.mean + slack && d.mean <= d.max + slack);
        prop_assert!(d.min <= d.median && d.median <= d.max);
        prop_assert!(d.interval.unwrap().contains(d.mean));
    }
}
