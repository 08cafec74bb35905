//! Matrix of an agent suite: every combination of its lists.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use bench::model::{Area, Case, Mode};
use bench::sweep::SweepOptions;
use bench::workload::placement::Placement;
use bench::workload::surroundings::OURS;

/// Message exchange pattern between agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AgentMode {
    /// Messages that are answered.
    RequestReply,
    /// One-way messages to receivers that count.
    FireAndForget,
    /// Messages written to the node and acknowledged by it, without a receiver.
    Write,
    /// One-way messages to several subscribers at once.
    Publish,
}

/// Parameters of an agent suite. A rate of 0 is as fast as possible.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    /// Modes, in the order of the reports.
    pub modes: Vec<AgentMode>,
    /// Numbers of concurrent clients.
    pub clients: Vec<u32>,
    /// Sizes of the body in bytes.
    pub sizes: Vec<u64>,
    /// Requests per second of all clients together.
    pub rates: Vec<u64>,
    /// One-way messages per second.
    pub oneway_rates: Vec<u64>,
    /// Writes per second.
    pub write_rates: Vec<u64>,
    /// Messages in flight per client, in unpaced modes that wait for an answer.
    pub in_flight: Vec<u32>,
    /// Numbers of subscribers in publish mode.
    pub subscribers: Vec<u32>,
    /// Length of the send window of a run.
    pub window: Duration,
    /// Runs of each case.
    pub repeats: u32,
    /// Sweep options; if set, the capacity of each case is searched instead of its fixed rates.
    pub sweep: Option<SweepOptions>,
    /// Placement of the roles.
    pub placement: Placement,
}

impl AgentMode {
    /// Returns the mode in results.
    #[must_use]
    pub fn mode(self) -> Mode {
        match self {
            Self::RequestReply => Mode::REQUEST_REPLY,
            Self::FireAndForget => Mode::FIRE_AND_FORGET,
            Self::Write => Mode::WRITE,
            Self::Publish => Mode::PUBLISH,
        }
    }

    /// Returns the mode of a case.
    pub(super) fn of(case: &Case) -> Self {
        match case.mode.name.as_ref() {
            "fire-and-forget" => Self::FireAndForget,
            "write" => Self::Write,
            "publish" => Self::Publish,
            _ => Self::RequestReply,
        }
    }

    /// Returns true if the sender waits for an answer, so that a number in flight applies.
    fn is_bounded(self) -> bool {
        matches!(self, Self::RequestReply | Self::Write)
    }
}

impl Matrix {
    /// Returns every case with its rate.
    #[must_use]
    pub fn cases(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        for case in self.shapes() {
            let mode = AgentMode::of(&case);
            for rate in self.rates_of(mode) {
                let case = case.clone().rate(*rate);
                match *rate == 0 && mode.is_bounded() {
                    true => cases.extend(self.in_flight.iter().map(|n| case.clone().in_flight(*n))),
                    false => cases.push(case),
                }
            }
        }
        cases
    }

    /// Returns every case without its rate, for a sweep. Publish mode is never paced.
    #[must_use]
    pub fn shapes(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        for mode in &self.modes {
            for clients in &self.clients {
                for size in &self.sizes {
                    let case = Case::new(OURS, Area::Agent, mode.mode())
                        .clients(*clients)
                        .size(*size);
                    match mode {
                        AgentMode::Publish => cases.extend(
                            self.subscribers
                                .iter()
                                .map(|count| case.clone().parameter(Case::SUBSCRIBERS, count)),
                        ),
                        _ => cases.push(case),
                    }
                }
            }
        }
        cases
    }

    fn rates_of(&self, mode: AgentMode) -> &[u64] {
        match mode {
            AgentMode::RequestReply => &self.rates,
            AgentMode::FireAndForget => &self.oneway_rates,
            AgentMode::Write => &self.write_rates,
            AgentMode::Publish => &[0],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(modes: &[AgentMode], rate: u64) -> Matrix {
        Matrix {
            modes: modes.to_vec(),
            clients: vec![1, 2],
            sizes: vec![16],
            rates: vec![rate],
            oneway_rates: vec![rate],
            write_rates: vec![rate],
            in_flight: vec![1, 10],
            subscribers: vec![1, 10],
            window: Duration::from_secs(1),
            repeats: 1,
            sweep: None,
            placement: Placement::Unpinned,
        }
    }

    fn workloads(matrix: &Matrix) -> Vec<String> {
        matrix.cases().iter().map(Case::workload).collect()
    }

    #[test]
    fn a_paced_matrix_has_a_case_for_each_combination() {
        let matrix = matrix(&[AgentMode::RequestReply, AgentMode::Write], 100);
        let expected = [
            "agent-request-reply-c1-s16-r100",
            "agent-request-reply-c2-s16-r100",
            "agent-write-c1-s16-r100",
            "agent-write-c2-s16-r100",
        ];
        assert_eq!(workloads(&matrix), expected);
    }

    #[test]
    fn only_modes_that_wait_have_a_number_in_flight() {
        let both = [AgentMode::FireAndForget, AgentMode::RequestReply];
        let expected = [
            "agent-fire-and-forget-c1-s16-r0",
            "agent-fire-and-forget-c2-s16-r0",
            "agent-request-reply-c1-s16-r0-f1",
            "agent-request-reply-c1-s16-r0-f10",
            "agent-request-reply-c2-s16-r0-f1",
            "agent-request-reply-c2-s16-r0-f10",
        ];
        assert_eq!(workloads(&matrix(&both, 0)), expected);
    }

    #[test]
    fn published_messages_are_unpaced_and_have_subscribers() {
        let cases = matrix(&[AgentMode::Publish], 100).cases();
        let seen: Vec<_> = cases
            .iter()
            .map(|case| (case.rate, case.subscribers()))
            .collect();
        assert_eq!(seen, [(0, 1), (0, 10), (0, 1), (0, 10)]);
    }
}
