//! The layout of `results.json`: every measurement, and no figure that follows from one.
//!
//! ```text
//! { "schema_version": 2, "name", "generated", "environment", "setup",
//!   "cases":       [{ "case", "runs": [{ "repeat", "order", "measured" }] }],
//!   "comparisons": [{ "metric", "subject", "baseline" }],
//!   "sweeps":      [{ "case", "options", "outcome",
//!                     "steps": [{ "step", "phase", "rate", "gain_percent", "improved", "runs" }] }] }
//! ```
//!
//! Metrics, errors, flags, summaries and ratios are derived when a file is read. A run of which only
//! the figures are known has `metrics` instead of `measured`. A measurement with answers by endpoint
//! has no `service` histogram if that is the sum of the endpoints' histograms. Histograms are
//! base64 of HdrHistogram's V2 encoding, in nanoseconds. Version 1 also had the derived figures,
//! which a reader ignores. The file may be compressed with gzip.

use std::borrow::Cow;
use std::io::Read as _;

use flate2::read::GzDecoder;
use serde::{Deserialize, Serialize};

use super::{
    Case, CaseComparison, CaseResult, Environment, Metric, Metrics, Results, Run, Setup, Summary,
    SweepResult, SweepStep,
};
use crate::measurement::{Answers, Measurement};
use crate::sweep::{Outcome, Phase, SweepOptions};
use meter::histogram::Histogram;

/// Version of the layout; raised when an old reader would misread a new file.
pub const SCHEMA_VERSION: u32 = 2;

/// The oldest version that can be read.
const OLDEST_VERSION: u32 = 1;

/// Maximum size of a decompressed file in bytes.
const SIZE_MAX: u64 = 1 << 30;

/// First bytes of gzip (RFC 1952, section 2.3.1).
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

#[derive(Serialize, Deserialize)]
struct StoredResults<'a> {
    schema_version: u32,
    name: Cow<'a, str>,
    generated: Cow<'a, str>,
    environment: Cow<'a, Environment>,
    setup: Cow<'a, Setup>,
    cases: Vec<StoredCase<'a>>,
    comparisons: Vec<StoredComparison<'a>>,
    sweeps: Vec<StoredSweep<'a>>,
}

#[derive(Serialize, Deserialize)]
struct StoredCase<'a> {
    case: Cow<'a, Case>,
    runs: Vec<StoredRun<'a>>,
}

#[derive(Serialize, Deserialize)]
struct StoredRun<'a> {
    repeat: u32,
    order: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    metrics: Option<Cow<'a, Metrics>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    measured: Option<Cow<'a, Measurement>>,
}

#[derive(Serialize, Deserialize)]
struct StoredComparison<'a> {
    metric: Metric,
    subject: Cow<'a, str>,
    baseline: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
struct StoredSweep<'a> {
    case: Cow<'a, Case>,
    options: SweepOptions,
    steps: Vec<StoredStep<'a>>,
    outcome: Option<Cow<'a, Outcome>>,
}

#[derive(Serialize, Deserialize)]
struct StoredStep<'a> {
    step: u32,
    phase: Phase,
    rate: u64,
    gain_percent: Option<f64>,
    improved: bool,
    runs: Vec<StoredRun<'a>>,
}

impl Results {
    /// Encodes the results as `results.json`.
    ///
    /// # Errors
    /// When a key or a number has no form in JSON.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        let stored = StoredResults {
            schema_version: SCHEMA_VERSION,
            name: Cow::Borrowed(&self.name),
            generated: Cow::Borrowed(&self.generated),
            environment: Cow::Borrowed(&self.environment),
            setup: Cow::Borrowed(&self.setup),
            cases: self.cases.iter().map(StoredCase::of).collect(),
            comparisons: self.comparisons.iter().map(StoredComparison::of).collect(),
            sweeps: self.sweeps.iter().map(StoredSweep::of).collect(),
        };
        serde_json::to_string(&stored).map(|text| text + "\n")
    }

    /// Decodes `results.json`, or the same compressed with gzip.
    ///
    /// # Errors
    /// When the bytes are not a result, or have another layout version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ReadError> {
        if !bytes.starts_with(&GZIP_MAGIC) {
            return Self::from_json(bytes);
        }
        let mut text = Vec::new();
        let mut decoder = GzDecoder::new(bytes).take(SIZE_MAX + 1);
        decoder.read_to_end(&mut text).map_err(ReadError::NotGzip)?;
        if text.len() as u64 > SIZE_MAX {
            return Err(ReadError::TooLarge);
        }
        Self::from_json(&text)
    }

    fn from_json(text: &[u8]) -> Result<Self, ReadError> {
        #[derive(Deserialize)]
        struct Head {
            schema_version: u32,
        }
        let head: Head = serde_json::from_slice(text).map_err(ReadError::NotResults)?;
        if !(OLDEST_VERSION..=SCHEMA_VERSION).contains(&head.schema_version) {
            return Err(ReadError::Layout {
                found: head.schema_version,
            });
        }
        let stored: StoredResults<'_> =
            serde_json::from_slice(text).map_err(ReadError::NotResults)?;
        stored.restore()
    }
}

