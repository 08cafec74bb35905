//! Topic administration: list, create, show, change and delete.

use std::collections::BTreeMap;
use std::ops::Range;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Json, Response};
use door::topics::Refused;
use http_api::Client;
use http_api::Problem;
use http_api::ProblemDocument;
use http_api::body::{self, wrong_at};
use http_api::query;
use http_api::time::push_rfc3339;
use http_api::{Shared, listed, within_write_limit};
use model::ErrorCode;
use platform::Pending;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use topic_service::{AdminError, Execution, NewTopic, Topic, TopicRef, Topics};
use topics::{Alter, Key, Topic as About};
use utoipa::{IntoParams, ToSchema};

use super::place::{ExistingTopic, Named, of};

/// Largest request body, in bytes.
const BODY_SIZE_MAX: usize = 64 << 10;

/// Most topics of a list.
const LIST_MAX: usize = 10_000;

/// A new topic.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewTopic)]
pub(crate) struct NewTopicDocument<'a> {
    /// 1 to 249 letters, digits, `.`, `_` or `-`.
    #[schema(example = "orders")]
    name: String,
    /// Number of partitions; default `topics.partitions` of the node's configuration.
    #[schema(example = 3)]
    partitions: Option<i32>,
    /// Topic settings that differ from the defaults, named as in Kafka.
    #[serde(borrow, default)]
    #[schema(value_type = Object, example = json!({"retention.ms": 86400000}))]
    configs: BTreeMap<String, &'a RawValue>,
}

/// Changes of a topic; absent fields stay as they are.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = TopicChange)]
pub(crate) struct TopicChange<'a> {
    /// New total number of partitions; it cannot decrease.
    partitions: Option<i32>,
    /// Settings to change; `null` restores the default.
    #[serde(borrow, default)]
    #[schema(value_type = Object, example = json!({"cleanup.policy": "compact", "retention.ms": null}))]
    configs: BTreeMap<String, &'a RawValue>,
}

/// A topic.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Topic)]
pub(crate) struct TopicDocument {
    #[schema(example = "orders")]
    name: String,
    /// Unique id; never used for another topic.
    id: String,
    partitions: u32,
    #[schema(example = "2026-11-22T12:00:00.000Z")]
    created_at: String,
    /// Settings that are set on the topic.
    configs: BTreeMap<&'static str, String>,
}

/// A topic with its effective settings and the state of its partitions.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TopicDetail)]
pub(crate) struct TopicDetail {
    #[serde(flatten)]
    topic: TopicDocument,
    /// All settings, including defaults.
    effective: BTreeMap<&'static str, String>,
    /// Number of offsets between start and end, over all partitions.
    records: u64,
    /// Size of the stored batches in bytes, over all partitions.
    size: u64,
    /// State of each partition, or of those that were asked for.
    state: Vec<PartitionDocument>,
}

/// State of a partition.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TopicPartition)]
pub(crate) struct PartitionDocument {
    partition: u32,
    /// The first existing offset.
    start: u64,
    /// The offset after the last record that consumers see (high watermark).
    end: u64,
    /// The offset after the last committed record (last stable offset). Reads over HTTP end here.
    committed_end: u64,
    /// Size of the stored batches, in bytes.
    size: u64,
}

/// A list of topics.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Topics)]
pub(crate) struct TopicsDocument {
    /// Topics in the order of their names.
    topics: Vec<TopicDocument>,
    /// Value of `after` for the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Query parameters of a list of topics.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// Only topics whose names begin with this.
    #[serde(default)]
    prefix: String,
    /// Only topics after this name.
    after: Option<String>,
    /// Most topics; default 1000, at most 10000.
    limit: Option<usize>,
}

/// List topics.
#[utoipa::path(
    get, path = "/v1/topics", tag = "topics", operation_id = "list_topics",
    params(ListQuery),
    responses((status = 200, description = "Topics in the order of their names", body = TopicsDocument))
)]
pub(super) async fn list(State(shared): State<Shared>, uri: Uri) -> Result<Response, Problem> {
    let ListQuery {
        prefix,
        after,
        limit,
    } = query(&uri)?;
    let limit = limit.unwrap_or(1_000);
    if !(1..=LIST_MAX).contains(&limit) {
        let detail = format!("`limit` must be from 1 to {LIST_MAX}, not {limit}");
        return Err(Problem::invalid(detail));
    }
    listed(move || page(&of(&shared)?, &prefix, after.as_deref(), limit)).await
}

