//! The fast path of the API: takes from quotas, and appends to conversations.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use door::Gate;
use http_api::reply::Reply;
use http_api::{FastPath, FastRequest, Method, Shared, Verdict};
use http_conversations::{answer_append, append_route};
use http_quotas::TAKE_PATH;
use platform::NotDurable;
use quota_service::Desk;

use crate::metrics::Latencies;

/// Answers takes and appends before they reach the router.
pub(crate) struct FrequentRequests {
    pub(crate) shared: Shared,
    pub(crate) gate: Arc<dyn Gate>,
    pub(crate) latencies: Latencies,
}

impl FastPath for FrequentRequests {
    fn serves(&self, method: Method, path: &str) -> bool {
        let node = &self.shared.node;
        let is_frequent = match path {
            TAKE_PATH => true,
            // The router makes the spans of appends.
            path => append_route(path).is_some() && node.tracer().is_none(),
        };
        method == Method::Post && is_frequent && !node.is_clustered()
    }

    fn is_open(&self) -> bool {
        self.gate.admit("").is_ok()
    }

    fn answer<'a>(
        &self,
        desk: &mut Desk,
        request: &FastRequest<'a>,
        _peer: IpAddr,
        reply: &mut Reply,
    ) -> Verdict<'a> {
        match self.gate.admit(request.token) {
            Ok(pass) if request.path == TAKE_PATH => {
                http_quotas::answer_take(&self.shared.node, &pass, desk, request, reply)
            }
            Ok(pass) => answer_append(&self.shared, &pass, request, reply),
            // The router counts and reports the failed authentication.
            Err(_) => Verdict::NotHere,
        }
    }

    fn observe(&self, request: &FastRequest<'_>, status: StatusCode, took: Duration) {
        let route = append_route(request.path).unwrap_or(TAKE_PATH);
        self.latencies.observe_frequent(route, status, took);
        self.shared.node.history().observe_http(took);
    }

    fn not_durable(&self, error: NotDurable, reply: &mut Reply) {
        reply.problem(&http_quotas::not_durable(error));
    }

    fn now_ns(&self) -> u64 {
        self.shared.node.quotas().now_ns()
    }
}
