//! Client of conversations for the checks: append and read back over one client API.

mod http;
mod native;

use super::matrix::Door;
use crate::workload::node::Node;
use crate::workload::role::Failure;

/// A connection to a node.
pub(super) enum Client {
    Native(native::Client),
    Http(http::Client),
}

/// A message to append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OutgoingMessage {
    pub(super) id: String,
    /// Text that needs no escaping in JSON.
    pub(super) text: String,
}

/// Acknowledgement of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AppendAck {
    pub(super) first_seq: u64,
    pub(super) last_seq: u64,
    /// Number of messages that already existed.
    pub(super) deduplicated: u64,
}

/// A message that was read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoredMessage {
    pub(super) seq: u64,
    pub(super) id: String,
    /// Text of its first part.
    pub(super) text: String,
}

/// Failure of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AppendFailure {
    /// The batch may have been appended. The text is the reason, as far as known.
    Unconfirmed(String),
    /// The batch was not appended, for this reason.
    Refused(String),
}

impl AppendFailure {
    /// Converts to a failure, for nodes that were not killed.
    pub(super) fn into_failure(self) -> Failure {
        match self {
            Self::Unconfirmed(why) => format!(
                "the outcome of an append is unknown, although the node was not killed: {why}"
            )
            .into(),
            Self::Refused(why) => format!("the node rejects an append: {why}").into(),
        }
    }
}

impl Client {
    /// Connects; must run in a local set.
    pub(super) async fn open(node: &Node, door: Door) -> Result<Self, Failure> {
        let address = door.address(node);
        match door {
            Door::Native => Ok(Self::Native(native::Client::open(address).await?)),
            // The WebSocket API cannot read back, so use the HTTP API.
            Door::Http | Door::Ws => Ok(Self::Http(http::Client::open(address).await?)),
        }
    }

    /// Appends all messages or none.
    pub(super) async fn append(
        &mut self,
        conversation: &str,
        messages: &[OutgoingMessage],
    ) -> Result<AppendAck, AppendFailure> {
        match self {
            Self::Native(client) => client.append(conversation, messages).await,
            Self::Http(client) => client.append(conversation, messages).await,
        }
    }

    /// Reads a whole conversation; one without messages is empty.
    pub(super) async fn read_all(
        &mut self,
        conversation: &str,
    ) -> Result<Vec<StoredMessage>, Failure> {
        let mut all: Vec<StoredMessage> = Vec::new();
        loop {
            let after = all.last().map_or(0, |last| last.seq);
            let page = match self {
                Self::Native(client) => client.read(conversation, after).await?,
                Self::Http(client) => client.read(conversation, after).await?,
            };
            if page.is_empty() {
                return Ok(all);
            }
            all.extend(page);
        }
    }
}