fn page(
    topics: &Topics,
    prefix: &str,
    after: Option<&str>,
    limit: usize,
) -> Result<TopicsDocument, Problem> {
    let known = topics.list();
    let mut wanted = known.iter().map(|topic| topic.about()).filter(|about| {
        let is_behind = after.is_none_or(|after| &*about.name > after);
        is_behind && about.name.starts_with(prefix)
    });
    let topics: Vec<_> = wanted.by_ref().take(limit).map(TopicDocument::of).collect();
    let last = topics.last().map(|topic| topic.name.clone());
    let next = last.filter(|_| wanted.next().is_some());
    Ok(TopicsDocument { topics, next })
}

/// Create a topic. The answer is sent when the topic is on disk.
#[utoipa::path(
    post, path = "/v1/topics", tag = "topics", operation_id = "create_topic",
    request_body = NewTopicDocument,
    responses(
        (status = 201, description = "The topic was created", body = TopicDetail),
        (status = 400, description = "The request is invalid", body = ProblemDocument),
        (status = 403, description = "The node's limit of partitions is reached", body = ProblemDocument),
        (status = 409, description = "A topic of this name exists, or of one that differs only in `.` and `_`", body = ProblemDocument),
        (status = 503, description = "The write failed (disk full or failed), or its outcome is unknown", body = ProblemDocument),
    )
)]
pub(super) async fn create(
    State(shared): State<Shared>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let topics = of(&shared)?;
    let body = body::read_json(&headers, body, BODY_SIZE_MAX).await?;
    let new: NewTopicDocument<'_> = body::parse(&body)?;
    let configs = values(&new.configs)?;
    let configs: Vec<_> = configs
        .iter()
        .map(|(key, it)| (*key, it.as_deref()))
        .collect();
    let topic = NewTopic {
        name: &new.name,
        partitions: new.partitions,
        configs: &configs,
    };
    let about = answered(topics.create(&topic, Execution::Do)).await?;
    Ok((StatusCode::CREATED, Json(detail(&topics, &about)?)).into_response())
}

/// Query parameters of a topic.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PartitionsQuery {
    /// First partition of `state`; default 0.
    #[serde(default)]
    #[param(value_type = Option<u32>)]
    from: u32,
    /// Most partitions of `state`; all without it.
    limit: Option<u32>,
}

/// Get a topic with its settings and the state of its partitions.
#[utoipa::path(
    get, path = "/v1/topics/{topic}", tag = "topics", operation_id = "get_topic",
    params(("topic" = String, Path, description = "Name of the topic"), PartitionsQuery),
    responses(
        (status = 200, description = "The topic", body = TopicDetail),
        (status = 400, description = "The query is invalid", body = ProblemDocument),
        (status = 404, description = "There is no such topic", body = ProblemDocument),
    )
)]
pub(super) async fn get(
    ExistingTopic { topics, topic }: ExistingTopic,
    uri: Uri,
) -> Result<Json<TopicDetail>, Problem> {
    let PartitionsQuery { from, limit } = query(&uri)?;
    let end = limit.map_or(u32::MAX, |limit| from.saturating_add(limit));
    shown(&topics, &topic, from..end).map(Json)
}

/// Add partitions to a topic, or change its settings. The answer is sent when the change is on
/// disk.
///
/// The settings are validated before anything is changed.
#[utoipa::path(
    patch, path = "/v1/topics/{topic}", tag = "topics", operation_id = "change_topic",
    params(("topic" = String, Path, description = "Name of the topic")),
    request_body = TopicChange,
    responses(
        (status = 200, description = "The changed topic", body = TopicDetail),
        (status = 400, description = "The request is invalid", body = ProblemDocument),
        (status = 403, description = "The node's limit of partitions is reached, or the token may not use the topic's name", body = ProblemDocument),
        (status = 404, description = "There is no such topic", body = ProblemDocument),
        (status = 503, description = "The write failed (disk full or failed), or its outcome is unknown", body = ProblemDocument),
    )
)]
pub(super) async fn patch(
    ExistingTopic { topics, topic }: ExistingTopic,
    client: Client,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<TopicDetail>, Problem> {
    client.check_topic(&topic.about().name)?;
    let body = body::read_json(&headers, body, BODY_SIZE_MAX).await?;
    let change: TopicChange<'_> = body::parse(&body)?;
    let configs = values(&change.configs)?;
    let alters: Vec<_> = configs
        .iter()
        .map(|(key, value)| (*key, value.as_deref().map_or(Alter::Reset, Alter::Set)))
        .collect();
    let name = &topic.about().name;
    let now = topic.about().partitions;
    let more = change.partitions.filter(|it| u32::try_from(*it) != Ok(now));
    answered(topics.alter(name, &alters, Execution::Try)).await?;
    let mut about = topic.about().clone();
    if let Some(partitions) = more {
        about = answered(topics.set_partitions(name, partitions, Execution::Do)).await?;
    }
    if !alters.is_empty() {
        about = answered(topics.alter(name, &alters, Execution::Do)).await?;
    }
    detail(&topics, &about).map(Json)
}

/// Delete a topic with all its records. The answer is sent when the deletion is on disk.
#[utoipa::path(
    delete, path = "/v1/topics/{topic}", tag = "topics", operation_id = "delete_topic",
    params(("topic" = String, Path, description = "Name of the topic")),
    responses(
        (status = 204, description = "The topic was deleted"),
        (status = 403, description = "The token may not use the topic's name", body = ProblemDocument),
        (status = 404, description = "There is no such topic", body = ProblemDocument),
        (status = 503, description = "The write failed (disk full or failed), or its outcome is unknown", body = ProblemDocument),
    )
)]
pub(super) async fn delete(
    Named { topics, name }: Named,
    client: Client,
) -> Result<StatusCode, Problem> {
    client.check_topic(&name)?;
    match answered(topics.delete(TopicRef::Name(&name))).await {
        Err(problem) if problem.code == ErrorCode::NotFound => {
            Err(Refused::unknown(&topics, &name).into())
        }
        outcome => outcome.map(|_| StatusCode::NO_CONTENT),
    }
}

