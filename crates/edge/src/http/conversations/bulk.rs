//! Many conversations as JSON lines: what each is, then its messages, one behind the other.
//!
//! What comes out goes in: an import makes each conversation what its first line says, appends the
//! messages that are not there yet, and moves the read marks. What was trimmed is not in an export, so
//! numbers begin at 1 again, and the read marks with them. A
//! summary stands for the same messages as before, and a fork still says where it comes from.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::pin::Pin;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Uri, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use http_body::Body as _;
use model::{ErrorCode, Name};
use node::conversations::{Change, Origin, Summary};
use node::views::{Cursor, ListQuery};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::append::{answered, json};
use super::list::{InNamespace, Paging, Words, id, views};
use super::place::{loaded, of};
use super::state::{Merge, apply};
use super::summary::SummaryDocument;
use super::transfer::{ImportDocument, Lined, Lines, read_lines};
use crate::http::problem::Problem;
use crate::http::quotas::Client;
use crate::http::{Shared, body};

/// Conversations that are found at a time.
const CHUNK: usize = 100;

/// What of an export's first line is applied, as `PUT` has it.
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
/// Those that `metadata.KEY=VALUE` finds, or all of the namespace, archived ones included: for each
/// the line that says what it is, then a message a line.
#[utoipa::path(
    get, path = "/export", tag = "transfer", operation_id = "export_all",
    params(
        ("metadata.KEY" = Option<String>, Query, description = "What metadata has under that key"),
        ("archived" = Option<String>, Query, description = "`any`, which is the default, `true` or `false`"),
    ),
    responses(
        (status = 200, description = "The conversations", body = String, content_type = "application/jsonl"),
        (status = 400, description = "Something in the request is wrong", body = crate::http::openapi::ProblemDocument),
        (status = 503, description = "The views are being made", body = crate::http::openapi::ProblemDocument),
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
    // What is wrong at the beginning is told with a status.
    walk = walk.find().await?;
    let body = stream::unfold(Some(walk), |walk| async {
        match walk?.go_on().await {
            Ok(Some((bytes, walk))) => Some((Ok(bytes), Some(walk))),
            Ok(None) => None,
            // An export that is not whole must not look whole.
            Err(error) => Some((Err(error), None)),
        }
    });
    let content_type = [(header::CONTENT_TYPE, "application/jsonl")];
    Ok((content_type, Body::from_stream(body)).into_response())
}

/// A walk through a list, from conversation to conversation.
struct Walk {
    shared: Shared,
    namespace: String,
    paging: Paging,
    /// Those that come next.
    names: VecDeque<String>,
    /// Behind them there is none.
    is_last: bool,
    /// Of the one that is being written out.
    lines: Option<Lines>,
}

impl Walk {
    /// The next bytes; `None` behind the last.
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

    /// Finds the next conversations.
    async fn find(self) -> Result<Self, Problem> {
        let found = tokio::task::spawn_blocking(move || self.find_here()).await;
        found.map_err(|error| Problem::of(ErrorCode::Internal, error.to_string()))?
    }

    fn find_here(mut self) -> Result<Self, Problem> {
        let listing = views(&self.shared)?.list(
            &self.namespace,
            ListQuery {
                labels: &self.paging.labels,
                archived: self.paging.archived,
                after: self.paging.after,
                limit: CHUNK,
            },
        )?;
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

/// The lines of a conversation; `None` of one that was erased meanwhile.
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

/// What an import did.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = ImportedAll)]
pub(crate) struct ImportAllDocument {
    conversations: usize,
    /// Messages that were appended.
    appended: usize,
    /// Messages that were there already.
    deduplicated: usize,
}

/// Import many conversations.
///
/// What an export has: each line `{"conversation":{…}}` begins one, and is what it is made. A message
/// that is there already is not appended again, so an import that was interrupted is simply repeated.
#[utoipa::path(
    post, path = "/import", tag = "transfer", operation_id = "import_all",
    request_body(content(
        (String = "application/jsonl"),
        (String = "application/x-ndjson"),
        (String = "application/json-lines"),
        (String = "application/x-jsonlines"),
    )),
    responses(
        (status = 200, description = "All of them are there", body = ImportAllDocument),
        (status = 400, description = "A line is wrong: `line`; those before its batch are there", body = crate::http::openapi::ProblemDocument),
        (status = 409, description = "An id stands for another message", body = crate::http::openapi::ProblemDocument),
        (status = 410, description = "A conversation was erased: its name is not used again", body = crate::http::openapi::ProblemDocument),
        (status = 415, description = "The body is no JSON lines", body = crate::http::openapi::ProblemDocument),
        (status = 429, description = "The token is over a limit on what is appended: `retry_ms`, and `line`; those before it are there", body = crate::http::openapi::ProblemDocument),
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
                let detail =
                    "a message stands before the line that says which conversation it is in";
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

/// A line that says what a conversation is.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Head<'a> {
    #[serde(borrow)]
    pub(super) conversation: &'a RawValue,
}

/// What an import looks at itself of what a conversation is.
#[derive(Default, Deserialize)]
struct Known<'a> {
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

/// Where a conversation was copied from.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OriginDocument<'a> {
    #[serde(borrow)]
    conversation: Cow<'a, str>,
    seq: u64,
}

impl Known<'_> {
    /// The number that a message has here: those that were not in the export are not counted.
    fn seq(&self, seq: u64, head: u64) -> u64 {
        (seq + 1).saturating_sub(self.start_seq).min(head)
    }

    /// What is said of the conversation besides its settings, where `head` is its newest message.
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
    /// Who is charged.
    client: Client,
    known: Known<'a>,
    batch: Lined,
    done: ImportDocument,
}

impl<'a> Importing<'a> {
    /// Messages for a conversation of which nothing else is said.
    pub(super) fn of(name: Name, client: Client) -> Self {
        Self {
            name,
            client,
            known: Known::default(),
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
        let known: Known<'a> = body::parse(head.get().as_bytes())?;
        let name = Name::parse(&format!("{namespace}/{}", id(&known.name)));
        let name = name.map_err(|error| Problem::invalid(error.to_string()))?;
        Self::of(name, client).made(shared, head).await
    }

    /// Makes the conversation what its line says.
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
        // It takes messages until they are there.
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
            // Nothing was said of it.
            Err(refusal) if refusal.code == ErrorCode::NotFound => 0,
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
