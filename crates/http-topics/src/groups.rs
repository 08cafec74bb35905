//! Consumer groups: their states, their members, and their lag in each partition.

use std::collections::BTreeMap;

use axum::extract::{Path, State};
use axum::http::Uri;
use axum::response::{IntoResponse, Json, Response};
use door::topics::Refused;
use http_api::{Problem, ProblemDocument, Shared, off_thread, query, within_write_limit};
use model::ErrorCode;
use platform::Pending;
use serde::{Deserialize, Serialize};
use topic_service::{GroupError, GroupLag, Topics};
use topics::groups::Described;
use utoipa::{IntoParams, ToSchema};

use super::place::of;

/// Most groups of a list.
const LIST_MAX: usize = 1_000;

/// Most topics of a group in a list.
const TOPICS_MAX: usize = 50;

/// A consumer group.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ConsumerGroup)]
pub(crate) struct GroupDocument {
    #[schema(example = "billing")]
    group: String,
    /// `Empty`, `PreparingRebalance`, `CompletingRebalance` or `Stable`.
    #[schema(example = "Stable")]
    state: &'static str,
    /// Protocol type of the members, such as `consumer`; empty if the group never had members.
    protocol_type: String,
    /// Number of members.
    members: usize,
    /// Records that the group has not consumed, over all partitions with a committed offset.
    lag: u64,
    /// Number of topics with a committed offset.
    topic_count: usize,
    /// Lag by topic: of the topic that was asked for, or of the 50 with the largest lag.
    topics: BTreeMap<String, u64>,
}

/// A list of consumer groups.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ConsumerGroups)]
pub(crate) struct GroupsDocument {
    /// Groups in the order of their names.
    groups: Vec<GroupDocument>,
    /// Value of `after` for the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A consumer group with its members and its position in each partition.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ConsumerGroupDetail)]
pub(crate) struct GroupDetail {
    #[schema(example = "billing")]
    group: String,
    /// `Empty`, `PreparingRebalance`, `CompletingRebalance` or `Stable`.
    #[schema(example = "Stable")]
    state: &'static str,
    /// Protocol type of the members, such as `consumer`; empty if the group never had members.
    protocol_type: String,
    /// The chosen assignor, such as `range`; empty unless the group is stable.
    protocol: String,
    members: Vec<MemberDocument>,
    /// Records that the group has not consumed, over all partitions with a committed offset.
    lag: u64,
    /// Number of partitions with a committed offset.
    partition_count: usize,
    /// Partitions with a committed offset, or those with the largest lag.
    partitions: Vec<PositionDocument>,
}

/// A member of a consumer group.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ConsumerGroupMember)]
pub(crate) struct MemberDocument {
    member: String,
    /// Its `group.instance.id`; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    instance: Option<String>,
    client_id: String,
    /// Address of the client.
    client_host: String,
}

/// The position of a group in a partition.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ConsumerGroupPosition)]
pub(crate) struct PositionDocument {
    topic: String,
    partition: u32,
    /// The committed offset, or the first existing one if retention has deleted that record.
    committed: u64,
    /// The offset after the last record that consumers see (high watermark).
    end: u64,
    /// Records between both.
    lag: u64,
}

/// Query parameters of a list of groups.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// Only groups whose names begin with this.
    #[serde(default)]
    prefix: String,
    /// Only groups after this name.
    after: Option<String>,
    /// Most groups; default and maximum 1000.
    limit: Option<usize>,
    /// Only groups with a committed offset in this topic.
    topic: Option<String>,
}

/// Query parameters of a group.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct GroupQuery {
    /// Most partitions, those with the largest lag; all without it.
    limit: Option<usize>,
}

/// List consumer groups with their lag.
#[utoipa::path(
    get, path = "/v1/groups", tag = "topics", operation_id = "list_groups",
    params(ListQuery),
    responses(
        (status = 200, description = "Groups in the order of their names", body = GroupsDocument),
        (status = 400, description = "`limit` is not 1 to 1000", body = ProblemDocument),
    )
)]
pub(super) async fn list(State(shared): State<Shared>, uri: Uri) -> Result<Response, Problem> {
    let ListQuery {
        prefix,
        after,
        limit,
        topic,
    } = query(&uri)?;
    let limit = limit.unwrap_or(LIST_MAX);
    if !(1..=LIST_MAX).contains(&limit) {
        let detail = format!("`limit` must be from 1 to {LIST_MAX}, not {limit}");
        return Err(Problem::invalid(detail));
    }
    let topics = of(&shared)?;
    let known = answered(topics.groups()).await?;
    let lags = lags(topics.clone()).await?;
    let by_group = by_group(&lags, topic.as_deref());
    let mut wanted = known.into_iter().filter(|view| {
        let is_behind = after.as_deref().is_none_or(|after| &*view.group > after);
        let has_topic = topic.is_none() || by_group.contains_key(&*view.group);
        is_behind && has_topic && view.group.starts_with(&prefix)
    });
    let mut groups = Vec::new();
    for view in wanted.by_ref().take(limit) {
        // A group that was deleted in the meantime has no members.
        let described = answered(topics.describe_group(&view.group)).await?;
        let topics = by_group.get(&*view.group);
        groups.push(GroupDocument {
            state: view.state.name(),
            protocol_type: view.protocol_type.into(),
            members: described.map_or(0, |it| it.members.len()),
            lag: topics.map_or(0, |it| it.values().sum()),
            topic_count: topics.map_or(0, BTreeMap::len),
            topics: topics.map(largest).unwrap_or_default(),
            group: view.group.into(),
        });
    }
    let last = groups.last().map(|group| group.group.clone());
    let next = last.filter(|_| wanted.next().is_some());
    Ok(Json(GroupsDocument { groups, next }).into_response())
}

