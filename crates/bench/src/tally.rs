//! Counters of one worker that include the waits it caused itself (no coordinated omission).
//!
//! A worker that falls behind its schedule sends late, and timing only from the real send would
//! hide that wait. A paced tally therefore records two latencies of every message: *service* from
//! the real send and *response* from the intended send. It also records the *lag*: by how much the
//! generator sent late although it was free to send. Closed loops have no intended time and record
//! only the service latency.
//!
//! Each worker thread has one tally, merged at the end. Nothing is shared while sending, and the
//! histograms contain exactly the completed messages. All times are nanoseconds of one clock.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::measurement::{Arrivals, Measurement};
use meter::histogram::Histogram;

/// Intended, earliest possible and real send time of a paced message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Departure {
    /// Intended send time by the schedule.
    pub intended_ns: u64,
    /// Time at which the sender was free to send: the previous answer had arrived, credit was left.
    /// A sender that never waits for answers passes the intended time.
    pub ready_ns: u64,
    /// Time at which the message was handed over.
    pub sent_ns: u64,
}

/// The counts and latencies of one worker.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    sent: u64,
    completed: u64,
    errors: BTreeMap<String, u64>,
    arrivals: Option<Arrivals>,
    service: Option<Histogram>,
    response: Option<Histogram>,
    lag: Option<Histogram>,
}

impl Tally {
    /// Makes an empty tally.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts a message sent in a closed loop.
    #[inline]
    pub fn sent(&mut self) {
        self.sent += 1;
    }

    /// Counts a message sent on a schedule.
    #[inline]
    pub fn sent_paced(&mut self, departure: Departure) {
        self.sent += 1;
        let due_ns = departure.intended_ns.max(departure.ready_ns);
        record(&mut self.lag, departure.sent_ns.saturating_sub(due_ns));
    }

    /// Counts a message completed at `done_ns` without a latency.
    #[inline]
    pub fn completed(&mut self, done_ns: u64) {
        self.completed += 1;
        Arrivals::note(&mut self.arrivals, done_ns);
    }

    /// Counts an answered message of a closed loop.
    #[inline]
    pub fn answered(&mut self, sent_ns: u64, done_ns: u64) {
        self.completed(done_ns);
        record(&mut self.service, done_ns.saturating_sub(sent_ns));
    }

    /// Counts an answered message of a schedule.
    #[inline]
    pub fn answered_paced(&mut self, departure: Departure, done_ns: u64) {
        self.answered(departure.sent_ns, done_ns);
        record(
            &mut self.response,
            done_ns.saturating_sub(departure.intended_ns),
        );
    }

    /// Counts a failed message; `kind` is a stable word, such as the name of an error code.
    #[inline]
    pub fn failed(&mut self, kind: &str) {
        match self.errors.get_mut(kind) {
            Some(count) => *count += 1,
            None => drop(self.errors.insert(kind.to_owned(), 1)),
        }
    }

    /// Returns the number of completed messages so far.
    #[must_use]
    pub fn completed_count(&self) -> u64 {
        self.completed
    }

    /// Adds another worker's tally.
    pub fn merge(&mut self, other: Self) {
        self.sent += other.sent;
        self.completed += other.completed;
        for (kind, count) in other.errors {
            *self.errors.entry(kind).or_default() += count;
        }
        self.arrivals = match (self.arrivals, other.arrivals) {
            (Some(own), Some(others)) => Some(own.and(others)),
            (own, others) => own.or(others),
        };
        merge(&mut self.service, other.service);
        merge(&mut self.response, other.response);
        merge(&mut self.lag, other.lag);
    }

    /// Returns the measurement of a run with this tally, over a send window of `window_ns`.
    #[must_use]
    pub fn over(self, window_ns: u64) -> Measurement {
        Measurement {
            sent: self.sent,
            completed: self.completed,
            window_ns,
            setup_ns: None,
            completions: self.arrivals,
            errors: self.errors,
            sink: None,
            service: self.service,
            reported: None,
            response: self.response,
            lag: self.lag,
            usage: None,
            storage: None,
            memory: Vec::new(),
            answered: None,
            streamed: None,
        }
    }
}

