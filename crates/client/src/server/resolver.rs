//! `Resolver`: finds the receiver of a route, by method or by subscribed name.

use std::sync::Arc;

use model::ErrorCode;

use super::handlers::Handlers;
use super::routes::Receiver;
use crate::connection::binding::Binding;
use crate::fault::Fault;
use crate::state::core::Core;
use crate::state::registry;

/// Source of the receivers of routes.
pub(crate) enum Resolver {
    /// A server: looks up the method.
    Methods(Arc<Handlers>),
    /// A client of a node: looks up the subscribed name, then the method.
    Names(Arc<Core>),
}

impl Resolver {
    /// Returns the receiver for messages on a route with this binding.
    pub(super) fn receiver(&self, binding: &Binding) -> Receiver {
        let found = match self {
            Self::Methods(handlers) => handlers.runner(&binding.method).map(Receiver::Handler),
            Self::Names(core) => match core.receiver(&binding.name) {
                Some(registry::Receiver {
                    handlers: Some(handlers),
                    ..
                }) => handlers.runner(&binding.method).map(Receiver::Handler),
                Some(registry::Receiver { queue, .. }) => Ok(Receiver::Queue(queue)),
                None => {
                    let message = format!("this client has no subscription to `{}`", binding.name);
                    Err(Fault::with_code(ErrorCode::NoResponder, message))
                }
            },
        };
        found.unwrap_or_else(Receiver::None)
    }
}
