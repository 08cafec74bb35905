//! Runs of the unmodified programs `slimctl bench pub` and `slimctl bench sub` as sender and
//! responder.
//!
//! Both programs take a number of messages and no duration. Therefore a trial through each node
//! first finds the number that takes about as long as the window. The programs connect, establish a
//! session, exchange their messages and close it. CPU time is counted from the sender's line that
//! the session exists to the responder's line with the number of received messages.

mod output;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

use super::super::AgentMode;
use super::nodes::TestedNode;
use bench::measurement::{Arrivals, Measurement, Sink};
use bench::model::{Case, CountedBy};
use bench::process::{Role, Watch};
use bench::workload::child::{Actor, ChildError};
use bench::workload::error::WorkloadError;
use bench::workload::peer::Program;
use bench::workload::placement::Placement;
use bench::workload::surroundings::PATIENCE;
use meter::clock::now_ns;
use output::Row;

/// Messages of the first trial of a case, growth factor between trials, and the fraction of the
/// window (1 / `TRIAL_PART`) that a trial must take.
const TRIAL_COUNT: u64 = 20;
const TRIAL_GROWTH: u64 = 10;
const TRIAL_PART: u64 = 4;

/// Maximum number of messages of a run.
const COUNT_MAX: u64 = 10_000_000;

/// Line markers: the sender begins, the responder is ready, the responder's session has ended, and
/// both are done.
const BEGUN: &str = "session established";
const READY: &str = "ready at";
const ENDED: &str = "] received ";
const DONE: &str = "Results written to";

/// Program that plays both roles.
pub(super) struct Slimctl {
    program: Program,
    placement: Placement,
    /// Directory of the measurements that it writes.
    directory: TempDir,
    /// Messages per run, by case.
    counts: BTreeMap<String, u64>,
    run_count: u32,
}

/// Parameters of both sides of a run.
struct RunParameters<'a> {
    case: &'a Case,
    url: String,
    /// Name prefix of this run: agents of the previous run may not be gone yet.
    prefix: String,
}

impl Slimctl {
    pub(super) fn new(program: Program, placement: Placement) -> Result<Self, WorkloadError> {
        Ok(Self {
            program,
            placement,
            directory: tempfile::tempdir().map_err(WorkloadError::Directory)?,
            counts: BTreeMap::new(),
            run_count: 0,
        })
    }

    /// Runs one repeat of a case, with processes of its own.
    pub(super) fn measure(
        &mut self,
        node: &mut TestedNode,
        case: &Case,
        window: Duration,
    ) -> Result<Measurement, WorkloadError> {
        let count = match self.counts.get(&case.key()) {
            Some(count) => *count,
            None => self.find_count(node, case, window)?,
        };
        self.run(node, case, count, window + PATIENCE)
    }

    /// Finds the number of messages that take about as long as the window.
    fn find_count(
        &mut self,
        node: &mut TestedNode,
        case: &Case,
        window: Duration,
    ) -> Result<u64, WorkloadError> {
        let window_ns = window.as_nanos() as u64;
        let enough_ns = window_ns / TRIAL_PART;
        let mut count = TRIAL_COUNT;
        let took_ns = loop {
            let mut took_ns = self.run(node, case, count, window + PATIENCE)?.window_ns;
            if took_ns >= enough_ns {
                // A single slow trial proves nothing.
                let again = self.run(node, case, count, window + PATIENCE)?;
                took_ns = took_ns.min(again.window_ns);
            }
            if took_ns >= enough_ns || count >= COUNT_MAX {
                break took_ns;
            }
            count *= TRIAL_GROWTH;
        };
        let count = scaled(count, took_ns, window_ns);
        self.counts.insert(case.key(), count);
        Ok(count)
    }

    fn run(
        &mut self,
        node: &mut TestedNode,
        case: &Case,
        count: u64,
        patience: Duration,
    ) -> Result<Measurement, WorkloadError> {
        self.run_count += 1;
        let sides = RunParameters {
            case,
            url: node.url.clone(),
            prefix: format!("bench/run-{}", self.run_count),
        };
        let [sent, received] = ["pub", "sub"].map(|side| {
            self.directory
                .path()
                .join(format!("{side}-{}", self.run_count))
        });
        let started_ns = now_ns();
        let mut responder = self.responder(&sides, &received)?;
        lines_until(&mut responder, READY, patience, node)?;
        let mut sender = self.sender(&sides, count, &sent)?;
        lines_until(&mut sender, BEGUN, patience, node)?;
        let setup_ns = now_ns() - started_ns;
        let watch = Watch::start(&[
            (Role::Sender, sender.pid()),
            (Role::Node, node.pid()),
            (Role::Responder, responder.pid()),
        ])?;
        lines_until(&mut responder, ENDED, patience, node)?;
        let span_ns = now_ns() - watch.started_ns();
        let usage = watch.stop();
        lines_until(&mut responder, DONE, patience, node)?;
        let lines = lines_until(&mut sender, DONE, patience, node)?;
        let nonsense = |cause: String| WorkloadError::Node(format!("slimctl bench: {cause}"));
        let sent = Row::read(&sent).map_err(nonsense)?;
        let received = Row::read(&received).map_err(nonsense)?;
        Ok(Measurement {
            sent: count,
            completed: sent.count,
            // The sender's own window ends when its close is acknowledged. A responder that is gone
            // by then never acknowledges, and the sender retries for 11 seconds.
            window_ns: sent.window_ns().unwrap_or_default().min(span_ns),
            setup_ns: Some(setup_ns),
            sink: (case.mode.counted_by == CountedBy::Sink).then(|| sink(&received, sent.count)),
            reported: output::latency(&lines, sent.count),
            usage: Some(usage),
            ..Measurement::default()
        })
    }