impl StoredResults<'_> {
    fn restore(self) -> Result<Results, ReadError> {
        let mut results = Results {
            schema_version: SCHEMA_VERSION,
            name: self.name.into_owned(),
            generated: self.generated.into_owned(),
            environment: self.environment.into_owned(),
            setup: self.setup.into_owned(),
            cases: self.cases.into_iter().map(StoredCase::restore).collect(),
            comparisons: Vec::new(),
            sweeps: self.sweeps.into_iter().map(StoredSweep::restore).collect(),
        };
        let comparisons = self.comparisons.iter().map(|one| one.restore(&results));
        results.comparisons = comparisons.collect::<Result<_, _>>()?;
        Ok(results)
    }
}

impl<'a> StoredCase<'a> {
    fn of(result: &'a CaseResult) -> Self {
        Self {
            case: Cow::Borrowed(&result.case),
            runs: result.runs.iter().map(StoredRun::of).collect(),
        }
    }

    fn restore(self) -> CaseResult {
        let case = self.case.into_owned();
        let runs = restore_runs(&case, self.runs);
        CaseResult::of(case, runs)
    }
}

impl<'a> StoredRun<'a> {
    fn of(run: &'a Run) -> Self {
        Self {
            repeat: run.repeat,
            order: run.order,
            metrics: run
                .measured
                .is_none()
                .then_some(Cow::Borrowed(&run.metrics)),
            measured: run.measured.as_ref().map(without_sum),
        }
    }
}

fn restore_runs(case: &Case, runs: Vec<StoredRun<'_>>) -> Vec<Run> {
    let restore = |run: StoredRun<'_>| {
        let (repeat, order) = (run.repeat, run.order);
        match run.measured {
            Some(measured) => Run::of(case, repeat, order, with_sum(measured.into_owned())),
            None => {
                let metrics = run.metrics.map(Cow::into_owned).unwrap_or_default();
                Run::reported(repeat, order, metrics)
            }
        }
    };
    runs.into_iter().map(restore).collect()
}

/// Removes the service latencies if [`with_sum`] restores them.
fn without_sum(measured: &Measurement) -> Cow<'_, Measurement> {
    let sum = measured.answered.as_ref().map(sum);
    if sum.is_none() || measured.service != sum {
        return Cow::Borrowed(measured);
    }
    Cow::Owned(Measurement {
        service: None,
        ..measured.clone()
    })
}

/// Adds the service latencies of all endpoints together, if there are no others.
fn with_sum(mut measured: Measurement) -> Measurement {
    if measured.service.is_none() && measured.reported.is_none() {
        measured.service = measured.answered.as_ref().map(sum);
    }
    measured
}

fn sum(answers: &Answers) -> Histogram {
    let mut all = Histogram::new();
    for endpoint in &answers.endpoints {
        all.merge(&endpoint.allowed);
        all.merge(&endpoint.limited);
    }
    all
}

impl<'a> StoredComparison<'a> {
    fn of(comparison: &'a CaseComparison) -> Self {
        Self {
            metric: comparison.metric,
            subject: Cow::Borrowed(&comparison.subject),
            baseline: Cow::Borrowed(&comparison.baseline),
        }
    }

    fn restore(&self, results: &Results) -> Result<CaseComparison, ReadError> {
        let subject = results.case(&self.subject);
        let cases = subject.zip(results.case(&self.baseline));
        cases
            .and_then(|(subject, baseline)| CaseComparison::of(self.metric, subject, baseline))
            .ok_or_else(|| ReadError::Comparison {
                subject: self.subject.to_string(),
                baseline: self.baseline.to_string(),
            })
    }
}

impl<'a> StoredSweep<'a> {
    fn of(sweep: &'a SweepResult) -> Self {
        Self {
            case: Cow::Borrowed(&sweep.case),
            options: sweep.options,
            steps: sweep.steps.iter().map(StoredStep::of).collect(),
            outcome: sweep.outcome.as_ref().map(Cow::Borrowed),
        }
    }

    fn restore(self) -> SweepResult {
        let case = self.case.into_owned();
        let steps = self.steps.into_iter().map(|step| step.restore(&case));
        SweepResult {
            steps: steps.collect(),
            case,
            options: self.options,
            outcome: self.outcome.map(Cow::into_owned),
        }
    }
}

