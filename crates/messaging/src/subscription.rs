//! Subscriptions of a client to names.

use access::Forbidden;
use model::{ErrorCode, Name, NameError};

use crate::description::{Description, DescriptionError};
use crate::outlet::Outgoing;
use crate::turn::Turn;

/// The reason why a subscription was not changed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SubscribeError {
    /// The name is invalid.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The client may not use the name.
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
    /// The connection has the maximum number of subscriptions.
    #[error(
        "too many subscriptions on this connection \
         (limit {limit}, native.subscriptions_per_connection_max)"
    )]
    TooMany {
        /// The limit.
        limit: usize,
    },
    /// The description of the agent is not stored.
    #[error(transparent)]
    Description(#[from] DescriptionError),
    /// The subscription to end does not exist.
    #[error("this connection is not subscribed to `{name}`")]
    NotSubscribed {
        /// The name.
        name: Name,
    },
}

impl SubscribeError {
    /// Returns the error code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Name(_) | Self::NotSubscribed { .. } => ErrorCode::InvalidArgument,
            Self::Forbidden(_) => ErrorCode::Denied,
            Self::TooMany { .. } => ErrorCode::Busy,
            Self::Description(error) => match error {
                DescriptionError::TooLarge { .. } => ErrorCode::TooLarge,
                DescriptionError::TooManyMethods { .. } | DescriptionError::Duplicate { .. } => {
                    ErrorCode::InvalidArgument
                }
                DescriptionError::NoRoom => ErrorCode::Busy,
            },
        }
    }
}

impl Turn<'_> {
    /// Subscribes to a name, and returns the full name of the subscription. `description` describes
    /// the agent as long as the subscription exists.
    pub fn subscribe(
        &mut self,
        name: &str,
        with_source: bool,
        description: Option<Description>,
    ) -> Result<Name, SubscribeError> {
        let mut name = Name::parse(name)?;
        self.peer.facts.principal.check(&name)?;
        if name.instance().is_none() {
            let instance = format!(
                "i-{:012x}",
                self.messaging.platform.ports.entropy.next_u64() >> 16
            );
            name = name.with_instance(&instance)?;
        }
        let description = match description {
            None => None,
            Some(description) => Some(self.messaging.descriptions.store(description)?),
        };
        let limit = self.messaging.limits.subscriptions_per_connection_max;
        {
            let mut held = self.peer.subscriptions.lock();
            if held.len() >= limit && !held.contains_key(&name) {
                return Err(SubscribeError::TooMany { limit });
            }
            held.insert(name.clone(), description);
        }
        self.table = None;
        let peer = self.peer.clone();
        let mut table = self.messaging.router.table.write();
        let replaced = table
            .subscribe(name.clone(), peer.id, with_source, peer)
            .replaced;
        drop(table);
        if let Some(old) = replaced.filter(|old| old.connection != self.peer.id) {
            old.peer.remove_subscription(&name);
            let ended = Outgoing::Ended {
                name: &name,
                code: ErrorCode::Replaced,
            };
            old.peer.push(ended, &mut self.local.dirty);
        }
        self.local.joined.push(name.clone());
        Ok(name)
    }

    /// Ends a subscription, and returns its name.
    pub fn unsubscribe(&mut self, name: &str) -> Result<Name, SubscribeError> {
        let name = Name::parse(name)?;
        self.table = None;
        let mut table = self.messaging.router.table.write();
        let removed = table.unsubscribe(&name, self.peer.id);
        drop(table);
        match removed {
            Some(_) => {
                self.peer.remove_subscription(&name);
                Ok(name)
            }
            None => Err(SubscribeError::NotSubscribed { name }),
        }
    }
}
