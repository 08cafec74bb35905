//! Lists of conversations by page, filtered by metadata.

use axum::extract::{FromRequestParts, Query, State};
use axum::http::Uri;
use axum::http::request::Parts;
use axum::response::Response;
use conversation_service::Lifecycle;
use http_api::time::push_rfc3339;
use http_api::{Problem, Shared, body, off_thread};
use model::{ErrorCode, Name};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};
use views::{Archived, Cursor, ListQuery, Listed, Listing, Views, ViewsError};

use super::append::json_bytes;
use super::outgoing::{push, push_metadata, push_number, push_text};
use super::place::params;

/// Default number of conversations of a page.
const LIMIT: usize = 50;

/// Most conversations of a page.
const LIMIT_MAX: usize = 1_000;

/// Prefix of metadata keys in a query.
const METADATA: &str = "metadata.";

/// The namespace of the path: `org/namespace`.
pub(super) struct InNamespace(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for InNamespace {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let params = params(parts, state).await?;
        let part = |wanted: &str| {
            let found = params.iter().find(|(name, _)| *name == wanted);
            found.map_or("default", |(_, value)| value)
        };
        let namespace = format!("{}/{}", part("org"), part("namespace"));
        match Name::parse(&format!("{namespace}/x")) {
            Ok(name) if name.instance().is_none() => Ok(Self(namespace)),
            Ok(_) => Err(Problem::invalid(format!(
                "`{namespace}` is not a namespace"
            ))),
            Err(error) => Err(Problem::invalid(error.to_string())),
        }
    }
}

/// Returns the views of the node, or an error if it has none.
pub(super) fn views(shared: &Shared) -> Result<&Views, Problem> {
    shared.node.views().ok_or_else(|| {
        let detail = "this node has no views of conversations";
        Problem::of(ErrorCode::Unsupported, detail)
    })
}

/// Converts an error of the views.
pub(super) fn views_problem(error: ViewsError) -> Problem {
    Problem::of(error.code(), error.to_string())
}

/// Query parameters of a page.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(
    dead_code,
    reason = "it documents in /openapi.json what `Paging` reads"
)]
pub(super) struct PagingDocument {
    /// `false` (default) for active conversations, `true` for archived ones, `any` for both.
    archived: Option<String>,
    /// `next` of the previous page.
    after: Option<String>,
    /// Most entries of the page; default 50, at most 1000.
    limit: Option<usize>,
}

/// The parsed query of a page.
#[derive(Debug)]
pub(super) struct Paging {
    pub(super) archived: Archived,
    pub(super) after: Option<Cursor>,
    pub(super) limit: usize,
    /// Required metadata as pairs of a key and a value.
    pub(super) labels: Vec<(String, String)>,
    /// True if only conversations with unread messages are listed.
    pub(super) unread_only: bool,
}

/// The query parameters that a route accepts in addition to those of every page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Words {
    /// `metadata.KEY`.
    Metadata,
    /// `unread`.
    Unread,
    /// `metadata.KEY`. All results are returned, so there are no pages.
    All,
}

impl Paging {
    /// Parses a query string; unknown parameters are errors.
    pub(super) fn read(uri: &Uri, words: Words) -> Result<Self, Problem> {
        let Ok(Query(pairs)) = Query::<Vec<(String, String)>>::try_from_uri(uri) else {
            return Err(Problem::invalid("the query is not `KEY=VALUE&...`"));
        };
        let mut paging = Self {
            archived: match words {
                Words::All => Archived::Any,
                Words::Metadata | Words::Unread => Archived::No,
            },
            after: None,
            limit: LIMIT,
            labels: Vec::new(),
            unread_only: false,
        };
        for (key, value) in pairs {
            paging.take(&key, value, words)?;
        }
        Ok(paging)
    }

    fn take(&mut self, key: &str, value: String, words: Words) -> Result<(), Problem> {
        match (key, words) {
            ("archived", _) => self.archived = archived(&value)?,
            ("after", Words::Metadata | Words::Unread) if value.is_empty() => {}
            ("after", Words::Metadata | Words::Unread) => {
                let cursor = value.parse::<Cursor>();
                self.after = Some(cursor.map_err(|error| wrong("after", &error.to_string()))?);
            }
            ("limit", Words::Metadata | Words::Unread) => {
                let limit = value.parse().ok().filter(|it| (1..=LIMIT_MAX).contains(it));
                let reason = format!("must be from 1 to {LIMIT_MAX}, not {value}");
                self.limit = limit.ok_or_else(|| wrong("limit", &reason))?;
            }
            ("unread", Words::Unread) => {
                let is = value.parse();
                self.unread_only = is.map_err(|_| wrong("unread", "must be `true` or `false`"))?;
            }
            (key, words) => match (key.strip_prefix(METADATA), words) {
                (Some(key), Words::Metadata | Words::All) if !key.is_empty() => {
                    self.labels.push((key.to_owned(), value));
                }
                _ => return Err(unknown(key, words)),
            },
        }
        Ok(())
    }
}

fn archived(value: &str) -> Result<Archived, Problem> {
    match value {
        "" | "false" => Ok(Archived::No),
        "true" => Ok(Archived::Yes),
        "any" => Ok(Archived::Any),
        _ => Err(wrong("archived", "must be `true`, `false` or `any`")),
    }
}

