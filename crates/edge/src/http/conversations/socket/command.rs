//! What a client asks for.

use model::Name;
use node::conversations::{Batch, Position};
use node::quotas::Durable;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Waiting;
use super::watches::Watches;
use crate::http::Shared;
use crate::http::body;
use crate::http::conversations::incoming::{Incoming, Ready};
use crate::http::conversations::place::of;
use crate::http::problem::Problem;
use crate::http::quotas::Client;
use crate::json::Text;

/// Bytes of a client's word for a command, at most.
const TAG_SIZE_MAX: usize = 256;

/// All fields of all commands.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Command<'a> {
    #[serde(borrow)]
    op: Text<'a>,
    #[serde(borrow, default, rename = "ref")]
    tag: Option<&'a RawValue>,
    #[serde(borrow)]
    conv: Text<'a>,
    #[serde(default)]
    expect: Option<u64>,
    #[serde(borrow, default)]
    messages: Option<Vec<Incoming<'a>>>,
    #[serde(default)]
    after: Option<u64>,
    #[serde(borrow, default)]
    position: Option<Text<'a>>,
    #[serde(borrow, default)]
    message: Option<Text<'a>>,
}

const OPS: [&str; 4] = ["append", "watch", "unwatch", "stop"];

/// What comes of a command.
pub(super) enum Outcome {
    Append(Waiting),
    /// A thread that may wait for the disk has to [`fetch`] first.
    Elsewhere {
        /// What the client was charged for it, once and for all, must be on disk before it is told.
        charged: Option<Durable>,
    },
    /// What was asked for speaks for itself.
    Silent,
    Done {
        tag: Box<str>,
        conversation: Box<str>,
    },
    Refused {
        tag: Box<str>,
        problem: Problem,
    },
}

/// Does what `json` says.
pub(super) fn run(shared: &Shared, client: &Client, watches: &mut Watches, json: &[u8]) -> Outcome {
    let command: Command<'_> = match body::parse(json) {
        Ok(command) => command,
        Err(problem) => return refuse(tag_of_any(json), problem),
    };
    let tag = command.tag;
    match perform(shared, client, watches, command) {
        Ok(outcome) => outcome,
        Err(problem) => refuse(tag, problem),
    }
}

/// Where something is done.
#[derive(Clone, Copy)]
enum Thread<'a> {
    /// It serves connections, and waits for nothing: who is charged there.
    OfConnections(&'a Client),
    /// It may wait for the disk. Whoever sent it was charged before.
    OfDisk,
}

/// Does what has to wait for the disk: an append, of which the outcome is; for every other command it
/// loads the conversation, so that it can be run.
pub(super) fn fetch(shared: &Shared, json: &[u8]) -> Option<Outcome> {
    let command: Command<'_> = body::parse(json).ok()?;
    let name = Name::parse(&command.conv.0).ok()?;
    let tag = command.tag;
    let word: Box<str> = tag.map_or("", RawValue::get).into();
    let done = match &*command.op.0 {
        "append" => append(shared, &name, word, command, Thread::OfDisk),
        // What is wrong with it is told to whoever runs it.
        _ => {
            return of(shared)
                .ok()?
                .load(&name)
                .err()
                .map(|refusal| refuse(tag, refusal.into()));
        }
    };
    Some(done.unwrap_or_else(|problem| refuse(tag, problem)))
}

fn refuse(tag: Option<&RawValue>, problem: Problem) -> Outcome {
    let tag = tag
        .map(RawValue::get)
        .filter(|tag| tag.len() <= TAG_SIZE_MAX);
    Outcome::Refused {
        tag: tag.unwrap_or_default().into(),
        problem,
    }
}

