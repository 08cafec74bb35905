//! Methods of the node's own agent for mailboxes, and its list of streams.

use std::sync::Arc;

use access::Principal;
use client::{Fault, Request, Server};
use messaging::mailboxes::{MailboxError, MailboxView, Mailboxes, MessageView, Part};
use model::{ErrorCode, Name};
use node::Node;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::{StreamView, Streams};

use console::body;

/// Maximum number of entries in an answer.
const LIMIT_MAX: usize = 1_000;

/// Most bytes of the bodies that an answer with cut bodies is made from.
const BYTES_MAX: usize = 4 << 20;

/// The request of a list of names.
#[derive(Debug, Deserialize, Serialize)]
pub struct ListNames {
    /// The prefix of the names.
    pub prefix: String,
    /// The last name of the previous answer.
    pub after: String,
    /// Maximum number of entries.
    pub limit: usize,
}

/// The request of messages of a mailbox.
#[derive(Debug, Deserialize, Serialize)]
pub struct ListMessages {
    /// The name of the mailbox.
    pub name: String,
    /// True for dead letters only, false for live messages only.
    #[serde(default)]
    pub dead: bool,
    /// The first offset.
    pub from: u64,
    /// Maximum number of messages.
    pub limit: usize,
    /// Longer bodies are cut to this size, in bytes. With it, the answer ends early when the whole
    /// bodies have 4 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_size_max: Option<usize>,
}

/// The request to acknowledge a message.
#[derive(Debug, Deserialize, Serialize)]
pub struct Acknowledge {
    /// The name of the mailbox.
    pub name: String,
    /// The offset of the message.
    pub offset: u64,
}

/// The request to empty a mailbox.
#[derive(Debug, Deserialize, Serialize)]
pub struct Purge {
    /// The name of the mailbox.
    pub name: String,
    /// True to remove only dead letters.
    #[serde(default)]
    pub dead: bool,
}

/// The request to deliver dead letters again.
#[derive(Debug, Deserialize, Serialize)]
pub struct RetryDeadLetters {
    /// The name of the mailbox.
    pub name: String,
    /// The offset of the dead letter; `None` for all.
    pub offset: Option<u64>,
}

/// Adds the methods to the agent.
pub(super) fn methods(server: Server, node: &Node) -> Server {
    let server = method(server, node, "mailboxes", |node, names: ListNames| {
        let limit = names.limit.min(LIMIT_MAX);
        let views = mailboxes(node)?.list(&names.prefix, &names.after, limit)?;
        Ok(json!({ "mailboxes": views.iter().map(mailbox).collect::<Vec<_>>() }))
    });
    let server = managed(server, node, "messages", |node, messages: ListMessages| {
        let limit = messages.limit.min(LIMIT_MAX);
        let part = if messages.dead {
            Part::Dead
        } else {
            Part::Live
        };
        let (from, size_max) = (messages.from, messages.body_size_max);
        let bytes_max = size_max.map_or(usize::MAX, |_| BYTES_MAX);
        let mailboxes = mailboxes(node)?;
        let (views, next) =
            mailboxes.messages_page(&messages.name, part, from, limit, bytes_max)?;
        let size_max = size_max.unwrap_or(usize::MAX);
        let views: Vec<_> = views.iter().map(|view| message(view, size_max)).collect();
        Ok(json!({ "messages": views, "next": next }))
    });
    let server = managed(server, node, "acknowledge", |node, message: Acknowledge| {
        let was_there = mailboxes(node)?.acknowledge(&message.name, message.offset)?;
        Ok(json!({ "acknowledged": was_there }))
    });
    let server = managed(server, node, "purge", |node, purge: Purge| {
        let part = if purge.dead { Part::Dead } else { Part::All };
        let count = mailboxes(node)?.purge(&purge.name, part)?;
        Ok(json!({ "purged": count }))
    });
    let server = managed(server, node, "retry", |node, retry: RetryDeadLetters| {
        let count = mailboxes(node)?.retry(&retry.name, retry.offset)?;
        Ok(json!({ "retried": count }))
    });
    method(server, node, "streams", |node, names: ListNames| {
        let limit = names.limit.min(LIMIT_MAX);
        let views = streams(node)?.list(&names.prefix, &names.after, limit);
        Ok(json!({ "streams": views.iter().map(stream).collect::<Vec<_>>() }))
    })
}

/// The error of a request, as the fault that the client receives.
struct RequestError(Fault);

impl From<Fault> for RequestError {
    fn from(fault: Fault) -> Self {
        Self(fault)
    }
}

impl From<MailboxError> for RequestError {
    fn from(error: MailboxError) -> Self {
        Self(Fault::with_code(error.code(), error.to_string()))
    }
}

/// A request about one mailbox.
trait OfMailbox: DeserializeOwned {
    /// Whether the request changes the mailbox.
    const IS_CHANGE: bool = true;

    /// The name of the mailbox.
    fn mailbox(&self) -> &str;
}

impl OfMailbox for ListMessages {
    const IS_CHANGE: bool = false;

    fn mailbox(&self) -> &str {
        &self.name
    }
}

impl OfMailbox for Acknowledge {
    fn mailbox(&self) -> &str {
        &self.name
    }
}

