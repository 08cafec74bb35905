//! `POST /v1/topics/{topic}/records`: appends records.

use std::borrow::Cow;
use std::fmt;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Json, Response};
use door::topics::{Refused, find_or_create};
use http_api::Client;
use http_api::Problem;
use http_api::ProblemDocument;
use http_api::Shared;
use http_api::body::{self, wrong_at};
use http_api::within_write_limit;
use platform::TraceContext;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use topic_service::records::{NewRecord, RecordResult};
use utoipa::ToSchema;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, OneOfBuilder, Schema, Type};

use super::bytes;
use super::place::Named;

/// Largest request body, in bytes.
const BODY_SIZE_MAX: usize = 16 << 20;

/// Headers of the trace context of W3C, of a request and of a record.
const TRACE: [&str; 2] = ["traceparent", "tracestate"];

/// Most records in a request.
const RECORDS_MAX: usize = 10_000;

/// A record to append.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewRecord)]
pub(crate) struct Incoming<'a> {
    /// Selects the partition if `partition` is absent. Kafka clients choose the same partition for
    /// a key.
    #[serde(borrow, default)]
    #[schema(value_type = Value, required = false, example = "customer-7")]
    key: Option<&'a RawValue>,
    /// A string, any JSON value, `{"base64": "…"}` for bytes that are not UTF-8, or `null`.
    #[serde(borrow)]
    #[schema(value_type = Value, example = json!({"total": 12.5}))]
    value: &'a RawValue,
    /// An object, or an array of `[name, value]` pairs if names repeat.
    #[serde(borrow, default)]
    #[schema(schema_with = headers_schema, required = false)]
    headers: IncomingHeaders<'a>,
    /// The partition to append to; takes precedence over `key`.
    partition: Option<u32>,
}

/// Returns the schema of headers: an object, or an array of pairs.
fn headers_schema() -> Schema {
    let object = ObjectBuilder::new().schema_type(Type::Object);
    let pairs = ArrayBuilder::new().items(ObjectBuilder::new().schema_type(Type::Array));
    Schema::OneOf(OneOfBuilder::new().item(object).item(pairs).build())
}

/// Record headers as pairs of a name and a value, read from either JSON form.
#[derive(Debug, Default)]
pub(crate) struct IncomingHeaders<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for IncomingHeaders<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object, or an array of pairs of a name and a value")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(pairs)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = list.next_element()? {
                    pairs.push(pair);
                }
                Ok(pairs)
            }
        }

        deserializer.deserialize_any(Either).map(Self)
    }
}

/// The partition and offset of each record, in the order of the request.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RecordsAppended)]
pub(crate) struct AppendedDocument {
    records: Vec<PlaceDocument>,
}

/// The partition and offset of a record.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RecordPlace)]
pub(crate) struct PlaceDocument {
    #[schema(example = 2)]
    partition: u32,
    #[schema(example = 42)]
    offset: u64,
}

/// A parsed record, with its key, value and headers decoded to bytes.
struct Ready<'a> {
    key: Option<Cow<'a, [u8]>>,
    value: Option<Cow<'a, [u8]>>,
    headers: Vec<(String, Option<Cow<'a, [u8]>>)>,
    partition: Option<u32>,
}

