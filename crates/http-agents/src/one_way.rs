//! One-way messages, and writes to mailboxes.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use http_api::{BinaryDocument, Problem, ProblemDocument, Shared, body, query, within_write_limit};
use messaging::{Cast, Key, Message};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::caller::{Caller, Claimant};
use crate::metadata;
use crate::place::{Agent, check_method};
use crate::problem;
use crate::request::BODY_MAX;

/// The options of a one-way message.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SendQuery {
    /// True for all instances; default: one of them.
    #[serde(default)]
    all: bool,
    /// Instance to send to; default: any.
    instance: Option<String>,
    /// Method, if the agent has several.
    #[serde(default)]
    #[param(value_type = Option<String>)]
    method: String,
}

/// The copies of a one-way message.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SentCopies)]
pub(crate) struct SentDocument {
    /// Number of instances that it was queued for.
    delivered: u32,
    /// Number of instances that it was dropped at, because they were full.
    dropped: u32,
}

/// Send a one-way message to one or all instances of an agent.
///
/// The body is passed as it is, with metadata as for `request`. Nothing is stored: an agent without
/// an instance does not get the message.
#[utoipa::path(
    post, path = "/agents/{name}/send", tag = "messaging", operation_id = "send",
    params(
        ("name" = String, Path, description = "Name of the agent"),
        SendQuery,
        ("Telpher-Name" = Option<String>, Header, description = "Name of the sender, which the token must permit"),
    ),
    request_body(content = BinaryDocument, content_type = "*/*"),
    responses(
        (status = 200, description = "The number of copies", body = SentDocument),
        (status = 429, description = "A limit of the sender is used up", body = ProblemDocument),
    )
)]
pub(super) async fn send(
    State(shared): State<Shared>,
    agent: Agent,
    claimant: Claimant,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<SentDocument>, Problem> {
    let query: SendQuery = query(&uri)?;
    check_method(&query.method)?;
    let cast = match query.all {
        true => Cast::All,
        false => Cast::Any,
    };
    let target = agent.instance(query.instance.as_deref())?;
    let metadata = metadata::read(&headers)?;
    let body = body::read(&headers, body, BODY_MAX).await?;
    let mut caller = Caller::open(&shared, claimant, target, cast, &query.method)?;
    let (connection, route) = caller.parts()?;
    let message = Message {
        deadline_ms: None,
        metadata: &metadata,
        body: &body,
    };
    let sent = connection.turn().send(route, message);
    let (copies, charge) = sent.map_err(|throttled| problem::of_throttled(&throttled))?;
    if let Some(charge) = charge {
        charge.await.map_err(problem::of_not_durable)?;
    }
    Ok(Json(SentDocument {
        delivered: copies.delivered,
        dropped: copies.dropped,
    }))
}

/// The point at which a write is acknowledged.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Durability {
    /// When the message is on disk.
    #[default]
    Disk,
    /// When the message is queued for a current instance; also if there is none.
    Memory,
}

/// The options of a write.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct WriteQuery {
    /// Id of the write: 32 hexadecimal digits, or a UUID. A write with the id of an earlier one
    /// is not stored again.
    id: Option<String>,
    /// Longest time that the message waits, in milliseconds; the node may have a lower limit.
    #[param(minimum = 1)]
    ttl_ms: Option<u32>,
    /// Point at which the write is acknowledged; default `disk`.
    #[serde(default)]
    #[param(value_type = Option<Durability>, inline)]
    durability: Durability,
    /// Method, if the agent has several.
    #[serde(default)]
    #[param(value_type = Option<String>)]
    method: String,
}

/// A write that was accepted.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Written)]
pub(crate) struct WrittenDocument {
    /// Offset in the mailbox; absent for a write to memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    /// True if the write was stored before; absent for a write to memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    duplicate: Option<bool>,
    /// Number of instances that it was queued for, for a write to memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    copies: Option<u32>,
}

