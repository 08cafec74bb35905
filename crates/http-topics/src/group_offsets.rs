//! `POST /v1/groups/{group}/offsets`: resets the offsets of a consumer group, for administrators.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Json;
use door::topics::Refused;
use http_api::body::{self, wrong_at};
use http_api::time::parse_rfc3339;
use http_api::{Admin, Problem, ProblemDocument, Shared, within_write_limit};
use model::ErrorCode;
use serde::{Deserialize, Serialize};
use topic_service::{OffsetChange, ResetError, ResetTarget, Topic, TopicRef, Topics};
use utoipa::ToSchema;

use super::groups;
use super::place::of;

/// Largest request body, in bytes.
const BODY_SIZE_MAX: usize = 128 << 10;

/// The offsets to reset, and their new position: exactly one of `to`, `offset`, `time` and `shift`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = OffsetReset)]
pub(crate) struct ResetDocument {
    /// Topic whose offsets are reset; default: every topic with a committed offset of the group.
    #[schema(example = "orders")]
    topic: Option<String>,
    /// Partitions of `topic`; default: all.
    #[schema(example = json!([0, 2]))]
    partitions: Option<Vec<u32>>,
    /// `earliest` is the first existing record, `latest` the end of the partition.
    to: Option<Edge>,
    /// An offset. Outside of a partition, its nearest offset is used.
    offset: Option<u64>,
    /// Time (RFC 3339): the first record that is not older; without one, the end of the partition.
    #[schema(example = "2026-11-28T12:00:00Z")]
    time: Option<String>,
    /// Number that is added to the committed offset. Outside of a partition, its nearest offset is
    /// used.
    #[schema(example = -100)]
    shift: Option<i64>,
    /// Only answer what would be changed.
    #[serde(default)]
    dry_run: bool,
}

/// An end of a partition.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = OffsetResetEdge)]
pub(crate) enum Edge {
    Earliest,
    Latest,
}

/// The offsets that were reset, or would be.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OffsetResetResult)]
pub(crate) struct ResultDocument {
    #[schema(example = "billing")]
    group: String,
    /// True if nothing was changed.
    dry_run: bool,
    /// Partitions in the order of their topics.
    partitions: Vec<ChangeDocument>,
}

/// The new offset of a group in a partition.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OffsetChange)]
pub(crate) struct ChangeDocument {
    #[schema(example = "orders")]
    topic: String,
    partition: u32,
    /// The committed offset before; `null` if the group had committed none.
    committed: Option<u64>,
    /// The new offset.
    offset: u64,
    /// The first existing offset of the partition.
    start: u64,
    /// The offset after the last record that consumers see (high watermark).
    end: u64,
    /// Records from the committed offset to the end; `null` without a committed offset.
    lag_before: Option<u64>,
    /// Records from the new offset to the end.
    lag_after: u64,
    /// True if the requested offset is outside of the partition, so that its start or its end is used.
    clamped: bool,
}

