//! A server behind a node: its methods are called by an agent's name.

use std::future::poll_fn;
use std::sync::Arc;

use model::{ErrorCode, Name};

use super::Server;
use crate::mailbox::Mailbox;
use crate::registry::Receiver;
use crate::subscription::{Joined, join};
use crate::{CallError, Client, SubscribeOptions};

/// A server that is reached through a node. Dropping it ends that.
#[derive(Debug)]
pub struct Attached {
    joined: Joined,
}

impl Server {
    /// Answers what is sent to `name` with the same handlers as everywhere else. Several servers
    /// may attach to one name: each call reaches one of them, in turn. Survives reconnects.
    pub async fn attach(&self, client: &Client, name: &Name) -> Result<Attached, CallError> {
        self.attach_with(client, name, SubscribeOptions::new())
            .await
    }

    /// Attaches with other options: to be told the name of each caller, say.
    pub async fn attach_with(
        &self,
        client: &Client,
        name: &Name,
        options: SubscribeOptions,
    ) -> Result<Attached, CallError> {
        let receiver = Receiver {
            mailbox: Arc::new(Mailbox::default()),
            handlers: Some(Arc::new(self.handlers.clone())),
        };
        let joined = join(client, name, options, receiver).await?;
        Ok(Attached { joined })
    }
}

impl Attached {
    /// The full name, instance included.
    pub fn name(&self) -> &str {
        &self.joined.name
    }

    /// Waits until the node sends nothing more here, and says why: another connection attached as
    /// the same instance, the node refused to go on after a reconnect, or the client was closed.
    pub async fn ended(&self) -> ErrorCode {
        let mut nothing = std::collections::VecDeque::new();
        poll_fn(|cx| self.joined.mailbox.poll_arrived(cx, &mut nothing)).await;
        self.joined
            .mailbox
            .ended()
            .unwrap_or(ErrorCode::Unavailable)
    }
}
