//! Calls of agents, with a whole answer or a stream of items.

use std::future::poll_fn;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri, header};
use axum::response::{IntoResponse, Response};
use http_api::sse::{KEEPALIVE, pulled};
use http_api::{BinaryDocument, Problem, ProblemDocument, Shared, body, query};
use messaging::{Cast, Message, Requested};
use model::limits::FRAME_SIZE_MAX;
use routing::Ticket;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::caller::{Caller, Claimant};
use crate::events::ItemEvents;
use crate::metadata;
use crate::place::Agent;
use crate::problem;
use crate::replies::Item;

/// Largest body, in bytes: that of a frame.
pub(crate) const BODY_MAX: usize = FRAME_SIZE_MAX.as_usize();

/// Time for an answer, unless the request sets another.
const TIMEOUT_MS: u32 = 30_000;

/// Longest time for an answer.
const TIMEOUT_MS_MAX: u32 = 600_000;

/// The header with the time for an answer.
const TIMEOUT: HeaderName = HeaderName::from_static("telpher-timeout-ms");

/// The tag of the only call of a connection.
pub(crate) const TAG: Ticket = Ticket {
    slot: 0,
    generation: 1,
};

/// The options of a call.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct RequestQuery {
    /// Instance to call; default: one of them.
    instance: Option<String>,
    /// Time for the answer in milliseconds, 1 to 600000; default 30000. `Telpher-Timeout-Ms` is the
    /// same as a header.
    #[param(minimum = 1, maximum = 600000)]
    timeout_ms: Option<u32>,
}

/// Call an agent, and wait for its answer.
///
/// The body is passed to the agent as it is, and its answer is returned as it is. `Content-Type`,
/// `traceparent`, `tracestate` and `Telpher-Metadata-KEY` are passed as metadata. With
/// `Accept: text/event-stream` the agent may answer with any number of items: each is an event
/// `item`, and the last event is `end` or `error`. The call is cancelled if the client disconnects.
#[utoipa::path(
    post, path = "/agents/{name}/request", tag = "messaging", operation_id = "request",
    params(
        ("name" = String, Path, description = "Name of the agent"),
        RequestQuery,
        ("Telpher-Name" = Option<String>, Header, description = "Name of the caller, which the token must permit"),
    ),
    request_body(content = BinaryDocument, content_type = "*/*"),
    responses(
        (status = 200, description = "The answer, with the content type that the agent gave it", content((BinaryDocument = "*/*"), (String = "text/event-stream"))),
        (status = 404, description = "The agent has no instance, or no such method", body = ProblemDocument),
        (status = 409, description = "The agent answered with a conflict", body = ProblemDocument),
        (status = 429, description = "A limit of the caller is used up", body = ProblemDocument),
        (status = 502, description = "The agent answered with an error of its own", body = ProblemDocument),
        (status = 504, description = "The agent did not answer in time", body = ProblemDocument),
    )
)]
pub(super) async fn request(
    State(shared): State<Shared>,
    agent: Agent,
    claimant: Claimant,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    call(shared, agent, claimant, uri, headers, body).await
}

/// Call a method of an agent, and wait for its answer.
///
/// Like `request`, for an agent with several methods.
#[utoipa::path(
    post, path = "/agents/{name}/request/{method}", tag = "messaging", operation_id = "request_method",
    params(
        ("name" = String, Path, description = "Name of the agent"),
        ("method" = String, Path, description = "Name of the method"),
        RequestQuery,
        ("Telpher-Name" = Option<String>, Header, description = "Name of the caller, which the token must permit"),
    ),
    request_body(content = BinaryDocument, content_type = "*/*"),
    responses(
        (status = 200, description = "The answer, with the content type that the agent gave it", content((BinaryDocument = "*/*"), (String = "text/event-stream"))),
        (status = 404, description = "The agent has no instance, or no such method", body = ProblemDocument),
        (status = 409, description = "The agent answered with a conflict", body = ProblemDocument),
        (status = 429, description = "A limit of the caller is used up", body = ProblemDocument),
        (status = 502, description = "The agent answered with an error of its own", body = ProblemDocument),
        (status = 504, description = "The agent did not answer in time", body = ProblemDocument),
    )
)]
pub(super) async fn request_method(
    State(shared): State<Shared>,
    agent: Agent,
    claimant: Claimant,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    call(shared, agent, claimant, uri, headers, body).await
}

