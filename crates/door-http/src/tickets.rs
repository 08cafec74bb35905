//! Tickets: single-use replacements of a token in the URL of an event stream.
//!
//! `EventSource` in browsers cannot send `Authorization`. A page, or its server, therefore gets a
//! ticket by `POST /v1/tickets` with its token and opens the stream with `?ticket=…`. A ticket is
//! valid once, for [`LIFETIME`], for `GET` of one path, and for event streams only, so it is
//! worthless in browser histories and logs. A ticket becomes invalid when its token is revoked.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use door::{Gate, Pass};
use http_api::Client;
use http_api::Problem;
use http_api::ProblemDocument;
use http_api::{Shared, body};
use model::ErrorCode;
use parking_lot::Mutex;
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Lifetime of a ticket.
const LIFETIME: Duration = Duration::from_secs(30);
/// Most tickets valid at the same time.
const TICKETS_MAX: usize = 65_536;
/// Random bytes in a ticket.
const ENTROPY_SIZE: usize = 32;
/// Largest request body, in bytes.
const BODY_SIZE_MAX: usize = 16 << 10;

/// Name of the query parameter.
const PARAMETER: &str = "ticket";

/// The currently valid tickets.
#[derive(Default)]
pub(super) struct Tickets {
    issued: Mutex<Issued>,
}

#[derive(Default)]
struct Issued {
    tickets: HashMap<String, Ticket>,
    /// Tickets in the order of their expiry.
    ends: VecDeque<(Instant, String)>,
}

struct Ticket {
    /// Path of the event stream, without percent escapes.
    path: String,
    /// Pass of the client that got the ticket.
    pass: Pass,
}

/// Reason why a ticket is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TicketError {
    #[error("the ticket is unknown, used or older than {} s", LIFETIME.as_secs())]
    Unknown,
    #[error("the ticket is for another path")]
    OtherPath,
    #[error("a ticket is for event streams only: send GET with `accept: text/event-stream`")]
    OtherUse,
}

impl Tickets {
    /// Issues a ticket for a path; `None` if there are too many.
    fn issue(&self, path: &str, pass: Pass) -> Option<String> {
        let mut bytes = [0; ENTROPY_SIZE];
        SystemRandom::new().fill(&mut bytes).ok()?;
        let name = format!("tkt_{}", BASE64.encode(bytes));
        let now = Instant::now();
        let mut issued = self.issued.lock();
        issued.forget_ended(now);
        if issued.tickets.len() >= TICKETS_MAX {
            return None;
        }
        let path = decode(path);
        issued.tickets.insert(name.clone(), Ticket { path, pass });
        issued.ends.push_back((now + LIFETIME, name.clone()));
        Some(name)
    }

    /// Redeems a ticket and returns its pass.
    fn redeem(&self, name: &str, path: &str) -> Result<Pass, TicketError> {
        let mut issued = self.issued.lock();
        issued.forget_ended(Instant::now());
        let ticket = issued.tickets.remove(name).ok_or(TicketError::Unknown)?;
        match ticket.path == decode(path) {
            true => Ok(ticket.pass),
            false => Err(TicketError::OtherPath),
        }
    }

    /// If the request has a ticket, redeems it, removes it from the query and returns its pass.
    pub(super) fn take_from(
        &self,
        request: &mut Request,
        gate: &dyn Gate,
    ) -> Option<Result<Pass, TicketError>> {
        let (name, uri) = split(request.uri())?;
        let wants_events = |headers: &HeaderMap| {
            let accept = headers
                .get(header::ACCEPT)
                .and_then(|value| value.to_str().ok());
            accept.is_some_and(|accept| accept.contains("text/event-stream"))
        };
        if request.method() != Method::GET || !wants_events(request.headers()) {
            return Some(Err(TicketError::OtherUse));
        }
        *request.uri_mut() = uri;
        let pass = self.redeem(&name, request.uri().path());
        // A pass without a token dates from before the first token was created.
        let is_valid =
            |pass: &Pass| !pass.is_revoked() && (pass.token().is_some() || gate.admit("").is_ok());
        Some(pass.and_then(|pass| is_valid(&pass).then_some(pass).ok_or(TicketError::Unknown)))
    }
}

impl Issued {
    fn forget_ended(&mut self, now: Instant) {
        while let Some((end, name)) = self.ends.front()
            && *end <= now
        {
            self.tickets.remove(name);
            self.ends.pop_front();
        }
    }
}

/// Splits the ticket from a URL.
fn split(uri: &Uri) -> Option<(String, Uri)> {
    let mut ticket = None;
    let mut rest = Vec::new();
    for pair in uri.query()?.split('&') {
        match pair.split_once('=') {
            Some((PARAMETER, value)) if ticket.is_none() => ticket = Some(value.to_owned()),
            _ => rest.push(pair),
        }
    }
    let (path, query) = (uri.path(), rest.join("&"));
    let target = match query.is_empty() {
        true => path.to_owned(),
        false => format!("{path}?{query}"),
    };
    Some((ticket?, target.parse().ok()?))
}

