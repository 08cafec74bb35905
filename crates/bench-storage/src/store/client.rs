//! Client of conversations for the checks: append and read back over one client API.

mod http;
mod native;

use super::matrix::Door;
use bench::workload::node::Node;
use bench::workload::role::Failure;

/// A connection to a node.
pub struct Client(Connection);

enum Connection {
    Native(native::Client),
    Http(http::Client),
}

/// A message to append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutgoingMessage {
    /// Id of the message, unique in its conversation.
    pub id: String,
    /// Text that needs no escaping in JSON.
    pub text: String,
}

/// Acknowledgement of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AppendAck {
    /// Sequence number of the first message.
    pub first_seq: u64,
    /// Sequence number of the last message.
    pub last_seq: u64,
    /// Number of messages that already existed.
    pub deduplicated: u64,
}

/// A message that was read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredMessage {
    /// Sequence number.
    pub seq: u64,
    /// Id of the message.
    pub id: String,
    /// Text of its first part.
    pub text: String,
}

/// Failure of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AppendFailure {
    /// The batch may have been appended. The text is the reason, as far as known.
    Unconfirmed(String),
    /// The batch was not appended, for this reason.
    Refused(String),
}

impl AppendFailure {
    /// Converts to a failure, for nodes that were not killed.
    #[must_use]
    pub fn into_failure(self) -> Failure {
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
    ///
    /// # Errors
    /// When the connection fails.
    pub async fn open(node: &Node, door: Door) -> Result<Self, Failure> {
        let address = door.address(node);
        Ok(Self(match door {
            Door::Native => Connection::Native(native::Client::open(address).await?),
            // The WebSocket API cannot read back, so use the HTTP API.
            Door::Http | Door::Ws => Connection::Http(http::Client::open(address).await?),
        }))
    }

    /// Appends all messages or none.
    ///
    /// # Errors
    /// When the node rejects them, or the outcome is unknown.
    pub async fn append(
        &mut self,
        conversation: &str,
        messages: &[OutgoingMessage],
    ) -> Result<AppendAck, AppendFailure> {
        match &mut self.0 {
            Connection::Native(client) => client.append(conversation, messages).await,
            Connection::Http(client) => client.append(conversation, messages).await,
        }
    }

    /// Reads a whole conversation; one without messages is empty.
    ///
    /// # Errors
    /// When a page cannot be read.
    pub async fn read_all(&mut self, conversation: &str) -> Result<Vec<StoredMessage>, Failure> {
        let mut all: Vec<StoredMessage> = Vec::new();
        loop {
            let after = all.last().map_or(0, |last| last.seq);
            let page = match &mut self.0 {
                Connection::Native(client) => client.read(conversation, after).await?,
                Connection::Http(client) => client.read(conversation, after).await?,
            };
            if page.is_empty() {
                return Ok(all);
            }
            all.extend(page);
        }
    }
}
