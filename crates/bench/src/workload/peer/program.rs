//! Programs that implement the contract.

use std::path::{Path, PathBuf};

use crate::process::Role;
use crate::workload::child::{Actor, ChildError, Pin};

/// A floor or a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Name in results.
    pub target: &'static str,
    /// Path of the executable; empty until [`Self::in_directory`].
    path: PathBuf,
    file: &'static str,
    /// Subcommand of the executable.
    word: Option<&'static str>,
    /// True if the program is a broker between caller and callee.
    pub is_broker: bool,
    /// Role of the serving process in results.
    pub(super) role: Role,
}

impl Program {
    /// Minimum of an echo over sleeping sockets.
    pub const FLOOR: Self = Self::new("floor", "floors", Some("echo"), false);
    /// Minimum of reading a stream of bytes.
    pub const STREAM: Self = Self::new("stream-floor", "floors", Some("stream"), false);
    /// Minimum of durable messages within one process.
    pub const DISK: Self = Self::new("disk-floor", "floors", Some("disk"), false);
    /// Minimum of a durable write over the network: one thread reads, another syncs.
    pub const DURABLE: Self = Self::new("durable-echo", "floors", Some("durable-echo"), false);
    /// Minimum of a replicated write: three processes, and an answer at the second of three syncs.
    pub const QUORUM: Self =
        Self::new("quorum-floor", "floors", Some("quorum"), false).serving_as(Role::Node);
    /// Minimum of a durable write over the network, in one thread.
    pub const DURABLE_ONE: Self =
        Self::new("durable-echo-1", "floors", Some("durable-echo"), false);
    /// libzmq, ROUTER and DEALER.
    pub const ZMQ: Self = Self::new("zmq", "peer-zmq", None, false);
    /// tarpc with bincode.
    pub const TARPC: Self = Self::new("tarpc", "peer-tarpc", None, false);
    /// tonic, a unary call per request.
    pub const TONIC: Self = Self::new("tonic", "peer-tonic", None, false);
    /// NATS core, the official server and client.
    pub const NATS: Self = Self::new("nats", "peer-nats", None, true);

    /// SLIM's node and its applications in the Python bindings.
    pub const SLIM: Self = Self::new("slim", "peer-slim", None, true);
    /// SLIM's own command line: its node and the clients of its benchmark. It does not implement
    /// the contract.
    pub const SLIMCTL: Self = Self::new("slim", "slimctl", None, true);

    const fn new(
        target: &'static str,
        file: &'static str,
        word: Option<&'static str>,
        is_broker: bool,
    ) -> Self {
        Self {
            target,
            path: PathBuf::new(),
            file,
            word,
            is_broker,
            role: match is_broker {
                true => Role::Node,
                false => Role::Responder,
            },
        }
    }

    const fn serving_as(mut self, role: Role) -> Self {
        self.role = role;
        self
    }

    /// Finds the program in the directory that `bench/peers/build.sh` fills.
    ///
    /// # Errors
    /// When the program is not there.
    pub fn in_directory(self, directory: &Path) -> Result<Self, ChildError> {
        let path = directory.join(self.file);
        match path.is_file() {
            true => Ok(Self { path, ..self }),
            false => Err(ChildError::Missing {
                program: self.file.to_owned(),
                directory: directory.to_owned(),
            }),
        }
    }

    /// Starts the program.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(&self, arguments: &[&str], pin: Pin) -> Result<Actor, ChildError> {
        let words = self.word.iter().chain(arguments);
        Actor::start(&self.path, words, pin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_named_with_its_build_command() {
        let directory = tempfile::tempdir().unwrap();
        let missing = Program::ZMQ
            .in_directory(directory.path())
            .unwrap_err()
            .to_string();
        assert!(missing.starts_with("peer-zmq is not in "), "{missing}");
        assert!(missing.contains("\nhint: cargo xtask peers"), "{missing}");
        std::fs::write(directory.path().join("peer-zmq"), "").unwrap();
        assert!(Program::ZMQ.in_directory(directory.path()).is_ok());
    }
}
