//! Replies and events of the WebSocket as JSON.

use conversation_service::{Appended, ConversationError, Item, Position};
use http_api::Problem;
use model::ErrorCode;

use super::watches::WatchEvent;
use crate::append::AppendedDocument;
use crate::outgoing::{push, push_display, push_json, push_message, push_number, push_text};
use crate::tail::{push_closed, push_delta, push_retracted, push_stop};

/// Appends the beginning of a reply; `tag` is JSON, or empty.
fn begin(out: &mut Vec<u8>, op: &str, tag: &str) {
    push(out, b"{\"op\":\"");
    push(out, op.as_bytes());
    push(out, b"\"");
    if !tag.is_empty() {
        push(out, b",\"ref\":");
        push(out, tag.as_bytes());
    }
}

fn conversation(out: &mut Vec<u8>, name: &str) {
    push(out, b",\"conv\":");
    push_text(out, name);
}

/// Appends the members of a JSON object to the object that is being written.
fn members(out: &mut Vec<u8>, object: &impl serde::Serialize) {
    let at = out.len();
    push_json(out, object);
    out[at] = b',';
}

pub(super) fn push_ack(
    out: &mut Vec<u8>,
    tag: &str,
    ids: &[Option<Box<str>>],
    appended: &Appended,
) {
    begin(out, "ack", tag);
    let ids = ids.iter().map(Option::as_deref);
    members(out, &AppendedDocument::of_ids(ids, appended));
}

pub(super) fn push_done(out: &mut Vec<u8>, tag: &str, name: &str) {
    begin(out, "done", tag);
    conversation(out, name);
    push(out, b"}");
}

pub(super) fn push_error(out: &mut Vec<u8>, tag: &str, name: Option<&str>, problem: Problem) {
    begin(out, "error", tag);
    if let Some(name) = name {
        conversation(out, name);
    }
    members(out, &problem.document());
}

/// Appends an event of a watch, or the error that ended it.
pub(super) fn push_shown(out: &mut Vec<u8>, shown: &WatchEvent) {
    let name = &shown.word;
    let pushed = match &shown.item {
        Ok((item, position)) => push_item(out, name, item, position),
        Err(refusal) => Err(refusal.clone()),
    };
    if let Err(refusal) = pushed {
        push_error(out, "", Some(name), refusal.into());
    }
}

fn push_item(
    out: &mut Vec<u8>,
    name: &str,
    item: &Item,
    position: &Position,
) -> Result<(), ConversationError> {
    let begin = |out: &mut Vec<u8>, op: &str, member: &str| {
        begin(out, op, "");
        conversation(out, name);
        push(out, b",\"position\":\"");
        push_display(out, position);
        push(out, b"\",\"");
        push(out, member.as_bytes());
        push(out, b"\":");
    };
    match item {
        Item::Message(stored) => {
            let view = stored.view()?;
            begin(out, "message", "message");
            push_message(out, stored.seq, stored.at_ms, &view);
        }
        Item::Head { head_seq } => {
            begin(out, "head", "head_seq");
            push_number(out, *head_seq);
        }
        Item::Cleared { through_seq } => {
            begin(out, "cleared", "cleared_seq");
            push_number(out, *through_seq);
        }
        Item::Retracted {
            first_seq,
            last_seq,
        } => {
            begin(out, "retracted", "retracted");
            push_retracted(out, *first_seq, *last_seq);
        }
        Item::Delta {
            draft,
            id,
            index,
            chunk,
        } => {
            begin(out, "delta", "delta");
            push_delta(out, *draft, id, *index, chunk);
        }
        Item::Stop { draft, id } => {
            begin(out, "stop", "stop");
            push_stop(out, *draft, id);
        }
        Item::Closed { draft, last } => {
            begin(out, "closed", "closed");
            push_closed(out, *draft, last.as_deref());
        }
    }
    push(out, b"}");
    Ok(())
}

/// Returns the error of a connection that has the maximum of watches.
pub(super) fn too_many(max: usize) -> Problem {
    let detail = format!("a connection may watch at most {max} conversations");
    Problem::of(ErrorCode::Busy, detail)
}