/// Reset the offsets of a consumer group without members. The answer is sent when they are on disk.
///
/// The group is created if a topic is named and the group does not exist. With `dry_run` nothing is
/// changed.
#[utoipa::path(
    post, path = "/v1/groups/{group}/offsets", tag = "topics", operation_id = "reset_group_offsets",
    params(("group" = String, Path, description = "Name of the group")),
    request_body = ResetDocument,
    responses(
        (status = 200, description = "The new offsets", body = ResultDocument),
        (status = 400, description = "The request is invalid, or a shift has no committed offset", body = ProblemDocument),
        (status = 403, description = "An administrator's token is required, or the group has too many offsets", body = ProblemDocument),
        (status = 404, description = "There is no such group, topic or partition", body = ProblemDocument),
        (status = 409, description = "The group has members", body = ProblemDocument),
        (status = 503, description = "The write failed (disk full or failed), or its outcome is unknown", body = ProblemDocument),
    )
)]
pub(super) async fn reset(
    State(shared): State<Shared>,
    admin: Admin,
    Path(group): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<ResultDocument>, Problem> {
    let topics = of(&shared)?;
    let body = body::read_json(&headers, body, BODY_SIZE_MAX).await?;
    let document: ResetDocument = body::parse(&body)?;
    let target = target(&document)?;
    let dry_run = document.dry_run;
    let selected = selected(&topics, &document)?;
    let scope = selected.as_ref().map(|(topic, it)| (&**topic, &**it));
    let resetting = async {
        let planning = topics.plan_reset(&group, scope, target);
        let changes = planning.await.map_err(problem)?;
        if !dry_run {
            let resetting = topics.reset_offsets(&group, &changes);
            resetting.await.map_err(problem)?;
        }
        Ok(changes)
    };
    let changes = within_write_limit(resetting).await?;
    if !dry_run {
        let (by, partitions) = (admin.who(), changes.len());
        tracing::info!(
            group,
            by,
            partitions,
            ?target,
            "offsets of a consumer group were reset"
        );
    }
    Ok(Json(ResultDocument {
        group,
        dry_run,
        partitions: changes.into_iter().map(ChangeDocument::of).collect(),
    }))
}

fn target(document: &ResetDocument) -> Result<ResetTarget, Problem> {
    let time = document.time.as_deref().map(|time| {
        let unix_ms = parse_rfc3339(time).and_then(|it| i64::try_from(it).ok());
        unix_ms.ok_or_else(|| wrong_at("time", "must be a time like 2026-11-28T12:00:00Z"))
    });
    let edge = document.to.map(|to| match to {
        Edge::Earliest => ResetTarget::Earliest,
        Edge::Latest => ResetTarget::Latest,
    });
    let targets = [
        edge,
        document.offset.map(ResetTarget::Offset),
        time.transpose()?.map(ResetTarget::Time),
        document.shift.map(ResetTarget::Shift),
    ];
    let mut given = targets.into_iter().flatten();
    match (given.next(), given.next()) {
        (Some(target), None) => Ok(target),
        _ => {
            let detail = "exactly one of `to`, `offset`, `time` and `shift` is required";
            Err(Problem::invalid(detail))
        }
    }
}

/// The partitions of a topic that a request selects.
type Selection = (Arc<Topic>, Vec<u32>);

/// Returns the partitions that a request names; `None` for those with a committed offset.
fn selected(topics: &Topics, document: &ResetDocument) -> Result<Option<Selection>, Problem> {
    let Some(name) = &document.topic else {
        return match document.partitions {
            None => Ok(None),
            Some(_) => Err(wrong_at("partitions", "`topic` is required with it")),
        };
    };
    let topic = topics.find(TopicRef::Name(name));
    let topic = topic.ok_or_else(|| Refused::unknown(topics, name))?;
    let count = topic.about().partitions;
    let mut partitions = match &document.partitions {
        Some(partitions) => partitions.clone(),
        None => (0..count).collect(),
    };
    if let Some(missing) = partitions.iter().find(|it| **it >= count) {
        return Err(Refused::no_partition(topics, name, &missing.to_string()).into());
    }
    partitions.sort_unstable();
    partitions.dedup();
    Ok(Some((topic, partitions)))
}

fn problem(error: ResetError) -> Problem {
    let code = match &error {
        ResetError::UnknownGroup { .. } => ErrorCode::NotFound,
        ResetError::Members { .. } | ResetError::Joined { .. } => ErrorCode::Conflict,
        ResetError::NoOffsets { .. } | ResetError::NotCommitted { .. } => {
            ErrorCode::InvalidArgument
        }
        ResetError::Partly { .. } => ErrorCode::Denied,
        ResetError::Group(error) => return groups::problem(error.clone()),
        ResetError::Fetch(error) => return Refused::from(error.clone()).into(),
    };
    let problem = Problem::of(code, error.to_string());
    match error {
        ResetError::Members { members, .. } => problem.with("members", members),
        _ => problem,
    }
}

impl ChangeDocument {
    fn of(change: OffsetChange) -> Self {
        let (lag_before, lag_after) = (change.lag_before(), change.lag_after());
        Self {
            topic: change.topic.into(),
            partition: change.partition,
            committed: change.committed,
            offset: change.offset,
            start: change.start,
            end: change.end,
            lag_before,
            lag_after,
            clamped: change.is_clamped,
        }
    }
}
