//! Messages as clients read them: the bytes that their authors wrote, inside a JSON object.

use std::fmt::Display;
use std::io::Write;

use conversation_service::{MessageView, Status};
use http_api::time::push_rfc3339;
use message_json::metadata;
use serde::Serialize;
use utoipa::ToSchema;

/// A message.
#[derive(Serialize, ToSchema)]
#[schema(as = Message)]
pub(crate) struct MessageDocument {
    /// Sequence number: 1 for the first message of the conversation, then consecutive.
    #[schema(example = 42)]
    seq: u64,
    #[schema(example = "m-7f3")]
    id: String,
    #[schema(example = "user")]
    role: String,
    /// Author; absent if unknown.
    from: Option<String>,
    /// Status; absent if the message is complete.
    status: Option<String>,
    /// Content parts, byte for byte as they were written.
    #[schema(value_type = Vec<Object>)]
    parts: Vec<()>,
    /// Token count.
    tokens: u32,
    /// True if `tokens` is an estimate; else absent.
    estimated: Option<bool>,
    /// Time of the append (RFC 3339); for an imported message, of its first append.
    #[schema(example = "2026-11-21T12:00:00.000Z")]
    at: String,
    /// `null` for metadata that an earlier version stored and that is not a JSON object.
    #[schema(value_type = Option<Object>)]
    metadata: (),
    /// Offset in the event partition of the namespace.
    event: u64,
}

/// Appends the id, role and author of a message as members of an object.
pub(super) fn push_author(out: &mut Vec<u8>, message: &MessageView<'_>) {
    push(out, b"\"id\":");
    push_text(out, message.id);
    push(out, b",\"role\":");
    push_text(out, message.role);
    if !message.from.is_empty() {
        push(out, b",\"from\":");
        push_text(out, message.from);
    }
}

/// Appends a message as JSON.
pub(super) fn push_message(out: &mut Vec<u8>, seq: u64, at_ms: u64, message: &MessageView<'_>) {
    push(out, b"{\"seq\":");
    push_number(out, seq);
    push(out, b",");
    push_author(out, message);
    if message.status != Status::Complete {
        push(out, b",\"status\":");
        push_text(out, message.status.as_str());
    }
    push(out, b",\"parts\":");
    push(out, message.parts);
    push(out, b",\"tokens\":");
    push_number(out, u64::from(message.tokens));
    if message.is_estimated {
        push(out, b",\"estimated\":true");
    }
    push(out, b",\"at\":\"");
    push_rfc3339(out, message.original_ms.unwrap_or(at_ms));
    push(out, b"\",\"metadata\":");
    push_metadata(out, message.metadata);
    push(out, b",\"event\":");
    push_number(out, message.links.event);
    push(out, b"}");
}

/// Appends stored metadata: `{}` for none, `null` for bytes that are not a JSON object.
pub(super) fn push_metadata(out: &mut Vec<u8>, stored: &[u8]) {
    push(out, metadata::rendered(stored));
}

pub(super) fn push(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(bytes);
}

pub(super) fn push_number(out: &mut Vec<u8>, number: u64) {
    push_display(out, &number);
}

pub(super) fn push_display(out: &mut Vec<u8>, value: &impl Display) {
    // Writing to a Vec does not fail.
    let _ = write!(out, "{value}");
}

/// Appends a JSON string.
pub(super) fn push_text(out: &mut Vec<u8>, text: &str) {
    push_json(out, text);
}

/// Appends a value whose JSON serialization cannot fail: strings, numbers, and structures of them.
pub(super) fn push_json(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    if let Err(error) = serde_json::to_writer(out, value) {
        unreachable!("a value with string keys can be written as JSON: {error}");
    }
}

/// Appends the name of a JSON member after an earlier one.
pub(super) fn push_member(out: &mut Vec<u8>, name: &str) {
    push(out, b",\"");
    push(out, name.as_bytes());
    push(out, b"\":");
}
