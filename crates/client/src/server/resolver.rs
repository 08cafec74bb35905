//! What a route means: a method here, or a name that was subscribed and a method behind it.

use std::sync::Arc;

use model::ErrorCode;

use super::handlers::Handlers;
use super::routes::Receiver;
use crate::binding::Binding;
use crate::core::Core;
use crate::fault::Fault;
use crate::registry;

/// Where the meaning of a route is looked up.
pub(crate) enum Resolver {
    /// A server: by method.
    Methods(Arc<Handlers>),
    /// A client of a node: by the name that was subscribed, then by method.
    Names(Arc<Core>),
}

impl Resolver {
    /// Who gets what is sent on a route with that meaning.
    pub(super) fn receiver(&self, binding: &Binding) -> Receiver {
        let found = match self {
            Self::Methods(handlers) => handlers.runner(&binding.method).map(Receiver::Handler),
            Self::Names(core) => match core.receiver(&binding.name) {
                Some(registry::Receiver {
                    handlers: Some(handlers),
                    ..
                }) => handlers.runner(&binding.method).map(Receiver::Handler),
                Some(registry::Receiver { mailbox, .. }) => Ok(Receiver::Mailbox(mailbox)),
                None => {
                    let message = format!("nobody is subscribed to `{}` here", binding.name);
                    Err(Fault::with_code(ErrorCode::NoResponder, message))
                }
            },
        };
        found.unwrap_or_else(Receiver::Nobody)
    }
}
