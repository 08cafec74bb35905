//! Export and import of many conversations as JSON lines: for each, its state, then its messages.
//!
//! An import accepts the output of an export: it applies the settings in each conversation's first
//! line, appends the messages that do not exist yet, and moves the read positions. Trimmed messages
//! are not exported, so sequence numbers and read positions start at 1 again. A summary covers the
//! same messages as before, and a fork keeps its origin.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::pin::Pin;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Uri, header};
use axum::response::{IntoResponse, Response};
use conversation_service::{Change, Origin, Summary};
use futures_util::stream;
use http_api::Client;
use http_api::Problem;
use http_api::{Shared, body};
use http_body::Body as _;
use model::{ErrorCode, Name};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use views::{Cursor, ListQuery};

use super::append::{answered, json};
use super::list::{InNamespace, Paging, Words, id, views, views_problem};
use super::place::{loaded, of};
use super::state::{Merge, apply};
use super::summary::SummaryDocument;
use super::transfer::{ImportDocument, Lined, Lines, read_lines};

/// Number of conversations listed at a time.
const CHUNK: usize = 100;

/// Settings of an export's first line that are applied as by `PUT`.
const SETTINGS: [&str; 7] = [
    "metadata",
    "ttl_s",
    "keep_last",
    "keep_bytes",
    "agent",
    "participants",
    "context",
];

/// Export many conversations as JSON lines.
///
/// Exports the conversations that match `metadata.KEY=VALUE`, or all of the namespace, including
/// archived ones. Each conversation is a line with its state, then one line per message.
#[utoipa::path(
    get, path = "/export", tag = "transfer", operation_id = "export_all",
    params(
        ("metadata.KEY" = Option<String>, Query, description = "Required value of this metadata key"),
        ("archived" = Option<String>, Query, description = "`any` (default), `true` or `false`"),
    ),
    responses(
        (status = 200, description = "The conversations as JSON lines", body = String, content_type = "application/jsonl"),
        (status = 400, description = "The request is invalid", body = http_api::ProblemDocument),
        (status = 503, description = "The views are being built", body = http_api::ProblemDocument),
    )
)]
pub(super) async fn export_all(
    State(shared): State<Shared>,
    InNamespace(namespace): InNamespace,
    uri: Uri,
) -> Result<Response, Problem> {
    let paging = Paging::read(&uri, Words::All)?;
    let mut walk = Walk {
        shared,
        namespace,
        paging,
        names: VecDeque::new(),
        is_last: false,
        lines: None,
    };
    // The first page is read now, so that its error can be answered with a status.
    walk = walk.find().await?;
    let body = stream::unfold(Some(walk), |walk| async {
        match walk?.go_on().await {
            Ok(Some((bytes, walk))) => Some((Ok(bytes), Some(walk))),
            Ok(None) => None,
            // An incomplete export must not look complete.
            Err(error) => Some((Err(error), None)),
        }
    });
    let content_type = [(header::CONTENT_TYPE, "application/jsonl")];
    Ok((content_type, Body::from_stream(body)).into_response())
}

/// An export in progress: the list, and the conversation being written.
struct Walk {
    shared: Shared,
    namespace: String,
    paging: Paging,
    /// Names of the next conversations.
    names: VecDeque<String>,
    /// True if no conversations follow `names`.
    is_last: bool,
    /// Remaining lines of the current conversation.
    lines: Option<Lines>,
}

impl Walk {
    /// Returns the next bytes; `None` at the end.
    async fn go_on(mut self) -> io::Result<Option<(Bytes, Self)>> {
        loop {
            if let Some(lines) = &mut self.lines {
                let frame = std::future::poll_fn(|cx| Pin::new(&mut *lines).poll_frame(cx));
                match frame.await.transpose()? {
                    Some(frame) => {
                        let bytes = frame.into_data().unwrap_or_default();
                        return Ok(Some((bytes, self)));
                    }
                    None => self.lines = None,
                }
            } else if let Some(name) = self.names.pop_front() {
                self.lines = lines_of(&self.shared, &name).await.map_err(failed)?;
            } else if self.is_last {
                return Ok(None);
            } else {
                self = self.find().await.map_err(failed)?;
            }
        }
    }

    /// Lists the next conversations.
    async fn find(self) -> Result<Self, Problem> {
        let found = tokio::task::spawn_blocking(move || self.find_here()).await;
        found.map_err(|error| Problem::of(ErrorCode::Internal, error.to_string()))?
    }

