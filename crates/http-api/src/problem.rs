//! Errors as RFC 9457 problem documents.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use conversation_service::ConversationError;
use model::ErrorCode;
use serde_json::{Map, Value};

/// An error with its HTTP status and Telpher's code.
#[derive(Debug)]
pub struct Problem {
    /// The HTTP status.
    pub status: StatusCode,
    /// The error code.
    pub code: ErrorCode,
    /// The text for people.
    pub detail: String,
    /// Additional members with details for programs.
    pub extra: Map<String, Value>,
}

impl Problem {
    /// Creates a problem with this status.
    pub fn new(status: StatusCode, code: ErrorCode, detail: impl Into<String>) -> Self {
        Self {
            status,
            code,
            detail: detail.into(),
            extra: Map::new(),
        }
    }

    /// Creates a problem with the usual status of the code.
    pub fn of(code: ErrorCode, detail: impl Into<String>) -> Self {
        Self::new(status(code), code, detail)
    }

    /// Creates a problem for an invalid request.
    pub fn invalid(detail: impl Into<String>) -> Self {
        Self::of(ErrorCode::InvalidArgument, detail)
    }

    /// Adds a member with a detail for programs.
    pub fn with(mut self, member: &str, value: impl Into<Value>) -> Self {
        self.extra.insert(member.to_owned(), value.into());
        self
    }

    /// Returns the value of `Retry-After`, in seconds, for a request that had no effect and may
    /// succeed later, for example when the disk has space again.
    pub(crate) fn retry_after_s(&self) -> Option<u64> {
        let is_retried = matches!(
            self.code,
            ErrorCode::Busy | ErrorCode::Throttled | ErrorCode::Unavailable
        );
        is_retried.then(|| {
            // Rounded up, so that the client does not retry too early.
            let retry_ms = self.extra.get("retry_ms").and_then(Value::as_u64);
            retry_ms.map_or(1, |retry_ms| retry_ms.div_ceil(1_000))
        })
    }

    /// Returns the problem document as JSON.
    pub fn document(&self) -> Value {
        let mut document = self.extra.clone();
        for (member, value) in [
            ("type", "about:blank".into()),
            ("title", self.status.canonical_reason().into()),
            ("status", self.status.as_u16().into()),
            ("code", self.code.as_str().into()),
            ("detail", self.detail.as_str().into()),
        ] {
            document.insert(member.to_owned(), value);
        }
        Value::Object(document)
    }
}

/// Returns the usual HTTP status of an error code.
const fn status(code: ErrorCode) -> StatusCode {
    match code {
        ErrorCode::InvalidArgument | ErrorCode::Protocol | ErrorCode::Cancelled => {
            StatusCode::BAD_REQUEST
        }
        ErrorCode::Unauthenticated => StatusCode::UNAUTHORIZED,
        ErrorCode::Denied => StatusCode::FORBIDDEN,
        ErrorCode::NotFound | ErrorCode::NoResponder | ErrorCode::UnknownMethod => {
            StatusCode::NOT_FOUND
        }
        ErrorCode::Conflict
        | ErrorCode::IdReused
        | ErrorCode::Replaced
        | ErrorCode::LeaseExpired => StatusCode::CONFLICT,
        ErrorCode::Gone | ErrorCode::Trimmed => StatusCode::GONE,
        ErrorCode::TooLarge | ErrorCode::OverBudget => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorCode::Throttled => StatusCode::TOO_MANY_REQUESTS,
        ErrorCode::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        ErrorCode::Unsupported => StatusCode::NOT_IMPLEMENTED,
        ErrorCode::HandlerError => StatusCode::BAD_GATEWAY,
        ErrorCode::Busy | ErrorCode::Unavailable | ErrorCode::Unconfirmed => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        ErrorCode::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
        ErrorCode::Moved => StatusCode::MISDIRECTED_REQUEST,
    }
}

impl From<ConversationError> for Problem {
    fn from(error: ConversationError) -> Self {
        let (code, details) = (error.code(), error.details());
        // The expected `head_seq` or version is not the current one.
        let is_expectation = details.head_seq.is_some() || details.version.is_some();
        let status = match code {
            ErrorCode::Conflict if is_expectation => StatusCode::PRECONDITION_FAILED,
            // The conversation is busy, not the node: an agent answers this message.
            ErrorCode::Busy if details.seq.is_some() => StatusCode::CONFLICT,
            code => status(code),
        };
        let mut problem = Self::new(status, code, error.to_string());
        for (member, value) in [
            ("head_seq", details.head_seq),
            ("seq", details.seq),
            ("start_seq", details.start_seq),
            ("index", details.index.map(|index| index as u64)),
            ("version", details.version),
            ("tokens", details.tokens),
        ] {
            if let Some(value) = value {
                problem = problem.with(member, value);
            }
        }
        problem
    }
}

impl From<door::topics::Refused> for Problem {
    fn from(refused: door::topics::Refused) -> Self {
        let problem = Self::of(refused.code, refused.message);
        let numbers = refused.numbers.into_iter();
        numbers.fold(problem, |problem, (name, number)| {
            problem.with(name, number)
        })
    }
}

/// Converts errors of axum, such as for an invalid query, to problem documents.
pub async fn completed(response: Response) -> Response {
    let status = response.status();
    let kind = response.headers().get(header::CONTENT_TYPE);
    let is_text = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/plain"));
    if !status.is_client_error() || !is_text {
        return response;
    }
    let read = axum::body::to_bytes(response.into_body(), REFUSAL_SIZE_MAX).await;
    let detail = String::from_utf8_lossy(&read.unwrap_or_default()).into_owned();
    Problem::new(status, ErrorCode::InvalidArgument, detail).into_response()
}

/// Largest text of such an error, in bytes.
const REFUSAL_SIZE_MAX: usize = 4 << 10;

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.status, self.document().to_string()).into_response();
        let headers = response.headers_mut();
        let problem = HeaderValue::from_static("application/problem+json");
        headers.insert(header::CONTENT_TYPE, problem);
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(retry_s) = self.retry_after_s() {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(retry_s));
        }
        response
    }
}
