//! `GET /v1/config` and `GET /v1/doctor`: the configuration and the environment of the node, for
//! administrators.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use http_api::{Admin, CheckDocument, OptionDocument, Problem, ProblemDocument, Shared, listed};
use model::ErrorCode;
use node::Node;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The name of the check that the node itself makes.
const READINESS: &str = "node";

/// The state of the routes.
#[derive(Clone)]
pub(super) struct OperationsState {
    pub(super) node: Node,
    pub(super) operations: Option<Arc<dyn http_api::Operations>>,
}

/// Returns the routes.
pub(super) fn routes(state: OperationsState) -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(configuration))
        .routes(routes!(doctor))
        .with_state(state)
}

/// The configuration of the node.
#[derive(Serialize, ToSchema)]
#[schema(as = Configuration)]
struct ConfigurationDocument {
    /// Options in the order of the documentation.
    options: Vec<OptionDocument>,
}

/// The checks of the node's environment.
#[derive(Serialize, ToSchema)]
#[schema(as = Checks)]
struct ChecksDocument {
    /// True if no check fails; warnings are allowed.
    ok: bool,
    checks: Vec<CheckDocument>,
}

/// Get every option of the configuration, with the origin of its value. Passwords are masked.
#[utoipa::path(get, path = "/v1/config", tag = "node", operation_id = "get_config", responses(
    (status = 200, description = "The options", body = ConfigurationDocument),
    (status = 403, description = "An administrator's token is required", body = ProblemDocument),
    (status = 501, description = "The node has no configuration", body = ProblemDocument)))]
async fn configuration(
    State(state): State<OperationsState>,
    _: Admin,
) -> Result<Response, Problem> {
    let operations = state.operations.ok_or_else(missing)?;
    let document = move || {
        let options = operations.configuration();
        Ok(ConfigurationDocument { options })
    };
    listed(document).await
}

/// Check the environment of the node: directory, disk, tokens, listeners, limits, last backup.
#[utoipa::path(get, path = "/v1/doctor", tag = "node", operation_id = "get_doctor", responses(
    (status = 200, description = "The checks", body = ChecksDocument),
    (status = 403, description = "An administrator's token is required", body = ProblemDocument),
    (status = 501, description = "The node has no environment to check", body = ProblemDocument)))]
async fn doctor(State(state): State<OperationsState>, _: Admin) -> Result<Response, Problem> {
    let OperationsState { node, operations } = state;
    let operations = operations.ok_or_else(missing)?;
    let document = move || {
        let mut checks = vec![readiness(&node)];
        checks.extend(operations.checks());
        let ok = checks.iter().all(|it| it.verdict != "fail");
        Ok(ChecksDocument { ok, checks })
    };
    listed(document).await
}

/// Returns whether the node accepts work.
fn readiness(node: &Node) -> CheckDocument {
    let unready = node.unready();
    CheckDocument {
        check: READINESS,
        verdict: if unready.is_none() { "ok" } else { "fail" },
        hints: Vec::new(),
        figures: Value::Null,
        detail: unready.unwrap_or_else(|| "accepts work".to_owned()),
    }
}

fn missing() -> Problem {
    let detail = "this node runs inside another program, which has no configuration of it";
    Problem::of(ErrorCode::Unsupported, detail)
}