    fn find_here(mut self) -> Result<Self, Problem> {
        let query = ListQuery {
            labels: &self.paging.labels,
            archived: self.paging.archived,
            after: self.paging.after,
            limit: CHUNK,
        };
        let listing = views(&self.shared)?.list(&self.namespace, query);
        let listing = listing.map_err(views_problem)?;
        self.names = listing
            .conversations
            .into_iter()
            .map(|it| it.name)
            .collect();
        let next: Option<Cursor> = listing.next;
        self.is_last = next.is_none();
        self.paging.after = next;
        Ok(self)
    }
}

/// Returns the lines of a conversation; `None` if it was erased meanwhile.
async fn lines_of(shared: &Shared, name: &str) -> Result<Option<Lines>, Problem> {
    let name = Name::parse(name).map_err(|error| Problem::invalid(error.to_string()))?;
    match Lines::of(shared, &name).await {
        Err(gone) if matches!(gone.code, ErrorCode::Gone | ErrorCode::NotFound) => Ok(None),
        lines => lines.map(Some),
    }
}

fn failed(problem: Problem) -> io::Error {
    io::Error::other(problem.detail)
}

/// The result of an import.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = ImportedAll)]
pub(crate) struct ImportAllDocument {
    conversations: usize,
    /// Number of appended messages.
    appended: usize,
    /// Number of messages that existed already.
    deduplicated: usize,
}

/// Import many conversations.
///
/// The body has the format of an export. Each line `{"conversation":{…}}` begins a conversation and
/// sets its state. A message that exists already is not appended again, so an interrupted import
/// can be repeated.
#[utoipa::path(
    post, path = "/import", tag = "transfer", operation_id = "import_all",
    request_body(content(
        (String = "application/jsonl"),
        (String = "application/x-ndjson"),
        (String = "application/json-lines"),
        (String = "application/x-jsonlines"),
    )),
    responses(
        (status = 200, description = "All messages were imported", body = ImportAllDocument),
        (status = 400, description = "`line` is invalid; the lines before its batch were imported", body = http_api::ProblemDocument),
        (status = 409, description = "An id is used by another message", body = http_api::ProblemDocument),
        (status = 410, description = "A conversation was erased; its name cannot be used again", body = http_api::ProblemDocument),
        (status = 415, description = "The body is not JSON lines", body = http_api::ProblemDocument),
        (status = 429, description = "A quota on appended bytes is exceeded at `line`; the lines before it were imported. Retry after `retry_ms`", body = http_api::ProblemDocument),
    )
)]
pub(super) async fn import_all(
    State(shared): State<Shared>,
    InNamespace(namespace): InNamespace,
    client: Client,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let body = read_lines(&headers, body).await?;
    let mut done = ImportAllDocument::default();
    let mut current: Option<Importing<'_>> = None;
    for (index, line) in body.split(|byte| *byte == b'\n').enumerate() {
        let line = line.trim_ascii();
        let at_line = |problem: Problem| problem.with("line", index + 1);
        if line.is_empty() {
            continue;
        }
        if let Ok(Head { conversation }) = serde_json::from_slice(line) {
            finish(&shared, current.take(), &mut done).await?;
            let client = client.clone();
            let begun = Importing::begin(&shared, client, &namespace, conversation).await;
            current = Some(begun.map_err(at_line)?);
            continue;
        }
        match &mut current {
            Some(importing) => importing.push(&shared, index, body.slice_ref(line)).await?,
            None => {
                let detail = "a message precedes the first `conversation` line";
                return Err(at_line(Problem::invalid(detail)));
            }
        }
    }
    finish(&shared, current, &mut done).await?;
    Ok(json(&done))
}

async fn finish(
    shared: &Shared,
    importing: Option<Importing<'_>>,
    done: &mut ImportAllDocument,
) -> Result<(), Problem> {
    if let Some(importing) = importing {
        let one = importing.end(shared).await?;
        done.conversations += 1;
        done.appended += one.appended;
        done.deduplicated += one.deduplicated;
    }
    Ok(())
}

/// The first line of an exported conversation.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Head<'a> {
    #[serde(borrow)]
    pub(super) conversation: &'a RawValue,
}

/// Members of a conversation's first line that the import itself applies.
#[derive(Default, Deserialize)]
struct ImportedState<'a> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(default = "first")]
    start_seq: u64,
    #[serde(default)]
    archived: bool,
    #[serde(default)]
    cursors: BTreeMap<String, u64>,
    #[serde(borrow, default)]
    summary: Option<SummaryDocument<'a>>,
    #[serde(borrow, default)]
    forked_from: Option<OriginDocument<'a>>,
}

