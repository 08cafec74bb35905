//! What a client is told.

use model::ErrorCode;
use node::conversations::{Appended, Item, Refusal};

use crate::http::conversations::append::AppendedDocument;
use crate::http::conversations::outgoing::{push, push_json, push_message, push_number, push_text};
use crate::http::conversations::tail::{push_delta, push_draft};
use crate::http::problem::Problem;

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

/// Appends the members of a JSON object behind what is there.
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

/// Appends something that a watcher of `name` is shown.
pub(super) fn push_item(out: &mut Vec<u8>, name: &str, item: Result<Item, Refusal>) {
    let shown = item.and_then(|item| match item {
        Item::Message(stored) => {
            let view = stored.view()?;
            begin(out, "message", "");
            conversation(out, name);
            push(out, b",\"message\":");
            push_message(out, stored.seq, stored.at_ms, &view);
            push(out, b"}");
            Ok(())
        }
        Item::Head { head_seq } => {
            begin(out, "head", "");
            conversation(out, name);
            push(out, b",\"head_seq\":");
            push_number(out, head_seq);
            push(out, b"}");
            Ok(())
        }
        Item::Delta {
            draft,
            id,
            index,
            chunk,
        } => {
            begin(out, "delta", "");
            conversation(out, name);
            push(out, b",\"delta\":");
            push_delta(out, draft, &id, index, &chunk);
            push(out, b"}");
            Ok(())
        }
        Item::Stop { draft, id } => {
            begin(out, "stop", "");
            conversation(out, name);
            push(out, b",\"stop\":");
            push_draft(out, draft, Some(&id));
            push(out, b"}");
            Ok(())
        }
        Item::Closed { draft } => {
            begin(out, "closed", "");
            conversation(out, name);
            push(out, b",\"closed\":");
            push_draft(out, draft, None);
            push(out, b"}");
            Ok(())
        }
    });
    if let Err(refusal) = shown {
        push_error(out, "", Some(name), refusal.into());
    }
}

/// That a connection watches as many conversations as it may.
pub(super) fn too_many(max: usize) -> Problem {
    let detail = format!("a connection watches {max} conversations at most");
    Problem::of(ErrorCode::Busy, detail)
}