/// Converts JSON settings to strings; `None` for `null`.
fn values<'a>(
    configs: &'a BTreeMap<String, &RawValue>,
) -> Result<Vec<(&'a str, Option<String>)>, Problem> {
    let value = |(key, value): (&'a String, &&RawValue)| {
        let json = value.get();
        let text = match json.as_bytes().first() {
            Some(b'n') => None,
            Some(b'"') => {
                let text = serde_json::from_str(json).map_err(|error| {
                    let path = format!("configs.{key}");
                    wrong_at(&path, &error.to_string())
                })?;
                Some(text)
            }
            Some(b'{' | b'[') => {
                let path = format!("configs.{key}");
                return Err(wrong_at(
                    &path,
                    "must be a string, a number, true, false or null",
                ));
            }
            _ => Some(json.to_owned()),
        };
        Ok((key.as_str(), text))
    };
    configs.iter().map(value).collect()
}

async fn answered(pending: Pending<About, AdminError>) -> Result<About, Problem> {
    within_write_limit(async { Ok(pending.await.map_err(Refused::from)?) }).await
}

fn detail(topics: &Topics, about: &About) -> Result<TopicDetail, Problem> {
    match topics.find(TopicRef::Id(about.id)) {
        Some(topic) => shown(topics, &topic, 0..u32::MAX),
        None => Err(Refused::unknown(topics, &about.name).into()),
    }
}

fn shown(topics: &Topics, topic: &Topic, wanted: Range<u32>) -> Result<TopicDetail, Problem> {
    let about = topic.about();
    let partitions = (0..about.partitions).map(|partition| {
        let view = topics.view(topic, partition).ok()?;
        Some(PartitionDocument {
            partition,
            start: view.log_start,
            end: view.high_watermark,
            committed_end: view.last_stable,
            size: view.size,
        })
    });
    // `None` if the topic was deleted in the meantime.
    let partitions = partitions.collect::<Option<Vec<_>>>();
    let partitions = partitions.ok_or_else(|| Refused::unknown(topics, &about.name))?;
    let records = partitions.iter().map(|it| it.end - it.start).sum();
    let size = partitions.iter().map(|it| it.size).sum();
    let state = partitions.into_iter();
    let state = state.filter(|it| wanted.contains(&it.partition)).collect();
    let defaults = &topics.options().defaults;
    let value = |key| about.config.saying(key, defaults).value(key).to_owned();
    let shown = |key: &&Key| key.is_current() || about.config.is_set(**key);
    let effective = Key::ALL.iter().filter(shown);
    let effective = effective.map(|&key| (key.name(), value(key)));
    Ok(TopicDetail {
        topic: TopicDocument::of(about),
        effective: effective.collect(),
        records,
        size,
        state,
    })
}

impl TopicDocument {
    fn of(about: &About) -> Self {
        let mut created_at = Vec::new();
        push_rfc3339(
            &mut created_at,
            u64::try_from(about.created_ms).unwrap_or(0),
        );
        let set = about.config.set();
        Self {
            name: about.name.clone(),
            id: format!("{:?}", about.id),
            partitions: about.partitions,
            created_at: String::from_utf8(created_at).unwrap_or_default(),
            configs: set
                .map(|(key, value)| (key.name(), value.to_owned()))
                .collect(),
        }
    }
}
