//! Lists of streams, and deletion of their records.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use http_api::{Client, Problem, ProblemDocument, Shared, body, off_thread, query};
use model::ErrorCode;
use serde::{Deserialize, Serialize};
use store::StreamView;
use utoipa::{IntoParams, ToSchema};

use crate::place::{Named, Namespace, of};
use crate::problem::of_streams;

/// Largest request body, in bytes.
const BODY_MAX: usize = 4 << 10;

/// Most streams of a list, unless the request sets another number.
const LIMIT: usize = 100;

/// Most streams of a list.
const LIMIT_MAX: usize = 1_000;

/// The selection of a list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// Start of the streams' own names.
    #[serde(default)]
    #[param(value_type = Option<String>)]
    prefix: String,
    /// Last name of the previous list, without the namespace.
    after: Option<String>,
    /// Most streams, 1 to 1000; default 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

/// A stream.
#[derive(Serialize, ToSchema)]
#[schema(as = Stream)]
pub(crate) struct StreamDocument {
    /// `org/namespace/stream`.
    #[schema(example = "acme/demo/log")]
    name: String,
    /// Oldest stored offset.
    start: u64,
    /// Offset after the newest record on disk.
    next: u64,
}

impl From<StreamView> for StreamDocument {
    fn from(view: StreamView) -> Self {
        let StreamView { name, start, next } = view;
        Self { name, start, next }
    }
}

/// The streams of a namespace.
#[derive(Serialize, ToSchema)]
#[schema(as = StreamList)]
pub(crate) struct ListDocument {
    /// Streams in the order of their names.
    streams: Vec<StreamDocument>,
}

/// The records to delete.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = TrimRequest)]
pub(crate) struct TrimDocument {
    /// Records before this offset are deleted.
    before: u64,
}

/// List the streams of a namespace.
#[utoipa::path(
    get, path = "/streams", tag = "streams", operation_id = "list_streams",
    params(ListQuery),
    responses((status = 200, description = "Streams of the namespace", body = ListDocument))
)]
pub(super) async fn list(
    State(shared): State<Shared>,
    Namespace(namespace): Namespace,
    uri: Uri,
) -> Result<Json<ListDocument>, Problem> {
    let ListQuery {
        prefix,
        after,
        limit,
    } = query(&uri)?;
    let limit = limit.unwrap_or(LIMIT);
    if !(1..=LIMIT_MAX).contains(&limit) {
        let detail = format!("`limit` is {limit}: use 1 to {LIMIT_MAX}");
        return Err(Problem::invalid(detail));
    }
    let after = after.map_or_else(String::new, |after| format!("{namespace}/{after}"));
    off_thread(move || {
        let views = of(&shared)?.list(&format!("{namespace}/{prefix}"), &after, limit);
        let streams = views.into_iter().map(StreamDocument::from).collect();
        Ok(Json(ListDocument { streams }))
    })
    .await
}

/// Get a stream.
#[utoipa::path(
    get, path = "/streams/{stream}", tag = "streams", operation_id = "get_stream",
    params(("stream" = String, Path, description = "Name of the stream")),
    responses(
        (status = 200, description = "The stream", body = StreamDocument),
        (status = 404, description = "There is no such stream", body = ProblemDocument),
    )
)]
pub(super) async fn get(named: Named) -> Result<Json<StreamDocument>, Problem> {
    let Named {
        streams, stream, ..
    } = named;
    let view = streams.get(stream.name()).map_err(of_streams)?;
    Ok(Json(view.into()))
}

/// Delete the records of a stream before an offset.
#[utoipa::path(
    post, path = "/streams/{stream}/trim", tag = "streams", operation_id = "trim_stream",
    params(("stream" = String, Path, description = "Name of the stream")),
    request_body = TrimDocument,
    responses(
        (status = 200, description = "The records are deleted, and the deletion is on disk", body = StreamDocument),
        (status = 403, description = "The token may not delete records of this stream", body = ProblemDocument),
        (status = 404, description = "There is no such stream", body = ProblemDocument),
    )
)]
pub(super) async fn trim(
    named: Named,
    client: Client,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<StreamDocument>, Problem> {
    check(&client, &named)?;
    let body = body::read_json(&headers, body, BODY_MAX).await?;
    let TrimDocument { before } = body::parse(&body)?;
    off_thread(move || {
        let name = named.stream.name();
        let view = named.streams.trim(name.as_str(), before);
        Ok(Json(view.map_err(of_streams)?.into()))
    })
    .await
}

/// Delete all records of a stream. An append creates it again, at the next offset.
#[utoipa::path(
    delete, path = "/streams/{stream}", tag = "streams", operation_id = "delete_stream",
    params(("stream" = String, Path, description = "Name of the stream")),
    responses(
        (status = 200, description = "The records are deleted, and the deletion is on disk", body = StreamDocument),
        (status = 403, description = "The token may not delete records of this stream", body = ProblemDocument),
        (status = 404, description = "There is no such stream", body = ProblemDocument),
    )
)]
pub(super) async fn delete(named: Named, client: Client) -> Result<Json<StreamDocument>, Problem> {
    check(&client, &named)?;
    off_thread(move || {
        let view = named.streams.delete(named.stream.name().as_str());
        Ok(Json(view.map_err(of_streams)?.into()))
    })
    .await
}

/// Returns an error if the client may not delete records of the stream.
fn check(client: &Client, named: &Named) -> Result<(), Problem> {
    let name = named.stream.name();
    match client.principal().may_use(name) {
        true => Ok(()),
        false => {
            let detail = format!("this token may not delete records of `{}`", name.base());
            Err(Problem::of(ErrorCode::Denied, detail))
        }
    }
}