impl OfMailbox for Purge {
    fn mailbox(&self) -> &str {
        &self.name
    }
}

impl OfMailbox for RetryDeadLetters {
    fn mailbox(&self) -> &str {
        &self.name
    }
}

/// Adds a method for clients that may use the mailbox's name.
fn managed<A: OfMailbox>(
    server: Server,
    node: &Node,
    name: &'static str,
    answer: impl Fn(&Node, A) -> Result<Value, RequestError> + Send + Sync + 'static,
) -> Server {
    let node = node.clone();
    server.handle_sync(name, move |request: Request| {
        let arguments: A = parse(&request)?;
        let mailbox = Name::parse(arguments.mailbox())
            .map_err(|error| Fault::with_code(ErrorCode::InvalidArgument, error.to_string()))?;
        let principal = principal(&node, &request)?;
        let checked = principal.check(&mailbox);
        checked.map_err(|forbidden| Fault::with_code(ErrorCode::Denied, forbidden.to_string()))?;
        if A::IS_CHANGE {
            check_halt(&node, &principal)?;
        }
        let answer = answer(&node, arguments).map_err(|error| error.0)?;
        Ok(answer.to_string())
    })
}

/// Returns the principal of the client that makes the request.
pub(super) fn principal(node: &Node, request: &Request) -> Result<Principal, Fault> {
    let facts = request
        .source()
        .and_then(|it| node.messaging().facts_of_source(it));
    let facts = facts.ok_or_else(|| {
        let message = "the client's connection has ended";
        Fault::with_code(ErrorCode::Unauthenticated, message)
    })?;
    Ok(facts.principal)
}

/// Refuses a change of a halted client.
pub(super) fn check_halt(node: &Node, principal: &Principal) -> Result<(), Fault> {
    match node.quotas().halt_of(principal) {
        None => Ok(()),
        Some(halt) => Err(Fault::with_code(ErrorCode::Denied, halt.to_string())),
    }
}

fn parse<A: DeserializeOwned>(request: &Request) -> Result<A, Fault> {
    serde_json::from_slice(&request.body)
        .map_err(|error| Fault::with_code(ErrorCode::InvalidArgument, error.to_string()))
}

/// Returns the node's mailboxes.
fn mailboxes(node: &Node) -> Result<&Arc<Mailboxes>, Fault> {
    node.messaging().mailboxes().ok_or_else(no_storage)
}

/// Returns the node's raw streams.
pub(super) fn streams(node: &Node) -> Result<&Streams, Fault> {
    node.streams().ok_or_else(no_storage)
}

fn no_storage() -> Fault {
    Fault::with_code(ErrorCode::Unsupported, "this node has no storage")
}

fn method<A: DeserializeOwned>(
    server: Server,
    node: &Node,
    name: &'static str,
    answer: impl Fn(&Node, A) -> Result<Value, RequestError> + Send + Sync + 'static,
) -> Server {
    let node = node.clone();
    server.handle_sync(name, move |request: Request| {
        let arguments = parse(&request)?;
        let answer = answer(&node, arguments).map_err(|error| error.0)?;
        Ok(answer.to_string())
    })
}

fn mailbox(view: &MailboxView) -> Value {
    json!({
        "name": view.name,
        "messages": view.messages,
        "dead": view.dead,
        "bytes": view.bytes,
        "unanswered": view.unanswered,
        "oldest": view.oldest,
    })
}

/// Returns the start of a body, which does not end within a character.
fn cut(body: &[u8], size_max: usize) -> &[u8] {
    let Some(start) = body.get(..size_max) else {
        return body;
    };
    match std::str::from_utf8(body) {
        Ok(text) => &body[..text.floor_char_boundary(size_max)],
        Err(_) => start,
    }
}

fn message(view: &MessageView, body_size_max: usize) -> Value {
    let mut value = serde_json::Map::new();
    let pause_ms = view.pause.map(|pause| pause.as_millis() as u64);
    for (key, field) in [
        ("offset", json!(view.offset)),
        ("sender", json!(view.sender)),
        ("method", json!(view.method)),
        ("written_ms", json!(view.written_ms)),
        ("expires_ms", json!(view.expires_ms)),
        ("deliveries", json!(view.deliveries)),
        ("state", json!(view.state)),
        ("pause_ms", json!(pause_ms)),
        ("cause", json!(view.cause)),
        ("size", json!(view.body.len())),
    ] {
        value.insert(key.to_owned(), field);
    }
    body::insert(&mut value, "body", cut(&view.body, body_size_max));
    Value::Object(value)
}

fn stream(view: &StreamView) -> Value {
    json!({ "name": view.name, "start": view.start, "next": view.next })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_bodies_do_not_end_within_a_character() {
        for (body, size_max, expected) in [
            (&b"abc"[..], 3, &b"abc"[..]),
            (b"abc", 2, b"ab"),
            (b"abc", usize::MAX, b"abc"),
            ("aé".as_bytes(), 2, b"a"),
            (&[0xff, 0xfe, 0xfd], 2, &[0xff, 0xfe]),
        ] {
            assert_eq!(cut(body, size_max), expected, "{body:?} {size_max}");
        }
    }
}
