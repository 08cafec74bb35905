//! `GET /v1/topics/{topic}/partitions/{partition}/records`: pages of records.

use std::future::poll_fn;
use std::time::Duration;

use axum::http::{Uri, header};
use axum::response::{IntoResponse, Response};
use door::topics::{ReadableRange, Refused};
use http_api::Problem;
use http_api::ProblemDocument;
use http_api::query;
use recordbatch::{Headers, Record};
use serde::{Deserialize, Serialize, Serializer};
use topic_service::records::{Reader, Wanted};
use utoipa::{IntoParams, ToSchema};

use super::bytes::BytesAsJson;
use super::place::Partition;

/// Default number of records of a page.
const LIMIT: usize = 100;

/// Most records of a page.
const LIMIT_MAX: usize = 10_000;

/// Most bytes of a page. A single larger record is returned nevertheless.
const BYTES_MAX: usize = 4 << 20;

/// Smallest value of `max_bytes`.
const BYTES_MIN: usize = 1 << 10;

/// Longest time that a request may wait for its first record.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Query parameters of a page.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Which {
    /// The first offset, `earliest` or `latest`; default `earliest`.
    #[serde(default)]
    #[param(value_type = Option<String>)]
    from: From,
    /// Most records of the page; default 100, at most 10,000.
    limit: Option<usize>,
    /// Milliseconds to wait if there is no record yet; default 0, at most 60,000.
    #[serde(default)]
    #[param(value_type = Option<u64>)]
    max_wait_ms: u64,
    /// Most bytes of the page, from 1,024; default and maximum 4,194,304. With it, a single larger
    /// record has its size as `omitted_bytes` instead of key, value and headers; without it, it is
    /// returned nevertheless.
    max_bytes: Option<usize>,
}

/// The start position of a read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum From {
    /// The first existing record.
    #[default]
    Earliest,
    /// The end: only records that are appended later.
    Latest,
    /// The record with this offset, or the next existing one.
    Offset(u64),
}

impl<'de> Deserialize<'de> for From {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match (&*text, text.parse()) {
            (_, Ok(offset)) => Ok(Self::Offset(offset)),
            ("earliest", _) => Ok(Self::Earliest),
            ("latest", _) => Ok(Self::Latest),
            _ => Err(serde::de::Error::custom(format!(
                "`from` must be an offset, `earliest` or `latest`, not `{text}`"
            ))),
        }
    }
}

/// A page of records.
#[derive(Serialize, ToSchema)]
#[schema(as = RecordsPage)]
pub(crate) struct PageDocument {
    /// Records in the order of their offsets. Offsets of compacted records, transaction markers and
    /// aborted records are missing.
    records: Vec<RecordDocument>,
    /// The offset of the next page.
    next: u64,
    /// The first existing offset.
    start: u64,
    /// The offset after the last readable record.
    end: u64,
}

/// A record.
#[derive(Serialize, ToSchema)]
#[schema(as = Record)]
pub(crate) struct RecordDocument {
    #[schema(example = 42)]
    offset: u64,
    /// Milliseconds since 1970-01-01 UTC, set by the producer or the node according to the topic's
    /// `message.timestamp.type`.
    timestamp_ms: i64,
    /// A JSON object or array, a string, or `{"base64": "…"}`; absent if the record has no key.
    #[schema(value_type = Value, required = false)]
    key: Option<()>,
    /// Encoded like `key`; `null` if the record has no value.
    #[schema(value_type = Value, required = false)]
    value: Option<()>,
    /// Pairs of a name and a value; absent if the record has no headers.
    #[schema(value_type = Option<Vec<Vec<Value>>>)]
    headers: Option<()>,
    /// Size of key, value and headers, which are absent, in bytes. Only with `max_bytes`.
    omitted_bytes: Option<u64>,
}

/// Read records; optionally wait for the first one.
///
/// The node decompresses records of every compression type. Records of an open or aborted
/// transaction are not returned.
#[utoipa::path(
    get, path = "/v1/topics/{topic}/partitions/{partition}/records", tag = "topics",
    operation_id = "read_records",
    params(
        ("topic" = String, Path, description = "Name of the topic"),
        ("partition" = u32, Path, description = "Index of the partition, from 0"),
        Which,
    ),
    responses(
        (status = 200, description = "Records", body = PageDocument),
        (status = 400, description = "`from` is greater than `end`; the answer has `start` and `end`", body = ProblemDocument),
        (status = 404, description = "There is no such topic or partition", body = ProblemDocument),
        (status = 410, description = "The records at `from` were deleted; the answer has `start` and `end`", body = ProblemDocument),
        (status = 413, description = "A batch is too large when decompressed; `next` is the offset after it", body = ProblemDocument),
        (status = 500, description = "A batch cannot be read; `next` is the offset after it", body = ProblemDocument),
    )
)]
pub(super) async fn read(place: Partition, uri: Uri) -> Result<Response, Problem> {
    let Which {
        from,
        limit,
        max_wait_ms,
        max_bytes,
    } = query(&uri)?;
    if let Some(bytes) = max_bytes.filter(|it| !(BYTES_MIN..=BYTES_MAX).contains(it)) {
        let detail = format!("`max_bytes` must be from {BYTES_MIN} to {BYTES_MAX}, not {bytes}");
        return Err(Problem::invalid(detail));
    }
    let limit = limit.unwrap_or(LIMIT);
    if !(1..=LIMIT_MAX).contains(&limit) {
        let detail = format!("`limit` must be from 1 to {LIMIT_MAX}, not {limit}");
        return Err(Problem::invalid(detail));
    }
    let wait = Duration::from_millis(max_wait_ms);
    if wait > WAIT_MAX {
        let limit = WAIT_MAX.as_millis();
        return Err(Problem::invalid(format!(
            "`max_wait_ms` must be at most {limit}, not {max_wait_ms}"
        )));
    }
    let mut page = Page {
        reader: reader(&place, from)?,
        rows: b"{\"records\":[".to_vec(),
        next: 0,
        count: 0,
        limit,
        max_bytes,
    };
    page.next = page.reader.next();
    if let Ok(begun) = tokio::time::timeout(wait, page.begin()).await {
        begun?;
    }
    page.fill().await?;
    Ok(page.answer(place.readable()?))
}

