//! How a stream ended, as gRPC and WebSockets say it.

use http::{HeaderMap, HeaderValue, Response, StatusCode, header};

/// What a frame that closes a WebSocket has room for behind its code.
const CLOSE_TEXT_SIZE_MAX: usize = slim::websocket::CONTROL_SIZE_MAX - 2;

/// A code of gRPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Code {
    Ok = 0,
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    FailedPrecondition = 9,
    Unimplemented = 12,
    Unavailable = 14,
    Unauthenticated = 16,
}

/// How a stream ended.
#[derive(Clone, Debug)]
pub(super) struct Status {
    pub(super) code: Code,
    pub(super) message: String,
}

impl Status {
    pub(super) fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    /// What stands at the end of a stream.
    pub(super) fn trailers(&self) -> HeaderMap {
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", HeaderValue::from(self.code as u16));
        // Texts of ours are ASCII; where a client's word stands in one, it is left out.
        if let Ok(message) = HeaderValue::from_str(&self.message.replace('%', "%25")) {
            trailers.insert("grpc-message", message);
        }
        trailers
    }

    /// How a WebSocket says it: a code of RFC 6455 (7.4.1), and a text of the size that it allows.
    pub(super) fn close_reason(&self) -> (u16, &str) {
        let code = match self.code {
            Code::Ok => 1000,
            Code::Unavailable => 1001,
            Code::InvalidArgument | Code::FailedPrecondition => 1002,
            Code::Unimplemented => 1003,
            Code::DeadlineExceeded
            | Code::PermissionDenied
            | Code::ResourceExhausted
            | Code::Unauthenticated => 1008,
        };
        let end = self.message.floor_char_boundary(CLOSE_TEXT_SIZE_MAX);
        (code, &self.message[..end])
    }

    /// The whole answer to a call that did not begin.
    pub(super) fn response(&self) -> Response<()> {
        let mut response = accepted();
        response.headers_mut().extend(self.trailers());
        response
    }
}

/// The head of an answer.
pub(super) fn accepted() -> Response<()> {
    let mut response = Response::new(());
    let content_type = HeaderValue::from_static("application/grpc");
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, content_type);
    response
}

/// The answer to what is no gRPC.
pub(super) fn not_grpc() -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::UNSUPPORTED_MEDIA_TYPE;
    response
}
