//! The fast path of the API: takes from quotas.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use door::Gate;
use http_api::reply::Reply;
use http_api::{FastPath, FastRequest, Method, Verdict};
use http_quotas::TAKE_PATH;
use node::Node;
use platform::NotDurable;
use quota_service::Desk;

use crate::metrics::Latencies;

/// Answers takes before they reach the router.
pub(crate) struct TakePath {
    pub(crate) node: Node,
    pub(crate) gate: Arc<dyn Gate>,
    pub(crate) latencies: Latencies,
}

impl FastPath for TakePath {
    fn serves(&self, method: Method, path: &str) -> bool {
        method == Method::Post
            && path == TAKE_PATH
            && self.node.refused_on_cluster("quotas").is_none()
    }

    fn is_open(&self) -> bool {
        self.gate.admit("").is_ok()
    }

    fn answer(
        &self,
        desk: &mut Desk,
        request: &FastRequest<'_>,
        _peer: IpAddr,
        reply: &mut Reply,
    ) -> Verdict {
        match self.gate.admit(request.token) {
            Ok(pass) => http_quotas::answer_take(&self.node, &pass, desk, request, reply),
            // The router counts and reports the failed authentication.
            Err(_) => Verdict::NotHere,
        }
    }

    fn observe(&self, status: StatusCode, took: Duration) {
        self.latencies.observe_take(TAKE_PATH, status, took);
        self.node.history().observe_http(took);
    }

    fn not_durable(&self, error: NotDurable, reply: &mut Reply) {
        reply.problem(&http_quotas::not_durable(error));
    }

    fn now_ns(&self) -> u64 {
        self.node.quotas().now_ns()
    }
}