/// Opens a reader of the partition at `from`.
pub(super) fn reader(place: &Partition, from: From) -> Result<Reader, Problem> {
    let offset = match from {
        From::Offset(offset) => offset,
        From::Earliest => place.readable()?.start,
        From::Latest => place.readable()?.end,
    };
    let (topics, topic) = (&place.topics, place.topic.clone());
    Ok(Reader::open(topics, topic, place.partition, offset))
}

/// A page while it is being filled.
struct Page {
    reader: Reader,
    rows: Vec<u8>,
    /// The offset of the next page.
    next: u64,
    count: usize,
    limit: usize,
    max_bytes: Option<usize>,
}

impl Page {
    fn bytes(&self) -> usize {
        self.max_bytes.unwrap_or(BYTES_MAX)
    }

    /// Waits for the first records and adds them.
    async fn begin(&mut self) -> Result<(), Problem> {
        while self.count == 0 && self.more().await? {}
        Ok(())
    }

    /// Adds records that are available without waiting, until the page is full.
    async fn fill(&mut self) -> Result<(), Problem> {
        self.reader.hurry();
        while !self.is_full() {
            match self.more().await {
                Ok(true) => {}
                Ok(false) => break,
                // Records that were read are returned first; the request for the next page gets the
                // error.
                Err(_) if self.count > 0 => break,
                Err(problem) => return Err(problem),
            }
        }
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.count >= self.limit || self.rows.len() >= self.bytes()
    }

    /// Adds some records. Returns false if no more are available.
    async fn more(&mut self) -> Result<bool, Problem> {
        let ready = poll_fn(|cx| self.reader.poll_ready(cx.waker())).await;
        if !ready.map_err(Refused::from)? {
            return Ok(false);
        }
        let bytes = self.bytes();
        let Self {
            reader,
            rows,
            next,
            count,
            limit,
            max_bytes,
        } = self;
        let walked = reader.each(|record| {
            if *count > 0 {
                rows.push(b',');
            }
            let size = size_of_record(record);
            match max_bytes.is_some_and(|max| size > max as u64) {
                true => push_size(rows, record, size),
                false => push_record(rows, record),
            }
            *count += 1;
            *next = record.offset.unsigned_abs() + 1;
            match *count >= *limit || rows.len() >= bytes {
                true => Wanted::Enough,
                false => Wanted::More,
            }
        });
        walked.map_err(Refused::from)?;
        *next = reader.next();
        Ok(true)
    }

    fn answer(mut self, range: ReadableRange) -> Response {
        let ReadableRange { start, end } = range;
        let next = self.next;
        let behind = format!("],\"next\":{next},\"start\":{start},\"end\":{end}}}");
        self.rows.extend_from_slice(behind.as_bytes());
        ([(header::CONTENT_TYPE, "application/json")], self.rows).into_response()
    }
}

/// A record as it is serialized.
#[derive(Serialize)]
struct Row<'a> {
    offset: u64,
    timestamp_ms: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<BytesAsJson<'a>>,
    value: BytesAsJson<'a>,
    #[serde(skip_serializing_if = "Pairs::is_empty")]
    headers: Pairs<'a>,
}

/// A record without its content, as it is serialized.
#[derive(Serialize)]
struct SizeRow {
    offset: u64,
    timestamp_ms: i64,
    omitted_bytes: u64,
}

/// Returns the size of key, value and headers in bytes.
fn size_of_record(record: &Record<'_>) -> u64 {
    let headers = record
        .headers()
        .map(|(name, value)| name.len() + value.map_or(0, <[u8]>::len));
    let content = [record.key, record.value].into_iter().flatten();
    let size = content.map(<[u8]>::len).sum::<usize>() + headers.sum::<usize>();
    size as u64
}

/// Appends a record with its size instead of its content.
fn push_size(out: &mut Vec<u8>, record: &Record<'_>, omitted_bytes: u64) {
    let row = SizeRow {
        offset: record.offset.unsigned_abs(),
        timestamp_ms: record.timestamp,
        omitted_bytes,
    };
    if let Err(error) = serde_json::to_writer(out, &row) {
        unreachable!("numbers can be written as JSON: {error}");
    }
}

/// Record headers as an array of pairs, since names may repeat.
struct Pairs<'a>(Headers<'a>);

impl Pairs<'_> {
    fn is_empty(&self) -> bool {
        { self.0 }.next().is_none()
    }
}

impl Serialize for Pairs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.map(|(name, value)| (name, BytesAsJson(value))))
    }
}

/// Appends a record as JSON.
pub(super) fn push_record(out: &mut Vec<u8>, record: &Record<'_>) {
    let row = Row {
        offset: record.offset.unsigned_abs(),
        timestamp_ms: record.timestamp,
        key: record.key.map(|key| BytesAsJson(Some(key))),
        value: BytesAsJson(record.value),
        headers: Pairs(record.headers()),
    };
    if let Err(error) = serde_json::to_writer(out, &row) {
        unreachable!("bytes, texts and numbers can be written as JSON: {error}");
    }
}
