use platform::testing::{self, ManualClock};

use super::latency::quantile_ms;
use super::*;
use crate::Parts;

/// Records samples of a node whose clock jumps by five seconds before each.
fn samples(count: usize) -> (Node, Vec<Sample>) {
    let clock = ManualClock::at(1_000);
    let node = Node::open(Parts::in_memory(testing::ports(clock.clone(), 1))).unwrap();
    for _ in 0..count {
        node.counters().add_to(platform::Counter::Requests, 10);
        node.record_sample(ProcessReading::default());
        clock.pass_ns(5_000_000_000);
        clock.step_wall_ms(5_000);
    }
    let samples = node.history().newest(usize::MAX);
    (node, samples)
}

#[test]
fn rates_are_changes_per_second() {
    let (_, samples) = samples(3);
    assert_eq!(
        samples.len(),
        2,
        "the first call is the start of the first interval"
    );
    for sample in samples {
        assert_eq!(sample.value(Series::Requests), Some(2.0));
        assert_eq!(sample.value(Series::HttpP99), None, "there was no request");
    }
}

#[test]
fn full_history_drops_its_oldest_samples() {
    let (node, samples) = samples(History::SAMPLES_MAX + 11);
    assert_eq!(samples.len(), History::SAMPLES_MAX);
    let times: Vec<_> = samples.iter().map(|sample| sample.unix_ms).collect();
    assert!(times.windows(2).all(|pair| pair[0] + 5_000 == pair[1]));
    let newest = node.history().newest(2);
    assert_eq!(newest.len(), 2);
    assert_eq!(newest[1].unix_ms, *times.last().unwrap());
}

#[test]
fn quantiles_are_bounds_of_buckets() {
    let counts = LatencyCounts::default();
    for _ in 0..98 {
        counts.count(Duration::from_micros(700));
    }
    counts.count(Duration::from_millis(90));
    counts.count(Duration::from_secs(86_400));
    let counts = counts.get();
    let counts = (0..counts.len()).map(|bucket| (Some(latency::bound_ns(bucket)), counts[bucket]));
    assert_eq!(quantile_ms(counts.clone(), 0.5), Some(0.768));
    assert_eq!(quantile_ms(counts.clone(), 0.99), Some(98.304));
    assert_eq!(quantile_ms(counts.clone().take(3), 0.99), None);
    assert!(quantile_ms(counts, 1.0).unwrap() > 60_000.0);
}
