//! `POST …/fork`: copies a conversation into an independent one.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use http_api::Problem;
use http_api::body::{self, wrong_at};
use http_api::{Shared, off_thread};
use model::Name;
use serde::Deserialize;
use utoipa::ToSchema;

use super::append::answered;
use super::place::{Conversation, of};
use super::state::{ConversationDocument, shown};

/// Largest request body, in bytes.
const BODY_MAX: usize = 64 << 10;

/// The copy to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Fork)]
pub(crate) struct ForkDocument {
    /// Id of the copy, in the same namespace.
    #[schema(example = "support-42-again")]
    id: String,
    /// Sequence number of the last message to copy; default the newest.
    #[serde(default)]
    #[schema(example = 41)]
    at_seq: Option<u64>,
}

/// Copy a conversation up to a message.
#[utoipa::path(
    post, path = "/conversations/{id}/fork", tag = "conversations", operation_id = "fork",
    params(("id" = String, Path, description = "Id of the conversation")),
    request_body = ForkDocument,
    responses(
        (status = 201, description = "The copy", body = ConversationDocument),
        (status = 400, description = "The request is invalid", body = http_api::ProblemDocument),
        (status = 404, description = "There is no such conversation", body = http_api::ProblemDocument),
        (status = 409, description = "A conversation with the copy's id exists", body = http_api::ProblemDocument),
        (status = 410, description = "The conversation was erased, or its first messages were trimmed", body = http_api::ProblemDocument),
    )
)]
pub(super) async fn fork(
    State(shared): State<Shared>,
    Conversation(name): Conversation,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let body = body::read_json(&headers, body, BODY_MAX).await?;
    let ForkDocument { id, at_seq } = body::parse(&body)?;
    let new = Name::parse(&format!("{}/{}/{id}", name.org(), name.namespace()));
    let new = match new {
        Ok(new) if !id.contains('/') => new,
        Ok(_) => {
            return Err(wrong_at(
                "id",
                "a conversation's id must not contain a slash",
            ));
        }
        Err(error) => return Err(wrong_at("id", &error.to_string())),
    };
    let at_seq = match at_seq {
        Some(at_seq) => at_seq,
        None => answered(of(&shared)?.get(&name)?).await?.head_seq,
    };
    let pending = off_thread(move || Ok(of(&shared)?.fork(&name, &new, at_seq)?)).await?;
    let changed = answered(pending).await?;
    Ok(shown(StatusCode::CREATED, &changed.view))
}