fn wrong(key: &str, reason: &str) -> Problem {
    Problem::invalid(format!("the query: `{key}`: {reason}"))
}

fn unknown(key: &str, words: Words) -> Problem {
    let known: &[&str] = match words {
        Words::Metadata => &["archived", "after", "limit", "metadata.KEY"],
        Words::Unread => &["archived", "after", "limit", "unread"],
        Words::All => &["archived", "metadata.KEY"],
    };
    let unknown = body::unknown("field", key, known.iter().copied());
    Problem::invalid(format!("the query: {unknown}"))
}

/// A conversation in a list.
#[derive(Serialize, ToSchema)]
#[schema(as = Listed)]
pub(crate) struct ListedDocument {
    #[schema(example = "support-42")]
    id: String,
    /// `org/namespace/id`.
    #[schema(example = "default/default/support-42")]
    name: String,
    /// Sequence number of the newest message; 0 for none.
    head_seq: u64,
    /// Sequence number of the oldest stored message; `head_seq` + 1 if there is none.
    start_seq: u64,
    /// Time of the last message, or of the creation (RFC 3339).
    #[schema(example = "2026-11-21T12:00:00.000Z")]
    active_at: String,
    archived: bool,
    #[schema(value_type = Object)]
    metadata: (),
    /// Name of the agent that answers, if there is one.
    agent: Option<String>,
    /// Seconds after the last activity until the conversation is erased; absent for never.
    ttl_s: Option<u64>,
    /// Number of changes, except messages and read positions.
    version: u64,
}

/// A page of a list.
#[derive(Serialize, ToSchema)]
#[schema(as = Listing)]
pub(crate) struct ListingDocument {
    conversations: Vec<ListedDocument>,
    /// Value of `after` for the next page; absent on the last page.
    next: Option<String>,
}

/// List conversations.
///
/// The latest activity comes first. `metadata.KEY=VALUE` selects conversations whose metadata has
/// this value under this key. `metadata.a.b` selects by a nested key, and an array matches each of
/// its values. Several conditions must all hold. A conversation that receives a message during
/// paging moves to the front: no conversation is listed twice, and none without activity is missed.
#[utoipa::path(
    get, path = "/conversations", tag = "conversations",
    operation_id = "list",
    params(
        ("metadata.KEY" = Option<String>, Query, description = "Required value of this metadata key"),
        PagingDocument,
    ),
    responses(
        (status = 200, description = "A page of conversations", body = ListingDocument),
        (status = 400, description = "The request is invalid", body = http_api::ProblemDocument),
        (status = 503, description = "The views are being built", body = http_api::ProblemDocument),
    )
)]
pub(super) async fn list(
    State(shared): State<Shared>,
    InNamespace(namespace): InNamespace,
    uri: Uri,
) -> Result<Response, Problem> {
    let paging = Paging::read(&uri, Words::Metadata)?;
    off_thread(move || {
        let query = ListQuery {
            labels: &paging.labels,
            archived: paging.archived,
            after: paging.after,
            limit: paging.limit,
        };
        let listing = views(&shared)?.list(&namespace, query);
        Ok(json_bytes(render(&listing.map_err(views_problem)?)))
    })
    .await
}

fn render(listing: &Listing) -> Vec<u8> {
    let mut out = Vec::new();
    push(&mut out, b"{\"conversations\":[");
    for (index, listed) in listing.conversations.iter().enumerate() {
        if index > 0 {
            push(&mut out, b",");
        }
        push_listed(&mut out, listed);
    }
    push(&mut out, b"]");
    push_next(&mut out, listing.next);
    push(&mut out, b"}");
    out
}

/// Appends the cursor of the next page, if there is one.
pub(super) fn push_next(out: &mut Vec<u8>, next: Option<Cursor>) {
    if let Some(next) = next {
        push(out, b",\"next\":");
        push_text(out, &next.to_string());
    }
}

/// Returns the last part of a name: the id of a conversation in its namespace.
pub(super) fn id(name: &str) -> &str {
    name.rsplit_once('/').map_or(name, |(_, id)| id)
}

fn push_listed(out: &mut Vec<u8>, listed: &Listed) {
    let state = &listed.state;
    push(out, b"{\"id\":");
    push_text(out, id(&listed.name));
    push(out, b",\"name\":");
    push_text(out, &listed.name);
    push(out, b",\"head_seq\":");
    push_number(out, listed.head_seq);
    push(out, b",\"start_seq\":");
    push_number(out, listed.start_seq);
    push(out, b",\"active_at\":\"");
    push_rfc3339(out, listed.active_ms);
    push(out, b"\",\"archived\":");
    let is_archived = state.lifecycle == Lifecycle::Archived;
    push(out, if is_archived { b"true" } else { b"false" });
    push(out, b",\"metadata\":");
    push_metadata(out, &state.metadata);
    if !state.settings.agent.is_empty() {
        push(out, b",\"agent\":");
        push_text(out, &state.settings.agent);
    }
    if state.settings.ttl_ms > 0 {
        push(out, b",\"ttl_s\":");
        push_number(out, state.settings.ttl_ms / 1000);
    }
    push(out, b",\"version\":");
    push_number(out, state.version);
    push(out, b"}");
}
