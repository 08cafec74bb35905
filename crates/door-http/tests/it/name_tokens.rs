//! Tokens that are bound to one name.

use std::net::SocketAddr;
use std::sync::Arc;

use access::Principal;
use door::{Gate, Pass, Refused, Role};

use crate::{Door, serve_routes};

/// A gate whose tokens are the names that their bearers may use.
pub(crate) struct NameTokens;

impl NameTokens {
    /// Serves the routes of a node for clients with such tokens. Returns the address.
    pub(crate) async fn serve(door: &Door) -> SocketAddr {
        let gate = Arc::new(NameTokens);
        serve_routes(door_http::routes(
            door.node.clone(),
            gate,
            Arc::default(),
            &[],
            None,
        ))
        .await
    }
}

impl Gate for NameTokens {
    fn admit(&self, token: &str) -> Result<Pass, Refused> {
        match token {
            "" => Err(Refused::Missing),
            name => Ok(Pass::new(Principal::of_user(name, Role::Agent))),
        }
    }
}
