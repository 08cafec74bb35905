//! Information about the node: health, versions, metrics, agents and connections.

use axum::extract::State;
use axum::http::{HeaderMap, Uri, header};
use axum::response::{IntoResponse, Json, Response};
use http_api::Problem;
use http_api::ProblemDocument;
use http_api::{Client, Shared, listed, off_thread, query};
use messaging::AgentsWanted;
use model::{ErrorCode, Executed, Retry};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::metrics::{Format, MetricsPage};
use crate::view::{agents_page_json, connections_page_json};

/// Returns the routes that need no token.
pub(super) fn open() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(livez))
        .routes(routes!(readyz))
        .routes(routes!(version))
}

/// Returns the routes that need a token.
pub(super) fn guarded(page: MetricsPage) -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(metrics))
        .routes(routes!(leader_metrics))
        .with_state(page)
        .routes(routes!(agents))
        .routes(routes!(connections))
        .routes(routes!(whoami))
        .routes(routes!(errors))
        .routes(routes!(cluster))
}

/// Check that the process runs.
#[utoipa::path(get, path = "/livez", tag = "node", security(()),
    responses((status = 200, description = "The process runs", body = String)))]
async fn livez() -> &'static str {
    "ok\n"
}

/// Check that the node accepts work.
#[utoipa::path(get, path = "/readyz", tag = "node", security(()), responses(
    (status = 200, description = "The node accepts work", body = String),
    (status = 503, description = "The node does not accept work; `detail` is the reason", body = ProblemDocument)))]
async fn readyz(State(shared): State<Shared>) -> Response {
    match shared.node.unready() {
        None => "ready\n".into_response(),
        Some(reason) => Problem::of(ErrorCode::Unavailable, reason).into_response(),
    }
}

/// Get the versions of the software and of the native protocol.
#[utoipa::path(get, path = "/version", tag = "node", security(()),
    responses((status = 200, description = "The versions", body = Object)))]
async fn version() -> Json<Value> {
    Json(serde_json::json!({
        "software": "telpher",
        "version": env!("CARGO_PKG_VERSION"),
        "native_protocol": { "min": wire::VERSION_MIN, "max": wire::VERSION },
    }))
}

/// Get the metrics as OpenMetrics if `Accept` names it, else as Prometheus text 0.0.4.
#[utoipa::path(get, path = "/metrics", tag = "node",
    responses((status = 200, description = "The metrics", body = String, content(
        (String = "text/plain"), (String = "application/openmetrics-text")))))]
async fn metrics(State(page): State<MetricsPage>, headers: HeaderMap) -> Result<Response, Problem> {
    let accept = headers.get_all(header::ACCEPT).into_iter();
    let format = Format::of(accept.filter_map(|value| value.to_str().ok()));
    let page = off_thread(move || Ok(page.render(format))).await?;
    Ok(([(header::CONTENT_TYPE, format.content_type())], page).into_response())
}

/// Get the metrics, like `/metrics`. A member of a cluster that does not lead answers `/metrics` with
/// its own, and passes this request to the leader.
#[utoipa::path(get, path = "/v1/metrics", tag = "node", operation_id = "leader_metrics",
    responses((status = 200, description = "The metrics", body = String, content(
        (String = "text/plain"), (String = "application/openmetrics-text")))))]
async fn leader_metrics(page: State<MetricsPage>, headers: HeaderMap) -> Result<Response, Problem> {
    metrics(page, headers).await
}

/// Most entries of a page.
const LIMIT_MAX: usize = 10_000;

/// Default number of entries of a page.
const LIMIT: usize = 1_000;

/// Query parameters of a list of names.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct AgentsQuery {
    /// Only names that begin with this.
    #[serde(default)]
    prefix: String,
    /// Only names after this one.
    after: Option<String>,
    /// Most names; default 1000, at most 10000.
    limit: Option<usize>,
    /// Numbers of instances and methods instead of lists.
    #[serde(default)]
    #[param(value_type = Option<bool>)]
    summary: bool,
}

/// List the subscribers of each name: at most 1000 of each. `connected` and `connected_instances`
/// count all names with the prefix, without those of the node itself.
#[utoipa::path(get, path = "/v1/agents", tag = "node", params(AgentsQuery), responses(
    (status = 200, description = "Agents in the order of their names; `next` is the value of `after` for the next page", body = Object),
    (status = 400, description = "`limit` is not 1 to 10000", body = ProblemDocument)))]
async fn agents(State(shared): State<Shared>, uri: Uri) -> Result<Response, Problem> {
    let AgentsQuery {
        prefix,
        after,
        limit,
        summary,
    } = query(&uri)?;
    let limit = page_limit(limit)?;
    listed(move || {
        let wanted = AgentsWanted {
            prefix: &prefix,
            after: after.as_deref(),
            limit,
        };
        Ok(agents_page_json(&shared.node, &wanted, summary))
    })
    .await
}

