//! Our own sender and responder on SLIM's data plane, without its sessions. They measure the cost
//! of a message when the applications cost almost nothing, and SLIM's protocol on a schedule
//! without Python.

mod receiver;
mod sender;

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use slim::Name;

pub use receiver::receive_raw;
pub use sender::send_raw;

use super::super::{AgentMode, SenderCounts};
use super::measure::measure_run;
use super::nodes::TestedNode;
use bench::measurement::Measurement;
use bench::model::Case;
use bench::process::Role;
use bench::workload::child::{Actor, ChildError};
use bench::workload::error::WorkloadError;
use bench::workload::placement::Placement;
use bench::workload::role::{self, Ready, RoleSpec};

/// Parameters of both sides of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RawSpec {
    /// Address of the node: `HOST:PORT`.
    address: String,
    mode: AgentMode,
    /// Size of the body in bytes.
    size: usize,
    /// Messages per second; 0 means as many as possible.
    rate: u64,
    /// Length of the send window.
    window_ns: u64,
}

/// A process of a run: its sender or its responder.
#[derive(Serialize)]
struct Side<'a> {
    #[serde(skip)]
    role: &'static str,
    #[serde(flatten)]
    spec: &'a RawSpec,
}

impl RoleSpec for Side<'_> {
    fn role(&self) -> &'static str {
        self.role
    }
}

/// Returns the SLIM name of one of the two agents.
fn name(agent: &str) -> Name<'_> {
    Name::new(["bench", "raw", agent], Some(1))
}

const SENDER: &str = "load";
const RECEIVER: &str = "echo";

/// Starts both sides as processes of our own executable.
pub(super) struct Raw {
    pub(super) executable: PathBuf,
    pub(super) placement: Placement,
}

impl Raw {
    /// Runs one repeat of a case, with processes of its own.
    pub(super) fn measure(
        &self,
        node: &mut TestedNode,
        case: &Case,
        window: Duration,
    ) -> Result<Measurement, WorkloadError> {
        let spec = RawSpec {
            address: node.url.trim_start_matches("http://").to_owned(),
            mode: AgentMode::of(case),
            size: case.size as usize,
            rate: case.rate,
            window_ns: window.as_nanos() as u64,
        };
        let receiving = Side {
            role: "slim-receiver",
            spec: &spec,
        };
        let mut responder = self.start(Role::Responder, &receiving)?;
        let Ready { .. } = responder.json()?;
        let sending = Side {
            role: "slim-sender",
            spec: &spec,
        };
        let mut sender = self.start(Role::Sender, &sending)?;
        measure_run(
            node,
            case,
            window,
            &mut responder,
            &mut sender,
            |SenderCounts { tally, window_ns }| tally.over(window_ns),
        )
    }

    fn start(&self, role: Role, spec: &Side<'_>) -> Result<Actor, ChildError> {
        role::start(&self.executable, spec, self.placement.pin(role))
    }
}