impl<'a> StoredStep<'a> {
    fn of(step: &'a SweepStep) -> Self {
        Self {
            step: step.step,
            phase: step.phase,
            rate: step.rate,
            gain_percent: step.gain_percent,
            improved: step.improved,
            runs: step.runs.iter().map(StoredRun::of).collect(),
        }
    }

    fn restore(self, swept: &Case) -> SweepStep {
        let case = swept.clone().rate(self.rate);
        let runs = restore_runs(&case, self.runs);
        SweepStep {
            step: self.step,
            phase: self.phase,
            rate: self.rate,
            gain_percent: self.gain_percent,
            improved: self.improved,
            summary: Summary::of(&case, &runs),
            runs,
        }
    }
}

/// Errors of reading results.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The text is not JSON of the expected shape.
    #[error(
        "not the results of a benchmark: {0}\nhint: give a results.json of a bench-out directory"
    )]
    NotResults(serde_json::Error),
    /// The compressed file is damaged.
    #[error("the gzip file is damaged: {0}\nhint: copy the file again")]
    NotGzip(std::io::Error),
    /// The compressed file is larger than any result.
    #[error(
        "the results have more than {SIZE_MAX} bytes\nhint: give a results.json of a benchmark"
    )]
    TooLarge,
    /// The text was written by another version.
    #[error(
        "the results have layout {found}, this version reads layouts {OLDEST_VERSION} to \
         {SCHEMA_VERSION}\nhint: read them with the version that wrote them, or run the benchmark again"
    )]
    Layout {
        /// Layout version of the text.
        found: u32,
    },
    /// A comparison is about a case or a metric that the results lack.
    #[error(
        "the results lack a compared case or its metric: {subject}, {baseline}\nhint: the file was \
         changed; run the benchmark again"
    )]
    Comparison {
        /// Key of the compared case.
        subject: String,
        /// Key of the case that it is compared with.
        baseline: String,
    },
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;
    use crate::measurement::Endpoint;

    fn compress(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn no_derived_figure_is_stored_and_all_are_derived_again() {
        let results = crate::fixture::results();
        assert!(!results.comparisons.is_empty() && !results.sweeps.is_empty());
        let json = results.to_json().unwrap();
        for derived in ["\"summary\"", "\"metrics\"", "\"flags\"", "\"ratio\""] {
            assert!(!json.contains(derived), "{derived} is stored");
        }
        // `assert_eq` would print both results in full.
        assert!(Results::from_bytes(json.as_bytes()).unwrap() == results);
        assert!(Results::from_bytes(&compress(&json)).unwrap() == results);
    }

    #[test]
    fn the_full_form_with_derived_figures_is_read_as_well() {
        let results = crate::fixture::results();
        let full = serde_json::to_string(&results).unwrap();
        assert!(full.contains("\"summary\""));
        let first = full.replacen("\"schema_version\":2", "\"schema_version\":1", 1);
        for text in [&full, &first] {
            assert!(Results::from_bytes(text.as_bytes()).unwrap() == results);
        }
    }

    #[test]
    fn service_latencies_are_stored_once() {
        let mut endpoint = Endpoint::default();
        (1..50).for_each(|n| endpoint.allowed.record(n * 1_000));
        (1..20).for_each(|n| endpoint.limited.record(n * 700));
        let answered = Answers {
            endpoints: vec![endpoint.clone(), endpoint],
            ..Answers::default()
        };
        let measured = Measurement {
            service: Some(sum(&answered)),
            answered: Some(answered),
            ..Measurement::default()
        };
        let stored = without_sum(&measured);
        assert_eq!(stored.service, None);
        assert_eq!(with_sum(stored.into_owned()), measured);
        let mut other = measured.clone();
        other.service.get_or_insert_default().record(1);
        assert_eq!(without_sum(&other).into_owned(), other);
    }

    #[test]
    fn a_file_that_is_no_result_is_an_error_with_a_hint() {
        let json = crate::fixture::results().to_json().unwrap();
        let newer = json.replacen("\"schema_version\":2", "\"schema_version\":9", 1);
        let subject = format!(
            "\"subject\":\"{}",
            crate::fixture::results().comparisons[0].subject
        );
        let unknown = json.replacen(&subject, "\"subject\":\"other", 1);
        let mut damaged = compress(&json);
        damaged.truncate(100);
        for (bytes, expected) in [
            (newer.as_bytes(), "layout 9"),
            (b"{}", "not the results"),
            (unknown.as_bytes(), "lack a compared case"),
            (&damaged, "gzip"),
        ] {
            let error = Results::from_bytes(bytes).unwrap_err().to_string();
            assert!(
                error.contains(expected) && error.contains("\nhint: "),
                "{error}"
            );
        }
    }
}