#[inline]
fn record(histogram: &mut Option<Histogram>, latency_ns: u64) {
    histogram.get_or_insert_default().record(latency_ns);
}

fn merge(histogram: &mut Option<Histogram>, other: Option<Histogram>) {
    match (histogram.as_mut(), other) {
        (Some(own), Some(other)) => own.merge(&other),
        (None, other) => *histogram = other,
        (Some(_), None) => {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn stall_increases_response_latency_but_not_service_latency() {
        // One message per ms; each takes 1 µs, but the third stalls for 10 ms and delays those after it.
        let mut tally = Tally::new();
        let mut free_ns = 0;
        for index in 0..20u64 {
            let intended_ns = index * 1_000_000;
            let sent_ns = intended_ns.max(free_ns);
            let departure = Departure {
                intended_ns,
                ready_ns: free_ns,
                sent_ns,
            };
            free_ns = sent_ns + if index == 2 { 10_000_000 } else { 1_000 };
            tally.sent_paced(departure);
            tally.answered_paced(departure, free_ns);
        }
        let run = tally.over(20_000_000);
        let (service, response) = (run.service.unwrap(), run.response.unwrap());
        assert!(service.quantile(0.90) < 1_100);
        assert!(response.quantile(0.75) > 5_000_000);
        // The generator itself was never late: it was waiting for an answer.
        assert!(run.lag.unwrap().quantile(1.0) <= 1);
    }

    #[test]
    fn a_generator_that_sleeps_too_long_increases_the_lag() {
        let mut tally = Tally::new();
        tally.sent_paced(Departure {
            intended_ns: 1_000,
            ready_ns: 0,
            sent_ns: 2_001_000,
        });
        assert!(tally.over(1).lag.unwrap().quantile(1.0) >= 2_000_000);
    }

    #[test]
    fn a_closed_loop_has_no_response_latency() {
        let mut tally = Tally::new();
        tally.sent();
        tally.answered(0, 500);
        let run = tally.over(1_000);
        assert!(run.service.is_some());
        assert_eq!((run.response, run.lag), (None, None));
    }

    proptest! {
        #[test]
        fn a_merged_tally_equals_the_sum_of_its_workers(
            workers in prop::collection::vec(
                prop::collection::vec((any::<u32>(), 0u64..1_000_000, 0u8..4), 0..60),
                1..6,
            ),
        ) {
            let mut merged = Tally::new();
            for worker in &workers {
                let mut tally = Tally::new();
                for &(intended, took, fate) in worker {
                    let intended_ns = u64::from(intended);
                    let sent_ns = intended_ns + took / 2;
                    let departure = Departure { intended_ns, ready_ns: 0, sent_ns };
                    tally.sent_paced(departure);
                    match fate {
                        0 => tally.failed("busy"),
                        1 => tally.failed("unconfirmed"),
                        _ => tally.answered_paced(departure, intended_ns + took),
                    }
                }
                merged.merge(tally);
            }
            let all: Vec<_> = workers.iter().flatten().collect();
            let answered = || all.iter().filter(|(.., fate)| *fate > 1);
            let completed = answered().count() as u64;
            let run = merged.over(1_000);
            prop_assert_eq!(run.check(), Ok(()));
            prop_assert_eq!(run.sent, all.len() as u64);
            prop_assert_eq!(run.completed, completed);
            prop_assert_eq!(run.errors.values().sum::<u64>() + completed, run.sent);
            let count = |histogram: &Option<Histogram>| histogram.as_ref().map_or(0, Histogram::count);
            prop_assert_eq!(count(&run.service), completed);
            prop_assert_eq!(count(&run.response), completed);
            prop_assert_eq!(count(&run.lag), run.sent);
            let ends = answered().map(|(intended, took, _)| u64::from(*intended) + took);
            prop_assert_eq!(run.completions.map(|span| span.first_ns), ends.clone().min());
            prop_assert_eq!(run.completions.map(|span| span.last_ns), ends.max());
        }
    }
}
