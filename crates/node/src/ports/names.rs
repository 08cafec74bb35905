//! The port to the name table of a listener that does not use the node's own (SLIM).

use crate::AgentView;

/// The names of such a listener, for monitoring.
pub trait Names: Send + Sync {
    /// Returns the names with their subscribers, and names that messages missed.
    fn agents(&self) -> Vec<AgentView>;

    /// Returns names and the number of messages that found no subscriber, as far as they are
    /// remembered.
    fn missed(&self) -> Vec<(String, u64)>;

    /// Returns the number of subscriptions.
    fn subscription_count(&self) -> usize;
}
