//! Sender and responder on slim-bindings for Python (`bench/peers/slim/peer_slim.py`).

use std::time::Duration;

use super::super::AgentMode;
use super::applications::Applications;
use super::measure::measure_run;
use super::nodes::{TestedNode, ready};
use bench::measurement::Measurement;
use bench::model::Case;
use bench::process::Role;
use bench::workload::child::{Actor, ChildError};
use bench::workload::error::WorkloadError;
use bench::workload::peer::{LoadReport, Program};
use bench::workload::placement::Placement;

/// Program that plays both roles.
pub(super) struct Python {
    program: Program,
    placement: Placement,
}

impl Python {
    pub(super) fn new(program: Program, placement: Placement) -> Self {
        Self { program, placement }
    }

    /// Runs one repeat of a case, with processes of its own.
    pub(super) fn measure(
        &self,
        node: &mut TestedNode,
        case: &Case,
        window: Duration,
    ) -> Result<Measurement, WorkloadError> {
        let mut responder = self.responder(case, &node.url)?;
        let mut load = self.load(case, &node.url, window)?;
        measure_run(
            node,
            case,
            window,
            &mut responder,
            &mut load,
            |report: LoadReport| report.measurement(),
        )
    }

    fn responder(&self, case: &Case, url: &str) -> Result<Actor, ChildError> {
        let answer = match AgentMode::of(case) {
            AgentMode::RequestReply => "yes",
            AgentMode::FireAndForget | AgentMode::Write | AgentMode::Publish => "no",
        };
        let size = case.size.to_string();
        let arguments = [
            "respond",
            "--connect",
            url,
            "--answer",
            answer,
            "--size",
            &size,
        ];
        let pin = self.placement.pin(Role::Responder);
        let mut responder = self.program.start(&arguments, pin)?;
        ready(&mut responder)?;
        Ok(responder)
    }

    fn load(&self, case: &Case, url: &str, window: Duration) -> Result<Actor, ChildError> {
        let (size, rate) = (case.size.to_string(), case.rate.to_string());
        let seconds = window.as_secs_f64().to_string();
        let mut arguments = vec![
            "load",
            "--connect",
            url,
            "--mode",
            case.mode.name.as_ref(),
            "--size",
            &size,
            "--rate",
            &rate,
            "--seconds",
            &seconds,
        ];
        if Applications::of(case) == Applications::PythonReliable {
            arguments.push("--reliable");
        }
        let pin = self.placement.pin(Role::Sender);
        self.program.start(&arguments, pin)
    }
}
