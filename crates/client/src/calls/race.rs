//! `race`: calls several callees and returns the first reply.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use model::ErrorCode;

use crate::{Call, CallError, Caller};

/// Calls the same method of every callee and returns the first reply with the index of the callee
/// that gave it. The other calls are cancelled, which drops their handlers. If all calls fail, the
/// error is that of the last one to fail.
///
/// ```
/// use telpher_client::{Caller, Server};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let echo = Server::new().handle("echo", |request: telpher_client::Request| async { Ok(request.body) });
/// # let slow = Server::new().handle("echo", |request: telpher_client::Request| async {
/// #     std::future::pending::<()>().await;
/// #     Ok(request.body)
/// # });
/// # let slow = slow.listen("tcp://127.0.0.1:0").await?;
/// # let fast = echo.listen("tcp://127.0.0.1:0").await?;
/// let callers = [
///     Caller::connect(slow.address()).await?,
///     Caller::connect(fast.address()).await?,
/// ];
/// let (index, reply) = telpher_client::race(&callers, "echo", "hello").await?;
/// assert_eq!((index, &reply[..]), (1, &b"hello"[..]));
/// # Ok(())
/// # }
/// ```
pub async fn race<'a, I>(
    callers: I,
    method: &'a str,
    body: impl AsRef<[u8]>,
) -> Result<(usize, Bytes), CallError>
where
    I: IntoIterator<Item = &'a Caller>,
{
    let body = body.as_ref();
    let calls = callers.into_iter().map(|caller| caller.call(method, body));
    Race {
        calls: calls.map(Some).collect(),
    }
    .await
}

/// The calls of [`race`]; `None` for a call that failed.
struct Race<'a> {
    calls: Vec<Option<Call<'a, &'a [u8]>>>,
}

impl Future for Race<'_> {
    type Output = Result<(usize, Bytes), CallError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut last_error = None;
        for (index, slot) in self.calls.iter_mut().enumerate() {
            let Some(call) = slot else { continue };
            match Pin::new(call).poll(cx) {
                Poll::Pending => {}
                Poll::Ready(Ok(reply)) => return Poll::Ready(Ok((index, reply))),
                Poll::Ready(Err(error)) => {
                    *slot = None;
                    last_error = Some(error);
                }
            }
        }
        if self.calls.iter().any(Option::is_some) {
            return Poll::Pending;
        }
        let no_callers = || {
            CallError::new(
                ErrorCode::InvalidArgument,
                "`race` needs at least one caller",
            )
        };
        Poll::Ready(Err(last_error.unwrap_or_else(no_callers)))
    }
}
