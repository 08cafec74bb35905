//! Failures of calls, and notes about the connection of a client.

use client::{CallError, ConnectionState};
use model::{ErrorCode, Name};

use crate::{Exit, Failure, output};

/// Converts the error of a call to a failure.
pub fn call_failure(name: &Name, error: &CallError) -> Failure {
    let message = format!("{}: {}", error.code, error.message);
    let failure = Failure::new(Exit::from(error.code), message);
    match error.code {
        ErrorCode::NoResponder => {
            failure
                .hint("`telpher agents` lists the subscribers")
                .hint(format!(
                    "`telpher listen {name} --echo` starts an agent that answers"
                ))
        }
        _ => failure.hint(error.hint()),
    }
}

/// Prints a note when the connection is lost and when it is restored. Very short states may be
/// missed.
#[derive(Default)]
pub struct ConnectionNotes {
    is_lost: bool,
}

impl ConnectionNotes {
    /// Prints a note if the state differs from the previous one.
    pub fn print(&mut self, state: &ConnectionState) {
        match state {
            ConnectionState::Reconnecting { reason, .. } => {
                if !std::mem::replace(&mut self.is_lost, true) {
                    output::note(&format!("connection lost ({reason}); reconnecting"));
                }
            }
            ConnectionState::Connected { address, .. } => {
                if std::mem::take(&mut self.is_lost) {
                    output::note(&format!("reconnected to {address}"));
                }
            }
            ConnectionState::Connecting
            | ConnectionState::Draining { .. }
            | ConnectionState::Closed => {}
        }
    }
}
