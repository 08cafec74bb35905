//! CORS answers (Fetch Standard, 3.2) to pages of the origins in `http.origins`.

use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};

const REQUEST_PRIVATE_NETWORK: HeaderName =
    HeaderName::from_static("access-control-request-private-network");
const ALLOW_PRIVATE_NETWORK: HeaderName =
    HeaderName::from_static("access-control-allow-private-network");

/// All methods that routes may have.
const METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE";

/// Seconds for which a browser may remember the answer to a preflight.
const MAX_AGE_S: &str = "600";

/// Returns the answer to a preflight request; `None` for another request.
pub(super) fn preflight(origin: &HeaderValue, head: &Parts) -> Option<Response> {
    let is_preflight = head.method == Method::OPTIONS
        && head
            .headers
            .contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    if !is_preflight {
        return None;
    }
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    allow(origin.clone(), headers);
    headers.insert(
        header::ACCESS_CONTROL_ALLOW_METHODS,
        HeaderValue::from_static(METHODS),
    );
    headers.insert(
        header::ACCESS_CONTROL_MAX_AGE,
        HeaderValue::from_static(MAX_AGE_S),
    );
    // All requested fields are allowed, since a client other than a browser may send them, too.
    if let Some(asked) = head.headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, asked.clone());
    }
    if head.headers.contains_key(REQUEST_PRIVATE_NETWORK) {
        headers.insert(ALLOW_PRIVATE_NETWORK, HeaderValue::from_static("true"));
    }
    Some(response)
}

/// Lets pages of the origin read an answer and all its fields.
pub(super) fn allow(origin: HeaderValue, headers: &mut HeaderMap) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(
        header::ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static("*"),
    );
    headers.append(header::VARY, HeaderValue::from_static("origin"));
}
