//! A reply that is sent either through hyper or directly into a socket's buffer.
//!
//! The buffers are reused, so that a request that is answered at once allocates nothing.

use std::io::Write;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::problem::Problem;

/// An HTTP reply under construction.
#[derive(Debug, Default)]
pub struct Reply {
    /// The status.
    pub status: StatusCode,
    /// The content type; empty for none.
    pub content_type: &'static str,
    /// Header lines, each with its CRLF, except `Content-Type` and `Content-Length`.
    fields: Vec<u8>,
    /// The body.
    pub body: Vec<u8>,
}

/// The content type of JSON.
pub const JSON: &str = "application/json; charset=utf-8";
/// The content type of problem documents.
pub const PROBLEM: &str = "application/problem+json";

impl Reply {
    /// Resets the reply to a status without fields and body.
    pub fn clear(&mut self, status: StatusCode, content_type: &'static str) {
        (self.status, self.content_type) = (status, content_type);
        self.fields.clear();
        self.body.clear();
    }

    /// Adds a header field. Neither the name nor the value may contain a line break.
    pub fn field(&mut self, name: &str, value: &str) {
        self.field_with(name, |out| out.extend_from_slice(value.as_bytes()));
    }

    /// Adds a header field with a number.
    pub fn number(&mut self, name: &str, value: impl itoa::Integer) {
        self.field_with(name, |out| push_number(out, value));
    }

    /// Adds a header field whose value a function writes.
    pub fn field_with(&mut self, name: &str, value: impl FnOnce(&mut Vec<u8>)) {
        self.fields.extend_from_slice(name.as_bytes());
        self.fields.extend_from_slice(b": ");
        value(&mut self.fields);
        self.fields.extend_from_slice(b"\r\n");
    }

    /// Replaces the reply by a problem document.
    pub fn problem(&mut self, problem: &Problem) {
        self.clear(problem.status, PROBLEM);
        if problem.status == StatusCode::UNAUTHORIZED {
            self.field("WWW-Authenticate", "Bearer");
        }
        if let Some(retry_s) = problem.retry_after_s() {
            self.number("Retry-After", retry_s);
        }
        let _ = write!(self.body, "{}", problem.document());
    }

    /// Returns the header lines.
    pub fn fields(&self) -> &[u8] {
        &self.fields
    }
}

/// Appends a number in decimal, several times faster than `write!`.
pub fn push_number(out: &mut Vec<u8>, number: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

impl IntoResponse for Reply {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(self.body));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        if !self.content_type.is_empty() {
            let content_type = HeaderValue::from_static(self.content_type);
            headers.insert(header::CONTENT_TYPE, content_type);
        }
        for line in self.fields.split(|byte| *byte == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let Some(colon) = line.iter().position(|byte| *byte == b':') else {
                continue;
            };
            let name = HeaderName::from_bytes(&line[..colon]);
            let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii());
            if let (Ok(name), Ok(value)) = (name, value) {
                headers.append(name, value);
            }
        }
        response
    }
}
