//! What a suite of conversation benchmarks runs.

use std::path::PathBuf;
use std::time::Duration;

use super::{APPEND, Way};
use crate::model::{Area, Case};
use crate::workload::OURS;
use crate::workload::node::Node;

/// A door of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// The native protocol.
    Native,
    /// HTTP/1.1, a request for each message.
    Http,
    /// One WebSocket for each user.
    Ws,
}

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matrix {
    /// Virtual users, each with a conversation of its own.
    pub vus: u32,
    /// Messages that each has in flight.
    pub pipeline: u32,
    /// Messages after which a user goes on with another conversation; `None`: each has one.
    pub messages: Option<u64>,
    /// Bytes of a message's text.
    pub size: u64,
    /// Through which the users come.
    pub doors: Vec<Door>,
    /// Over which they join.
    pub ramp: Duration,
    /// Length of the steady window behind it.
    pub window: Duration,
    /// Runs of each case.
    pub repeats: u32,
    /// Whether an agent is called for what is written, and answers at once.
    pub with_agent: bool,
    /// A directory on the disk that is measured; each run gets one of its own in it.
    pub directory: PathBuf,
}

impl Door {
    /// The name in flags and cases.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Http => "http",
            Self::Ws => "ws",
        }
    }

    /// Where it is.
    pub(super) fn address(self, node: &Node) -> &str {
        match self {
            Self::Native => &node.native,
            Self::Http | Self::Ws => node.http_address(),
        }
    }

    pub(super) fn way(self) -> Way {
        match self {
            Self::Native => Way::Native,
            Self::Http => Way::Http,
            Self::Ws => Way::Ws,
        }
    }

    pub(super) fn of(case: &Case) -> Option<Self> {
        let name = case.parameters.get("door")?;
        [Self::Native, Self::Http, Self::Ws]
            .into_iter()
            .find(|door| door.name() == name)
    }
}

impl Matrix {
    /// Our cases: one for each door.
    pub(super) fn ours(&self) -> Vec<Case> {
        let case = |door: &Door| self.case(OURS).parameter("door", door.name());
        self.doors.iter().map(case).collect()
    }

    /// The same done by another.
    pub(super) fn case(&self, target: &str) -> Case {
        Case::new(target, Area::Store, APPEND)
            .clients(self.vus)
            .in_flight(self.pipeline)
            .size(self.size)
    }

    /// Messages under way, all in all.
    pub(super) fn in_flight(&self) -> u32 {
        self.vus * self.pipeline
    }
}

#[cfg(test)]
pub(super) fn example() -> Matrix {
    Matrix {
        vus: 30,
        pipeline: 5,
        messages: None,
        size: 256,
        doors: vec![Door::Native, Door::Ws],
        ramp: Duration::from_secs(30),
        window: Duration::from_secs(60),
        repeats: 2,
        with_agent: false,
        directory: PathBuf::from("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_door_is_part_of_the_case_and_a_rival_has_none() {
        let matrix = example();
        let doors: Vec<_> = matrix.ours().iter().map(Door::of).collect();
        assert_eq!(doors, [Some(Door::Native), Some(Door::Ws)]);
        assert_eq!(Door::of(&matrix.case("redis")), None);
        assert_eq!(matrix.in_flight(), 150);
    }
}
