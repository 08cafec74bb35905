//! Latencies in nanoseconds, counted in buckets that are never wider than 1/256 of their value.
//!
//! Values below 512 have a bucket each; above, every power of two is cut into 256 buckets. A
//! percentile is the upper end of its bucket, so it is never flattering and at most 0.4 % too
//! high. Minimum, maximum and mean are exact.

const BITS: u32 = 8;
const CUTS: u64 = 1 << BITS;
/// Values from 2^40 ns (18 minutes) on share the last bucket.
const VALUE_MAX: u64 = (1 << 40) - 1;
const BUCKETS: usize = index_of(VALUE_MAX) + 1;

/// A count of values by size.
#[derive(Clone)]
pub struct Histogram {
    counts: Vec<u64>,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram {
            counts: vec![0; BUCKETS],
            count: 0,
            sum: 0,
            min: u64::MAX,
            max: 0,
        }
    }
}

impl Histogram {
    /// Counts one value.
    pub fn record(&mut self, value: u64) {
        self.counts[index_of(value.min(VALUE_MAX))] += 1;
        self.count += 1;
        self.sum += u128::from(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Adds all values of another histogram.
    pub fn merge(&mut self, other: &Histogram) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.count += other.count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// How many values were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The smallest value, or 0.
    pub fn min(&self) -> u64 {
        if self.count == 0 { 0 } else { self.min }
    }

    /// The largest value, or 0.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The arithmetic mean, or 0.
    pub fn mean(&self) -> f64 {
        if self.count == 0 {
            0.0
        } else {
            self.sum as f64 / self.count as f64
        }
    }

    /// The smallest bucket end that at least `fraction` of the values do not exceed, or 0.
    pub fn quantile(&self, fraction: f64) -> u64 {
        let rank = (fraction * self.count as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return end_of(index).min(self.max);
            }
        }
        self.max
    }
}

const fn index_of(value: u64) -> usize {
    if value < 2 * CUTS {
        return value as usize;
    }
    let shift = value.ilog2() - BITS;
    (shift as u64 * CUTS + (value >> shift)) as usize
}

/// The largest value that falls into a bucket.
fn end_of(index: usize) -> u64 {
    let index = index as u64;
    if index < 2 * CUTS {
        return index;
    }
    let shift = index / CUTS - 1;
    ((index % CUTS + CUTS + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bucket_ends_where_the_next_begins() {
        for index in 0..BUCKETS {
            let end = end_of(index);
            assert_eq!(index_of(end), index);
            assert_eq!(
                index_of((end + 1).min(VALUE_MAX)),
                (index + 1).min(BUCKETS - 1)
            );
        }
    }

    #[test]
    fn quantiles_are_within_one_part_in_256_and_never_too_low() {
        let mut histogram = Histogram::default();
        (1..=100_000).for_each(|value| histogram.record(value * 10));
        for (fraction, exact) in [(0.5, 500_000), (0.99, 990_000), (0.999, 999_000)] {
            let found = histogram.quantile(fraction);
            assert!(
                found >= exact && found <= exact + exact / 256,
                "{fraction}: {found}"
            );
        }
        assert_eq!((histogram.min(), histogram.max()), (10, 1_000_000));
        assert_eq!(histogram.mean(), 500_005.0);
        assert_eq!(histogram.quantile(1.0), 1_000_000);
    }

    #[test]
    fn merging_equals_recording_in_one() {
        let (mut left, mut right, mut both) = (
            Histogram::default(),
            Histogram::default(),
            Histogram::default(),
        );
        for value in 0..5_000u64 {
            let value = value * value;
            if value % 2 == 0 {
                left.record(value)
            } else {
                right.record(value)
            }
            both.record(value);
        }
        left.merge(&right);
        assert_eq!(left.counts, both.counts);
        assert_eq!(
            (left.count(), left.min(), left.max(), left.mean()),
            (both.count(), both.min(), both.max(), both.mean())
        );
    }

    #[test]
    fn an_empty_histogram_is_all_zero_and_a_huge_value_is_kept_as_the_maximum() {
        let mut histogram = Histogram::default();
        assert_eq!(
            (histogram.min(), histogram.max(), histogram.quantile(0.5)),
            (0, 0, 0)
        );
        histogram.record(u64::MAX);
        assert_eq!(
            (histogram.max(), histogram.quantile(0.5)),
            (u64::MAX, VALUE_MAX)
        );
    }
}
