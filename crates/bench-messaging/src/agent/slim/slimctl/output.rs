//! Parser of the files and lines that `slimctl bench` writes, following its sources.

use std::path::Path;

use bench::measurement::ReportedLatency;

/// The only row of a `--csv` file: `RunID,ClientID,MsgCount,MsgBytes,MsgsPerSec,BytesPerSec`, the
/// last with two decimals.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Row {
    /// Number of messages.
    pub(super) count: u64,
    /// Bytes of the payloads.
    pub(super) bytes: u64,
    /// Payload bytes per second of the window; 0 without a window.
    pub(super) bytes_per_second: f64,
}

impl Row {
    /// Reads a file. The error is a sentence.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        Self::parse(&text).ok_or_else(|| format!("`{}` is not a row of results", text.trim()))
    }

    fn parse(text: &str) -> Option<Self> {
        let row = text.lines().nth(1)?;
        let fields: Vec<_> = row.split(',').collect();
        let [_, _, count, bytes, _, bytes_per_second] = fields[..] else {
            return None;
        };
        Some(Self {
            count: count.parse().ok()?,
            bytes: bytes.parse().ok()?,
            bytes_per_second: bytes_per_second.parse().ok()?,
        })
    }

    /// Returns the length of the window, which is derived from the byte rate. The message rate is a
    /// whole number and less exact.
    pub(super) fn window_ns(&self) -> Option<u64> {
        let has_one = self.bytes > 0 && self.bytes_per_second > 0.0;
        has_one.then(|| (1e9 * self.bytes as f64 / self.bytes_per_second) as u64)
    }
}

/// Parses the latencies in the output of a sender, which prints them if messages are answered.
pub(super) fn latency(lines: &[String], count: u64) -> Option<ReportedLatency> {
    let behind = lines.iter().skip_while(|line| *line != "Latency:");
    let figures: Vec<(&str, u64)> = behind.filter_map(|line| figure(line)).collect();
    let named = |name| {
        figures
            .iter()
            .find(|(one, _)| *one == name)
            .map(|(_, ns)| *ns)
    };
    Some(ReportedLatency {
        count,
        mean_ns: None,
        min_ns: named("min")?,
        p50_ns: named("p50")?,
        p90_ns: named("p90")?,
        p99_ns: named("p99")?,
        p999_ns: None,
        max_ns: named("max")?,
    })
}

/// Parses a line such as `p50    440µs`.
fn figure(line: &str) -> Option<(&str, u64)> {
    let (name, time) = line.trim().split_once(' ')?;
    Some((name, nanos(time.trim())?))
}

/// Parses `440µs`, `1.25ms`, `2.00s`.
fn nanos(time: &str) -> Option<u64> {
    let units = [("µs", 1e3), ("ms", 1e6), ("s", 1e9)];
    let (number, unit) = units
        .iter()
        .find_map(|(unit, ns)| Some((time.strip_suffix(unit)?, ns)))?;
    Some((number.parse::<f64>().ok()? * unit).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slimctl_row_gives_its_measurement_window() {
        let text = "RunID,ClientID,MsgCount,MsgBytes,MsgsPerSec,BytesPerSec\n\
                    20261122T141414Z,P1,11,180224,11,184320.00\n";
        let row = Row::parse(text).unwrap();
        assert_eq!((row.count, row.bytes), (11, 180_224));
        assert_eq!(row.window_ns(), Some(977_777_777));
        let none = "RunID\n20261122T141414Z,S1,0,0,0,0.00\n";
        assert_eq!(Row::parse(none).unwrap().window_ns(), None);
        assert_eq!(Row::parse("RunID\n1,2,3\n"), None);
        assert_eq!(Row::parse(""), None);
    }

    #[test]
    fn latencies_are_read_in_every_unit() {
        let report = "Pub stats: 1,204 msgs/sec ~ 18.81 KiB/sec (2,000 msgs)\n\n\nLatency:\n  min    440µs\n  \
                      p50    812µs\n  p75    901µs\n  p90    1.25ms\n  p95    1.50ms\n  p99    12.07ms\n  max    2.01s\n\n";
        let lines: Vec<_> = report.lines().map(str::to_owned).collect();
        let latency = latency(&lines, 2000).unwrap();
        let seen = [
            latency.min_ns,
            latency.p50_ns,
            latency.p90_ns,
            latency.p99_ns,
            latency.max_ns,
        ];
        assert_eq!(
            seen,
            [440_000, 812_000, 1_250_000, 12_070_000, 2_010_000_000]
        );
        assert_eq!(super::latency(&lines[..2], 2000), None);
    }
}