/// Append 1 to 10,000 records.
///
/// The answer is sent when the records are on disk, or immediately if the topic's
/// `telpher.durability` is `memory`. A topic that does not exist is created. Records of one
/// partition that fit into one batch are appended together or not at all. If some records could not
/// be appended, the answer is the problem of the first of them, and `records` has the outcome of
/// each record.
///
/// A `traceparent` and a `tracestate` of the request become headers of the records that have no
/// `traceparent`.
#[utoipa::path(
    post, path = "/v1/topics/{topic}/records", tag = "topics", operation_id = "append_records",
    params(("topic" = String, Path, description = "Name of the topic")),
    request_body = Vec<Incoming>,
    responses(
        (status = 200, description = "The records were appended", body = AppendedDocument),
        (status = 400, description = "The request is invalid; `index` is the record", body = ProblemDocument),
        (status = 404, description = "There is no such topic or partition", body = ProblemDocument),
        (status = 413, description = "A record exceeds the topic's `max.message.bytes`; `index` is the record", body = ProblemDocument),
        (status = 415, description = "The body is not JSON", body = ProblemDocument),
        (status = 429, description = "A quota on appended bytes is exceeded; retry after `retry_ms`", body = ProblemDocument),
        (status = 503, description = "The write failed (disk full or failed), or its outcome is unknown", body = ProblemDocument),
    )
)]
pub(super) async fn append(
    State(shared): State<Shared>,
    Named { topics, name }: Named,
    client: Client,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let body = body::read_json(&headers, body, BODY_SIZE_MAX).await?;
    let records = body::parse_array::<Incoming<'_>>(&body)?;
    if !(1..=RECORDS_MAX).contains(&records.len()) {
        let count = records.len();
        let detail =
            format!("1 to {RECORDS_MAX} records can be appended in one request, not {count}");
        return Err(Problem::invalid(detail));
    }
    let ready = records.into_iter().enumerate().map(Ready::new);
    let mut ready = ready.collect::<Result<Vec<_>, _>>()?;
    for record in &mut ready {
        record.add_trace(&headers);
    }
    let charged = client.charge_bytes(&shared.node, ready.iter().map(Ready::size).sum())?;
    let topic = find_or_create(&topics, &name)?;
    let appending = {
        let headers: Vec<_> = ready.iter().map(Ready::headers).collect();
        let records = ready.iter().zip(&headers);
        let records: Vec<_> = records
            .map(|(record, headers)| record.new_record(headers))
            .collect();
        topics.append_records(&topic, &records)
    };
    let appending = appending.map_err(Refused::from)?;
    let both = async {
        let told = appending.await;
        if let Some(charged) = charged {
            charged.await.map_err(Refused::from)?;
        }
        answer(told)
    };
    within_write_limit(both).await
}

fn answer(told: Vec<RecordResult>) -> Result<Response, Problem> {
    if let Some(refused) = Refused::of_records(&told) {
        let problem = Problem::from(refused);
        let records: Vec<_> = told.into_iter().map(outcome).collect();
        return Err(problem.with("records", records));
    }
    let records = told.into_iter().filter_map(|it| {
        let (partition, offset) = (it.partition, it.offset.ok()?);
        Some(PlaceDocument { partition, offset })
    });
    let records = records.collect();
    Ok((StatusCode::OK, Json(AppendedDocument { records })).into_response())
}

/// Returns the JSON outcome of one record of a request that failed in part.
fn outcome(told: RecordResult) -> serde_json::Value {
    let partition = told.partition;
    match told.offset {
        Ok(offset) => serde_json::json!({ "partition": partition, "offset": offset }),
        Err(error) => {
            let Refused { code, message, .. } = error.into();
            let code = code.as_str();
            serde_json::json!({ "partition": partition, "code": code, "detail": message })
        }
    }
}

impl<'a> Ready<'a> {
    fn new((index, record): (usize, Incoming<'a>)) -> Result<Self, Problem> {
        let read = |place: &str, value: &'a RawValue| {
            bytes::read(value).map_err(|reason| wrong_at(&format!("[{index}].{place}"), &reason))
        };
        let IncomingHeaders(headers) = record.headers;
        let header = |(name, value): (String, &'a RawValue)| {
            read("headers", value).map(|value| (name, value))
        };
        Ok(Self {
            key: match record.key {
                Some(key) => read("key", key)?,
                None => None,
            },
            value: read("value", record.value)?,
            headers: headers.into_iter().map(header).collect::<Result<_, _>>()?,
            partition: record.partition,
        })
    }

    /// Adds the trace context of the request, unless the record has one.
    fn add_trace(&mut self, request: &HeaderMap) {
        let has_own = self.headers.iter().any(|(name, _)| name == TRACE[0]);
        let parent = request.get(TRACE[0]).map(HeaderValue::as_bytes);
        if has_own || parent.and_then(TraceContext::parse).is_none() {
            return;
        }
        for name in TRACE {
            if let Some(value) = request.get(name) {
                let value = Cow::Owned(value.as_bytes().to_vec());
                self.headers.push((name.to_owned(), Some(value)));
            }
        }
    }

    fn size(&self) -> u64 {
        let of = |bytes: &Option<Cow<'_, [u8]>>| bytes.as_ref().map_or(0, |it| it.len());
        let headers = self
            .headers
            .iter()
            .map(|(name, value)| name.len() + of(value));
        (of(&self.key) + of(&self.value) + headers.sum::<usize>()) as u64
    }

    fn headers(&self) -> Vec<(&str, Option<&[u8]>)> {
        let headers = self.headers.iter();
        headers
            .map(|(name, value)| (name.as_str(), value.as_deref()))
            .collect()
    }

    fn new_record<'r>(&'r self, headers: &'r [(&'r str, Option<&'r [u8]>)]) -> NewRecord<'r> {
        NewRecord {
            key: self.key.as_deref(),
            value: self.value.as_deref(),
            headers,
            partition: self.partition,
        }
    }
}
