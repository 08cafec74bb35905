//! Waits for replies that are sent when a write is on disk.
//!
//! A sync takes milliseconds, so the wait has two phases. The first has one timer for all requests
//! of the connection, and its task is woken together with others of its thread. Only a wait that
//! exceeds it gets a timer of its own, and follows the revocation of its client's pass.

use std::future::poll_fn;
use std::task::Context;

use axum::http::Method;
use door::{Patience, Wakers};
use http_api::reply::Reply;
use http_api::{WrittenReply, within_write_limit};
use tokio::time::Instant;

use crate::revocable::{self, GRACE};

/// The timer and the wakers of all waits of a connection.
#[derive(Default)]
pub(super) struct WriteWait {
    wakers: Wakers,
    /// Ends the first phase, after the time that a request has after its pass is revoked.
    patience: Option<Patience>,
}

impl WriteWait {
    /// Waits for the reply to a request that began at `start`.
    pub(super) async fn reply(&mut self, written: WrittenReply<'_>, start: Instant) -> Reply {
        let WrittenReply { mut reply, pass } = written;
        let wakers = &mut self.wakers;
        let mut reply = poll_fn(move |cx| {
            let waker = wakers.of(cx.waker());
            reply.as_mut().poll(&mut Context::from_waker(waker))
        });
        let patience = self.patience.get_or_insert_with(|| Patience::new(GRACE));
        patience.renew(start);
        tokio::select! {
            biased;
            reply = &mut reply => return reply,
            () = patience.over() => {}
        }
        let revoked = async {
            if !pass.is_revoked() {
                pass.revoked().await;
                tokio::time::sleep(GRACE).await;
            }
        };
        let outcome = tokio::select! {
            biased;
            outcome = within_write_limit(async { Ok(reply.await) }) => outcome,
            () = revoked => Err(revocable::ended(&Method::POST)),
        };
        outcome.unwrap_or_else(|problem| {
            let mut reply = Reply::default();
            reply.problem(&problem);
            reply
        })
    }
}

#[cfg(test)]
mod tests {
    use access::Principal;
    use axum::http::StatusCode;
    use door::Pass;
    use tokio::time::Duration;

    use super::*;

    /// Returns a reply that never comes, to the bearer of `pass`.
    fn never(pass: &Pass) -> WrittenReply<'static> {
        WrittenReply {
            reply: Box::pin(std::future::pending()),
            pass: pass.clone(),
        }
    }

    fn check_unconfirmed(reply: &Reply, detail: &str) {
        assert_eq!(reply.status, StatusCode::SERVICE_UNAVAILABLE);
        let body = std::str::from_utf8(&reply.body).unwrap();
        assert!(
            body.contains("\"unconfirmed\"") && body.contains(detail),
            "{body}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn slow_writes_are_unconfirmed_after_the_write_limit() {
        let (mut wait, pass) = (WriteWait::default(), Pass::new(Principal::open()));
        let slow = WrittenReply {
            reply: Box::pin(async {
                tokio::time::sleep(Duration::from_secs(20)).await;
                Reply::default()
            }),
            pass: pass.clone(),
        };
        assert_eq!(
            wait.reply(slow, Instant::now()).await.status,
            StatusCode::OK
        );
        let reply = wait.reply(never(&pass), Instant::now()).await;
        check_unconfirmed(&reply, "not on disk after 30 s");
    }

    #[tokio::test(start_paused = true)]
    async fn writes_of_a_revoked_pass_are_unconfirmed_soon() {
        let (mut wait, pass) = (WriteWait::default(), Pass::new(Principal::open()));
        let revoking = async {
            tokio::time::sleep(Duration::from_secs(2)).await;
            pass.revoke();
        };
        let begin = Instant::now();
        let (reply, ()) = tokio::join!(wait.reply(never(&pass), begin), revoking);
        check_unconfirmed(&reply, "revoked");
        assert!(begin.elapsed() < Duration::from_secs(3));
        let begin = Instant::now();
        check_unconfirmed(&wait.reply(never(&pass), begin).await, "revoked");
        assert!(begin.elapsed() < Duration::from_secs(1));
    }
}