/// Write a message to an agent's mailbox.
///
/// The message waits on disk until an instance, or a client that takes it, acknowledges it. The body
/// is passed as it is, with metadata as for `request`.
#[utoipa::path(
    post, path = "/agents/{name}/write", tag = "messaging", operation_id = "write",
    params(
        ("name" = String, Path, description = "Name of the agent"),
        WriteQuery,
        ("Telpher-Name" = Option<String>, Header, description = "Name of the sender, which the token must permit"),
    ),
    request_body(content = BinaryDocument, content_type = "*/*"),
    responses(
        (status = 200, description = "The message was stored before, or it was queued in memory", body = WrittenDocument),
        (status = 201, description = "The message is on disk", body = WrittenDocument),
        (status = 429, description = "A limit of the sender is used up", body = ProblemDocument),
    )
)]
pub(super) async fn write(
    State(shared): State<Shared>,
    agent: Agent,
    claimant: Claimant,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let query: WriteQuery = query(&uri)?;
    check_method(&query.method)?;
    let key = Key {
        id: query.id.as_deref().map(parse_id).transpose()?,
        ttl_ms: query.ttl_ms.unwrap_or_default(),
    };
    let metadata = metadata::read(&headers)?;
    let body = body::read(&headers, body, BODY_MAX).await?;
    let mut caller = Caller::open(&shared, claimant, agent.name, Cast::Any, &query.method)?;
    let message = Message {
        deadline_ms: None,
        metadata: &metadata,
        body: &body,
    };
    match query.durability {
        Durability::Memory if key.id.is_some() || key.ttl_ms > 0 => {
            let detail = "`id` and `ttl_ms` belong to writes to disk: leave out `durability`";
            Err(Problem::invalid(detail))
        }
        Durability::Memory => write_to_memory(&mut caller, message).await,
        Durability::Disk => within_write_limit(write_to_disk(&mut caller, key, message)).await,
    }
}

async fn write_to_disk(
    caller: &mut Caller,
    key: Key,
    message: Message<'_>,
) -> Result<Response, Problem> {
    let (connection, route) = caller.parts()?;
    let written = connection.turn().write(route, Some(key), message);
    let (pending, charge) = written.map_err(problem::of_write)?;
    if let Some(charge) = charge {
        charge.await.map_err(problem::of_not_durable)?;
    }
    let written = pending.await.map_err(problem::of_write)?;
    let (offset, is_duplicate) = (written.offset, written.is_duplicate);
    connection.turn().deliver_written(written);
    let status = match is_duplicate {
        true => StatusCode::OK,
        false => StatusCode::CREATED,
    };
    let document = WrittenDocument {
        offset: Some(offset),
        duplicate: Some(is_duplicate),
        copies: None,
    };
    Ok((status, Json(document)).into_response())
}

async fn write_to_memory(caller: &mut Caller, message: Message<'_>) -> Result<Response, Problem> {
    let (connection, route) = caller.parts()?;
    let written = connection.turn().write_to_memory(route, message);
    let (copies, charge) = written.map_err(problem::of_memory_write)?;
    if let Some(charge) = charge {
        charge.await.map_err(problem::of_not_durable)?;
    }
    let document = WrittenDocument {
        offset: None,
        duplicate: None,
        copies: Some(copies),
    };
    Ok(Json(document).into_response())
}

/// Parses an id: 32 hexadecimal digits, with or without the hyphens of a UUID.
fn parse_id(text: &str) -> Result<[u8; 16], Problem> {
    let is_uuid = text.len() == 36
        && [8, 13, 18, 23]
            .iter()
            .all(|at| text.as_bytes()[*at] == b'-');
    let digits = match is_uuid {
        true => text.replace('-', ""),
        false => text.to_owned(),
    };
    let is_hex = digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = is_hex.then(|| u128::from_str_radix(&digits, 16).ok());
    let number = number.flatten().map(u128::to_be_bytes);
    let wrong = || {
        Problem::invalid(format!(
            "`id`: `{text}` is not 32 hexadecimal digits or a UUID"
        ))
    };
    number.ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_is_32_hexadecimal_digits_or_a_uuid() {
        let expected = *b"\x01\x23\x45\x67\x89\xab\xcd\xef\x01\x23\x45\x67\x89\xab\xcd\xef";
        for text in [
            "0123456789abcdef0123456789abcdef",
            "01234567-89ab-cdef-0123-456789ABCDEF",
        ] {
            assert_eq!(parse_id(text).unwrap(), expected);
        }
        for text in [
            "",
            "7",
            "0123456789abcdef0123456789abcdeg",
            "+123456789abcdef0123456789abcdef",
            "01234567-89ab-cdef-0123-456789ABCD-F",
            "0123456789abcdef0123456789abcdef0123",
        ] {
            assert!(parse_id(text).is_err(), "{text}");
        }
    }
}