/// Returns the lag of each group by topic: of one topic, or of all.
fn by_group<'a>(
    lags: &'a [GroupLag],
    topic: Option<&str>,
) -> BTreeMap<&'a str, BTreeMap<&'a str, u64>> {
    let mut groups: BTreeMap<&str, BTreeMap<&str, u64>> = BTreeMap::new();
    for lag in lags {
        if topic.is_none_or(|topic| topic == &*lag.topic) {
            let topics = groups.entry(&lag.group).or_default();
            *topics.entry(&lag.topic).or_default() += lag.lag;
        }
    }
    groups
}

/// Returns the topics with the largest lag.
fn largest(topics: &BTreeMap<&str, u64>) -> BTreeMap<String, u64> {
    let mut topics: Vec<_> = topics.iter().map(|(topic, lag)| (*topic, *lag)).collect();
    topics.sort_by_key(|(_, lag)| std::cmp::Reverse(*lag));
    topics.truncate(TOPICS_MAX);
    let topics = topics.into_iter();
    topics.map(|(topic, lag)| (topic.to_owned(), lag)).collect()
}

/// Get a consumer group with its members and its lag in each partition.
#[utoipa::path(
    get, path = "/v1/groups/{group}", tag = "topics", operation_id = "get_group",
    params(("group" = String, Path, description = "Name of the group"), GroupQuery),
    responses(
        (status = 200, description = "The group", body = GroupDetail),
        (status = 400, description = "The query is invalid", body = ProblemDocument),
        (status = 404, description = "There is no such group", body = ProblemDocument),
    )
)]
pub(super) async fn get(
    State(shared): State<Shared>,
    Path(group): Path<String>,
    uri: Uri,
) -> Result<Json<GroupDetail>, Problem> {
    let GroupQuery { limit } = query(&uri)?;
    let topics = of(&shared)?;
    let described = answered(topics.describe_group(&group)).await?;
    let Some(described) = described else {
        let detail = format!("there is no consumer group `{group}`");
        return Err(Problem::of(ErrorCode::NotFound, detail));
    };
    let name = group.clone();
    let mut lags = off_thread(move || Ok(topics.lags_of_group(&name))).await?;
    let (lag, partition_count) = (lags.iter().map(|it| it.lag).sum(), lags.len());
    if let Some(limit) = limit {
        lags.sort_unstable_by(GroupLag::largest_first);
        lags.truncate(limit);
    }
    lags.sort_unstable_by(|one, other| {
        let by_partition = || one.partition.cmp(&other.partition);
        one.topic.cmp(&other.topic).then_with(by_partition)
    });
    Ok(Json(GroupDetail {
        group,
        state: described.state.name(),
        protocol_type: described.protocol_type.into(),
        protocol: described.protocol.into(),
        members: described.members.into_iter().map(member).collect(),
        lag,
        partition_count,
        partitions: lags.into_iter().map(position).collect(),
    }))
}

/// Returns the lag of every group. Reads every committed offset.
async fn lags(topics: Topics) -> Result<Vec<GroupLag>, Problem> {
    off_thread(move || Ok(topics.group_lags(usize::MAX).0)).await
}

fn member(described: Described) -> MemberDocument {
    MemberDocument {
        member: described.member.to_string(),
        instance: described.instance.map(String::from),
        client_id: described.client_id.into(),
        client_host: described.client_host.into(),
    }
}

fn position(lag: GroupLag) -> PositionDocument {
    PositionDocument {
        topic: lag.topic.into(),
        partition: lag.partition,
        committed: lag.end.saturating_sub(lag.lag),
        end: lag.end,
        lag: lag.lag,
    }
}

async fn answered<T>(pending: Pending<T, GroupError>) -> Result<T, Problem> {
    within_write_limit(async { pending.await.map_err(problem) }).await
}

/// Maps the error of a group to a problem.
pub(super) fn problem(error: GroupError) -> Problem {
    match error {
        GroupError::Storage(storage) => Refused::from(storage).into(),
        GroupError::NotDurable(error) => Refused::from(error).into(),
        GroupError::Refused(refused) => Problem::invalid(refused.to_string()),
        GroupError::Transaction(denied) => Problem::invalid(denied.to_string()),
    }
}
