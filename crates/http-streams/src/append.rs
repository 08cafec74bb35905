//! Appends of records.

use std::borrow::Cow;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http_api::{
    BinaryDocument, Client, Problem, ProblemDocument, Shared, body, query, within_write_limit,
};
use model::limits::FRAME_SIZE_MAX;
use platform::{RequestContext, Tally};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::place::Named;
use crate::problem::of_stream;

/// Largest body, in bytes: that of a frame.
const BODY_MAX: usize = FRAME_SIZE_MAX.as_usize();

/// The options of an append.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct AppendQuery {
    /// Offset that the first record must get; default: any.
    expect: Option<u64>,
}

/// Records to append.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AppendRecordsRequest)]
pub(crate) struct AppendDocument<'a> {
    /// Records, in order. All of them are appended, or none.
    #[serde(borrow)]
    #[schema(min_items = 1)]
    records: Vec<NewRecordDocument<'a>>,
}

/// A record to append, with one of the two fields.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewStreamRecord)]
struct NewRecordDocument<'a> {
    /// Record as text.
    #[serde(borrow)]
    body: Option<Cow<'a, str>>,
    /// Record in base64.
    #[serde(borrow)]
    body_base64: Option<Cow<'a, str>>,
}

/// Offsets of appended records.
#[derive(Serialize, ToSchema)]
#[schema(as = AppendedOffsets)]
pub(crate) struct AppendedDocument {
    /// Offset of the first record.
    first: u64,
    /// Offset after the last record.
    next: u64,
}

/// Append records to a stream.
///
/// With `Content-Type: application/json` the body is a list of records; with any other type it is
/// one record, as it is. The answer is sent when the records are on disk. The first append creates
/// the stream.
#[utoipa::path(
    post, path = "/streams/{stream}/records", tag = "streams", operation_id = "append_stream",
    params(
        ("stream" = String, Path, description = "Name of the stream"),
        AppendQuery,
    ),
    request_body(content((AppendDocument<'static> = "application/json"), (BinaryDocument = "application/octet-stream"))),
    responses(
        (status = 201, description = "The records are on disk", body = AppendedDocument),
        (status = 412, description = "The stream does not end at the expected offset; `next` is where it ends", body = ProblemDocument),
        (status = 429, description = "A limit of the client is used up", body = ProblemDocument),
    )
)]
pub(super) async fn append(
    State(shared): State<Shared>,
    named: Named,
    client: Client,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let AppendQuery { expect } = query(&uri)?;
    let is_list = body::content_type(&headers) == "application/json";
    let bytes = body::read(&headers, body, BODY_MAX).await?;
    let records: Vec<Cow<'_, [u8]>> = match is_list {
        true => read_list(&bytes)?,
        false => vec![Cow::Borrowed(&bytes[..])],
    };
    let size = records.iter().map(|record| record.len() as u64).sum();
    let charge = client.charge_bytes(&shared.node, size)?;
    let Named {
        streams,
        mut stream,
        ..
    } = named;
    let appended = {
        let clock = &shared.node.ports().clock;
        let (mut round, mut tally) = (None, Tally::default());
        let context = RequestContext {
            now_ns: clock.now_ns(),
            unix_ms: clock.unix_ms(),
            round: &mut round,
            tally: &mut tally,
        };
        let records = records.iter().map(|record| &**record);
        let appended = streams.append(&mut stream, expect, records, context);
        shared.node.counters().add(&mut tally);
        appended.map_err(of_stream)?
    };
    let appended = within_write_limit(async {
        if let Some(charge) = charge {
            let unconfirmed =
                |error: platform::NotDurable| Problem::of(error.code(), error.to_string());
            charge.await.map_err(unconfirmed)?;
        }
        appended.await.map_err(of_stream)
    });
    let appended = appended.await?;
    let document = AppendedDocument {
        first: appended.first,
        next: appended.next,
    };
    Ok((StatusCode::CREATED, Json(document)).into_response())
}

fn read_list(body: &[u8]) -> Result<Vec<Cow<'_, [u8]>>, Problem> {
    let AppendDocument { records } = body::parse(body)?;
    let read = records.into_iter().enumerate().map(|(index, record)| {
        let wrong = |reason: &str| body::wrong_at(&format!("records[{index}]"), reason);
        match (record.body, record.body_base64) {
            (Some(Cow::Borrowed(text)), None) => Ok(Cow::Borrowed(text.as_bytes())),
            (Some(Cow::Owned(text)), None) => Ok(Cow::Owned(text.into_bytes())),
            (None, Some(text)) => match STANDARD.decode(text.as_bytes()) {
                Ok(bytes) => Ok(Cow::Owned(bytes)),
                Err(error) => Err(wrong(&format!("invalid base64: {error}"))),
            },
            (None, None) | (Some(_), Some(_)) => {
                Err(wrong("a record has either `body` or `body_base64`"))
            }
        }
    });
    read.collect()
}
