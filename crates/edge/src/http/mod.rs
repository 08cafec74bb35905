//! The HTTP door: health, metrics and what the node shows of itself, as JSON.
//!
//! | path | answers | token |
//! |---|---|---|
//! | `/livez` | 200 while the process runs | – |
//! | `/readyz` | 200 when it takes work, 503 with the reason when not | – |
//! | `/version` | software and protocol versions | – |
//! | `/metrics` | Prometheus (OpenMetrics) text | any |
//! | `/v1/agents` | who is subscribed to which name | any |
//! | `/v1/connections` | who is connected | any |
//!
//! Errors are RFC 9457 problem documents with our `code`.

mod listener;
mod metrics;
mod problem;
mod storage;
mod view;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::get;
pub use listener::{Options, serve};
use model::ErrorCode;
use problem::Problem;
pub use view::{agents_json, connections_json};

use crate::gate::{Gate, Refused};

/// What the routes need.
#[derive(Clone)]
struct Shared {
    node: node::Handle,
    gate: Arc<dyn Gate>,
}

/// The routes of the HTTP door of `node`.
pub fn routes(node: node::Handle, gate: Arc<dyn Gate>) -> Router {
    let shared = Shared { node, gate };
    let guarded = Router::new()
        .route("/metrics", get(metrics))
        .route("/v1/agents", get(agents))
        .route("/v1/connections", get(connections))
        .layer(middleware::from_fn_with_state(
            shared.clone(),
            require_token,
        ));
    Router::new()
        .route("/livez", get(livez))
        .route("/readyz", get(readyz))
        .route("/version", get(version))
        .merge(guarded)
        .fallback(not_found)
        .method_not_allowed_fallback(wrong_method)
        .with_state(shared)
}

async fn livez() -> &'static str {
    "ok\n"
}

async fn readyz(State(shared): State<Shared>) -> Response {
    match shared.node.unready() {
        None => "ready\n".into_response(),
        Some(reason) => Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            ErrorCode::Unavailable,
            reason,
        )
        .into_response(),
    }
}

async fn version() -> Json<serde_json::Value> {
    Json(serde_json::json!({
        "software": "telpher",
        "version": env!("CARGO_PKG_VERSION"),
        "native_protocol": { "min": wire::VERSION_MIN, "max": wire::VERSION },
    }))
}

async fn metrics(State(shared): State<Shared>) -> Response {
    let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    (
        [(header::CONTENT_TYPE, content_type)],
        metrics::render(&shared.node),
    )
        .into_response()
}

async fn agents(State(shared): State<Shared>) -> Json<serde_json::Value> {
    Json(agents_json(&shared.node))
}

async fn connections(State(shared): State<Shared>) -> Json<serde_json::Value> {
    Json(connections_json(&shared.node))
}

async fn not_found(request: Request) -> Problem {
    let detail = format!("there is nothing at `{}`", request.uri().path());
    Problem::new(StatusCode::NOT_FOUND, ErrorCode::InvalidArgument, detail)
}

async fn wrong_method(request: Request) -> Problem {
    let detail = format!(
        "`{}` does not take {}",
        request.uri().path(),
        request.method()
    );
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        ErrorCode::InvalidArgument,
        detail,
    )
}

async fn require_token(State(shared): State<Shared>, request: Request, next: Next) -> Response {
    let token = request
        .headers()
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.strip_prefix("Bearer "))
        .unwrap_or_default();
    match shared.gate.admit(token) {
        Ok(_) => next.run(request).await,
        Err(refused) => {
            shared.node.counters().count(node::Counter::Unauthenticated);
            refuse(refused).into_response()
        }
    }
}

fn refuse(refused: Refused) -> Problem {
    let (status, code) = match refused {
        Refused::Missing | Refused::Unknown => {
            (StatusCode::UNAUTHORIZED, ErrorCode::Unauthenticated)
        }
        Refused::Broken => (StatusCode::INTERNAL_SERVER_ERROR, ErrorCode::Internal),
    };
    Problem::new(status, code, refused.to_string())
}
