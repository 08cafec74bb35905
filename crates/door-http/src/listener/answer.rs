//! The body of an answer. It marks its connection as active until it is sent.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, Response, header};
use axum::response::IntoResponse;
use http_api::Handle;
use http_api::Problem;
use http_body::{Frame, SizeHint};
use model::ErrorCode;
use tokio::sync::OwnedSemaphorePermit;

/// A body, until it is sent or its connection has ended.
pub(super) struct Answer {
    body: Body,
    stream: Option<Stream>,
    connection: Handle,
}

/// Additional state of an event stream.
struct Stream {
    /// Ends when the node shuts down.
    stop: Pin<Box<dyn Future<Output = ()> + Send>>,
    is_over: bool,
    _permit: OwnedSemaphorePermit,
}

/// Makes a response the answer of a connection. An event stream needs a permit; it is the last
/// answer of its connection.
pub(super) fn answer(response: Response<Body>, connection: &Handle) -> Response<Answer> {
    let content_type = response.headers().get(header::CONTENT_TYPE);
    let is_events = content_type.is_some_and(|it| it.as_bytes() == b"text/event-stream");
    let connection = connection.clone();
    if !is_events {
        return response.map(|body| Answer {
            body,
            stream: None,
            connection,
        });
    }
    let Some(permit) = connection.all().stream() else {
        let max = connection.all().limits().streams_max;
        let detail =
            format!("too many event streams and WebSockets (limit {max}, http.streams_max)");
        let mut refused = Problem::of(ErrorCode::Busy, detail).into_response();
        // A page that may read the events may also read the error.
        for name in [header::ACCESS_CONTROL_ALLOW_ORIGIN, header::VARY] {
            if let Some(value) = response.headers().get(&name) {
                refused.headers_mut().insert(name, value.clone());
            }
        }
        return refused.map(|body| Answer {
            body,
            stream: None,
            connection,
        });
    };
    connection.become_stream();
    let stream = Stream {
        stop: Box::pin(connection.all().draining()),
        is_over: false,
        _permit: permit,
    };
    let mut response = response.map(|body| Answer {
        body,
        stream: Some(stream),
        connection,
    });
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Returns the last event of a stream when the node shuts down.
fn last_event() -> Bytes {
    let problem = Problem::of(ErrorCode::Unavailable, "the node is shutting down");
    Bytes::from(format!("event: error\ndata: {}\n\n", problem.document()))
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        if let Some(stream) = &mut this.stream {
            if stream.is_over {
                return Poll::Ready(None);
            }
            if stream.stop.as_mut().poll(cx).is_ready() {
                stream.is_over = true;
                return Poll::Ready(Some(Ok(Frame::data(last_event()))));
            }
        }
        Pin::new(&mut this.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        let is_over = self.stream.as_ref().is_some_and(|stream| stream.is_over);
        is_over || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.connection.end();
    }
}
