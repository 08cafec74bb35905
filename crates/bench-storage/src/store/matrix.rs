//! Matrix of a conversation suite.

use std::path::PathBuf;
use std::time::Duration;

use super::LoadClient;
use bench::model::{Area, Case, Mode};
use bench::workload::node::Node;
use bench::workload::surroundings::OURS;

/// Client API of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// The native protocol.
    Native,
    /// HTTP/1.1, a request for each message.
    Http,
    /// One WebSocket for each user.
    Ws,
}

/// Parameters of a conversation suite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matrix {
    /// Virtual users, each with a conversation of its own.
    pub vus: u32,
    /// Messages in flight per user.
    pub pipeline: u32,
    /// Messages after which a user continues with another conversation. `None`: each user has one.
    pub messages: Option<u64>,
    /// Size of a message's text in bytes.
    pub size: u64,
    /// Client APIs of the users.
    pub doors: Vec<Door>,
    /// Duration over which the users join.
    pub ramp: Duration,
    /// Length of the steady window after the ramp.
    pub window: Duration,
    /// Runs of each case.
    pub repeats: u32,
    /// True if a webhook agent is called for each message, and answers at once.
    pub with_agent: bool,
    /// Directory on the measured disk; each run creates its own in it.
    pub directory: PathBuf,
}

impl Door {
    /// Returns the name in flags and cases.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Http => "http",
            Self::Ws => "ws",
        }
    }

    /// Returns the node's address of this client API.
    pub(super) fn address(self, node: &Node) -> &str {
        match self {
            Self::Native => &node.native,
            Self::Http | Self::Ws => node.http_address(),
        }
    }

    pub(super) fn client(self) -> LoadClient {
        match self {
            Self::Native => LoadClient::Native,
            Self::Http => LoadClient::Http,
            Self::Ws => LoadClient::Ws,
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
    /// Returns our cases, one for each client API.
    pub(super) fn ours(&self) -> Vec<Case> {
        let case = |door: &Door| self.case(OURS).parameter("door", door.name());
        self.doors.iter().map(case).collect()
    }

    /// Returns the case of another target.
    pub(super) fn case(&self, target: &str) -> Case {
        Case::new(target, Area::Store, Mode::APPEND)
            .clients(self.vus)
            .in_flight(self.pipeline)
            .size(self.size)
    }

    /// Returns the messages in flight of all users.
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
    fn the_client_api_is_a_parameter_of_our_cases_only() {
        let matrix = example();
        let doors: Vec<_> = matrix.ours().iter().map(Door::of).collect();
        assert_eq!(doors, [Some(Door::Native), Some(Door::Ws)]);
        assert_eq!(Door::of(&matrix.case("redis")), None);
        assert_eq!(matrix.in_flight(), 150);
    }
}
