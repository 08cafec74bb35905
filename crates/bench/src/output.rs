//! The output directory of a suite: `bench-out/<utc>-<name>/`.
//!
//! ```text
//! results.json          every measurement, without figures that follow from it
//! results.tsv           a line per run
//! suite_summary.md      the SLIM suite's summary
//! technical_report.md   its technical report
//! rpc_report.md         the UVRPC report, if call modes were run
//! store_report.md       FleetLM's report, if conversations were measured
//! quota_report.md       the rate limiter's report, if takes were measured
//! kafka_report.md       Chronik's report, if topics were measured
//! report.html           one page with everything, plots inside
//! plots/*.svg           the same plots alone
//! hdr/*.hlog            latency histograms, an interval per run, for HdrHistogram's tools
//! env.json              machine, versions, command
//! ```

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{
    IntervalLogWriterBuilder, IntervalLogWriterError, Tag,
};

use crate::model::{Area, CaseResult, Results};
use crate::plot;
use crate::report;
use meter::clock::Utc;
use meter::histogram::Histogram;

/// Output directory of one suite.
#[derive(Debug, Clone)]
pub struct Output {
    directory: PathBuf,
}

impl Output {
    /// Creates `<base>/<utc>-<name>/` before the suite runs, so that a full disk or a missing
    /// permission fails before the first message.
    ///
    /// # Errors
    /// When the directory cannot be created.
    pub fn create(base: &Path, name: &str, at: Utc) -> Result<Self, OutputError> {
        let fit = |c: char| {
            if c.is_ascii_alphanumeric() || c == '-' {
                c
            } else {
                '_'
            }
        };
        let stem = format!(
            "{}-{}",
            at.compact(),
            name.chars().map(fit).collect::<String>()
        );
        let at = |path: &Path| {
            let path = path.to_owned();
            move |source| OutputError { path, source }
        };
        fs::create_dir_all(base).map_err(at(base))?;
        let names = std::iter::once(stem.clone()).chain((2..100).map(|n| format!("{stem}-{n}")));
        let mut directory = base.join(&stem);
        for name in names {
            directory = base.join(name);
            match fs::create_dir(&directory) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => {
                    return made
                        .map(|()| Self {
                            directory: directory.clone(),
                        })
                        .map_err(at(&directory));
                }
            }
        }
        Err(OutputError {
            path: directory,
            source: io::ErrorKind::AlreadyExists.into(),
        })
    }

    /// Returns the path of the directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Writes every file.
    ///
    /// # Errors
    /// With the first file that could not be written.
    pub fn write(&self, results: &Results) -> Result<(), OutputError> {
        let text = results
            .to_json()
            .map_err(|error| self.error("results.json", error.into()))?;
        self.file("results.json", text.as_bytes())?;
        self.json("env.json", &results.environment)?;
        self.file("results.tsv", report::tsv(results).as_bytes())?;
        self.file(
            "suite_summary.md",
            report::suite_summary(results).as_bytes(),
        )?;
        self.file(
            "technical_report.md",
            report::technical_report(results).as_bytes(),
        )?;
        if results
            .cases
            .iter()
            .any(|result| result.case.series().is_some())
        {
            self.file("rpc_report.md", report::uvrpc(results).as_bytes())?;
        }
        if results
            .cases
            .iter()
            .any(|result| result.case.area == Area::Store)
        {
            self.file("store_report.md", report::fleetlm(results).as_bytes())?;
        }
        if results
            .cases
            .iter()
            .any(|result| result.case.area == Area::Quota)
        {
            self.file("quota_report.md", report::limiter(results).as_bytes())?;
        }
        if results
            .cases
            .iter()
            .any(|result| result.case.area == Area::Kafka)
        {
            self.file("kafka_report.md", report::chronik(results).as_bytes())?;
        }
        self.file("report.html", report::page(results).as_bytes())?;
        for plot in plot::all(results) {
            self.file(
                &format!("plots/{}.svg", plot.name),
                plot.standalone().as_bytes(),
            )?;
        }
        for result in &results.cases {
            if let Some(log) = latency_log(result).map_err(|source| self.error("hdr", source))? {
                self.file(&format!("hdr/{}.hlog", result.case.key()), &log)?;
            }
        }
        Ok(())
    }

    fn json(&self, name: &str, value: &impl serde::Serialize) -> Result<(), OutputError> {
        let text =
            serde_json::to_string_pretty(value).map_err(|error| self.error(name, error.into()))?;
        self.file(name, (text + "\n").as_bytes())
    }

    fn file(&self, name: &str, bytes: &[u8]) -> Result<(), OutputError> {
        let path = self.directory.join(name);
        let made = path.parent().map_or(Ok(()), fs::create_dir_all);
        made.and_then(|()| fs::write(&path, bytes))
            .map_err(|source| self.error(name, source))
    }

    fn error(&self, name: &str, source: io::Error) -> OutputError {
        OutputError {
            path: self.directory.join(name),
            source,
        }
    }
}