async fn call(
    shared: Shared,
    agent: Agent,
    claimant: Claimant,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let query: RequestQuery = query(&uri)?;
    let timeout_ms = timeout_ms(&headers, query.timeout_ms)?;
    let target = agent.instance(query.instance.as_deref())?;
    let metadata = metadata::read(&headers)?;
    let body = body::read(&headers, body, BODY_MAX).await?;
    let is_streamed = accepts_events(&headers);
    let mut caller = Caller::open(&shared, claimant, target, Cast::Any, &agent.method)?;
    let message = Message {
        deadline_ms: Some(timeout_ms),
        metadata: &metadata,
        body: &body,
    };
    hand_on(&mut caller, is_streamed, message).await?;
    if is_streamed {
        return Ok(pulled(ItemEvents::new(caller), KEEPALIVE));
    }
    let reply = poll_fn(|cx| caller.replies.poll_next(cx.waker())).await;
    let reply = reply.map_err(|failed| problem::of_failure(&failed.failure()))?;
    if reply.more {
        let detail = "the agent answers with a stream of items: send `accept: text/event-stream`";
        return Err(Problem::invalid(detail).with("sent", true));
    }
    Ok(whole(reply))
}

/// Hands the call on to a responder, once its charge is on disk.
async fn hand_on(
    caller: &mut Caller,
    is_streamed: bool,
    message: Message<'_>,
) -> Result<(), Problem> {
    let (connection, route) = caller.parts()?;
    let requested = connection.turn().request(route, TAG, is_streamed, message);
    match requested.map_err(problem::of_request)? {
        Requested::Sent => Ok(()),
        Requested::Held(call, charge) => {
            let not_charged = |_| problem::of_request(messaging::RequestError::NotCharged);
            charge.await.map_err(not_charged)?;
            let resumed = connection.turn().resume(route, TAG, &call);
            resumed.map_err(problem::of_request)
        }
    }
}

/// Returns a whole answer.
fn whole(reply: Item) -> Response {
    let mut response = reply.body.into_response();
    let headers = response.headers_mut();
    metadata::write(&reply.metadata, headers);
    // An agent decides the content: a browser must neither guess its type nor run it as a page of
    // the node.
    let fixed = [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CONTENT_SECURITY_POLICY, "sandbox"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Returns whether the client accepts a stream of events.
fn accepts_events(headers: &HeaderMap) -> bool {
    let fields = headers.get_all(header::ACCEPT).iter();
    let mut types = fields
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|range| range.split(';').next().unwrap_or_default().trim());
    types.any(|range| range.eq_ignore_ascii_case("text/event-stream"))
}

fn timeout_ms(headers: &HeaderMap, asked: Option<u32>) -> Result<u32, Problem> {
    let of_header = match headers.get(&TIMEOUT) {
        None => None,
        Some(value) => {
            let number = value
                .to_str()
                .ok()
                .and_then(|text| text.trim().parse().ok());
            let wrong = || Problem::invalid(format!("`{TIMEOUT}` is not a number of milliseconds"));
            Some(number.ok_or_else(wrong)?)
        }
    };
    let timeout_ms = asked.or(of_header).unwrap_or(TIMEOUT_MS);
    match (1..=TIMEOUT_MS_MAX).contains(&timeout_ms) {
        true => Ok(timeout_ms),
        false => Err(Problem::invalid(format!(
            "`timeout_ms` is {timeout_ms}: use 1 to {TIMEOUT_MS_MAX}"
        ))),
    }
}
