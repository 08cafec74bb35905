//! The routes of the API, composed of those of its resources.

use std::sync::Arc;

use axum::extract::{OriginalUri, Request};
use axum::http::{Method, StatusCode};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use door::Gate;
use http_api::{Connections, Operations, Problem, Routes, Shared};
use model::ErrorCode;
use node::Node;
use utoipa_axum::router::OpenApiRouter;

use crate::authentication::{self, GroupRules, Guard};
use crate::fast_path::FrequentRequests;
use crate::metrics::{self, EncodeMetrics, Latencies, MetricsPage};
use crate::operations::{self, OperationsState};
use crate::recent::RecentAnswers;
use crate::tickets::{self, Tickets};
use crate::{about, history, openapi};

/// Returns the routes of the HTTP API of `node`. The page of metrics contains those of the other
/// listeners, which `metrics` encodes. `operations` are those of the process around the node.
pub fn routes(
    node: Node,
    gate: Arc<dyn Gate>,
    connections: Arc<Connections>,
    metrics: &'static [EncodeMetrics],
    operations: Option<Arc<dyn Operations>>,
) -> Routes {
    let shared = Shared {
        node: node.clone(),
        connections: connections.clone(),
    };
    let latencies = Latencies::new(http_quotas::TAKE_PATH);
    let page = MetricsPage {
        node: node.clone(),
        latencies: latencies.clone(),
        connections,
        others: metrics,
    };
    let tickets = Arc::<Tickets>::default();
    let guard = Guard {
        node: node.clone(),
        gate: gate.clone(),
        tickets: tickets.clone(),
        recent: RecentAnswers::new(node.clone()),
        rules: GroupRules::default(),
    };
    let guarded = |routes: OpenApiRouter<Shared>, rules: GroupRules| {
        let guard = Arc::new(Guard {
            rules,
            ..guard.clone()
        });
        routes.layer(middleware::from_fn_with_state(guard, authentication::check))
    };
    let conversations = GroupRules {
        refuses_halted: true,
        alone: Some("conversations, inboxes and webhooks"),
    };
    let records = GroupRules {
        refuses_halted: true,
        alone: None,
    };
    let quotas = GroupRules {
        refuses_halted: false,
        alone: Some("quotas"),
    };
    let others = about::guarded(page)
        .merge(history::routes())
        .merge(operations::routes(OperationsState {
            node: node.clone(),
            operations,
        }))
        .merge(http_agents::routes())
        .merge(http_topics::user_routes())
        .merge(tickets::routes(tickets));
    let (routes, document) = OpenApiRouter::with_openapi(openapi::head())
        .merge(about::open())
        .merge(guarded(http_conversations::routes(), conversations))
        .merge(guarded(
            http_topics::routes().merge(http_streams::routes()),
            records,
        ))
        .merge(guarded(http_quotas::routes(), quotas))
        .merge(guarded(others, GroupRules::default()))
        .split_for_parts();
    let router = openapi::serve(routes, document)
        .merge(http_ui::routes())
        .fallback(not_found)
        .method_not_allowed_fallback(wrong_method)
        .layer(middleware::from_fn_with_state(
            metrics::Measurement {
                latencies: latencies.clone(),
                node,
            },
            metrics::measure,
        ))
        .with_state(shared.clone());
    let fast_path = Arc::new(FrequentRequests {
        shared,
        gate,
        latencies,
    });
    Routes { router, fast_path }
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