/// Encodes HdrHistogram's log of a case: an interval per run, tagged `service` or `response`, whose
/// time is the run's place in the suite. `None` when nothing was timed.
fn latency_log(result: &CaseResult) -> io::Result<Option<Vec<u8>>> {
    let mut log = Vec::new();
    let mut intervals = 0;
    let mut serializer = V2DeflateSerializer::new();
    let mut writer = IntervalLogWriterBuilder::new()
        .add_comment(&format!(
            "[{}; nanoseconds; one interval per run]",
            result.case.key()
        ))
        .with_max_value_divisor(1e6)
        .begin_log_with(&mut log, &mut serializer)?;
    for run in &result.runs {
        let Some(measured) = &run.measured else {
            continue;
        };
        let at = Duration::from_secs(u64::from(run.order));
        let window = Duration::from_nanos(measured.window_ns);
        for (tag, histogram) in [
            ("service", &measured.service),
            ("response", &measured.response),
        ] {
            if let Some(histogram) = histogram {
                intervals += 1;
                let (counts, tag) = (Histogram::inner(histogram), Tag::new(tag));
                writer
                    .write_histogram(counts, at, window, tag)
                    .map_err(|error| match error {
                        IntervalLogWriterError::IoError(error) => error,
                        IntervalLogWriterError::SerializeError(error) => io::Error::other(error),
                    })?;
            }
        }
    }
    Ok((intervals > 0).then_some(log))
}

/// Error of writing a file of the results.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}\nhint: choose another directory with --out", path.display())]
pub struct OutputError {
    path: PathBuf,
    source: io::Error,
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    use super::*;

    #[test]
    fn a_suite_leaves_every_file_and_the_json_reads_back() {
        let base = tempfile::tempdir().unwrap();
        let at = Utc::from_unix_s(1_782_460_907);
        let output = Output::create(base.path(), "agent run", at).unwrap();
        assert!(output.directory().ends_with("20260626T080147Z-agent_run"));
        let results = crate::fixture::results();
        output.write(&results).unwrap();
        for name in [
            "results.tsv",
            "suite_summary.md",
            "technical_report.md",
            "rpc_report.md",
            "report.html",
            "env.json",
            "hdr/telpher-agent-request-reply-c1-s16-r100.hlog",
        ] {
            let size = fs::metadata(output.directory().join(name)).unwrap().len();
            assert!(size > 100, "{name} has {size} bytes");
        }
        let plots = fs::read_dir(output.directory().join("plots"))
            .unwrap()
            .count();
        assert!(plots >= 4, "{plots} plots");
        let json = fs::read(output.directory().join("results.json")).unwrap();
        // `assert_eq` would print both results in full.
        assert!(Results::from_bytes(&json).unwrap() == results);
    }

    #[test]
    fn two_suites_in_one_second_have_two_directories() {
        let base = tempfile::tempdir().unwrap();
        let make = || Output::create(base.path(), "x", Utc::from_unix_s(0)).unwrap();
        assert_ne!(make().directory(), make().directory());
    }

    #[test]
    fn a_directory_that_cannot_be_written_is_an_error_with_a_hint() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = Output::create(file.path(), "x", Utc::from_unix_s(0))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("cannot write") && error.contains("\nhint: "),
            "{error}"
        );
    }

    #[test]
    fn the_latency_log_holds_every_sample_of_every_run() {
        let results = crate::fixture::results();
        let result = &results.cases[0];
        let log = latency_log(result).unwrap().unwrap();
        let intervals = IntervalLogIterator::new(&log).filter_map(|entry| match entry.unwrap() {
            LogEntry::Interval(interval) => Some(interval.tag().unwrap().as_str().to_owned()),
            _ => None,
        });
        let tags: Vec<_> = intervals.collect();
        assert_eq!(
            tags.iter().filter(|tag| *tag == "service").count(),
            result.runs.len()
        );
        assert_eq!(
            tags.iter().filter(|tag| *tag == "response").count(),
            result.runs.len()
        );
        assert_eq!(latency_log(&results.cases[2]).unwrap(), None);
    }
}
