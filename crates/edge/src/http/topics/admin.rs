//! Which topics there are, and what they are.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Json, Response};
use model::ErrorCode;
use node::topics::{
    About, AdminError, Alter, Execution, Key, NewTopic, Pending, Topic, TopicRef, Topics,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};

use super::place::{Found, Named, of};
use crate::http::body::{self, wrong_at};
use crate::http::conversations::query;
use crate::http::openapi::ProblemDocument;
use crate::http::problem::Problem;
use crate::http::quotas::Client;
use crate::http::time::push_rfc3339;
use crate::http::{Shared, listed};
use crate::topics::Refused;

/// Bytes of a body.
const BODY_SIZE_MAX: usize = 64 << 10;

/// Topics of a list, at most.
const LIST_MAX: usize = 10_000;

/// How long an answer may wait for the disk.
pub(super) const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// A new topic.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewTopic)]
pub(crate) struct NewTopicDocument<'a> {
    /// Letters, digits and `. _ -`, up to 249.
    #[schema(example = "orders")]
    name: String,
    /// As many as the node's options say if this is not said.
    #[schema(example = 3)]
    partitions: Option<i32>,
    /// What is configured otherwise than by default, as in Kafka.
    #[serde(borrow, default)]
    #[schema(value_type = Object, example = json!({"retention.ms": 86400000}))]
    configs: BTreeMap<String, &'a RawValue>,
}

/// What changes of a topic; what is not said stays.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = TopicChange)]
pub(crate) struct TopicChange<'a> {
    /// How many there are in all; never fewer than before.
    partitions: Option<i32>,
    /// Values to set; `null` is the default again.
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
    /// Its own, and never another topic's.
    id: String,
    partitions: u32,
    #[schema(example = "2026-11-22T12:00:00.000Z")]
    created_at: String,
    /// What is set, and not the default.
    configs: BTreeMap<&'static str, String>,
}

/// A topic and all that counts for it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TopicDetail)]
pub(crate) struct TopicDetail {
    #[serde(flatten)]
    topic: TopicDocument,
    /// Every value of the configuration, set or by default.
    effective: BTreeMap<&'static str, String>,
    /// How each partition stands.
    state: Vec<PartitionDocument>,
}

/// How a partition stands.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TopicPartition)]
pub(crate) struct PartitionDocument {
    partition: u32,
    /// The first offset there is.
    start: u64,
    /// Behind the last one that readers see.
    end: u64,
    /// Behind the last one that readers of what is committed see: this door's are.
    committed_end: u64,
    /// Bytes of its batches.
    size: u64,
}

/// A list of topics.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Topics)]
pub(crate) struct TopicsDocument {
    /// By name.
    topics: Vec<TopicDocument>,
    /// Give it as `after` for more; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Which topics.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// Those whose name begins like this.
    #[serde(default)]
    prefix: String,
    /// Those behind this name.
    after: Option<String>,
    /// How many, at most: 1000, up to 10000.
    limit: Option<usize>,
}

