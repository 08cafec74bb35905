//! The connection of one request towards the other clients of the node.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::HeaderName;
use axum::http::request::Parts;
use http_api::{Client, Peer, Problem, Shared};
use messaging::{Cast, Connection, Facts, Outlet, Route};
use model::{ErrorCode, Name};
use node::Node;

use crate::problem::of_refusal;
use crate::replies::Replies;

/// The header with the name that a client claims.
const NAME: HeaderName = HeaderName::from_static("telpher-name");

/// The only route of a connection.
const ROUTE: u16 = 1;

/// A connection that sends one message or call. Dropping it cancels the call.
pub(crate) struct Caller {
    pub(crate) connection: Connection,
    pub(crate) replies: Arc<Replies>,
    route: BoundRoute,
}

/// A route, which is released after its connection.
struct BoundRoute {
    node: Node,
    route: Option<Route>,
}

/// The client of a request, with the name that it claims.
pub(crate) struct Claimant(Facts);

impl FromRequestParts<Shared> for Claimant {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Self, Problem> {
        let client =
            <Client as FromRequestParts<Shared>>::from_request_parts(parts, shared).await?;
        let name = match parts.headers.get(&NAME) {
            None => None,
            Some(value) => {
                let name = Name::parse(value.to_str().unwrap_or_default());
                let invalid = |error| Problem::invalid(format!("`{NAME}`: {error}"));
                Some(name.map_err(invalid)?)
            }
        };
        let principal = match &name {
            None => client.principal().clone(),
            Some(name) => client
                .principal()
                .claim(name)
                .map_err(|forbidden| Problem::of(ErrorCode::Denied, forbidden.to_string()))?,
        };
        let peer = parts.extensions.get::<Peer>();
        Ok(Self(Facts {
            name,
            principal,
            remote: peer.map_or_else(|| "local".to_owned(), |peer| peer.0.to_string()),
            door: "http",
            token: client.pass().token().cloned(),
            user: None,
            trusted: false,
            // It has no subscriptions.
            calls_max: 0,
            credit_messages: 0,
            credit_bytes: 0,
        }))
    }
}

impl Caller {
    /// Opens a connection with a route to a name.
    pub(crate) fn open(
        shared: &Shared,
        claimant: Claimant,
        target: Name,
        cast: Cast,
        method: &str,
    ) -> Result<Self, Problem> {
        let replies = Replies::new();
        let outlet = Outlet::Inbox(replies.clone());
        let messaging = shared.node.messaging();
        let connection = messaging.connect(claimant.0, |_| outlet);
        let mut connection = connection.map_err(of_refusal)?;
        let route = connection.turn().bind(ROUTE, target, cast, method);
        Ok(Self {
            connection,
            replies,
            route: BoundRoute {
                node: shared.node.clone(),
                route: Some(route),
            },
        })
    }

    /// Returns the connection and its route.
    pub(crate) fn parts(&mut self) -> Result<(&mut Connection, &Route), Problem> {
        let Self {
            connection, route, ..
        } = self;
        match &route.route {
            Some(route) => Ok((connection, route)),
            None => Err(Problem::of(ErrorCode::Internal, "the route was released")),
        }
    }
}

impl Drop for BoundRoute {
    fn drop(&mut self) {
        self.node
            .messaging()
            .release_routes(self.route.take().into_iter());
    }
}
