//! The WebSocket handshake (RFC 6455, 4.2).
//!
//! Any path is accepted: the port serves one protocol. There is no sub-protocol and no extension. A
//! client that cannot set headers sends its token as `?token=`.
//!
//! A web page can reach every address that its browser's machine reaches. So where no token is
//! required, only pages from this machine are accepted.

use std::convert::Infallible;
use std::future::{poll_fn, ready};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Request, Response, StatusCode, Uri};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use ring::digest;
use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, timeout_at};

use crate::admission::{Credentials, Denied, Entered, enter, is_open};
use crate::handshake_error::HandshakeError;
use crate::io::Io;
use crate::listener::Door;
use crate::outlet::Framing;

const HEAD_SIZE_MAX: usize = 16 << 10;

/// The text that is hashed with every key (RFC 6455, 1.3).
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The size of a key, in bytes.
const KEY_SIZE: usize = 16;

/// The result of a request.
enum Answered {
    /// The client is admitted.
    In(Box<Entered>),
    /// The client is refused, and the refusal is counted already.
    Denied,
    Refused(StatusCode),
}

/// Answers the first request. Returns the admitted client and its connection, if it was admitted.
pub(super) async fn answer(
    door: &Door,
    io: Io,
    remote: &str,
    by: Instant,
) -> Result<Option<(Entered, Io)>, HandshakeError> {
    let answered = Mutex::new(None);
    let service = service_fn(|request: Request<Incoming>| {
        let (outcome, response) = judge(door, remote, &request);
        *answered.lock() = Some(outcome);
        ready(Ok::<_, Infallible>(response))
    });
    let mut connection = http1::Builder::new()
        .max_buf_size(HEAD_SIZE_MAX)
        .serve_connection(TokioIo::new(io), service);
    timeout_at(by, poll_fn(|cx| connection.poll_without_shutdown(cx))).await??;
    let parts = connection.into_parts();
    let mut io = parts.io.into_inner();
    let outcome = answered.lock().take();
    match outcome {
        Some(Answered::In(entered)) => {
            io.unread(&parts.read_buf);
            Ok(Some((*entered, io)))
        }
        Some(Answered::Refused(status)) => {
            finish(io, by).await;
            Err(HandshakeError::Refused(status))
        }
        // A client without a request needs no answer.
        Some(Answered::Denied) | None => {
            finish(io, by).await;
            Ok(None)
        }
    }
}

/// Lets the client read the response; it may have disconnected.
async fn finish(mut io: Io, by: Instant) {
    let _ = timeout_at(by, io.shutdown()).await;
}

fn judge(door: &Door, remote: &str, request: &Request<Incoming>) -> (Answered, Response<String>) {
    let headers = request.headers();
    let Some(key) = asked_with(headers) else {
        let status = StatusCode::UPGRADE_REQUIRED;
        let mut response = refusal(status, "this port serves SLIM over gRPC and WebSocket");
        set(&mut response, header::UPGRADE, "websocket");
        set(&mut response, header::SEC_WEBSOCKET_VERSION, "13");
        return (Answered::Refused(status), response);
    };
    if is_from_elsewhere(headers) && is_open(door) {
        let status = StatusCode::FORBIDDEN;
        let why = "web pages of other machines are refused while no token is required";
        return (Answered::Refused(status), refusal(status, why));
    }
    let mut shown = Credentials::in_headers(headers);
    if !shown.is_any() {
        shown = Credentials::in_query(request.uri().query().unwrap_or_default());
    }
    match enter(door, shown, remote, Framing::WebSocket) {
        Ok(entered) => (Answered::In(Box::new(entered)), switch(key)),
        Err(denied) => {
            let status = match denied {
                Denied::Full(_) => StatusCode::SERVICE_UNAVAILABLE,
                _ => StatusCode::UNAUTHORIZED,
            };
            let mut response = refusal(status, &denied.to_string());
            if status == StatusCode::UNAUTHORIZED {
                set(&mut response, header::WWW_AUTHENTICATE, "Bearer");
            }
            (Answered::Denied, response)
        }
    }
}

/// Returns the key, if the request asks for a WebSocket.
fn asked_with(headers: &HeaderMap) -> Option<&HeaderValue> {
    let has = |name: HeaderName, word: &str| {
        let values = headers.get_all(name).into_iter();
        let mut words = values
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','));
        words.any(|other| other.trim().eq_ignore_ascii_case(word))
    };
    let is_asked = has(header::UPGRADE, "websocket")
        && has(header::CONNECTION, "upgrade")
        && has(header::SEC_WEBSOCKET_VERSION, "13");
    let key = headers.get(header::SEC_WEBSOCKET_KEY);
    let is_key = |key: &&HeaderValue| {
        let decoded = BASE64.decode(key.as_bytes());
        decoded.is_ok_and(|bytes| bytes.len() == KEY_SIZE)
    };
    key.filter(|_| is_asked).filter(is_key)
}

/// Returns whether a web page from another machine sends the request.
fn is_from_elsewhere(headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(header::ORIGIN) else {
        return false;
    };
    let origin = Uri::try_from(origin.as_bytes()).ok();
    let host = origin.as_ref().and_then(Uri::host);
    !matches!(host, Some("localhost" | "127.0.0.1" | "[::1]"))
}

fn switch(key: &HeaderValue) -> Response<String> {
    let mut hashed = digest::Context::new(&digest::SHA1_FOR_LEGACY_USE_ONLY);
    hashed.update(key.as_bytes());
    hashed.update(GUID);
    let accept = BASE64.encode(hashed.finish());
    let mut response = Response::new(String::new());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    set(&mut response, header::CONNECTION, "upgrade");
    set(&mut response, header::UPGRADE, "websocket");
    set(&mut response, header::SEC_WEBSOCKET_ACCEPT, &accept);
    response
}

fn refusal(status: StatusCode, why: &str) -> Response<String> {
    let mut response = Response::new(format!("{why}\n"));
    *response.status_mut() = status;
    set(&mut response, header::CONNECTION, "close");
    response
}

fn set(response: &mut Response<String>, name: HeaderName, value: &str) {
    // Our own values are ASCII.
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}
