//! Names and their subscribers, for monitoring, and the port to the name table of a listener that
//! does not use the node's own (SLIM).

use std::sync::Arc;

use crate::description::Description;

/// A name and its subscribers.
#[derive(Clone, Debug)]
pub struct AgentView {
    /// `org/namespace/agent`.
    pub name: String,
    /// The protocol of the subscribers: `native` (which includes HTTP) or `slim`. The same name in
    /// another protocol is a different name.
    pub protocol: &'static str,
    /// Number of messages that found no subscriber. Forgotten once 1,024 other names were used and
    /// released since.
    pub undeliverable: u64,
    /// The description of the instance with the newest version.
    pub description: Option<Arc<Description>>,
    /// The instances.
    pub subscribers: Vec<SubscriberView>,
}

/// An instance of a name.
#[derive(Clone, Debug)]
pub struct SubscriberView {
    /// The instance.
    pub instance: String,
    /// The number of its connection.
    pub connection: u64,
    /// The remote address.
    pub remote: String,
    /// Number of messages delivered.
    pub delivered: u64,
    /// Number of messages dropped because it was full.
    pub dropped: u64,
    /// The description that it gave of the agent.
    pub description: Option<Arc<Description>>,
}

/// A selection of names.
#[derive(Clone, Debug)]
pub struct AgentsWanted<'a> {
    /// Only names that begin with this.
    pub prefix: &'a str,
    /// Only names after this one.
    pub after: Option<&'a str>,
    /// Most names.
    pub limit: usize,
}

/// Names in order, and totals of all names with the same prefix.
#[derive(Clone, Debug, Default)]
pub struct AgentsPage {
    /// The names of the page.
    pub agents: Vec<AgentView>,
    /// True if there are names after the last one.
    pub has_more: bool,
    /// Number of names with the prefix that have subscribers, without those of the node itself.
    pub connected: usize,
    /// Number of subscribers of these names.
    pub instances: usize,
}

impl AgentsWanted<'_> {
    pub(crate) fn has_prefix(&self, name: &str) -> bool {
        name.starts_with(self.prefix)
    }

    pub(crate) fn is_behind(&self, name: &str) -> bool {
        self.after.is_none_or(|after| name > after)
    }
}

impl AgentsPage {
    pub(crate) fn count(&mut self, name: &str, subscribers: usize) {
        if subscribers > 0 && !name.starts_with(OWN_ORG) {
            self.connected += 1;
            self.instances += subscribers;
        }
    }
}

/// Prefix of the names of the node itself.
const OWN_ORG: &str = "telpher/";

/// The names of a listener with its own name table, for monitoring.
pub trait Names: Send + Sync {
    /// Returns the names with their subscribers, and names that messages missed.
    fn agents(&self) -> Vec<AgentView>;

    /// Returns names and the number of messages that found no subscriber, as far as they are
    /// remembered.
    fn missed(&self) -> Vec<(String, u64)>;

    /// Returns the number of subscriptions.
    fn subscription_count(&self) -> usize;
}
