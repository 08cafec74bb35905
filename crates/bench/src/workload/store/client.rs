//! Appends to conversations and reads them back, over one door: what the checks need of a client.

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

/// A message that is to be appended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ToAppend {
    pub(super) id: String,
    /// Needs no escaping in JSON.
    pub(super) text: String,
}

/// How a batch was acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Acked {
    pub(super) first_seq: u64,
    pub(super) last_seq: u64,
    /// How many were there already.
    pub(super) deduplicated: u64,
}

/// A message that was read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) seq: u64,
    pub(super) id: String,
    /// The text of its first part.
    pub(super) text: String,
}

/// Why a batch was not acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trouble {
    /// It may have been appended, or not; and what is known of why.
    Unconfirmed(String),
    /// It was not, and why.
    Refused(String),
}

impl Trouble {
    /// As a failure, where neither is expected.
    pub(super) fn told(self) -> Failure {
        match self {
            Self::Unconfirmed(why) => {
                format!("a node that was not killed leaves an append open: {why}").into()
            }
            Self::Refused(why) => format!("a node refuses an append: {why}").into(),
        }
    }
}

impl Client {
    /// Connects; needs a local set.
    pub(super) async fn open(node: &Node, door: Door) -> Result<Self, Failure> {
        let address = door.address(node);
        match door {
            Door::Native => Ok(Self::Native(native::Client::open(address).await?)),
            // A WebSocket belongs to the HTTP door, and reads nothing back.
            Door::Http | Door::Ws => Ok(Self::Http(http::Client::open(address).await?)),
        }
    }

    /// Appends messages, all or none.
    pub(super) async fn append(
        &mut self,
        conversation: &str,
        messages: &[ToAppend],
    ) -> Result<Acked, Trouble> {
        match self {
            Self::Native(client) => client.append(conversation, messages).await,
            Self::Http(client) => client.append(conversation, messages).await,
        }
    }

    /// Reads a whole conversation; one that was never written to is empty.
    pub(super) async fn read_all(&mut self, conversation: &str) -> Result<Vec<Stored>, Failure> {
        let mut all: Vec<Stored> = Vec::new();
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
