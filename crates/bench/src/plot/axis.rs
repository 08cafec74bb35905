//! Axis scales and their ticks.

use super::svg::Svg;

/// A mapping from values to coordinates.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    start: f64,
    end: f64,
    log: bool,
}

impl Scale {
    /// Maps the values `low..=high` linearly to `start..=end`.
    pub(super) fn linear([low, high]: [f64; 2], [start, end]: [f64; 2]) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        Self {
            low,
            high,
            start,
            end,
            log: false,
        }
    }

    /// Maps positive values by their logarithm.
    pub(super) fn log([low, high]: [f64; 2], [start, end]: [f64; 2]) -> Self {
        let low = low.max(f64::MIN_POSITIVE);
        let high = if high > low { high } else { low * 10.0 };
        Self {
            low,
            high,
            start,
            end,
            log: true,
        }
    }

    pub(super) fn at(&self, value: f64) -> f64 {
        let share = if self.log {
            (value.max(self.low) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.start + share.clamp(0.0, 1.0) * (self.end - self.start)
    }

    /// Returns round values inside the scale: about `count` on a linear one, 1 · 2 · 5 on a
    /// logarithmic one.
    pub(super) fn ticks(&self, count: usize) -> Vec<f64> {
        if self.log {
            self.log_ticks()
        } else {
            self.linear_ticks(count)
        }
    }

    fn linear_ticks(&self, count: usize) -> Vec<f64> {
        let step = round_step((self.high - self.low) / count.max(1) as f64);
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        (first..=last).map(|index| index as f64 * step).collect()
    }

    fn log_ticks(&self) -> Vec<f64> {
        let decades = (self.high / self.low).log10();
        let steps: &[f64] = if decades > 2.5 {
            &[1.0]
        } else {
            &[1.0, 2.0, 5.0]
        };
        let (first, last) = (
            self.low.log10().floor() as i32,
            self.high.log10().ceil() as i32,
        );
        let all = (first..=last).flat_map(|power| steps.iter().map(move |s| s * 10f64.powi(power)));
        let slack = 1.0 + 1e-9;
        all.filter(|tick| *tick * slack >= self.low && *tick <= self.high * slack)
            .collect()
    }
}

/// Returns the smallest of 1, 2, 2.5, 5 · 10ⁿ that is at least `step`.
fn round_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let round = [1.0, 2.0, 2.5, 5.0, 10.0]
        .into_iter()
        .find(|one| one * power >= step * (1.0 - 1e-9));
    round.unwrap_or(10.0) * power
}

/// Returns the extremes of the values, widened by `share` of their distance on each side. `None`
/// when empty.
pub(super) fn extent(values: impl Iterator<Item = f64>, share: f64) -> Option<[f64; 2]> {
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for value in values.filter(|value| value.is_finite()) {
        (low, high) = (low.min(value), high.max(value));
    }
    if low > high {
        return None;
    }
    let margin = if high > low {
        (high - low) * share
    } else {
        high.abs().max(1e-9) * share
    };
    Some([low - margin, high + margin])
}

/// Draws grid lines and labels along x, at the bottom of a plot that spans `top..bottom`.
pub(super) fn along_x(
    svg: &mut Svg,
    scale: &Scale,
    [top, bottom]: [f64; 2],
    label: impl Fn(f64) -> String,
) {
    for tick in scale.ticks(5) {
        let x = scale.at(tick);
        svg.line([x, top], [x, bottom], "grid");
        let class = if x < 10.0 { "small" } else { "small middle" };
        svg.text([x, bottom + 15.0], class, &label(tick));
    }
}

/// Draws grid lines and labels along y, at the left of a plot that spans `left..right`.
pub(super) fn along_y(
    svg: &mut Svg,
    scale: &Scale,
    [left, right]: [f64; 2],
    label: impl Fn(f64) -> String,
) {
    for tick in scale.ticks(5) {
        let y = scale.at(tick);
        svg.line([left, y], [right, y], "grid");
        svg.text([left - 6.0, y + 4.0], "small end", &label(tick));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        let scale = Scale::linear([0.0, 1_060.0], [0.0, 100.0]);
        assert_eq!(scale.ticks(5), [0.0, 250.0, 500.0, 750.0, 1_000.0]);
        let scale = Scale::log([0.3, 40.0], [0.0, 100.0]);
        assert_eq!(scale.ticks(5), [0.5, 1.0, 2.0, 5.0, 10.0, 20.0]);
        let scale = Scale::log([0.01, 1_000.0], [0.0, 100.0]);
        assert_eq!(scale.ticks(5).len(), 6);
    }

    #[test]
    fn values_outside_are_clamped_to_the_edge() {
        let scale = Scale::linear([0.0, 10.0], [100.0, 0.0]);
        assert_eq!(
            [scale.at(-5.0), scale.at(5.0), scale.at(50.0)],
            [100.0, 50.0, 0.0]
        );
        assert_eq!(Scale::log([1.0, 100.0], [0.0, 2.0]).at(10.0), 1.0);
        assert!(Scale::linear([3.0, 3.0], [0.0, 1.0]).at(3.0).is_finite());
    }

    #[test]
    fn an_extent_has_a_positive_width() {
        assert_eq!(extent([].into_iter(), 0.1), None);
        let [low, high] = extent([5.0, 5.0].into_iter(), 0.1).unwrap();
        assert!(low < 5.0 && high > 5.0);
    }
}
