//! The HTTP API: health, metrics, conversations, topics, quotas and administration, as JSON.
//!
//! | path | answers | token |
//! |---|---|---|
//! | `/livez` | 200 while the process runs | – |
//! | `/readyz` | 200 if the node accepts work, else 503 with the reason | – |
//! | `/version` | software and protocol versions | – |
//! | `/openapi.json` | a machine-readable description of this API | – |
//! | `/metrics` | metrics as Prometheus or OpenMetrics text | any |
//! | `/v1/agents` | the subscribers of each name | any |
//! | `/v1/connections` | the open connections | any |
//! | `/v1/conversations/…` | see `docs/conversations.md` | any |
//! | `/v1/topics/…` | see `docs/topics.md` | any |
//! | `/v1/kafka/users/…` | see `docs/kafka.md` | admin |
//! | `/v1/take`, `/v1/settle`, … | see `docs/quotas.md` | any; admin for changes |
//! | `/v1/tickets` | short-lived replacements of a token in a URL, see `docs/reference/http.md` | any |
//!
//! Errors are RFC 9457 problem documents with a `code` of Telpher.

mod about;
mod access;
mod archive;
mod body;
mod connections;
mod conversations;
mod derived;
mod front;
mod listener;
mod local;
mod metrics;
mod openapi;
mod problem;
mod quotas;
mod reply;
mod revocable;
mod sse;
mod storage;
mod tickets;
mod time;
mod topics;
mod users;
mod view;

use std::net::IpAddr;
use std::sync::Arc;

pub use access::Access;
use axum::Router;
use axum::extract::{OriginalUri, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
pub use connections::{Connections, Limits};
pub use conversations::{EventJson, call_agents};
pub use listener::{Options, serve, serve_stream};
pub use local::{Answer, Local};
use model::ErrorCode;
use problem::Problem;
pub(crate) use quotas::FOREIGN_HOLD;
use quotas::Surface;
pub use quotas::compat::{LIMIT as COMPAT_LIMIT, routes as compat_routes};
use serde::Serialize;
use tickets::{TicketError, Tickets};
use utoipa_axum::router::OpenApiRouter;
pub use view::{agents_json, connections_json};

use crate::gate::{Gate, Pass, Refused};

/// State shared by all handlers.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) node: node::Node,
    gate: Arc<dyn Gate>,
    /// The listener's connections, whose limits apply to WebSockets, too.
    connections: Arc<Connections>,
    tickets: Arc<Tickets>,
    latencies: metrics::Latencies,
}

/// The routes of an HTTP listener.
#[derive(Clone)]
pub struct Routes {
    router: Router,
    /// Frequent requests that are answered before they reach the router.
    surface: Surface,
}

impl Routes {
    fn new(router: Router, surface: Surface) -> Self {
        Self { router, surface }
    }
}

/// The IP address of the client's socket.
#[derive(Clone, Copy, Debug)]
struct Peer(IpAddr);

/// Returns the routes of the HTTP API of `node`.
pub fn routes(node: node::Node, gate: Arc<dyn Gate>, connections: Arc<Connections>) -> Routes {
    let shared = Shared {
        node,
        gate,
        connections,
        tickets: Arc::default(),
        latencies: metrics::Latencies::new(quotas::TAKE_PATH),
    };
    let token = middleware::from_fn_with_state(shared.clone(), require_token);
    let halted = middleware::from_fn_with_state(shared.clone(), refuse_halted);
    let data = conversations::routes()
        .merge(topics::routes())
        .layer(halted);
    let guarded = about::guarded()
        .merge(data)
        .merge(quotas::routes())
        .merge(users::routes())
        .merge(tickets::routes())
        .layer(token);
    let (routes, document) = OpenApiRouter::with_openapi(openapi::head())
        .merge(about::open())
        .merge(guarded)
        .split_for_parts();
    let router = openapi::serve(routes, document)
        .fallback(not_found)
        .method_not_allowed_fallback(wrong_method)
        .layer(middleware::map_response(problem::completed))
        .layer(middleware::from_fn_with_state(
            shared.clone(),
            metrics::measure,
        ))
        .with_state(shared.clone());
    Routes::new(router, Surface::Own(shared))
}

async fn not_found(request: Request) -> Problem {
    let detail = format!("no such path: `{}`", request.uri().path());
    Problem::of(ErrorCode::NotFound, detail)
}

/// The router adds the `Allow` field.
async fn wrong_method(OriginalUri(uri): OriginalUri, method: Method) -> Response {
    if method == Method::OPTIONS {
        return StatusCode::NO_CONTENT.into_response();
    }
    let status = StatusCode::METHOD_NOT_ALLOWED;
    let detail = format!("`{}` does not support {method}", uri.path());
    Problem::new(status, ErrorCode::InvalidArgument, detail).into_response()
}

async fn require_token(State(shared): State<Shared>, mut request: Request, next: Next) -> Response {
    let ticket = shared.tickets.take_from(&mut request, &*shared.gate);
    // A request that arrived over another protocol has its client's pass already.
    let admitted = match (ticket, request.extensions().get::<Pass>()) {
        (Some(ticket), _) => ticket.map_err(refuse_ticket),
        (None, Some(pass)) => Ok(pass.clone()),
        (None, None) => shared.gate.admit(token_of(&request)).map_err(refuse),
    };
    match admitted {
        Ok(pass) => {
            request.extensions_mut().insert(pass.clone());
            revocable::run(pass, request, next).await
        }
        Err(problem) => {
            shared
                .node
                .counters()
                .count(platform::Counter::Unauthenticated);
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
async fn refuse_halted(
    State(shared): State<Shared>,
    client: quotas::Client,
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

/// Returns the bearer token; empty for none.
fn bearer_of(headers: &HeaderMap) -> &str {
    headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.strip_prefix("Bearer "))
        .unwrap_or_default()
}

fn refuse(refused: Refused) -> Problem {
    let code = match refused {
        Refused::Missing | Refused::Unknown => ErrorCode::Unauthenticated,
        Refused::Broken => ErrorCode::Internal,
    };
    Problem::of(code, refused.to_string())
}

fn refuse_ticket(error: TicketError) -> Problem {
    Problem::of(ErrorCode::Unauthenticated, error.to_string())
}

/// Collects a list of any length and serializes it off the threads that serve connections.
async fn listed<T: Serialize>(
    list: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<Response, Problem> {
    let write = |list: T| {
        serde_json::to_vec(&list)
            .map_err(|error| Problem::of(ErrorCode::Internal, error.to_string()))
    };
    let body = off_thread(move || list().and_then(write)).await?;
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}

/// Runs work that may read from disk on a blocking thread.
async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => {
            let detail = format!("the task failed: {error}");
            Err(Problem::of(ErrorCode::Internal, detail))
        }
    }
}
