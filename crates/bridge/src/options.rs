//! Options of a bridge, and the names of its two sides.

use std::time::Duration;

use console::output::Format;
use console::{Exit, Failure};
use model::Name;

/// Options of a bridge.
#[derive(Clone, Debug)]
pub struct Options {
    /// The agent.
    pub agent: Name,
    /// The name of the bridge in SLIM, without an instance.
    pub slim_name: Name,
    /// The SLIM application that answers the requests of agents; `None` if applications call the
    /// agent.
    pub to: Option<Name>,
    /// Time limit of a request. An earlier deadline of an agent that calls applies.
    pub deadline: Duration,
    /// Whether messages of applications are sent to the agent without replies.
    pub one_way: bool,
    /// Whether an application must acknowledge each message, which is repeated until then.
    pub reliable: bool,
    /// Maximum number of open SLIM sessions.
    pub sessions_max: usize,
    /// Maximum number of open requests, including waiting ones.
    pub requests_max: usize,
    /// The format of the bridge's events.
    pub format: Format,
}

/// Returns the three parts of a name.
pub(super) fn parts(name: &Name) -> [&str; 3] {
    [name.org(), name.namespace(), name.agent()]
}

/// Fills `bytes` with random bytes of the system.
pub fn fill(bytes: &mut [u8]) -> Result<(), Failure> {
    let random = ring::rand::SystemRandom::new();
    ring::rand::SecureRandom::fill(&random, bytes)
        .map_err(|_| Failure::new(Exit::Failed, "the system has no random bytes"))
}
