//! Ends requests and answers when the pass of their client is revoked.
//!
//! Every authenticated route passes through this module, so no route can omit it. When the pass is
//! revoked, an upload is cut off, an event stream ends with an `error` event, any other streamed
//! body ends incomplete, and a waiting request is answered.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{Method, header};
use axum::response::{IntoResponse, Response};
use door::Pass;
use http_api::Problem;
use http_api::body::Revoked;
use http_body::{Body as _, Frame, SizeHint};
use model::ErrorCode;

/// Time that a request has to end by itself after its pass is revoked.
pub(super) const GRACE: Duration = Duration::from_millis(500);

/// Runs a request while the pass is valid.
pub(super) async fn run<F: Future<Output = Response>>(
    pass: Pass,
    request: Request,
    run: impl FnOnce(Pass, Request) -> F,
) -> Response {
    if pass.is_revoked() {
        let problem = Problem::of(ErrorCode::Unauthenticated, Revoked.to_string());
        return problem.into_response();
    }
    let method = request.method().clone();
    let request = request.map(|body| revocable(body, &pass, End::Cut));
    let late = async {
        pass.revoked().await;
        tokio::time::sleep(GRACE).await;
    };
    let response = tokio::select! {
        biased;
        response = run(pass.clone(), request) => response,
        () = late => return ended(&method).into_response(),
    };
    let is_events = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|value| value.as_bytes().starts_with(b"text/event-stream"));
    let end = if is_events { End::Event } else { End::Cut };
    response.map(|body| revocable(body, &pass, end))
}

/// Returns the answer to a request whose token was revoked before it had an answer.
pub(super) fn ended(method: &Method) -> Problem {
    if method.is_safe() {
        return Problem::of(ErrorCode::Unauthenticated, Revoked.to_string());
    }
    let detail = format!("{Revoked} while the request was executed");
    Problem::of(ErrorCode::Unconfirmed, detail)
}

/// The end of a body when the pass is revoked.
#[derive(Clone, Copy)]
enum End {
    /// With an `error` event.
    Event,
    /// With a transport error, so that the client sees that the body is incomplete.
    Cut,
}

/// Makes a body revocable, unless it is complete already.
fn revocable(body: Body, pass: &Pass, end: End) -> Body {
    if body.is_end_stream()
        || body
            .size_hint()
            .exact()
            .is_some_and(|size| size <= WHOLE_SIZE)
    {
        return body;
    }
    let pass = pass.clone();
    let revoked = async move { pass.revoked().await };
    Body::new(Revocable {
        body: Some(body),
        revoked: Box::pin(revoked),
        end,
    })
}

/// Bodies of at most this size, in bytes, are sent or read at once.
const WHOLE_SIZE: u64 = 64 << 10;

struct Revocable {
    /// `None` after the body has ended.
    body: Option<Body>,
    revoked: Pin<Box<dyn Future<Output = ()> + Send>>,
    end: End,
}

impl http_body::Body for Revocable {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        let Some(body) = &mut this.body else {
            return Poll::Ready(None);
        };
        if this.revoked.as_mut().poll(cx).is_ready() {
            this.body = None;
            return Poll::Ready(Some(match this.end {
                End::Event => Ok(Frame::data(last_event())),
                End::Cut => Err(axum::Error::new(Revoked)),
            }));
        }
        let frame = ready!(Pin::new(body).poll_frame(cx));
        if frame.is_none() {
            this.body = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let hint = self.body.as_ref().map(Body::size_hint);
        hint.unwrap_or_else(|| SizeHint::with_exact(0))
    }
}

/// Returns the last event of a stream. The empty lines first end an event that was cut off.
fn last_event() -> Bytes {
    let problem = Problem::of(ErrorCode::Unauthenticated, Revoked.to_string());
    Bytes::from(format!(
        "\n\nevent: error\ndata: {}\n\n",
        problem.document()
    ))
}

#[cfg(test)]
mod tests {
    use access::Principal;

    use super::*;

    async fn next(body: &mut Body) -> Option<Result<Bytes, String>> {
        let frame = std::future::poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await?;
        Some(match frame {
            Ok(frame) => Ok(frame.into_data().unwrap()),
            Err(error) => Err(error.to_string()),
        })
    }

    fn endless() -> Body {
        Body::from_stream(futures_util::stream::pending::<Result<Bytes, std::io::Error>>())
    }

    #[tokio::test]
    async fn bodies_end_when_their_pass_is_revoked() {
        let pass = Pass::new(Principal::open());
        let mut events = revocable(endless(), &pass, End::Event);
        let mut cut = revocable(endless(), &pass, End::Cut);
        let mut whole = revocable(Body::from("whole"), &pass, End::Cut);
        let waits = tokio::time::timeout(Duration::from_millis(1), next(&mut events)).await;
        assert!(waits.is_err());
        pass.revoke();
        let last = next(&mut events).await.unwrap().unwrap();
        assert!(last.starts_with(b"\n\nevent: error\ndata: {"), "{last:?}");
        assert!(next(&mut events).await.is_none());
        let error = next(&mut cut).await.unwrap().unwrap_err();
        assert_eq!(error, Revoked.to_string());
        assert!(next(&mut cut).await.is_none());
        assert_eq!(next(&mut whole).await.unwrap().unwrap(), "whole");
    }
}
