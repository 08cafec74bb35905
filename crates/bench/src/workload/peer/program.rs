//! The programs that speak the contract.

use std::path::{Path, PathBuf};

use crate::workload::child::{Actor, ChildError, Pin};

/// A floor or a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::workload) struct Program {
    /// Its name in results.
    pub(in crate::workload) target: &'static str,
    /// The executable; a bare name until it is looked for.
    path: PathBuf,
    file: &'static str,
    /// Which of the executable's programs it is.
    word: Option<&'static str>,
    /// Whether its server stands between a caller and a callee.
    pub(in crate::workload) is_broker: bool,
}

impl Program {
    /// The least that an echo over sleeping sockets needs.
    pub(in crate::workload) const FLOOR: Self = Self::new("floor", "floors", Some("echo"), false);
    /// The least that reading a stream of bytes needs.
    pub(in crate::workload) const STREAM: Self =
        Self::new("stream-floor", "floors", Some("stream"), false);
    /// The least that durable messages within one process need.
    pub(in crate::workload) const DISK: Self =
        Self::new("disk-floor", "floors", Some("disk"), false);
    /// The least that a durable write over the network needs: one thread reads, another syncs.
    pub(in crate::workload) const DURABLE: Self =
        Self::new("durable-echo", "floors", Some("durable-echo"), false);
    /// The same in one thread.
    pub(in crate::workload) const DURABLE_ONE: Self =
        Self::new("durable-echo-1", "floors", Some("durable-echo"), false);
    /// libzmq, ROUTER and DEALER.
    pub(in crate::workload) const ZMQ: Self = Self::new("zmq", "peer-zmq", None, false);
    /// tarpc with bincode.
    pub(in crate::workload) const TARPC: Self = Self::new("tarpc", "peer-tarpc", None, false);
    /// tonic, a unary call per request.
    pub(in crate::workload) const TONIC: Self = Self::new("tonic", "peer-tonic", None, false);
    /// NATS core, the official server and client.
    pub(in crate::workload) const NATS: Self = Self::new("nats", "peer-nats", None, true);

    /// SLIM's node and its applications, as slim-bindings for Python have them.
    pub(in crate::workload) const SLIM: Self = Self::new("slim", "peer-slim", None, true);
    /// SLIM's own command: its node and the clients of its benchmark. It does not speak the contract.
    pub(in crate::workload) const SLIMCTL: Self = Self::new("slim", "slimctl", None, true);

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
        }
    }

    /// The program in the directory that `bench/peers/build.sh` fills.
    ///
    /// # Errors
    /// When it is not there.
    pub(in crate::workload) fn in_directory(self, directory: &Path) -> Result<Self, ChildError> {
        let path = directory.join(self.file);
        match path.is_file() {
            true => Ok(Self { path, ..self }),
            false => Err(ChildError::Missing {
                program: self.file.to_owned(),
                directory: directory.to_owned(),
            }),
        }
    }

    /// Starts it.
    pub(in crate::workload) fn start(
        &self,
        arguments: &[&str],
        pin: Pin,
    ) -> Result<Actor, ChildError> {
        let words = self.word.iter().chain(arguments);
        Actor::start(&self.path, words, pin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_was_not_built_is_named_with_the_way_to_build_it() {
        let directory = tempfile::tempdir().unwrap();
        let missing = Program::ZMQ
            .in_directory(directory.path())
            .unwrap_err()
            .to_string();
        assert!(missing.starts_with("there is no peer-zmq in "), "{missing}");
        assert!(missing.contains("\nhint: cargo xtask peers"), "{missing}");
        std::fs::write(directory.path().join("peer-zmq"), "").unwrap();
        assert!(Program::ZMQ.in_directory(directory.path()).is_ok());
    }
}
