//! Answers to messages that were taken: acknowledge, return, renew.

use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use http_api::{Client, Problem, ProblemDocument, Shared, body, within_write_limit};
use messaging::mailboxes::{LeaseAnswer, LeaseId};
use model::{ErrorCode, Name};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::place::Agent;
use crate::problem::{of_lease, of_not_durable};
use crate::take::{check_lease, mailboxes};

/// Largest request body, in bytes.
const BODY_MAX: usize = 256 << 10;

/// Most leases of one request.
const LEASES_MAX: usize = 1_024;

/// Longest pause before a returned message is delivered again: a day.
const DELAY_MS_MAX: u32 = 24 * 3_600_000;

/// The leases of messages to acknowledge.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AckRequest)]
pub(crate) struct AckDocument {
    /// Leases, as `take` returned them.
    #[schema(min_items = 1, max_items = 1024)]
    leases: Vec<String>,
}

/// The leases of messages to return.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NackRequest)]
pub(crate) struct NackDocument {
    /// Leases, as `take` returned them.
    #[schema(min_items = 1, max_items = 1024)]
    leases: Vec<String>,
    /// Pause before the next delivery in milliseconds, up to 86400000. Default: 1 s, and twice as
    /// long for each delivery, up to 60 s.
    #[schema(maximum = 86400000)]
    delay_ms: Option<u32>,
}

/// The leases to renew.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = RenewRequest)]
pub(crate) struct RenewDocument {
    /// Leases, as `take` returned them.
    #[schema(min_items = 1, max_items = 1024)]
    leases: Vec<String>,
    /// Time in milliseconds, from now on, in which the messages have to be answered.
    #[schema(minimum = 1, maximum = 43200000)]
    lease_ms: u32,
}

/// The number of messages that a request answered.
#[derive(Serialize, ToSchema)]
#[schema(as = AnsweredLeases)]
pub(crate) struct AnsweredDocument {
    /// Number of messages, which is that of the leases.
    answered: usize,
}

/// Acknowledge messages that were taken.
///
/// The answer is sent when the acknowledgement is on disk: then the messages are never delivered
/// again. Leases that ran out, or were answered before, acknowledge nothing: the error
/// `lease_expired` lists them as `ended`, and all others are acknowledged.
#[utoipa::path(
    post, path = "/agents/{name}/mailbox/ack", tag = "messaging", operation_id = "ack_messages",
    params(("name" = String, Path, description = "Name of the agent")),
    request_body = AckDocument,
    responses(
        (status = 200, description = "All messages are acknowledged", body = AnsweredDocument),
        (status = 403, description = "The token may not use the agent's name", body = ProblemDocument),
        (status = 409, description = "Leases have ended (`lease_expired`)", body = ProblemDocument),
    )
)]
pub(super) async fn ack(
    State(shared): State<Shared>,
    agent: Agent,
    client: Client,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<AnsweredDocument>, Problem> {
    let AckDocument { leases } = read(&agent, &client, &headers, body).await?;
    answer(&shared, &agent.name, &leases, LeaseAnswer::Acknowledge).await
}

/// Return messages that were taken: they are delivered again.
#[utoipa::path(
    post, path = "/agents/{name}/mailbox/nack", tag = "messaging", operation_id = "nack_messages",
    params(("name" = String, Path, description = "Name of the agent")),
    request_body = NackDocument,
    responses(
        (status = 200, description = "All messages will be delivered again, or became dead letters", body = AnsweredDocument),
        (status = 403, description = "The token may not use the agent's name", body = ProblemDocument),
        (status = 409, description = "Leases have ended (`lease_expired`)", body = ProblemDocument),
    )
)]
pub(super) async fn nack(
    State(shared): State<Shared>,
    agent: Agent,
    client: Client,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<AnsweredDocument>, Problem> {
    let NackDocument { leases, delay_ms } = read(&agent, &client, &headers, body).await?;
    if let Some(delay_ms) = delay_ms.filter(|delay_ms| *delay_ms > DELAY_MS_MAX) {
        let detail = format!("`delay_ms` is {delay_ms}: use 0 to {DELAY_MS_MAX}");
        return Err(Problem::invalid(detail));
    }
    let pause = delay_ms.map(|delay_ms| Duration::from_millis(delay_ms.into()));
    answer(&shared, &agent.name, &leases, LeaseAnswer::Again { pause }).await
}

/// Renew the leases of messages that are still being processed.
#[utoipa::path(
    post, path = "/agents/{name}/mailbox/renew", tag = "messaging", operation_id = "renew_leases",
    params(("name" = String, Path, description = "Name of the agent")),
    request_body = RenewDocument,
    responses(
        (status = 200, description = "All leases last that long from now on", body = AnsweredDocument),
        (status = 403, description = "The token may not use the agent's name", body = ProblemDocument),
        (status = 409, description = "Leases have ended (`lease_expired`)", body = ProblemDocument),
    )
)]
pub(super) async fn renew(
    State(shared): State<Shared>,
    agent: Agent,
    client: Client,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<AnsweredDocument>, Problem> {
    let RenewDocument { leases, lease_ms } = read(&agent, &client, &headers, body).await?;
    check_lease(lease_ms)?;
    let lease = Duration::from_millis(lease_ms.into());
    answer(&shared, &agent.name, &leases, LeaseAnswer::Renew { lease }).await
}

/// Reads the document of a request of a client that may use the agent's name.
async fn read<Document: DeserializeOwned>(
    agent: &Agent,
    client: &Client,
    headers: &HeaderMap,
    body: Body,
) -> Result<Document, Problem> {
    client.check(&agent.name)?;
    let body = body::read_json(headers, body, BODY_MAX).await?;
    body::parse(&body)
}

async fn answer(
    shared: &Shared,
    name: &Name,
    leases: &[String],
    answer: LeaseAnswer,
) -> Result<Json<AnsweredDocument>, Problem> {
    let ids = parse(leases)?;
    let outcome = mailboxes(shared)?.answer_leases(name, &ids, answer);
    let outcome = outcome.map_err(of_lease)?;
    if let Some(durable) = outcome.durable {
        within_write_limit(async { durable.await.map_err(of_not_durable) }).await?;
    }
    if outcome.ended.is_empty() {
        return Ok(Json(AnsweredDocument {
            answered: ids.len(),
        }));
    }
    let ended: Vec<_> = outcome.ended.iter().map(LeaseId::to_string).collect();
    let detail = format!(
        "{} of {} leases ran out or were answered before: nothing was changed for them",
        ended.len(),
        ids.len()
    );
    Err(Problem::of(ErrorCode::LeaseExpired, detail).with("ended", ended))
}

fn parse(leases: &[String]) -> Result<Vec<LeaseId>, Problem> {
    if leases.is_empty() || leases.len() > LEASES_MAX {
        let count = leases.len();
        let detail = format!("a request must have 1 to {LEASES_MAX} leases, not {count}");
        return Err(Problem::invalid(detail));
    }
    let parsed = leases.iter().enumerate().map(|(index, text)| {
        let path = format!("leases[{index}]");
        let wrong = |()| body::wrong_at(&path, &format!("`{text}` is not a lease"));
        text.parse().map_err(wrong)
    });
    parsed.collect()
}
