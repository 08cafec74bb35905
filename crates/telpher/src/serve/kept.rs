//! What the node's own agent says of what is kept: mailboxes and streams.

use client::{Fault, Request, Server};
use model::{ErrorCode, Name};
use node::access::Principal;
use node::{AdminError, Handle, MailboxView, MessageView, Part, StreamView};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::commands::body;

/// Entries of one answer, at most.
const LIMIT_MAX: usize = 1_000;

/// Asks for a list.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Names {
    /// What the names begin with.
    pub(crate) prefix: String,
    /// The last name of the answer before.
    pub(crate) after: String,
    /// Entries, at most.
    pub(crate) limit: usize,
}

/// Asks for messages of a mailbox.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Messages {
    pub(crate) name: String,
    /// Dead letters, and nothing else; without it nothing of them.
    #[serde(default)]
    pub(crate) dead: bool,
    /// The first offset.
    pub(crate) from: u64,
    /// Messages, at most.
    pub(crate) limit: usize,
}

/// Names a message.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Message {
    pub(crate) name: String,
    pub(crate) offset: u64,
}

/// Empties a mailbox.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Purge {
    pub(crate) name: String,
    /// Of nothing but its dead letters.
    #[serde(default)]
    pub(crate) dead: bool,
}

/// Gives dead letters back.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Retry {
    pub(crate) name: String,
    /// Which one; all of them without.
    pub(crate) offset: Option<u64>,
}

/// Adds the methods to the agent's.
pub(super) fn methods(server: Server, node: &Handle) -> Server {
    let server = method(server, node, "mailboxes", |node, names: Names| {
        let limit = names.limit.min(LIMIT_MAX);
        let views = node.mailboxes(&names.prefix, &names.after, limit)?;
        Ok(json!({ "mailboxes": views.iter().map(mailbox).collect::<Vec<_>>() }))
    });
    let server = managed(server, node, "messages", |node, messages: Messages| {
        let limit = messages.limit.min(LIMIT_MAX);
        let part = if messages.dead {
            Part::Dead
        } else {
            Part::Live
        };
        let views = node.messages(&messages.name, part, messages.from, limit)?;
        Ok(json!({ "messages": views.iter().map(message).collect::<Vec<_>>() }))
    });
    let server = managed(server, node, "acknowledge", |node, message: Message| {
        let was_there = node.acknowledge(&message.name, message.offset)?;
        Ok(json!({ "acknowledged": was_there }))
    });
    let server = managed(server, node, "purge", |node, purge: Purge| {
        let part = if purge.dead { Part::Dead } else { Part::All };
        let count = node.purge(&purge.name, part)?;
        Ok(json!({ "purged": count }))
    });
    let server = managed(server, node, "retry", |node, retry: Retry| {
        let count = node.retry(&retry.name, retry.offset)?;
        Ok(json!({ "retried": count }))
    });
    method(server, node, "streams", |node, names: Names| {
        let limit = names.limit.min(LIMIT_MAX);
        let views = node.streams(&names.prefix, &names.after, limit)?;
        Ok(json!({ "streams": views.iter().map(stream).collect::<Vec<_>>() }))
    })
}

/// A request about one mailbox.
trait OfMailbox: DeserializeOwned {
    /// Whether the request changes the mailbox.
    const IS_CHANGE: bool = true;

    /// The name of the mailbox.
    fn mailbox(&self) -> &str;
}

impl OfMailbox for Messages {
    const IS_CHANGE: bool = false;

    fn mailbox(&self) -> &str {
        &self.name
    }
}

impl OfMailbox for Message {
    fn mailbox(&self) -> &str {
        &self.name
    }
}

impl OfMailbox for Purge {
    fn mailbox(&self) -> &str {
        &self.name
    }
}

impl OfMailbox for Retry {
    fn mailbox(&self) -> &str {
        &self.name
    }
}

/// A method for clients that may use the mailbox's name.
fn managed<A: OfMailbox>(
    server: Server,
    node: &Handle,
    name: &'static str,
    answer: impl Fn(&Handle, A) -> Result<Value, AdminError> + Send + Sync + 'static,
) -> Server {
    let node = node.clone();
    server.handle_sync(name, move |request: Request| {
        let asked: A = parse(&request)?;
        let mailbox = Name::parse(asked.mailbox())
            .map_err(|error| Fault::with_code(ErrorCode::InvalidArgument, error.to_string()))?;
        let principal = principal(&node, &request)?;
        let checked = principal.check(&mailbox);
        checked.map_err(|forbidden| Fault::with_code(ErrorCode::Denied, forbidden.to_string()))?;
        if A::IS_CHANGE {
            check_halt(&node, &principal)?;
        }
        told(answer(&node, asked))
    })
}

/// The proven identity of the client that asks.
pub(super) fn principal(node: &Handle, request: &Request) -> Result<Principal, Fault> {
    let facts = request.source().and_then(|it| node.facts_of_source(it));
    let facts = facts.ok_or_else(|| {
        let message = "the client's connection has ended";
        Fault::with_code(ErrorCode::Unauthenticated, message)
    })?;
    Ok(facts.principal)
}

/// Refuses a change of a halted client.
pub(super) fn check_halt(node: &Handle, principal: &Principal) -> Result<(), Fault> {
    match node.quotas().halt_of(principal) {
        None => Ok(()),
        Some(halt) => Err(Fault::with_code(ErrorCode::Denied, halt.to_string())),
    }
}

fn parse<A: DeserializeOwned>(request: &Request) -> Result<A, Fault> {
    serde_json::from_slice(&request.body)
        .map_err(|error| Fault::with_code(ErrorCode::InvalidArgument, error.to_string()))
}

fn told(answer: Result<Value, AdminError>) -> Result<String, Fault> {
    match answer {
        Ok(value) => Ok(value.to_string()),
        Err((code, message)) => Err(Fault::with_code(code, message)),
    }
}

fn method<A: DeserializeOwned>(
    server: Server,
    node: &Handle,
    name: &'static str,
    answer: impl Fn(&Handle, A) -> Result<Value, AdminError> + Send + Sync + 'static,
) -> Server {
    let node = node.clone();
    server.handle_sync(name, move |request: Request| {
        let asked = parse(&request)?;
        told(answer(&node, asked))
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

fn message(view: &MessageView) -> Value {
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
    ] {
        value.insert(key.to_owned(), field);
    }
    body::insert(&mut value, "body", &view.body);
    Value::Object(value)
}

fn stream(view: &StreamView) -> Value {
    json!({ "name": view.name, "start": view.start, "next": view.next })
}