/// Query parameters of a list of connections.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ConnectionsQuery {
    /// Only connections with a higher number.
    #[serde(default)]
    #[param(value_type = Option<u64>)]
    after: u64,
    /// Most connections; default 1000, at most 10000.
    limit: Option<usize>,
}

/// List the open connections. `total` counts all of them.
#[utoipa::path(get, path = "/v1/connections", tag = "node", params(ConnectionsQuery), responses(
    (status = 200, description = "Connections, oldest first; `next` is the value of `after` for the next page", body = Object),
    (status = 400, description = "`limit` is not 1 to 10000", body = ProblemDocument)))]
async fn connections(State(shared): State<Shared>, uri: Uri) -> Result<Response, Problem> {
    let ConnectionsQuery { after, limit } = query(&uri)?;
    let limit = page_limit(limit)?;
    listed(move || Ok(connections_page_json(&shared.node, after, limit))).await
}

fn page_limit(limit: Option<usize>) -> Result<usize, Problem> {
    let limit = limit.unwrap_or(LIMIT);
    match (1..=LIMIT_MAX).contains(&limit) {
        true => Ok(limit),
        false => Err(Problem::invalid(format!(
            "`limit` must be from 1 to {LIMIT_MAX}, not {limit}"
        ))),
    }
}

/// The client of a request.
#[derive(Serialize, ToSchema)]
#[schema(as = WhoAmI)]
struct WhoDocument {
    /// The name that is charged and halted.
    #[schema(example = "default/default/anonymous")]
    name: String,
    /// Name of the token; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    /// `admin` or `agent`.
    #[schema(example = "admin")]
    role: &'static str,
}

/// Get the name and the role of the client's token.
#[utoipa::path(get, path = "/v1/whoami", tag = "node",
    responses((status = 200, description = "The client", body = WhoDocument)))]
async fn whoami(client: Client) -> Json<WhoDocument> {
    let pass = client.pass();
    Json(WhoDocument {
        name: client.principal().subject().to_owned(),
        token: pass.token().map(|token| token.name.clone()),
        role: pass.role().as_str(),
    })
}

/// The members of the node's cluster.
#[derive(Serialize, ToSchema)]
#[schema(as = ClusterMembers)]
struct ClusterDocument {
    /// True if the node belongs to a cluster.
    clustered: bool,
    /// Id of the node that answers, which is the leader.
    node: u64,
    /// In the order of their ids; a node alone is the only one.
    members: Vec<MemberDocument>,
}

/// A member of a cluster.
#[derive(Serialize, ToSchema)]
#[schema(as = ClusterMember)]
struct MemberDocument {
    id: u64,
    #[schema(example = "node-1")]
    name: String,
    /// Address of its HTTP listener; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "10.0.0.1:7401")]
    http: Option<String>,
}

/// Get the members of the cluster, and the one that answers: the leader, to which the others pass
/// requests.
#[utoipa::path(get, path = "/v1/cluster", tag = "node", operation_id = "get_cluster",
    responses((status = 200, description = "The members", body = ClusterDocument)))]
async fn cluster(State(shared): State<Shared>) -> Json<ClusterDocument> {
    let membership = shared.node.membership();
    let members = membership.members();
    let members = members.iter().map(|member| MemberDocument {
        id: member.id,
        name: member.name.clone(),
        http: member.http.clone(),
    });
    Json(ClusterDocument {
        clustered: membership.is_clustered(),
        node: membership.own_id(),
        members: members.collect(),
    })
}

/// An error code.
#[derive(Serialize, ToSchema)]
#[schema(as = ErrorCode)]
struct CodeDocument {
    #[schema(example = "unconfirmed")]
    code: &'static str,
    /// The number on the native protocol.
    number: u16,
    cause: &'static str,
    /// The sides that answer with it.
    raised_by: &'static str,
    /// Whether the operation was executed: `no`, `yes` or `unknown`.
    executed: &'static str,
    /// Whether to retry: `never`, `safe` or `may_duplicate`.
    retry: &'static str,
}

/// The error codes.
#[derive(Serialize, ToSchema)]
#[schema(as = ErrorCodes)]
struct CodesDocument {
    /// In the order of their numbers.
    errors: Vec<CodeDocument>,
}

/// List the error codes: cause, whether the operation was executed, whether to retry.
#[utoipa::path(get, path = "/v1/errors", tag = "node",
    responses((status = 200, description = "Every code", body = CodesDocument)))]
async fn errors() -> Json<CodesDocument> {
    let errors = ErrorCode::ALL.map(|code| CodeDocument {
        code: code.as_str(),
        number: code.as_u16(),
        cause: code.cause(),
        raised_by: code.raised_by(),
        executed: match code.executed() {
            Executed::No => "no",
            Executed::Yes => "yes",
            Executed::Unknown => "unknown",
        },
        retry: match code.retry() {
            Retry::Never => "never",
            Retry::Safe => "safe",
            Retry::MayDuplicate => "may_duplicate",
        },
    });
    Json(CodesDocument {
        errors: errors.into(),
    })
}
