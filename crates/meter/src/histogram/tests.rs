use proptest::prelude::*;

use super::*;

#[test]
fn percentiles_of_evenly_spaced_latencies_are_exact() {
    let mut histogram = Histogram::new();
    (1..=100).for_each(|ms| histogram.record(ms * 1_000_000));
    let summary = histogram.summary().unwrap();
    assert_eq!(summary.count, 100);
    for (actual, expected_ms) in [
        (summary.p50_ns, 50),
        (summary.p90_ns, 90),
        (summary.p99_ns, 99),
        (summary.max_ns, 100),
        (summary.min_ns, 1),
    ] {
        let off = (actual as f64 / (expected_ms as f64 * 1e6) - 1.0).abs();
        assert!(off < 0.001, "{actual} ns is not about {expected_ms} ms");
    }
    assert!((summary.mean_ns / 50.5e6 - 1.0).abs() < 0.001);
}

#[test]
fn an_empty_histogram_has_no_figures() {
    assert_eq!(Histogram::new().summary(), None);
}

#[test]
fn zero_and_absurdly_long_are_counted_not_dropped() {
    let mut histogram = Histogram::new();
    histogram.record(0);
    histogram.record(u64::MAX);
    assert_eq!(histogram.count(), 2);
    assert!(histogram.quantile(1.0) >= HIGHEST_NS);
}

#[test]
fn an_invalid_histogram_is_refused() {
    assert_eq!(
        Histogram::from_base64("***"),
        Err(HistogramError::NotBase64)
    );
    assert!(matches!(
        Histogram::from_base64("AAAA"),
        Err(HistogramError::NotHdr(_))
    ));
    let good = Histogram::new().to_base64();
    assert!(Histogram::from_base64(&good[..good.len() - 8]).is_err());
    assert!(serde_json::from_str::<Histogram>("\"AAAA\"").is_err());
}

#[test]
fn a_histogram_with_other_bounds_is_accepted_if_values_fit() {
    let encode = |value: u64, high: u64| {
        let mut foreign = hdrhistogram::Histogram::<u64>::new_with_bounds(1, high, 2).unwrap();
        foreign.record(value).unwrap();
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(&foreign, &mut bytes).unwrap();
        BASE64.encode(bytes)
    };
    assert_eq!(
        Histogram::from_base64(&encode(5_000, 1_000_000))
            .unwrap()
            .count(),
        1
    );
    let long = Histogram::from_base64(&encode(HIGHEST_NS * 4, HIGHEST_NS * 8));
    assert!(matches!(long, Err(HistogramError::TooLong { .. })));
}

proptest! {
    #[test]
    fn merging_workers_loses_no_sample(
        workers in prop::collection::vec(prop::collection::vec(0u64..10_000_000_000, 0..200), 1..8),
    ) {
        let mut merged = Histogram::new();
        let mut single = Histogram::new();
        for worker in &workers {
            let mut own = Histogram::new();
            worker.iter().for_each(|ns| own.record(*ns));
            worker.iter().for_each(|ns| single.record(*ns));
            merged.merge(&own);
        }
        let completed: usize = workers.iter().map(Vec::len).sum();
        prop_assert_eq!(merged.count(), completed as u64);
        prop_assert_eq!(merged.summary(), single.summary());
    }

    #[test]
    fn base64_and_json_return_the_same_histogram(
        latencies in prop::collection::vec(0u64..u64::MAX, 0..300),
    ) {
        let mut histogram = Histogram::new();
        latencies.iter().for_each(|ns| histogram.record(*ns));
        prop_assert_eq!(&Histogram::from_base64(&histogram.to_base64()).unwrap(), &histogram);
        let json = serde_json::to_string(&histogram).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Histogram>(&json).unwrap(), &histogram);
    }

    #[test]
    fn every_percentile_is_within_the_stated_error(
        mut latencies in prop::collection::vec(1u64..60_000_000_000, 1..400),
        quantile in 0.001f64..1.0,
    ) {
        let mut histogram = Histogram::new();
        latencies.iter().for_each(|ns| histogram.record(*ns));
        latencies.sort_unstable();
        let rank = (quantile * latencies.len() as f64).ceil() as usize;
        let exact = latencies[rank.max(1) - 1] as f64;
        let read = histogram.quantile(quantile) as f64;
        prop_assert!((read / exact - 1.0).abs() <= 0.001, "{} for {}", read, exact);
    }

    #[test]
    fn the_percentile_curve_never_falls(
        latencies in prop::collection::vec(1u64..60_000_000_000, 1..400),
    ) {
        let mut histogram = Histogram::new();
        latencies.iter().for_each(|ns| histogram.record(*ns));
        let points: Vec<_> = histogram.curve(5).collect();
        prop_assert!(points.windows(2).all(|w| w[0].0 <= w[1].0 && w[0].1 <= w[1].1));
        prop_assert_eq!(points.last().unwrap().1, histogram.quantile(1.0));
    }
}
