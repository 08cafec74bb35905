//! The fast path: frequent requests that are answered before they reach the router.
//!
//! The listener reads them, and a [`FastPath`] answers as the router would.

use std::net::IpAddr;
use std::pin::Pin;
use std::time::Duration;

use axum::http::StatusCode;
use door::Pass;
use platform::{Durable, NotDurable};
use quota_service::Desk;

use crate::reply::Reply;

/// A request on the fast path, borrowed from the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastRequest<'a> {
    /// The method.
    pub method: Method,
    /// The path without a query.
    pub path: &'a str,
    /// True if another request may follow on the connection.
    pub is_kept_alive: bool,
    /// The version of HTTP.
    pub version: Version,
    /// The `Host` field; empty for none.
    pub host: &'a str,
    /// The bearer token; empty for none.
    pub token: &'a str,
    /// `X-Forwarded-For`; empty for none.
    pub forwarded: &'a str,
    /// The content type as written, without parameters; empty for none.
    pub content_type: &'a str,
    /// `If-Match`; empty for none.
    pub if_match: &'a str,
    /// `Idempotency-Key`; empty for none.
    pub idempotency_key: &'a str,
    /// The body.
    pub body: &'a [u8],
}

/// A method on the fast path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// GET.
    Get,
    /// POST.
    Post,
}

/// A version of HTTP/1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// The connection is closed unless both sides ask to keep it.
    Http10,
    /// The connection is kept unless one side asks to close it.
    Http11,
}

/// A future reply, with the writes that must be durable before it is sent.
pub type Later = Pin<Box<dyn Future<Output = (Reply, Vec<Durable>)> + Send>>;

/// A write that was decided, and whose reply is sent when it is on disk.
pub struct WrittenReply<'a> {
    /// The reply: a problem document if the write fails. The listener limits how long it waits.
    pub reply: Pin<Box<dyn Future<Output = Reply> + Send + 'a>>,
    /// The pass of the client. If it is revoked, the listener does not wait for the reply.
    pub pass: Pass,
}

/// The outcome of a request on the fast path. It may borrow from the request.
pub enum Verdict<'a> {
    /// The reply is complete.
    Answered,
    /// The reply is complete when these writes are on disk.
    When(Vec<Durable>),
    /// The reply is produced later.
    Later(Later),
    /// The reply is known when a write is on disk.
    Written(WrittenReply<'a>),
    /// The fast path does not answer it; nothing was decided.
    NotHere,
}

/// The frequent requests of a listener.
pub trait FastPath: Send + Sync {
    /// Returns true if the fast path answers this method and path.
    fn serves(&self, method: Method, path: &str) -> bool;

    /// Returns true if clients need no token.
    fn is_open(&self) -> bool;

    /// Answers a request for which [`Self::serves`] is true. `desk` is the connection's.
    fn answer<'a>(
        &self,
        desk: &mut Desk,
        request: &FastRequest<'a>,
        peer: IpAddr,
        reply: &mut Reply,
    ) -> Verdict<'a>;

    /// Records the latency of an answer to a request.
    fn observe(&self, request: &FastRequest<'_>, status: StatusCode, took: Duration);

    /// Answers a decision that is not durable.
    fn not_durable(&self, error: NotDurable, reply: &mut Reply);

    /// Returns nanoseconds since 1970-01-01 UTC.
    fn now_ns(&self) -> u64;
}
