//! Parsing and execution of WebSocket commands.

use conversation_service::{Batch, Position};
use http_api::{Client, Problem, Shared, body};
use json::Text;
use model::Name;
use platform::Durable;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Waiting;
use super::watches::Watches;
use crate::append::append_at_once;
use crate::incoming::{Incoming, Ready};
use crate::place::of;

/// Longest `ref` of a command, in bytes.
const TAG_SIZE_MAX: usize = 256;

/// The fields of all commands.
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

/// The outcome of a command.
pub(super) enum Outcome {
    Append(Waiting),
    /// A blocking thread has to [`fetch`] first.
    NeedsDisk {
        /// The quota charge, made once, which must be on disk before the acknowledgement.
        charged: Option<Durable>,
    },
    /// The command needs no reply.
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

/// Parses and executes a command.
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

/// The thread that executes an append.
#[derive(Clone, Copy)]
enum Thread<'a> {
    /// A thread that serves connections and never waits; the client is charged here.
    OfConnections(&'a Client),
    /// A blocking thread, which may wait for the disk. The client was charged before.
    OfDisk,
}

/// Does the part of a command that waits for the disk. Executes an append and returns its outcome;
/// for other commands, loads the conversation, so that the command can be run.
pub(super) fn fetch(shared: &Shared, json: &[u8]) -> Option<Outcome> {
    let command: Command<'_> = body::parse(json).ok()?;
    let name = Name::parse(&command.conv.0).ok()?;
    let tag = command.tag;
    let word: Box<str> = tag.map_or("", RawValue::get).into();
    let done = match &*command.op.0 {
        "append" => append(shared, &name, word, command, Thread::OfDisk),
        // Errors of the command itself are reported when it is run.
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
            "`ref` may have at most {TAG_SIZE_MAX} bytes"
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
            Ok(Outcome::NeedsDisk { charged: None })
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
                return Err(Problem::invalid(
                    "`stop` requires `message`, the id of the streamed message",
                ));
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
        return Err(Problem::invalid(format!(
            "`{op}` does not accept `{field}`"
        )));
    }
    Ok(())
}

/// Returns the start of a watch: after a message, or at the position of an earlier watch.
fn position(after: Option<u64>, position: Option<&Text<'_>>) -> Result<Position, Problem> {
    match (after, position) {
        (Some(_), Some(_)) => Err(Problem::invalid(
            "`after` and `position` cannot be combined",
        )),
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
        return Err(Problem::invalid("`append` requires `messages`"));
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
            (charged, append_at_once(conversations, name, batch)?)
        }
        Thread::OfDisk => (None, Some(conversations.append(name, batch)?)),
    };
    let Some(pending) = pending else {
        return Ok(Outcome::NeedsDisk { charged });
    };
    let ids = messages.iter().map(|message| message.id.map(Box::from));
    Ok(Outcome::Append(Waiting {
        tag,
        ids: ids.collect(),
        charged,
        pending,
    }))
}

/// Returns the `ref` of a command that is otherwise invalid.
fn tag_of_any(json: &[u8]) -> Option<&RawValue> {
    #[derive(Deserialize)]
    struct Any<'a> {
        #[serde(borrow, default, rename = "ref")]
        tag: Option<&'a RawValue>,
    }
    serde_json::from_slice::<Any<'_>>(json).ok()?.tag
}
