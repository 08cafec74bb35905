//! Errors as RFC 9457 problem documents.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use model::ErrorCode;

/// An error with its HTTP status and our code.
#[derive(Debug)]
pub(super) struct Problem {
    status: StatusCode,
    code: ErrorCode,
    detail: String,
}

impl Problem {
    pub(super) fn new(status: StatusCode, code: ErrorCode, detail: impl Into<String>) -> Self {
        Self {
            status,
            code,
            detail: detail.into(),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::json!({
            "type": "about:blank",
            "title": self.status.canonical_reason(),
            "status": self.status.as_u16(),
            "code": self.code.as_str(),
            "detail": self.detail,
        });
        let mut response = (self.status, body.to_string()).into_response();
        let headers = response.headers_mut();
        let problem = header::HeaderValue::from_static("application/problem+json");
        headers.insert(header::CONTENT_TYPE, problem);
        if self.status == StatusCode::UNAUTHORIZED {
            let scheme = header::HeaderValue::from_static("Bearer");
            headers.insert(header::WWW_AUTHENTICATE, scheme);
        }
        response
    }
}
