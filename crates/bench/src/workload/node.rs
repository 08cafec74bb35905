//! A node of our own as a process: free ports, a temporary directory.

use std::path::Path;

use serde::Deserialize;

use super::child::{Actor, ChildError, Pin};

/// A running node; it ends with the suite.
#[derive(Debug)]
pub(super) struct Node {
    actor: Actor,
    /// Where its native door is.
    pub(super) native: String,
    /// Its Unix socket.
    pub(super) socket: String,
}

#[derive(Deserialize)]
struct Ready {
    native: String,
    socket: String,
}

const ARGUMENTS: [&str; 10] = [
    "serve",
    "--dev",
    "--json",
    "--end-with-stdin",
    "--log-level",
    "error",
    "--native-listen",
    "127.0.0.1:0",
    "--http-listen",
    "127.0.0.1:0",
];

impl Node {
    /// Starts it and waits until it is ready.
    pub(super) fn start(executable: &Path, pin: Pin) -> Result<Self, ChildError> {
        let mut actor = Actor::start(executable, ARGUMENTS, pin)?;
        let Ready { native, socket } = actor.json()?;
        Ok(Self {
            actor,
            native,
            socket,
        })
    }

    /// The process's number.
    pub(super) fn pid(&self) -> u32 {
        self.actor.pid()
    }

    /// Fails when it has ended.
    pub(super) fn check_alive(&mut self) -> Result<(), ChildError> {
        self.actor.check_alive()
    }
}
