//! `ConnectionState` and `Events`: the state of a client's connection, and how to watch it.

use tokio::sync::watch;

/// State of a client's connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectionState {
    /// The client makes its first connection.
    Connecting,
    /// The client is connected.
    Connected {
        /// Address of the peer.
        address: String,
        /// Software of the peer and its version.
        software: String,
    },
    /// The peer sent GOAWAY: calls in flight complete, new calls wait for the next connection.
    Draining {
        /// Reason from the peer.
        reason: String,
    },
    /// The connection was lost; calls wait for the next connection.
    Reconnecting {
        /// Number of failed attempts so far.
        attempt: u32,
        /// Error of the last attempt, or reason of the loss.
        reason: String,
    },
    /// The client was closed.
    Closed,
}

/// Watches a client's connection, from [`crate::Client::events`]. A short-lived state may be
/// missed.
#[derive(Clone, Debug)]
pub struct Events {
    receiver: watch::Receiver<ConnectionState>,
}

impl Events {
    pub(crate) fn new(receiver: watch::Receiver<ConnectionState>) -> Self {
        Self { receiver }
    }

    /// Returns the current state.
    pub fn current(&self) -> ConnectionState {
        self.receiver.borrow().clone()
    }

    /// Waits for the next change and returns the state; `None` after the client was closed.
    pub async fn next(&mut self) -> Option<ConnectionState> {
        self.receiver.changed().await.ok()?;
        Some(self.receiver.borrow_and_update().clone())
    }

    /// Waits until `accept` returns true for a state and returns that state; `None` if the client
    /// is closed first.
    pub async fn wait_for(
        &mut self,
        accept: impl FnMut(&ConnectionState) -> bool,
    ) -> Option<ConnectionState> {
        let state = self.receiver.wait_for(accept).await.ok()?;
        Some(state.clone())
    }
}
