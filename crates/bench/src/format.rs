//! Formats of numbers and texts in reports. An absent figure is always `n/a`.

use crate::model::Unit;
use crate::stats::Interval;

/// Text for a figure that was not measured.
pub(crate) const ABSENT: &str = "n/a";

/// Formats a figure with two decimals, as in the reports we reproduce.
pub(crate) fn fixed(value: Option<f64>) -> String {
    decimal(value, 2)
}

/// Formats a figure with `decimals` decimals.
pub(crate) fn decimal(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| ABSENT.to_owned(), |value| format!("{value:.decimals$}"))
}

/// Formats an interval with two decimals: `[927.46, 934.66]`.
pub(crate) fn interval(interval: Option<Interval>) -> String {
    interval_decimal(interval, 2)
}

/// Formats an interval with `decimals` decimals.
pub(crate) fn interval_decimal(interval: Option<Interval>, decimals: usize) -> String {
    interval.map_or_else(
        || ABSENT.to_owned(),
        |Interval { low, high }| format!("[{low:.decimals$}, {high:.decimals$}]"),
    )
}

/// Formats half an interval as a share of the mean: `± 1.2 %`.
pub(crate) fn margin(mean: f64, interval: Interval) -> String {
    if mean == 0.0 {
        return ABSENT.to_owned();
    }
    let half = (interval.high - mean).max(mean - interval.low);
    format!("± {:.1} %", 100.0 * half / mean.abs())
}

/// Formats a whole number.
pub(crate) fn count(value: Option<f64>) -> String {
    value.map_or_else(|| ABSENT.to_owned(), |value| format!("{value:.0}"))
}

/// Formats a number with thousands separators: `12,312.78`.
pub(crate) fn thousands(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut out = String::new();
    for (position, digit) in whole.chars().enumerate() {
        if position > 0 && (whole.len() - position) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    let sign = if value < 0.0 && text.chars().any(|c| c.is_ascii_digit() && c != '0') {
        "-"
    } else {
        ""
    };
    format!("{sign}{out}{rest}")
}

/// Formats three significant figures without an exponent: `0.0921`, `9.21`, `921`, `92,100`.
pub(crate) fn figures(value: f64) -> String {
    significant(value, 3)
}

fn significant(value: f64, digits: i32) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let power = |value: f64| digits - 1 - value.abs().log10().floor() as i32;
    // Rounding may carry into a further digit, as in 9.999 to 10.0.
    let scale = 10f64.powi(power(value));
    let rounded = (value * scale).round() / scale;
    thousands(rounded, power(rounded).clamp(0, 9) as usize)
}

/// Formats a figure in a readable unit: `1.61 ms`, `18.4 µs`, `147,000/s`.
pub(crate) fn human(value: f64, unit: Unit) -> String {
    let (scale, name) = scaled(value, unit);
    match unit {
        Unit::Count => thousands(value, 0),
        Unit::Bytes => bytes(value as u64),
        _ => format!("{}{name}", figures(value * scale)),
    }
}

/// Formats an interval in one unit, with enough figures to distinguish its ends: `912.4 – 931.0
/// µs`.
pub(crate) fn human_interval(interval: Interval, unit: Unit) -> String {
    let Interval { low, high } = interval;
    if matches!(unit, Unit::Count | Unit::Bytes) || high <= 0.0 {
        return format!("{} – {}", human(low, unit), human(high, unit));
    }
    let (scale, name) = scaled(high, unit);
    let (low, high) = (low * scale, high * scale);
    let digits = match high - low {
        width if width > 0.0 => (high / width).log10().ceil() as i32 + 2,
        _ => 3,
    };
    let digits = digits.clamp(3, 7);
    // Both ends get the same number of decimals.
    let decimals = (digits - 1 - high.log10().floor() as i32).clamp(0, 9) as usize;
    match decimals {
        0 => format!(
            "{} – {}{name}",
            significant(low, digits),
            significant(high, digits)
        ),
        _ => format!(
            "{} – {}{name}",
            thousands(low, decimals),
            thousands(high, decimals)
        ),
    }
}

/// Returns the factor that scales a value to a readable unit, and the name of that unit.
fn scaled(value: f64, unit: Unit) -> (f64, &'static str) {
    let seconds = match unit {
        Unit::PerSecond => return (1.0, "/s"),
        Unit::Percent => return (1.0, " %"),
        Unit::Count | Unit::Bytes => return (1.0, ""),
        Unit::Seconds => 1.0,
        Unit::Millis => 1e-3,
        Unit::Micros => 1e-6,
    };
    let (scale, name) = match value * seconds {
        s if s >= 1.0 => (1.0, " s"),
        s if s >= 1e-3 => (1e3, " ms"),
        s if s >= 1e-6 => (1e6, " µs"),
        _ => (1e9, " ns"),
    };
    (seconds * scale, name)
}