/// Which topics there are.
#[utoipa::path(
    get, path = "/v1/topics", tag = "topics", operation_id = "list_topics",
    params(ListQuery),
    responses((status = 200, description = "By name", body = TopicsDocument))
)]
pub(super) async fn list(State(shared): State<Shared>, uri: Uri) -> Result<Response, Problem> {
    let ListQuery {
        prefix,
        after,
        limit,
    } = query(&uri)?;
    let limit = limit.unwrap_or(1_000);
    if !(1..=LIST_MAX).contains(&limit) {
        let detail = format!("a list has 1 to {LIST_MAX} topics, not {limit}");
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

/// Make a topic. Answered when it is on disk.
#[utoipa::path(
    post, path = "/v1/topics", tag = "topics", operation_id = "create_topic",
    request_body = NewTopicDocument,
    responses(
        (status = 201, description = "There it is", body = TopicDetail),
        (status = 400, description = "Something in the request is wrong", body = ProblemDocument),
        (status = 403, description = "There are as many partitions as there may be", body = ProblemDocument),
        (status = 409, description = "There is one of that name, or of one that is too like it", body = ProblemDocument),
        (status = 503, description = "Not on the disk: full, failed, or unknown", body = ProblemDocument),
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

/// What a topic is, and how its partitions stand.
#[utoipa::path(
    get, path = "/v1/topics/{topic}", tag = "topics", operation_id = "get_topic",
    params(("topic" = String, Path, description = "Its name")),
    responses(
        (status = 200, description = "A topic", body = TopicDetail),
        (status = 404, description = "There is no such topic", body = ProblemDocument),
    )
)]
pub(super) async fn get(Found { topics, topic }: Found) -> Result<Json<TopicDetail>, Problem> {
    shown(&topics, &topic).map(Json)
}

/// Give a topic more partitions, or another configuration. Answered when that is on disk.
///
/// Whatever is wrong with it is found before any of it is done.
#[utoipa::path(
    patch, path = "/v1/topics/{topic}", tag = "topics", operation_id = "change_topic",
    params(("topic" = String, Path, description = "Its name")),
    request_body = TopicChange,
    responses(
        (status = 200, description = "What it is now", body = TopicDetail),
        (status = 400, description = "Something in the request is wrong", body = ProblemDocument),
        (status = 403, description = "There are as many partitions as there may be, or the token may not use the topic's name", body = ProblemDocument),
        (status = 404, description = "There is no such topic", body = ProblemDocument),
        (status = 503, description = "Not on the disk: full, failed, or unknown", body = ProblemDocument),
    )
)]
pub(super) async fn patch(
    Found { topics, topic }: Found,
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

/// Delete a topic and everything in it. Answered when that is on disk.
#[utoipa::path(
    delete, path = "/v1/topics/{topic}", tag = "topics", operation_id = "delete_topic",
    params(("topic" = String, Path, description = "Its name")),
    responses(
        (status = 204, description = "It is gone"),
        (status = 403, description = "The token may not use the topic's name", body = ProblemDocument),
        (status = 404, description = "There is no such topic", body = ProblemDocument),
        (status = 503, description = "Not on the disk: full, failed, or unknown", body = ProblemDocument),
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

/// What is configured, as texts.
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
                return Err(wrong_at(&path, "a text, a number, true, false or null"));
            }
            _ => Some(json.to_owned()),
        };
        Ok((key.as_str(), text))
    };
    configs.iter().map(value).collect()
}

async fn answered(pending: Pending<Result<About, AdminError>>) -> Result<About, Problem> {
    let done = on_disk(pending).await?;
    done.map_err(|error| Refused::from(error).into())
}

/// What the node says when it is on disk.
pub(in crate::http) async fn on_disk<T>(pending: Pending<T>) -> Result<T, Problem> {
    match tokio::time::timeout(ANSWER_LIMIT, pending).await {
        Ok(told) => told.map_err(|unconfirmed| Refused::from(unconfirmed).into()),
        Err(_) => Err(late()),
    }
}

/// It has waited for too long.
pub(super) fn late() -> Problem {
    let limit = ANSWER_LIMIT.as_secs();
    let detail = format!("not on the disk after {limit} s: it may get there, or not");
    Problem::of(ErrorCode::Unconfirmed, detail)
}

fn detail(topics: &Topics, about: &About) -> Result<TopicDetail, Problem> {
    match topics.find(TopicRef::Id(about.id)) {
        Some(topic) => shown(topics, &topic),
        None => Err(Refused::unknown(topics, &about.name).into()),
    }
}

fn shown(topics: &Topics, topic: &Topic) -> Result<TopicDetail, Problem> {
    let about = topic.about();
    let state = (0..about.partitions).map(|partition| {
        let view = topics.view(topic, partition).ok()?;
        Some(PartitionDocument {
            partition,
            start: view.log_start,
            end: view.high_watermark,
            committed_end: view.last_stable,
            size: view.size,
        })
    });
    let state = state.collect::<Option<_>>();
    let defaults = &topics.options().defaults;
    let value = |key| about.config.saying(key, defaults).value(key).to_owned();
    let shown = |key: &&Key| key.is_current() || about.config.is_set(**key);
    let effective = Key::ALL.iter().filter(shown);
    let effective = effective.map(|&key| (key.name(), value(key)));
    Ok(TopicDetail {
        topic: TopicDocument::of(about),
        effective: effective.collect(),
        // It has gone meanwhile.
        state: state.ok_or_else(|| Refused::unknown(topics, &about.name))?,
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
