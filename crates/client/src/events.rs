//! What a client's connection is doing, for those who want to watch.

use tokio::sync::watch;

/// The state of a client's connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectionState {
    /// The first connection is being made.
    Connecting,
    /// Calls go through.
    Connected {
        /// Where to.
        address: String,
        /// What answers, and its version.
        software: String,
    },
    /// The peer asked to go away: what is under way is finished, new calls wait.
    Draining {
        /// What the peer said.
        reason: String,
    },
    /// The connection was lost; calls wait for the next one.
    Reconnecting {
        /// Attempts that failed so far.
        attempt: u32,
        /// Why the last one failed, or why the connection was lost.
        reason: String,
    },
    /// The client was closed.
    Closed,
}

/// Watches a client's connection, from [`crate::Client::events`]. A state that lasted for less
/// time than it took to look may be missed.
#[derive(Clone, Debug)]
pub struct Events {
    receiver: watch::Receiver<ConnectionState>,
}

impl Events {
    pub(crate) fn new(receiver: watch::Receiver<ConnectionState>) -> Self {
        Self { receiver }
    }

    /// The present state, without waiting.
    pub fn current(&self) -> ConnectionState {
        self.receiver.borrow().clone()
    }

    /// The next state that was not returned yet; `None` after the client was closed.
    pub async fn next(&mut self) -> Option<ConnectionState> {
        self.receiver.changed().await.ok()?;
        Some(self.receiver.borrow_and_update().clone())
    }

    /// Waits until the state is one that `accept` accepts, and returns it; `None` when the client
    /// was closed before.
    pub async fn wait_for(
        &mut self,
        accept: impl FnMut(&ConnectionState) -> bool,
    ) -> Option<ConnectionState> {
        let state = self.receiver.wait_for(accept).await.ok()?;
        Some(state.clone())
    }
}
