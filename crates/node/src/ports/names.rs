//! Names that a door keeps a table of its own of.

use crate::AgentView;

/// What is shown of them beside the node's own.
pub trait Names: Send + Sync {
    /// Each with its subscribers, and those that messages missed.
    fn agents(&self) -> Vec<AgentView>;

    /// Names and how many messages found nobody there; those that are kept.
    fn missed(&self) -> Vec<(String, u64)>;

    /// Count of subscriptions.
    fn subscription_count(&self) -> usize;
}