/// Formats a round value on an axis: `0`, `250`, `2.5k`, `1M`.
pub(crate) fn short(value: f64) -> String {
    let (scale, unit) = match value.abs() {
        v if v >= 1e6 => (1e6, "M"),
        v if v >= 1e3 => (1e3, "k"),
        _ => (1.0, ""),
    };
    format!("{}{unit}", trimmed(value / scale))
}

/// Formats a round number of milliseconds on an axis: `200 µs`, `5 ms`.
pub(crate) fn human_tick(ms: f64) -> String {
    if ms == 0.0 {
        return "0".to_owned();
    }
    let (scale, name) = scaled(ms, Unit::Millis);
    format!("{}{name}", trimmed(ms * scale))
}

/// Formats at most two decimals, without trailing zeros.
fn trimmed(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Formats a size: `16 B`, `1.5 KiB`, `12.3 MiB`.
#[must_use]
pub fn bytes(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if value < 1024.0 {
            return if unit == "B" {
                format!("{bytes} B")
            } else {
                format!("{value:.1} {unit}")
            };
        }
        value /= 1024.0;
    }
    format!("{value:.1} TiB")
}

/// Escapes text for HTML and for attribute values.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            _ => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_thousands_separators_and_significant_digits() {
        assert_eq!(thousands(12_312.784, 2), "12,312.78");
        assert_eq!(thousands(999.0, 0), "999");
        assert_eq!(thousands(-1_234_567.0, 0), "-1,234,567");
        assert_eq!(thousands(-0.001, 2), "0.00");
        for (value, expected) in [
            (0.092_14, "0.0921"),
            (9.999, "10.0"),
            (999.6, "1,000"),
            (92_149.0, "92,100"),
            (0.0, "0"),
            (1.0, "1.00"),
        ] {
            assert_eq!(figures(value), expected);
        }
    }

    #[test]
    fn quantities_are_formatted_with_their_unit() {
        assert_eq!(human(0.9213, Unit::Millis), "921 µs");
        assert_eq!(human(0.018_44, Unit::Millis), "18.4 µs");
        assert_eq!(human(1_200.0, Unit::Millis), "1.20 s");
        assert_eq!(human(147_239.57, Unit::PerSecond), "147,000/s");
        assert_eq!(human(3.06, Unit::Percent), "3.06 %");
        assert_eq!(human(20.0 * 1024.0 * 1024.0, Unit::Bytes), "20.0 MiB");
        assert_eq!(bytes(16), "16 B");
    }

    #[test]
    fn an_interval_has_enough_digits_to_distinguish_its_bounds() {
        for (low, high, unit, expected) in [
            (0.9121, 0.9312, Unit::Millis, "912.1 – 931.2 µs"),
            (0.9, 1.2, Unit::Millis, "0.90 – 1.20 ms"),
            (100.82, 101.11, Unit::PerSecond, "100.82 – 101.11/s"),
            (192_335.7, 277_551.9, Unit::PerSecond, "192,000 – 278,000/s"),
            (211_140.5, 213_620.7, Unit::PerSecond, "211,100 – 213,600/s"),
            (0.0, 0.0, Unit::Percent, "0 % – 0 %"),
            (5.0, 5.0, Unit::Percent, "5.00 – 5.00 %"),
        ] {
            assert_eq!(human_interval(Interval { low, high }, unit), expected);
        }
    }

    #[test]
    fn axes_have_short_labels() {
        let values = [0.0, 250.0, 2_500.0, 200_000.0, 1e6];
        assert_eq!(values.map(short), ["0", "250", "2.5k", "200k", "1M"]);
        let ticks = [0.0, 0.0005, 0.02, 0.5, 5.0, 2_000.0];
        assert_eq!(
            ticks.map(human_tick),
            ["0", "500 ns", "20 µs", "500 µs", "5 ms", "2 s"]
        );
    }

    #[test]
    fn absent_figures_are_formatted_as_not_available() {
        assert_eq!(fixed(None), "n/a");
        assert_eq!(interval(None), "n/a");
        assert_eq!(count(None), "n/a");
    }
}
