//! Waiting for the journal.

use std::future::poll_fn;
use std::task::{Poll, Waker};

use journal::Status;

/// Waits until `notify` returns a status other than pending. It is called again when it has woken its
/// waker.
pub(crate) async fn decided(mut notify: impl FnMut(&Waker) -> Status) -> Status {
    poll_fn(|cx| match notify(cx.waker()) {
        Status::Pending => Poll::Pending,
        status => Poll::Ready(status),
    })
    .await
}