    fn responder(&self, sides: &RunParameters<'_>, file: &Path) -> Result<Actor, ChildError> {
        let mut arguments = sides.arguments("sub", 0, file);
        if AgentMode::of(sides.case) == AgentMode::RequestReply {
            arguments.push("--reply".to_owned());
        }
        self.start(Role::Responder, &arguments)
    }

    fn sender(
        &self,
        sides: &RunParameters<'_>,
        count: u64,
        file: &Path,
    ) -> Result<Actor, ChildError> {
        let mut arguments = sides.arguments("pub", count, file);
        match AgentMode::of(sides.case) {
            AgentMode::RequestReply => arguments.push("--request".to_owned()),
            AgentMode::Write => arguments.push("--reliable".to_owned()),
            AgentMode::FireAndForget | AgentMode::Publish => {}
        }
        self.start(Role::Sender, &arguments)
    }

    fn start(&self, role: Role, arguments: &[String]) -> Result<Actor, ChildError> {
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        self.program.start(&arguments, self.placement.pin(role))
    }
}

impl RunParameters<'_> {
    /// Builds the command line. A responder gets no number: it ends with its session, even if
    /// messages were lost.
    fn arguments(&self, side: &str, count: u64, file: &Path) -> Vec<String> {
        let (count, size) = (count.to_string(), self.case.size.to_string());
        let file = file.display().to_string();
        let arguments = [
            "bench",
            "--log-level",
            "error",
            side,
            "--server",
            &self.url,
            "--prefix",
            &self.prefix,
            "--msgs",
            &count,
            "--size",
            &size,
            "--csv",
            &file,
        ];
        arguments.map(str::to_owned).to_vec()
    }
}

/// Waits for a line that contains `words`. Returns all lines up to it.
fn lines_until(
    actor: &mut Actor,
    words: &str,
    patience: Duration,
    node: &mut TestedNode,
) -> Result<Vec<String>, ChildError> {
    let mut lines: Vec<String> = Vec::new();
    while !lines.last().is_some_and(|line| line.contains(words)) {
        lines.push(actor.line_while(patience, || node.check_alive())?);
    }
    Ok(lines)
}

/// Converts the responder's count. Its window ends with the session.
fn sink(received: &Row, expected: u64) -> Sink {
    let arrivals = received.window_ns().map(|window_ns| Arrivals {
        first_ns: 0,
        last_ns: window_ns,
    });
    let sink = Sink {
        received: received.count,
        arrivals,
        ..Sink::default()
    };
    sink.with_lost(expected)
}

/// Returns the number of messages that fit into the window, if `count` took `took_ns`.
fn scaled(count: u64, took_ns: u64, window_ns: u64) -> u64 {
    let scaled = u128::from(count) * u128::from(window_ns) / u128::from(took_ns.max(1));
    u64::try_from(scaled)
        .unwrap_or(COUNT_MAX)
        .clamp(1, COUNT_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_has_as_many_messages_as_fit_into_the_window() {
        const SECOND: u64 = 1_000_000_000;
        assert_eq!(scaled(20, 1_800_000_000, SECOND), 11);
        assert_eq!(scaled(200, 130_000_000, SECOND), 1_538);
        assert_eq!(scaled(20, 90_000_000_000, SECOND), 1);
        assert_eq!(scaled(u64::MAX, 1, SECOND), COUNT_MAX);
    }

    #[test]
    fn messages_that_the_responder_did_not_count_are_lost() {
        let row = Row {
            count: 90,
            bytes: 1440,
            bytes_per_second: 2880.0,
        };
        let sink = sink(&row, 100);
        assert_eq!(sink.errors.get("lost"), Some(&10));
        assert_eq!(sink.arrivals.map(|span| span.last_ns), Some(500_000_000));
    }
}
