//! Answers that are shared by requests of the same path: many open pages of the console cost the node
//! hardly more than one.
//!
//! A client that accepts an answer of some age says so (`Cache-Control: max-age=1`). Then the node
//! collects the answer at most once in that time, also for requests that arrive together. Only lists
//! and metrics are shared, which have the same content for every client with access. All other requests
//! get an answer of their own.

use std::collections::HashMap;
use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http_api::Problem;
use http_body::Body as _;
use model::ErrorCode;
use node::Node;
use parking_lot::Mutex;

/// Age limit of shared answers, in seconds, also for clients that accept older ones.
const AGE_MAX_S: u64 = 5;

/// Most answers in memory.
const ANSWERS_MAX: usize = 32;

/// Largest shared answer, in bytes.
const SIZE_MAX: u64 = 1 << 20;

/// Lists whose content does not depend on the client.
const PATHS: [&str; 8] = [
    "/metrics",
    "/v1/agents",
    "/v1/connections",
    "/v1/groups",
    "/v1/history",
    "/v1/metrics",
    "/v1/top",
    "/v1/topics",
];

/// Resources of which each has one path segment.
const ITEMS: [&str; 2] = ["/v1/groups/", "/v1/topics/"];

/// The recent answers of a listener.
#[derive(Clone)]
pub(crate) struct RecentAnswers {
    node: Node,
    slots: Arc<Mutex<HashMap<String, Slot>>>,
}

/// The place of one answer. A request that collects it holds the lock meanwhile.
type Slot = Arc<tokio::sync::Mutex<Option<Answer>>>;

/// A collected answer.
struct Answer {
    at_ns: u64,
    headers: HeaderMap,
    body: Bytes,
}

impl RecentAnswers {
    pub(crate) fn new(node: Node) -> Self {
        Self {
            node,
            slots: Arc::default(),
        }
    }

    /// Answers a request with a recent answer if the client accepts one, or with a new one.
    pub(crate) async fn share(&self, request: Request, next: Next) -> Response {
        let Some((key, age_max_s)) = shareable(&request) else {
            return next.run(request).await;
        };
        self.share_by(key, age_max_s, request, next).await
    }

    async fn share_by(
        &self,
        key: String,
        age_max_s: u64,
        request: Request,
        next: Next,
    ) -> Response {
        let now_ns = || self.node.ports().clock.now_ns();
        let slot = self.slot(key, now_ns());
        let mut answer = slot.lock().await;
        if let Some(known) = &*answer
            && known.age_s(now_ns()) < age_max_s
        {
            return known.response(now_ns());
        }
        *answer = None;
        let at_ns = now_ns();
        let response = next.run(request).await;
        let is_small = response.body().size_hint().exact();
        if response.status() != StatusCode::OK || is_small.is_none_or(|size| size > SIZE_MAX) {
            return response;
        }
        let (parts, body) = response.into_parts();
        match to_bytes(body, usize::MAX).await {
            Ok(body) => {
                let known = Answer {
                    at_ns,
                    headers: parts.headers,
                    body,
                };
                answer.insert(known).response(at_ns)
            }
            Err(error) => Problem::of(ErrorCode::Internal, error.to_string()).into_response(),
        }
    }

    /// Returns the place of an answer. If there are too many, the place is new and not shared.
    fn slot(&self, key: String, now_ns: u64) -> Slot {
        let mut slots = self.slots.lock();
        if let Some(slot) = slots.get(&key) {
            return slot.clone();
        }
        slots.retain(|_, slot| match slot.try_lock() {
            Ok(answer) => answer
                .as_ref()
                .is_some_and(|it| it.age_s(now_ns) < AGE_MAX_S),
            // It is being collected.
            Err(_) => true,
        });
        let slot = Slot::default();
        if slots.len() < ANSWERS_MAX {
            slots.insert(key, slot.clone());
        }
        slot
    }
}

impl Answer {
    fn age_s(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.at_ns) / 1_000_000_000
    }

    fn response(&self, now_ns: u64) -> Response {
        let mut response = Response::new(Body::from(self.body.clone()));
        *response.headers_mut() = self.headers.clone();
        let age = HeaderValue::from(self.age_s(now_ns));
        response.headers_mut().insert(header::AGE, age);
        response
    }
}

/// Returns the key of a request whose answer may be shared, and the age that the client accepts, in
/// seconds.
fn shareable(request: &Request) -> Option<(String, u64)> {
    let path = request.uri().path();
    let is_item = |prefix: &str| {
        let name = path.strip_prefix(prefix);
        name.is_some_and(|name| !name.contains('/'))
    };
    let is_shared = PATHS.contains(&path) || ITEMS.into_iter().any(is_item);
    if *request.method() != Method::GET || !is_shared {
        return None;
    }
    let field = request.headers().get(header::CACHE_CONTROL)?;
    let age = field.to_str().ok()?.trim().strip_prefix("max-age=")?;
    let age = age.parse().ok().filter(|age| *age > 0)?;
    let accept = request.headers().get(header::ACCEPT);
    let accept = accept.and_then(|it| it.to_str().ok()).unwrap_or_default();
    let key = format!("{accept} {}", request.uri());
    Some((key, std::cmp::min(age, AGE_MAX_S)))
}
