//! Appending records.

use std::borrow::Cow;
use std::fmt;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Json, Response};
use model::ErrorCode;
use node::records::{NewRecord, Told};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, OneOfBuilder, Schema, Type};

use super::admin::{ANSWER_LIMIT, late};
use super::bytes;
use super::place::Named;
use crate::http::Shared;
use crate::http::body::{self, wrong_at};
use crate::http::openapi::ProblemDocument;
use crate::http::problem::Problem;
use crate::http::quotas::Client;
use crate::topics::Refused;

/// Bytes of a body.
const BODY_SIZE_MAX: usize = 16 << 20;

/// Records of a request, at most.
const RECORDS_MAX: usize = 10_000;

/// A record to append.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewRecord)]
pub(crate) struct Incoming<'a> {
    /// Records of one key are in one partition, the one that Kafka's clients would choose.
    #[serde(borrow, default)]
    #[schema(value_type = Value, required = false, example = "customer-7")]
    key: Option<&'a RawValue>,
    /// A text, any JSON, `{"base64": "…"}` for other bytes, or `null`.
    #[serde(borrow)]
    #[schema(value_type = Value, example = json!({"total": 12.5}))]
    value: &'a RawValue,
    /// An object, or a list of pairs where names repeat.
    #[serde(borrow, default)]
    #[schema(schema_with = headers_schema, required = false)]
    headers: IncomingHeaders<'a>,
    /// The partition, whatever the key says.
    partition: Option<u32>,
}

/// An object, or a list of pairs.
fn headers_schema() -> Schema {
    let object = ObjectBuilder::new().schema_type(Type::Object);
    let pairs = ArrayBuilder::new().items(ObjectBuilder::new().schema_type(Type::Array));
    Schema::OneOf(OneOfBuilder::new().item(object).item(pairs).build())
}

/// Pairs of a name and a value, however they were written.
#[derive(Debug, Default)]
pub(crate) struct IncomingHeaders<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for IncomingHeaders<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object, or a list of pairs of a name and a value")
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

/// Where each record is, in the order of the request.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RecordsAppended)]
pub(crate) struct AppendedDocument {
    records: Vec<PlaceDocument>,
}

/// Where a record is.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RecordPlace)]
pub(crate) struct PlaceDocument {
    #[schema(example = 2)]
    partition: u32,
    #[schema(example = 42)]
    offset: u64,
}

/// A record as the node takes it.
struct Ready<'a> {
    key: Option<Cow<'a, [u8]>>,
    value: Option<Cow<'a, [u8]>>,
    headers: Vec<(String, Option<Cow<'a, [u8]>>)>,
    partition: Option<u32>,
}

/// Append 1 to 10,000 records.
///
/// Answered once they are as safe as the topic makes them: on the disk, unless its
/// `telpher.durability` is `memory`. A topic that nobody has made is made. Records of one partition
/// that fit into one batch are there together or not at all; if some could not be appended the answer is
/// the problem of the first of them, and `records` says what became of each.
#[utoipa::path(
    post, path = "/v1/topics/{topic}/records", tag = "topics", operation_id = "append_records",
    params(("topic" = String, Path, description = "Its name")),
    request_body = Vec<Incoming>,
    responses(
        (status = 200, description = "They are there", body = AppendedDocument),
        (status = 400, description = "Something in the request is wrong: `index`", body = ProblemDocument),
        (status = 404, description = "There is no such topic or partition", body = ProblemDocument),
        (status = 413, description = "A record is larger than the topic takes: `index`", body = ProblemDocument),
        (status = 415, description = "The body is not JSON", body = ProblemDocument),
        (status = 429, description = "The token is over a limit on what is appended: `retry_ms`", body = ProblemDocument),
        (status = 503, description = "Not on the disk: full, failed, or unknown", body = ProblemDocument),
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
        let detail = format!("1 to {RECORDS_MAX} records are appended at once, not {count}");
        return Err(Problem::invalid(detail));
    }
    let ready = records.into_iter().enumerate().map(Ready::new);
    let ready = ready.collect::<Result<Vec<_>, _>>()?;
    let charged = client.charge_bytes(&shared.node, ready.iter().map(Ready::size).sum())?;
    let topic = topics
        .find_or_create(&name)
        .map_err(|error| match Refused::from(error) {
            refused if refused.code == ErrorCode::NotFound => Refused::unknown(&topics, &name),
            refused => refused,
        })?;
    let appending = {
        let headers: Vec<_> = ready.iter().map(Ready::headers).collect();
        let records = ready.iter().zip(&headers);
        let records: Vec<_> = records
            .map(|(record, headers)| record.new_record(headers))
            .collect();
        shared.node.append_records(&topics, &topic, &records)
    };
    let appending = appending.map_err(Refused::from)?;
    let both = async {
        let told = appending.await;
        if let Some(charged) = charged {
            charged.await.map_err(Refused::from)?;
        }
        answer(told)
    };
    match tokio::time::timeout(ANSWER_LIMIT, both).await {
        Ok(answer) => answer,
        Err(_) => Err(late()),
    }
}

fn answer(told: Vec<Told>) -> Result<Response, Problem> {
    let failed = told.iter().find_map(|it| it.offset.as_ref().err());
    if let Some(failed) = failed {
        let problem = Problem::from(Refused::from(failed.clone()));
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

/// What became of a record where not all is well.
fn outcome(told: Told) -> serde_json::Value {
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
