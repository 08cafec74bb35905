//! Authentication of requests: by a token, a ticket, or the pass of another protocol.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use door::{Gate, Pass};
use http_api::{Client, Problem, Shared, bearer_of, unauthenticated};
use model::ErrorCode;
use node::Node;

use crate::revocable;
use crate::tickets::{TicketError, Tickets};

/// The parts that decide about the token of a request.
#[derive(Clone)]
pub(crate) struct Authentication {
    pub(crate) node: Node,
    pub(crate) gate: Arc<dyn Gate>,
    pub(crate) tickets: Arc<Tickets>,
}

/// Runs a request with the pass of its client, while the pass is valid.
pub(crate) async fn require_token(
    State(authentication): State<Authentication>,
    mut request: Request,
    next: Next,
) -> Response {
    let Authentication {
        node,
        gate,
        tickets,
    } = &authentication;
    let ticket = tickets.take_from(&mut request, &**gate);
    // A request that arrived over another protocol has its client's pass already.
    let admitted = match (ticket, request.extensions().get::<Pass>()) {
        (Some(ticket), _) => ticket.map_err(refuse_ticket),
        (None, Some(pass)) => Ok(pass.clone()),
        (None, None) => gate.admit(token_of(&request)).map_err(unauthenticated),
    };
    match admitted {
        Ok(pass) => {
            request.extensions_mut().insert(pass.clone());
            revocable::run(pass, request, next).await
        }
        Err(problem) => {
            node.counters().count(platform::Counter::Unauthenticated);
            problem.into_response()
        }
    }
}

/// Returns the token of a request; empty for none. For a WebSocket, browsers can send a token as a
/// sub-protocol only.
fn token_of(request: &Request) -> &str {
    match bearer_of(request.headers()) {
        "" if request.headers().contains_key(header::UPGRADE) => {
            bearer_of_protocols(request.headers())
        }
        token => token,
    }
}

/// Returns the token among the sub-protocols of a WebSocket, `bearer.TOKEN`; empty for none.
fn bearer_of_protocols(headers: &HeaderMap) -> &str {
    let fields = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter();
    let fields = fields.filter_map(|value| value.to_str().ok());
    let mut protocols = fields.flat_map(|value| value.split(','));
    let token = protocols.find_map(|protocol| protocol.trim().strip_prefix("bearer."));
    token.unwrap_or_default()
}

/// Refuses changes of a halted client, also those that no limit counts. Reads are permitted.
pub(crate) async fn refuse_halted(
    State(shared): State<Shared>,
    client: Client,
    request: Request,
    next: Next,
) -> Response {
    let is_look = matches!(
        *request.method(),
        Method::GET | Method::HEAD | Method::OPTIONS
    );
    match client.check_halt(&shared.node) {
        Err(problem) if !is_look => problem.into_response(),
        _ => next.run(request).await,
    }
}

/// Refuses conversations on a member of a cluster.
pub(crate) async fn refuse_conversations(
    State(shared): State<Shared>,
    request: Request,
    next: Next,
) -> Response {
    refuse_on_cluster(
        &shared,
        "conversations, inboxes and webhooks",
        request,
        next,
    )
    .await
}

/// Refuses quotas on a member of a cluster.
pub(crate) async fn refuse_quotas(
    State(shared): State<Shared>,
    request: Request,
    next: Next,
) -> Response {
    refuse_on_cluster(&shared, "quotas", request, next).await
}

async fn refuse_on_cluster(shared: &Shared, what: &str, request: Request, next: Next) -> Response {
    match shared.node.refused_on_cluster(what) {
        Some(reason) => Problem::of(ErrorCode::Unsupported, reason).into_response(),
        None => next.run(request).await,
    }
}

fn refuse_ticket(error: TicketError) -> Problem {
    Problem::of(ErrorCode::Unauthenticated, error.to_string())
}
