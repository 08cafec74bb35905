//! Inboxes: a participant's conversations, as a page or as events.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use futures_util::stream;
use http_api::sse::{KEEPALIVE, respond};
use http_api::time::push_rfc3339;
use http_api::{Problem, Shared, off_thread};
use message_json::preview;
use serde::Serialize;
use utoipa::ToSchema;
use views::{Changed, Inbox, InboxQuery, InboxWatch, Last, Line};

use super::append::json_bytes;
use super::list::{
    InNamespace, Paging, PagingDocument, Words, id, push_next, views, views_problem,
};
use super::outgoing::{push, push_author, push_number, push_text};
use super::read::wants_events;

/// Shortest interval between two events of the same conversation.
const INTERVAL: Duration = Duration::from_secs(1);

/// Longest name of a participant, in bytes.
const WHO_LENGTH_MAX: usize = 256;

/// A conversation in an inbox.
#[derive(Serialize, ToSchema)]
#[schema(as = InboxLine)]
pub(crate) struct LineDocument {
    #[schema(example = "support-42")]
    id: String,
    /// Sequence number of the newest message; 0 for none.
    head_seq: u64,
    /// Sequence number of the last message that the participant has read.
    read_seq: u64,
    /// Number of unread messages of others.
    unread: u64,
    /// The newest message; absent if there is none or it was trimmed.
    last: Option<LastDocument>,
}

/// The newest message of a conversation, abridged.
#[derive(Serialize, ToSchema)]
#[schema(as = InboxLast)]
pub(crate) struct LastDocument {
    #[schema(example = "m-7f3")]
    id: String,
    #[schema(example = "user")]
    role: String,
    /// Author; absent if unknown.
    from: Option<String>,
    /// Time of the append (RFC 3339).
    #[schema(example = "2026-11-21T12:00:00.000Z")]
    at: String,
    /// Beginning of the first text part; absent if there is none.
    text: Option<String>,
}

/// A page of an inbox.
#[derive(Serialize, ToSchema)]
#[schema(as = Inbox)]
pub(crate) struct InboxDocument {
    lines: Vec<LineDocument>,
    /// Value of `after` for the next page; absent on the last page.
    next: Option<String>,
}

/// Read a participant's inbox, or follow it.
///
/// The inbox has the conversations whose settings name the participant, in which the participant
/// wrote, or in which the participant has a read position; the latest activity comes first. With
/// `Accept: text/event-stream`, the answer is an event `line` for each conversation, then `head`,
/// then a `line` for each that changes, at most one per conversation and second, and `gone` for one
/// that is erased.
#[utoipa::path(
    get, path = "/inbox/{who}", tag = "conversations",
    operation_id = "inbox",
    params(
        ("who" = String, Path, description = "Name of the participant"),
        ("unread" = Option<bool>, Query, description = "List only conversations with unread messages"),
        PagingDocument,
    ),
    responses(
        (status = 200, description = "A page of the inbox, or events", content(
            (InboxDocument = "application/json"),
            (String = "text/event-stream"),
        )),
        (status = 400, description = "The request is invalid", body = http_api::ProblemDocument),
        (status = 503, description = "The views are being built", body = http_api::ProblemDocument),
    )
)]
pub(super) async fn inbox(
    State(shared): State<Shared>,
    InNamespace(namespace): InNamespace,
    Path(params): Path<Vec<(String, String)>>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let who = params.into_iter().find(|(name, _)| name == "who");
    let who = who.map_or_else(String::new, |(_, who)| who);
    if who.is_empty() || who.len() > WHO_LENGTH_MAX || who.chars().any(char::is_control) {
        let detail = "a participant's name has 1 to 256 bytes and no control characters";
        return Err(Problem::invalid(detail));
    }
    let paging = Paging::read(&uri, Words::Unread)?;
    let asked = InboxRequest {
        shared,
        namespace,
        who,
        paging,
    };
    if wants_events(&headers) {
        return follow(asked);
    }
    off_thread(move || Ok(json_bytes(render(&asked.page()?)))).await
}

/// The parsed request: a participant and a page.
struct InboxRequest {
    shared: Shared,
    namespace: String,
    who: String,
    paging: Paging,
}

impl InboxRequest {
    fn page(&self) -> Result<Inbox, Problem> {
        let query = InboxQuery {
            who: &self.who,
            archived: self.paging.archived,
            unread_only: self.paging.unread_only,
            after: self.paging.after,
            limit: self.paging.limit,
        };
        let inbox = views(&self.shared)?.inbox(&self.namespace, query);
        inbox.map_err(views_problem)
    }
}

/// The next step of an event stream.
enum Next {
    /// Send another page of the existing inbox.
    Page,
    /// Wait for changes and send them.
    Change,
    /// End the stream.
    Nothing,
}