/// Decodes the percent escapes of a path.
fn decode(path: &str) -> String {
    let mut decoded = Vec::with_capacity(path.len());
    let mut bytes = path.as_bytes();
    while let Some((first, rest)) = bytes.split_first() {
        let escaped = (*first == b'%').then(|| rest.get(..2)).flatten();
        let escaped = escaped.and_then(|digits| std::str::from_utf8(digits).ok());
        match escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                decoded.push(byte);
                bytes = &rest[2..];
            }
            None => {
                decoded.push(*first);
                bytes = rest;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// A request for a ticket.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewTicket)]
struct NewTicket {
    /// The path of the event stream, without a query.
    #[schema(example = "/v1/conversations/support-42/messages")]
    path: String,
}

/// A ticket for one event stream.
#[derive(Serialize, ToSchema)]
#[schema(as = Ticket)]
struct TicketDocument {
    /// Value of the query parameter `ticket`.
    #[schema(example = "tkt_Ik2gZl1vC7wX0W9T3m5bq8uYd4sR6nPeJhAoLfGxK_Q")]
    ticket: String,
    /// Lifetime in milliseconds.
    #[schema(example = 30_000)]
    valid_ms: u64,
}

/// Returns the route of tickets.
pub(super) fn routes(tickets: Arc<Tickets>) -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(issue))
        .with_state(tickets)
}

/// Get a ticket for one event stream.
///
/// For `EventSource`, which cannot send `Authorization`. `GET` of the path with `?ticket=…` and
/// `Accept: text/event-stream` is admitted once within `valid_ms`, with the permissions of the
/// token of this request.
#[utoipa::path(
    post, path = "/v1/tickets", tag = "node", operation_id = "issue_ticket",
    request_body = NewTicket,
    responses(
        (status = 201, description = "The ticket", body = TicketDocument),
        (status = 400, description = "The request is invalid", body = ProblemDocument),
        (status = 415, description = "The body is not JSON", body = ProblemDocument),
        (status = 503, description = "Too many tickets are valid", body = ProblemDocument),
    )
)]
async fn issue(
    State(tickets): State<Arc<Tickets>>,
    client: Client,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let body = body::read_json(&headers, body, BODY_SIZE_MAX).await?;
    let NewTicket { path } = body::parse(&body)?;
    if !path.starts_with("/v1/") || path.contains(['?', '#']) {
        let detail = "must be the path of an event stream: it begins with `/v1/` and has no query";
        return Err(body::wrong_at("path", detail));
    }
    let Some(ticket) = tickets.issue(&path, client.pass().clone()) else {
        let detail = format!("too many tickets are valid (limit {TICKETS_MAX})");
        return Err(Problem::of(ErrorCode::Busy, detail));
    };
    let valid_ms = LIFETIME.as_millis() as u64;
    let document = Json(TicketDocument { ticket, valid_ms });
    Ok((
        StatusCode::CREATED,
        [(header::CACHE_CONTROL, "no-store")],
        document,
    )
        .into_response())
}

#[cfg(test)]
mod tests {
    use super::*;
    use door::Open;

    const PATH: &str = "/v1/conversations/a%40b/messages";

    #[tokio::test(start_paused = true)]
    async fn ticket_is_valid_once_for_its_path_and_time() {
        let tickets = Tickets::default();
        let issue = || tickets.issue(PATH, Open.admit("").unwrap()).unwrap();
        let redeem = |ticket: &str, path| tickets.redeem(ticket, path).map(drop);
        let ticket = issue();
        assert_eq!(redeem(&ticket, "/v1/conversations/a@b/messages"), Ok(()));
        assert_eq!(redeem(&ticket, PATH), Err(TicketError::Unknown));

        let ticket = issue();
        assert_eq!(redeem(&ticket, "/v1/watch"), Err(TicketError::OtherPath));
        assert_eq!(
            redeem(&ticket, PATH),
            Err(TicketError::Unknown),
            "it is used up"
        );

        let ticket = issue();
        tokio::time::advance(LIFETIME).await;
        assert_eq!(redeem(&ticket, PATH), Err(TicketError::Unknown));
        assert!(
            tickets.issued.lock().ends.is_empty(),
            "what has ended is forgotten"
        );
    }

    #[test]
    fn ticket_is_taken_out_of_the_query() {
        for (uri, rest) in [
            ("/v1/watch?ticket=t", "/v1/watch"),
            ("/v1/watch?a=1&ticket=t&b=2", "/v1/watch?a=1&b=2"),
        ] {
            let (ticket, uri) = split(&uri.parse().unwrap()).unwrap();
            assert_eq!((ticket.as_str(), uri.to_string().as_str()), ("t", rest));
        }
        assert!(split(&"/v1/watch?tickets=t".parse().unwrap()).is_none());
        assert!(split(&"/v1/watch".parse().unwrap()).is_none());
    }
}
