//! `Attachment`: a server behind a node, called by an agent's name.

use std::future::poll_fn;
use std::sync::Arc;

use model::{ErrorCode, Name};

use super::Server;
use crate::agents::envelope_queue::EnvelopeQueue;
use crate::agents::subscription::{ActiveSubscription, subscribe_receiver};
use crate::state::registry::Receiver;
use crate::{CallError, Client, SubscribeOptions};

/// A server that is reached through a node. Dropping it unsubscribes the name.
#[derive(Debug)]
pub struct Attachment {
    active: ActiveSubscription,
}

impl Server {
    /// Subscribes to `name` and answers its calls with the handlers of this server. If several
    /// servers attach to one name, calls are distributed round robin. The subscription survives
    /// reconnects.
    pub async fn attach(&self, client: &Client, name: &Name) -> Result<Attachment, CallError> {
        self.attach_with(client, name, SubscribeOptions::new())
            .await
    }

    /// Attaches with options, for example to get the name of each caller.
    pub async fn attach_with(
        &self,
        client: &Client,
        name: &Name,
        options: SubscribeOptions,
    ) -> Result<Attachment, CallError> {
        let receiver = Receiver {
            queue: Arc::new(EnvelopeQueue::default()),
            handlers: Some(Arc::new(self.handlers.clone())),
        };
        let active = subscribe_receiver(client, name, options, receiver).await?;
        Ok(Attachment { active })
    }
}

impl Attachment {
    /// Returns the full name, with its instance.
    pub fn name(&self) -> &str {
        &self.active.name
    }

    /// Waits for the end of the subscription and returns its reason: another connection took over
    /// the instance, the node refused to renew the subscription after a reconnect, or the client
    /// was closed.
    pub async fn ended(&self) -> ErrorCode {
        let mut nothing = std::collections::VecDeque::new();
        poll_fn(|cx| self.active.queue.poll_arrived(cx, &mut nothing)).await;
        self.active.queue.ended().unwrap_or(ErrorCode::Unavailable)
    }
}