/// The state of an event stream.
struct Events {
    asked: InboxRequest,
    watch: InboxWatch,
    next: Next,
}

fn follow(asked: InboxRequest) -> Result<Response, Problem> {
    if asked.paging.unread_only || asked.paging.after.is_some() {
        let detail = "an event stream has the whole inbox: it does not accept `after` and `unread`";
        return Err(Problem::invalid(detail));
    }
    let watch = views(&asked.shared)?.watch_inbox(&asked.namespace, &asked.who);
    let watch = watch.map_err(views_problem)?;
    let events = Events {
        asked,
        watch,
        next: Next::Page,
    };
    let body = stream::unfold(events, |events| async {
        if matches!(events.next, Next::Nothing) {
            return None;
        }
        let (out, events) = events.go_on().await?;
        Some((Ok::<_, Infallible>(Bytes::from(out)), events))
    });
    Ok(respond(Body::from_stream(body)))
}

impl Events {
    /// Waits for the next events.
    async fn go_on(self) -> Option<(Vec<u8>, Self)> {
        if matches!(self.next, Next::Change) {
            let changed = std::future::poll_fn(|cx| self.watch.poll_changed(cx));
            if tokio::time::timeout(KEEPALIVE, changed).await.is_err() {
                return Some((b":\n\n".to_vec(), self));
            }
            // Changes during this pause are merged into one event per conversation.
            tokio::time::sleep(INTERVAL).await;
        }
        // If the task fails, the stream just ends.
        tokio::task::spawn_blocking(|| self.events()).await.ok()
    }

    /// Reads the next events.
    fn events(mut self) -> (Vec<u8>, Self) {
        let mut out = Vec::new();
        let told = match self.next {
            Next::Page => self.push_page(&mut out),
            Next::Change => self.push_changes(&mut out),
            Next::Nothing => Ok(()),
        };
        if let Err(problem) = told {
            push_event(&mut out, "error", |out| {
                push(out, problem.document().to_string().as_bytes());
            });
            self.next = Next::Nothing;
        }
        (out, self)
    }

    fn push_page(&mut self, out: &mut Vec<u8>) -> Result<(), Problem> {
        let page = self.asked.page()?;
        for line in &page.lines {
            push_event(out, "line", |out| push_line(out, line));
        }
        self.asked.paging.after = page.next;
        if page.next.is_none() {
            push_event(out, "head", |out| push(out, b"{}"));
            self.next = Next::Change;
        }
        Ok(())
    }

    fn push_changes(&mut self, out: &mut Vec<u8>) -> Result<(), Problem> {
        for changed in self.watch.take().map_err(views_problem)? {
            match changed {
                Changed::Line(line) => push_event(out, "line", |out| push_line(out, &line)),
                Changed::Gone(name) => push_event(out, "gone", |out| {
                    push(out, b"{\"id\":");
                    push_text(out, id(&name));
                    push(out, b"}");
                }),
                Changed::All => self.next = Next::Page,
            }
        }
        Ok(())
    }
}

fn push_event(out: &mut Vec<u8>, event: &str, data: impl FnOnce(&mut Vec<u8>)) {
    push(out, b"event: ");
    push(out, event.as_bytes());
    push(out, b"\ndata: ");
    data(out);
    push(out, b"\n\n");
}

fn render(inbox: &Inbox) -> Vec<u8> {
    let mut out = Vec::new();
    push(&mut out, b"{\"lines\":[");
    for (index, line) in inbox.lines.iter().enumerate() {
        if index > 0 {
            push(&mut out, b",");
        }
        push_line(&mut out, line);
    }
    push(&mut out, b"]");
    push_next(&mut out, inbox.next);
    push(&mut out, b"}");
    out
}

fn push_line(out: &mut Vec<u8>, line: &Line) {
    push(out, b"{\"id\":");
    push_text(out, id(&line.name));
    for (key, number) in [
        (&b",\"head_seq\":"[..], line.head_seq),
        (b",\"read_seq\":", line.read_seq),
        (b",\"unread\":", line.unread),
    ] {
        push(out, key);
        push_number(out, number);
    }
    if let Some(last) = &line.last {
        push_last(out, last);
    }
    push(out, b"}");
}

fn push_last(out: &mut Vec<u8>, last: &Last) {
    let Ok(message) = last.view() else {
        return;
    };
    push(out, b",\"last\":{");
    push_author(out, &message);
    push(out, b",\"at\":\"");
    push_rfc3339(out, last.at_ms);
    push(out, b"\"");
    if let Some(text) = preview(message.parts) {
        push(out, b",\"text\":");
        push_text(out, &text);
    }
    push(out, b"}");
}
