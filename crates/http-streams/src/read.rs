//! Reads of records.

use axum::body::Body;
use axum::http::{Uri, header};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http_api::{BinaryDocument, Problem, ProblemDocument, query};
use model::ErrorCode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::{Range, StoredRecord, Stream, StreamExtract, Streams};
use utoipa::{IntoParams, ToSchema};

use crate::place::Named;
use crate::problem::of_stream;

/// Most records of a page, unless the request sets another number.
const RECORDS: u32 = 1_000;

/// Most records of a page.
const RECORDS_MAX: u32 = 65_536;

/// Largest records of a page in bytes, unless one record is larger.
pub(crate) const BYTES_MAX: u32 = 1 << 20;

/// The range of a read.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ReadQuery {
    /// First offset; default: the oldest that is stored.
    from: Option<u64>,
    /// Most records, 1 to 65536; default 1000. A page has at most about 1 MiB.
    #[param(minimum = 1, maximum = 65536)]
    limit: Option<u32>,
}

/// A page of records.
#[derive(Serialize, ToSchema)]
#[schema(as = StreamPage)]
pub(crate) struct PageDocument {
    /// Oldest stored offset.
    start: u64,
    /// Offset after the newest record on disk.
    next: u64,
    /// Records, in order. The next page starts after the last.
    records: Vec<RecordDocument>,
}

/// A record.
#[derive(Serialize, ToSchema)]
#[schema(as = StreamRecord)]
struct RecordDocument {
    /// Offset in the stream.
    offset: u64,
    /// Time of the append, in milliseconds since 1970-01-01 UTC.
    time_ms: u64,
    /// Bytes, if they are UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    /// Bytes in base64, if they are not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    body_base64: Option<String>,
}

/// Read a page of records.
///
/// A stream that does not exist has no records.
#[utoipa::path(
    get, path = "/streams/{stream}/records", tag = "streams", operation_id = "read_stream",
    params(
        ("stream" = String, Path, description = "Name of the stream"),
        ReadQuery,
    ),
    responses(
        (status = 200, description = "Records that are on disk", body = PageDocument),
        (status = 400, description = "The request is invalid, or the records before `start` are no longer stored", body = ProblemDocument),
    )
)]
pub(super) async fn read(named: Named, uri: Uri) -> Result<Response, Problem> {
    let ReadQuery { from, limit } = query(&uri)?;
    let limit = limit.unwrap_or(RECORDS);
    if !(1..=RECORDS_MAX).contains(&limit) {
        let detail = format!("`limit` is {limit}: use 1 to {RECORDS_MAX}");
        return Err(Problem::invalid(detail));
    }
    let Named {
        streams, stream, ..
    } = named;
    let from = from.unwrap_or_else(|| streams.start_of(&stream));
    let read = extract(&streams, &stream, from, limit).await?;
    let records: Vec<_> = read.records().map(|record| value(&record)).collect();
    let mut page = Map::new();
    for (member, value) in [
        ("start", read.start().into()),
        ("next", read.next().into()),
        ("records", Value::from(records)),
    ] {
        page.insert(member.to_owned(), value);
    }
    let body = Body::from(Value::Object(page).to_string());
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}

/// Read the bytes of one record.
#[utoipa::path(
    get, path = "/streams/{stream}/records/{offset}", tag = "streams", operation_id = "read_stream_record",
    params(
        ("stream" = String, Path, description = "Name of the stream"),
        ("offset" = u64, Path, description = "Offset of the record"),
    ),
    responses(
        (status = 200, description = "The record", body = BinaryDocument, content_type = "application/octet-stream"),
        (status = 400, description = "The offset is invalid, or the records before `start` are no longer stored", body = ProblemDocument),
        (status = 404, description = "There is no record with this offset yet", body = ProblemDocument),
    )
)]
pub(super) async fn record(named: Named) -> Result<Response, Problem> {
    let Named {
        streams,
        stream,
        offset,
    } = named;
    let offset = offset.unwrap_or_default();
    let read = extract(&streams, &stream, offset, 1).await?;
    let found = read.records().find(|record| record.offset == offset);
    let Some(record) = found else {
        let next = read.next();
        let detail = format!("there is no record {offset}: the stream ends at {next}");
        return Err(Problem::of(ErrorCode::NotFound, detail).with("next", next));
    };
    let head = [
        (header::CONTENT_TYPE, "application/octet-stream"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    Ok((head, record.bytes.to_vec()).into_response())
}

/// Reads records from memory, or from the disk on another thread.
async fn extract(
    streams: &Streams,
    stream: &Stream,
    from: u64,
    limit: u32,
) -> Result<StreamExtract, Problem> {
    let range = Range {
        from,
        records_max: limit,
        bytes_max: BYTES_MAX,
    };
    let read = match streams.read_at_once(stream, range).map_err(of_stream)? {
        Some(read) => return Ok(read),
        None => streams.read(stream, range),
    };
    read.await.map_err(of_stream)
}

/// Returns a record as JSON.
pub(crate) fn value(record: &StoredRecord<'_>) -> Value {
    let mut object = Map::new();
    object.insert("offset".to_owned(), record.offset.into());
    object.insert("time_ms".to_owned(), record.time_ms.into());
    match std::str::from_utf8(record.bytes) {
        Ok(text) => object.insert("body".to_owned(), text.into()),
        Err(_) => {
            let text = STANDARD.encode(record.bytes);
            object.insert("body_base64".to_owned(), text.into())
        }
    };
    Value::Object(object)
}
