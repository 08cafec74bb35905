//! What the node says of itself: health, versions, metrics, who is there.

use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Json, Response};
use model::ErrorCode;
use serde_json::Value;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::openapi::ProblemDocument;
use super::problem::Problem;
use super::{Shared, agents_json, connections_json, listed, metrics, off_thread};

/// For everybody.
pub(super) fn open() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(livez))
        .routes(routes!(readyz))
        .routes(routes!(version))
}

/// For whoever has a token.
pub(super) fn guarded() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(metrics))
        .routes(routes!(agents))
        .routes(routes!(connections))
}

/// Whether the process runs.
#[utoipa::path(get, path = "/livez", tag = "node", security(()),
    responses((status = 200, description = "It does", body = String)))]
async fn livez() -> &'static str {
    "ok\n"
}

/// Whether the node takes work.
#[utoipa::path(get, path = "/readyz", tag = "node", security(()), responses(
    (status = 200, description = "It does", body = String),
    (status = 503, description = "It does not, and why", body = ProblemDocument)))]
async fn readyz(State(shared): State<Shared>) -> Response {
    match shared.node.unready() {
        None => "ready\n".into_response(),
        Some(reason) => Problem::of(ErrorCode::Unavailable, reason).into_response(),
    }
}

/// Versions of the software and of the native protocol.
#[utoipa::path(get, path = "/version", tag = "node", security(()),
    responses((status = 200, description = "Versions", body = Object)))]
async fn version() -> Json<Value> {
    Json(serde_json::json!({
        "software": "telpher",
        "version": env!("CARGO_PKG_VERSION"),
        "native_protocol": { "min": wire::VERSION_MIN, "max": wire::VERSION },
    }))
}

/// Metrics of the node, as OpenMetrics or, unless that is asked for, as Prometheus text 0.0.4.
#[utoipa::path(get, path = "/metrics", tag = "node",
    responses((status = 200, description = "Metrics", body = String, content(
        (String = "text/plain"), (String = "application/openmetrics-text")))))]
async fn metrics(State(shared): State<Shared>, headers: HeaderMap) -> Result<Response, Problem> {
    let accept = headers.get_all(header::ACCEPT).into_iter();
    let format = metrics::Format::of(accept.filter_map(|value| value.to_str().ok()));
    let render = move || {
        let Shared {
            node,
            latencies,
            connections,
            ..
        } = &shared;
        Ok(metrics::render(node, latencies, connections, format))
    };
    let page = off_thread(render).await?;
    Ok(([(header::CONTENT_TYPE, format.content_type())], page).into_response())
}

/// Who is subscribed to which name.
#[utoipa::path(get, path = "/v1/agents", tag = "node",
    responses((status = 200, description = "In the order of the names", body = Object)))]
async fn agents(State(shared): State<Shared>) -> Result<Response, Problem> {
    listed(move || Ok(agents_json(&shared.node))).await
}

/// Who is connected.
#[utoipa::path(get, path = "/v1/connections", tag = "node",
    responses((status = 200, description = "Oldest first", body = Object)))]
async fn connections(State(shared): State<Shared>) -> Result<Response, Problem> {
    listed(move || Ok(connections_json(&shared.node))).await
}
