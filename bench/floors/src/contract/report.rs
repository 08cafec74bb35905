//! The one line of JSON in which a result is handed over.

use std::fmt::Write as _;
use std::io::{self, Write as _};

use super::{Failure, Load, Outcome, Tally};

/// One result. Every program prints the same fields; one that has more appends them.
pub struct Report<'a> {
    /// Which program measured.
    pub program: &'a str,
    /// How requests followed each other.
    pub mode: &'a str,
    /// Requests in flight on each connection.
    pub in_flight: usize,
    /// Bytes of payload.
    pub size: usize,
    /// Connections.
    pub connections: usize,
    /// The window, and one latency for every request answered and checked within it.
    pub tally: &'a Tally,
    /// What a reader has to know to compare the numbers.
    pub notes: &'a str,
    /// Numbers that only this program has.
    pub extra: &'a [(&'a str, f64)],
}

impl<'a> Report<'a> {
    /// What a program has to say of a load, and no number of its own.
    pub fn of(program: &'a str, load: &Load, tally: &'a Tally, notes: &'a str) -> Report<'a> {
        Report {
            program,
            mode: load.mode.word(),
            in_flight: load.in_flight,
            size: load.size,
            connections: load.connections,
            tally,
            notes,
            extra: &[],
        }
    }

    /// Prints the report to stdout, unless it counts nothing.
    pub fn print(&self) -> Outcome<()> {
        if self.tally.latency.count() == 0 {
            return Err(Failure::run(
                "nothing completed within the window",
                "give it more time",
            ));
        }
        let mut out = io::stdout().lock();
        out.write_all(self.to_json().as_bytes())
            .and_then(|()| out.flush())
            .map_err(|error| Failure::run(format!("stdout: {error}"), "keep stdout open"))
    }

    fn to_json(&self) -> String {
        let latency = &self.tally.latency;
        let mut json = format!(
            concat!(
                r#"{{"program":"{}","mode":"{}","in_flight":{},"size":{},"connections":{},"#,
                r#""completed":{},"errors":0,"window_ns":{},"cpu_ns":{},"#,
                r#""latency":{{"count":{},"mean_ns":{:.1},"min_ns":{},"p50_ns":{},"p90_ns":{},"#,
                r#""p99_ns":{},"p999_ns":{},"max_ns":{}}},"received":0"#
            ),
            self.program,
            self.mode,
            self.in_flight,
            self.size,
            self.connections,
            latency.count(),
            self.tally.window_ns(),
            self.tally.cpu_ns(),
            latency.count(),
            latency.mean(),
            latency.min(),
            latency.quantile(0.5),
            latency.quantile(0.9),
            latency.quantile(0.99),
            latency.quantile(0.999),
            latency.max(),
        );
        for (name, value) in self.extra {
            let _ = write!(json, r#","{name}":{value}"#);
        }
        let notes = self.notes.replace('\\', r"\\").replace('"', r#"\""#);
        let _ = writeln!(json, r#","notes":"{notes}"}}"#);
        json
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report<'a>(tally: &'a Tally, extra: &'a [(&'a str, f64)]) -> Report<'a> {
        Report {
            program: "echo-floor",
            mode: "concurrent",
            in_flight: 10,
            size: 128,
            connections: 1,
            tally,
            notes: r#"a "note""#,
            extra,
        }
    }

    #[test]
    fn a_report_is_one_line_with_the_contract_s_fields() {
        let mut tally = Tally::start();
        tally.latency.record(100);
        tally.latency.record(300);
        assert_eq!(
            report(&tally, &[("syncs", 3.0)]).to_json(),
            concat!(
                r#"{"program":"echo-floor","mode":"concurrent","in_flight":10,"size":128,"#,
                r#""connections":1,"completed":2,"errors":0,"window_ns":0,"cpu_ns":0,"#,
                r#""latency":{"count":2,"mean_ns":200.0,"min_ns":100,"p50_ns":100,"p90_ns":300,"#,
                r#""p99_ns":300,"p999_ns":300,"max_ns":300},"received":0,"syncs":3,"#,
                r#""notes":"a \"note\""}"#,
                "\n"
            )
        );
    }

    #[test]
    fn a_window_without_a_reply_is_a_failure() {
        assert!(report(&Tally::start(), &[]).print().is_err());
    }
}