fn perform(
    shared: &Shared,
    client: &Client,
    watches: &mut Watches,
    command: Command<'_>,
) -> Result<Outcome, Problem> {
    let tag: Box<str> = command.tag.map_or("", RawValue::get).into();
    if tag.len() > TAG_SIZE_MAX {
        return Err(Problem::invalid(format!(
            "`ref` has at most {TAG_SIZE_MAX} bytes"
        )));
    }
    let name = Name::parse(&command.conv.0);
    let name = name.map_err(|error| Problem::invalid(format!("`conv`: {error}")))?;
    match &*command.op.0 {
        "append" => {
            needs_no("append", "after", command.after.is_some())?;
            needs_no("append", "position", command.position.is_some())?;
            append(shared, &name, tag, command, Thread::OfConnections(client))
        }
        "watch" | "stop" if !of(shared)?.is_at_hand(&name)? => {
            Ok(Outcome::Elsewhere { charged: None })
        }
        "watch" => {
            needs_no("watch", "messages", command.messages.is_some())?;
            needs_no("watch", "expect", command.expect.is_some())?;
            let position = position(command.after, command.position.as_ref())?;
            watches.add(shared, &name, &command.conv.0, position)?;
            Ok(Outcome::Silent)
        }
        "unwatch" => {
            needs_no("unwatch", "messages", command.messages.is_some())?;
            watches.remove(&name)?;
            let conversation = command.conv.0.as_ref().into();
            Ok(Outcome::Done { tag, conversation })
        }
        "stop" => {
            let Some(message) = &command.message else {
                return Err(Problem::invalid("`stop` needs `message`, its id"));
            };
            of(shared)?.draft_stop(&name, &message.0)?;
            let conversation = command.conv.0.as_ref().into();
            Ok(Outcome::Done { tag, conversation })
        }
        op => Err(Problem::invalid(body::unknown("op", op, OPS.into_iter()))),
    }
}

fn needs_no(op: &str, field: &str, is_there: bool) -> Result<(), Problem> {
    if is_there {
        return Err(Problem::invalid(format!("`{op}` has no `{field}`")));
    }
    Ok(())
}

/// Where a watch begins: behind a message, or where an earlier one had arrived.
fn position(after: Option<u64>, position: Option<&Text<'_>>) -> Result<Position, Problem> {
    match (after, position) {
        (Some(_), Some(_)) => Err(Problem::invalid("`after` and `position` are one too many")),
        (None, Some(text)) => text
            .0
            .parse()
            .map_err(|error| Problem::invalid(format!("`position`: {error}"))),
        (after, None) => Ok(Position {
            seq: after.unwrap_or(0),
            drafts: Vec::new(),
        }),
    }
}

fn append(
    shared: &Shared,
    name: &Name,
    tag: Box<str>,
    command: Command<'_>,
    thread: Thread<'_>,
) -> Result<Outcome, Problem> {
    let Some(messages) = command.messages else {
        return Err(Problem::invalid("`append` needs `messages`"));
    };
    let ready = Ready::new(messages, None)?;
    let messages = ready.messages();
    let batch = Batch {
        expect: command.expect,
        messages: &messages,
    };
    let conversations = of(shared)?;
    let (charged, pending) = match thread {
        Thread::OfConnections(client) => {
            let charged = client.charge_bytes(&shared.node, batch.size() as u64)?;
            (charged, conversations.append_at_once(name, batch)?)
        }
        Thread::OfDisk => (None, Some(conversations.append(name, batch)?)),
    };
    let Some(pending) = pending else {
        return Ok(Outcome::Elsewhere { charged });
    };
    let ids = messages.iter().map(|message| message.id.map(Box::from));
    Ok(Outcome::Append(Waiting {
        tag,
        ids: ids.collect(),
        charged,
        pending,
    }))
}

/// The client's word for a command that cannot be understood otherwise.
fn tag_of_any(json: &[u8]) -> Option<&RawValue> {
    #[derive(Deserialize)]
    struct Any<'a> {
        #[serde(borrow, default, rename = "ref")]
        tag: Option<&'a RawValue>,
    }
    serde_json::from_slice::<Any<'_>>(json).ok()?.tag
}
