//! `Attached`: a server behind a node, called by an agent's name.

use std::future::poll_fn;
use std::sync::Arc;

use model::{ErrorCode, Name};

use super::Server;
use crate::mailbox::Mailbox;
use crate::registry::Receiver;
use crate::subscription::{Joined, join};
use crate::{CallError, Client, SubscribeOptions};

/// A server that is reached through a node. Dropping it unsubscribes the name.
#[derive(Debug)]
pub struct Attached {
    joined: Joined,
}

impl Server {
    /// Subscribes to `name` and answers its calls with the handlers of this server. If several
    /// servers attach to one name, calls are distributed round robin. The subscription survives
    /// reconnects.
    pub async fn attach(&self, client: &Client, name: &Name) -> Result<Attached, CallError> {
        self.attach_with(client, name, SubscribeOptions::new())
            .await
    }

    /// Attaches with options, for example to get the name of each caller.
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
    /// Returns the full name, with its instance.
    pub fn name(&self) -> &str {
        &self.joined.name
    }

    /// Waits for the end of the subscription and returns its reason: another connection took over
    /// the instance, the node refused to renew the subscription after a reconnect, or the client
    /// was closed.
    pub async fn ended(&self) -> ErrorCode {
        let mut nothing = std::collections::VecDeque::new();
        poll_fn(|cx| self.joined.mailbox.poll_arrived(cx, &mut nothing)).await;
        self.joined
            .mailbox
            .ended()
            .unwrap_or(ErrorCode::Unavailable)
    }
}