/// Conversation and message from which another was copied.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OriginDocument<'a> {
    #[serde(borrow)]
    conversation: Cow<'a, str>,
    seq: u64,
}

impl ImportedState<'_> {
    /// Maps an exported sequence number to the imported one, since trimmed messages are not
    /// counted.
    fn seq(&self, seq: u64, head: u64) -> u64 {
        (seq + 1).saturating_sub(self.start_seq).min(head)
    }

    /// Returns the changes other than settings. `head` is the sequence number of the newest
    /// message.
    fn changes(&self, head: u64) -> Result<Vec<Change>, Problem> {
        let mut changes = Vec::new();
        if let Some(document) = &self.summary {
            let summary = document.summary()?;
            changes.push(Change::Summarize(Some(Summary {
                through_seq: self.seq(summary.through_seq, head),
                ..summary
            })));
        }
        if let Some(origin) = &self.forked_from {
            changes.push(Change::Descend(Origin {
                conversation: origin.conversation.clone().into_owned(),
                seq: origin.seq,
            }));
        }
        changes.extend(self.cursors.iter().map(|(who, seq)| Change::Cursor {
            who: who.clone(),
            seq: self.seq(*seq, head),
        }));
        Ok(changes)
    }
}

const fn first() -> u64 {
    1
}

/// A conversation that is being imported.
pub(super) struct Importing<'a> {
    name: Name,
    /// The client whose quota is charged.
    client: Client,
    known: ImportedState<'a>,
    batch: Lined,
    done: ImportDocument,
}

impl<'a> Importing<'a> {
    /// Starts an import of messages without a first line.
    pub(super) fn of(name: Name, client: Client) -> Self {
        Self {
            name,
            client,
            known: ImportedState::default(),
            batch: Lined::default(),
            done: ImportDocument::default(),
        }
    }

    async fn begin(
        shared: &Shared,
        client: Client,
        namespace: &str,
        head: &'a RawValue,
    ) -> Result<Self, Problem> {
        let known: ImportedState<'a> = body::parse(head.get().as_bytes())?;
        let name = Name::parse(&format!("{namespace}/{}", id(&known.name)));
        let name = name.map_err(|error| Problem::invalid(error.to_string()))?;
        Self::of(name, client).made(shared, head).await
    }

    /// Applies the settings of the first line.
    pub(super) async fn made(
        mut self,
        shared: &Shared,
        head: &'a RawValue,
    ) -> Result<Self, Problem> {
        loaded(shared, &self.name).await?;
        self.known = body::parse(head.get().as_bytes())?;
        let mut settings: BTreeMap<Cow<'_, str>, &RawValue> = body::parse(head.get().as_bytes())?;
        settings.retain(|key, _| SETTINGS.contains(&&**key));
        let mut document =
            serde_json::to_vec(&settings).map_err(|error| Problem::invalid(error.to_string()))?;
        // The conversation is not archived until all messages are appended.
        document.pop();
        let open: &[u8] = if settings.is_empty() { b"" } else { b"," };
        document.extend_from_slice(open);
        document.extend_from_slice(b"\"archived\":false}");
        apply(of(shared)?, &self.name, None, &document, Merge::Replaces).await?;
        Ok(self)
    }

    pub(super) async fn push(
        &mut self,
        shared: &Shared,
        index: usize,
        line: Bytes,
    ) -> Result<(), Problem> {
        if self.batch.is_full(shared)? {
            self.batch
                .append(shared, &self.client, &self.name, &mut self.done)
                .await?;
        }
        self.batch.push(index, line);
        Ok(())
    }

    pub(super) async fn end(mut self, shared: &Shared) -> Result<ImportDocument, Problem> {
        self.batch
            .append(shared, &self.client, &self.name, &mut self.done)
            .await?;
        let conversations = of(shared)?;
        let head = match conversations.get(&self.name) {
            Ok(pending) => answered(pending).await?.head_seq,
            // Neither a first line nor a message created the conversation.
            Err(refusal) if refusal.code() == ErrorCode::NotFound => 0,
            Err(refusal) => return Err(refusal.into()),
        };
        self.done.head_seq = head;
        for change in self.known.changes(head)? {
            answered(conversations.change(&self.name, None, &change)?).await?;
        }
        if self.known.archived {
            let document = br#"{"archived":true}"#;
            apply(conversations, &self.name, None, document, Merge::Replaces).await?;
        }
        Ok(self.done)
    }
}
