//! The status at the end of a stream, for gRPC and WebSockets.

use http::{HeaderMap, HeaderValue, Response, StatusCode, header};

/// The size of the text in a WebSocket close frame, in bytes: the rest after its code.
const CLOSE_TEXT_SIZE_MAX: usize = slim::websocket::CONTROL_SIZE_MAX - 2;

/// A gRPC status code.
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

/// The status at the end of a stream.
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

    /// Returns the trailers of a gRPC stream.
    pub(super) fn trailers(&self) -> HeaderMap {
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", HeaderValue::from(self.code as u16));
        // Our own texts are ASCII; a message with other text of a client is left out.
        if let Ok(message) = HeaderValue::from_str(&self.message.replace('%', "%25")) {
            trailers.insert("grpc-message", message);
        }
        trailers
    }

    /// Returns the code and text for a WebSocket close frame: a code of RFC 6455 (7.4.1), and a
    /// text of the allowed size.
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

    /// Returns the whole response to a call that did not begin.
    pub(super) fn response(&self) -> Response<()> {
        let mut response = accepted();
        response.headers_mut().extend(self.trailers());
        response
    }
}

/// Returns the head of a response.
pub(super) fn accepted() -> Response<()> {
    let mut response = Response::new(());
    let content_type = HeaderValue::from_static("application/grpc");
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, content_type);
    response
}

/// Returns the response to a request that is not gRPC.
pub(super) fn not_grpc() -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::UNSUPPORTED_MEDIA_TYPE;
    response
}
