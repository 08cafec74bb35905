use crate::measurement::{Arrivals, Sink};
use crate::model::{Area, Mode};

use super::*;

fn suite() -> Suite {
    let progress = Progress::to(Box::new(std::io::sink()), 0, false);
    Suite::new("test", Environment::default(), Setup::default(), progress)
}

fn measured(rate: u64) -> Measurement {
    let arrivals = Arrivals {
        first_ns: 0,
        last_ns: 1_000_000_000,
    };
    let sink = Sink {
        received: rate,
        arrivals: Some(arrivals),
        ..Sink::default()
    };
    Measurement {
        sent: rate,
        completed: rate,
        window_ns: 1_000_000_000,
        completions: Some(arrivals),
        sink: Some(sink),
        ..Measurement::default()
    }
}

#[test]
fn repeats_are_counted_by_case_and_ordered_over_the_suite() {
    let mut suite = suite();
    let write = Case::new("telpher", Area::Agent, Mode::WRITE);
    let send = Case::new("telpher", Area::Agent, Mode::FIRE_AND_FORGET);
    for (case, repeat, order) in [(&write, 1, 1), (&send, 1, 2), (&send, 2, 3), (&write, 2, 4)] {
        suite.starting(case);
        let run = suite.record(case, measured(100)).unwrap();
        assert_eq!((run.repeat, run.order), (repeat, order));
    }
    let results = suite.finish();
    assert_eq!(results.cases.len(), 2);
    assert_eq!(
        results.cases[0].summary.mean(Metric::ObservedRate),
        Some(100.0)
    );
}

#[test]
fn a_measurement_that_contradicts_itself_is_not_recorded() {
    let mut suite = suite();
    let case = Case::new("telpher", Area::Agent, Mode::WRITE);
    let wrong = Measurement {
        sent: 1,
        ..measured(2)
    };
    let error = suite.record(&case, wrong).unwrap_err().to_string();
    assert!(
        error.contains("2 messages completed, but only 1 were sent"),
        "{error}"
    );
    assert!(suite.finish().cases.is_empty());
}

#[test]
fn a_sweep_chooses_rates_from_observed_results() {
    let mut suite = suite();
    let case = Case::new("telpher", Area::Agent, Mode::FIRE_AND_FORGET).size(16);
    let mut sweep = suite
        .sweep(
            case,
            SweepOptions {
                repeats: 2,
                ..Default::default()
            },
        )
        .unwrap();
    while let Some(attempt) = sweep.attempt() {
        let rate = attempt.rate.min(5_000);
        sweep.record(vec![measured(rate), measured(rate)]).unwrap();
    }
    let results = suite.finish();
    let found = results.sweeps[0].outcome.as_ref().unwrap();
    assert_eq!((found.best_rate, found.rate_upper), (8_000, Some(9_500)));
    assert_eq!(results.sweeps[0].best().unwrap().runs.len(), 2);
}

#[test]
fn a_sweep_fails_without_throughput_but_not_without_messages() {
    let mut suite = suite();
    let case = Case::new("telpher", Area::Agent, Mode::FIRE_AND_FORGET);
    let mut sweep = suite.sweep(case, SweepOptions::default()).unwrap();
    let blind = Measurement {
        sink: None,
        ..measured(1_000)
    };
    assert!(matches!(
        sweep.record(vec![blind]),
        Err(RecordError::NoThroughput { .. })
    ));
    assert!(matches!(
        sweep.record(vec![]),
        Err(RecordError::NoThroughput { .. })
    ));
    let nothing = Measurement {
        sink: Some(Sink::default()),
        ..measured(1_000)
    };
    sweep.record(vec![nothing.clone()]).unwrap();
    sweep.record(vec![nothing.clone()]).unwrap();
    assert!(sweep.attempt().is_none());
    assert!(matches!(
        sweep.record(vec![nothing]),
        Err(RecordError::SweepOver { .. })
    ));
    assert_eq!(suite.finish().sweeps[0].outcome, None);
}
