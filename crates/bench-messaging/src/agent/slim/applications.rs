//! Applications that send and receive in a SLIM case.

use std::path::Path;

use super::nodes::THEIRS;
use bench::model::{Case, Mode};
use bench::workload::child::ChildError;
use bench::workload::peer::Program;
use bench::workload::surroundings::OURS;

/// Program that plays sender and responder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applications {
    /// slim-bindings for Python.
    Python,
    /// slim-bindings for Python, in reliable sessions.
    PythonReliable,
    /// `slimctl bench`, in Rust.
    Slimctl,
    /// Our own client, over SLIM's data plane without its sessions.
    Raw,
    /// Our own client, over the native protocol, which SLIM's node does not speak.
    Native,
}

/// Name of the parameter for the applications.
const APPLICATIONS: &str = "applications";

impl Applications {
    /// All applications.
    pub const ALL: [Self; 5] = [
        Self::Python,
        Self::PythonReliable,
        Self::Slimctl,
        Self::Raw,
        Self::Native,
    ];

    /// Returns the name in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::PythonReliable => "python-reliable",
            Self::Slimctl => "slimctl",
            Self::Raw => "raw",
            Self::Native => "native",
        }
    }

    /// Describes the applications for readers of the results.
    pub(super) fn description(self) -> &'static str {
        match self {
            Self::Python => "slim-bindings for Python, unmodified; they use most of the CPU time",
            Self::PythonReliable => {
                "slim-bindings for Python in reliable sessions, like SLIM's own examples, SLIMRPC and A2A: each \
                 message and each reply is acknowledged by the session that receives it"
            }
            Self::Slimctl => {
                "`slimctl bench pub` and `slimctl bench sub`, unmodified: a number of messages as fast as \
                 they go, found by a first run; no warm-up, the window ends when the session is closed, \
                 and no mean is reported"
            }
            Self::Raw => {
                "`telpher bench-role`, SLIM's messages without its sessions: the cost of the node, with \
                 almost no cost of applications"
            }
            Self::Native => {
                "`telpher bench-role`, over the native protocol through the same node, without SLIM"
            }
        }
    }

    /// Returns the applications of a case.
    pub(super) fn of(case: &Case) -> Self {
        let name = case.parameters.get(APPLICATIONS).map(String::as_str);
        let named = Self::ALL.iter().find(|one| name == Some(one.name()));
        named.copied().unwrap_or(Self::Native)
    }

    /// Returns the variants of a case that these applications support, through our node first.
    pub(super) fn cases(self, case: &Case) -> Vec<Case> {
        let (is_paced, is_write) = (case.paced(), case.mode == Mode::WRITE);
        let is_answered = case.mode == Mode::REQUEST_REPLY;
        let case = |target: &str, protocol: &str| Case {
            target: target.to_owned(),
            ..case
                .clone()
                .parameter("protocol", protocol)
                .parameter(APPLICATIONS, self.name())
        };
        match self {
            Self::Slimctl if is_paced => Vec::new(),
            // One-way messages in reliable sessions are writes, which the other applications cover.
            Self::PythonReliable if !is_answered => Vec::new(),
            // Without a session there are no acknowledgements.
            Self::Raw if is_write => Vec::new(),
            Self::Python | Self::PythonReliable | Self::Slimctl | Self::Raw => {
                vec![case(OURS, "slim"), case(THEIRS, "slim")]
            }
            Self::Native => vec![case(OURS, "native")],
        }
    }

    /// Returns the third-party program of these applications, if any.
    fn program(self) -> Option<Program> {
        match self {
            Self::Python | Self::PythonReliable => Some(Program::SLIM),
            Self::Slimctl => Some(Program::SLIMCTL),
            Self::Raw | Self::Native => None,
        }
    }
}

/// Returns the chosen applications, or without a choice all that are in the directory of peers.
/// # Errors
/// When a chosen application is missing, or no SLIM application is present.
pub(super) fn available(
    directory: &Path,
    chosen: &[Applications],
) -> Result<Vec<Applications>, ChildError> {
    let find = |one: &Applications| match one.program() {
        Some(program) => program.in_directory(directory).map(drop),
        None => Ok(()),
    };
    if !chosen.is_empty() {
        chosen.iter().try_for_each(find)?;
        return Ok(chosen.to_vec());
    }
    let found: Vec<_> = Applications::ALL
        .into_iter()
        // Through SLIM's node these take 90 ms a message: run them only on request.
        .filter(|one| *one != Applications::PythonReliable)
        .filter(|one| find(one).is_ok())
        .collect();
    match found.iter().any(|one| one.program().is_some()) {
        false => Err(ChildError::Missing {
            program: "peer-slim or slimctl".to_owned(),
            directory: directory.to_owned(),
        }),
        true => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_choice_all_available_applications_run() {
        let directory = tempfile::tempdir().unwrap();
        let available = |chosen| available(directory.path(), chosen);
        assert!(available(&[]).unwrap_err().to_string().contains("slimctl"));
        std::fs::write(directory.path().join("slimctl"), "").unwrap();
        let found = [
            Applications::Slimctl,
            Applications::Raw,
            Applications::Native,
        ];
        assert_eq!(available(&[]).unwrap(), found);
        assert!(available(&[Applications::Python]).is_err());
        assert_eq!(available(&found[..1]).unwrap(), found[..1]);
    }
}
