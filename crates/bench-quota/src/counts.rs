//! Counters of a load: one tally for all requests, and latencies by endpoint.

use super::answer::Decisions;
use bench::measurement::{Answers, Endpoint, Phase};
use bench::tally::{Departure, Tally};

/// Counters of a load.
#[derive(Debug)]
pub(super) struct Counts {
    pub(super) tally: Tally,
    pub(super) answered: Answers,
}

/// Phases of a request's time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Phases {
    /// Time until it was connected.
    pub(super) connect_ns: u64,
    /// Time from then to the first byte.
    pub(super) waiting_ns: u64,
    /// Time from the first to the last byte.
    pub(super) processing_ns: u64,
}

/// Tells whether a request has an intended send time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LatencyStart {
    FromSend,
    FromIntention,
}

impl Counts {
    /// Makes empty counters of these endpoints.
    pub(super) fn of<'a>(endpoints: impl IntoIterator<Item = &'a str>) -> Self {
        let endpoint = |name: &str| Endpoint {
            name: name.to_owned(),
            ..Endpoint::default()
        };
        let answered = Answers {
            endpoints: endpoints.into_iter().map(endpoint).collect(),
            ..Answers::default()
        };
        Self {
            tally: Tally::new(),
            answered,
        }
    }

    /// Counts a sent request for `decisions` takes.
    pub(super) fn sent(&mut self, decisions: u32, departure: Departure, timed: LatencyStart) {
        for _ in 0..decisions {
            match timed {
                LatencyStart::FromSend => self.tally.sent(),
                LatencyStart::FromIntention => self.tally.sent_paced(departure),
            }
        }
    }

    /// Counts a request answered at `done_ns`.
    pub(super) fn answered(
        &mut self,
        endpoint: usize,
        decided: Decisions,
        departure: Departure,
        timed: LatencyStart,
        done_ns: u64,
    ) {
        let latency_ns = done_ns.saturating_sub(departure.sent_ns);
        let endpoint = &mut self.answered.endpoints[endpoint];
        for _ in 0..decided.allowed {
            endpoint.allowed.record(latency_ns);
        }
        for _ in 0..decided.limited {
            endpoint.limited.record(latency_ns);
        }
        for _ in 0..decided.allowed + decided.limited {
            match timed {
                LatencyStart::FromSend => self.tally.answered(departure.sent_ns, done_ns),
                LatencyStart::FromIntention => self.tally.answered_paced(departure, done_ns),
            }
        }
    }

    /// Counts a failed request with all its decisions.
    pub(super) fn failed(&mut self, decisions: u32, kind: &str) {
        (0..decisions).for_each(|_| self.tally.failed(kind));
    }

    /// Records the phases of a request.
    pub(super) fn phases(&mut self, phases: Phases) {
        let total_ns = phases.connect_ns + phases.processing_ns;
        let times = [
            ("Connect", phases.connect_ns),
            ("Processing", phases.processing_ns),
            ("Waiting", phases.waiting_ns),
            ("Total", total_ns),
        ];
        let all = &mut self.answered.phases;
        for (name, time_ns) in times {
            if let Some(phase) = all.iter_mut().find(|phase| phase.name == name) {
                phase.time.record(time_ns);
                continue;
            }
            let mut phase = Phase {
                name: name.to_owned(),
                ..Phase::default()
            };
            phase.time.record(time_ns);
            all.push(phase);
        }
    }
}
