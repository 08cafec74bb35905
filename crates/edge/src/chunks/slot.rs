//! A part that is being put together.

use serde_json::value::RawValue;

use super::call::Call;
use super::chunk::Prose;
use crate::json;

/// See the module's documentation. Everything in it but ids and names is JSON as it came.
#[derive(Debug)]
pub(super) enum Slot {
    Text(Text),
    Call(Box<Call>),
    Data {
        kind: String,
        id: Option<String>,
        json: String,
    },
    StepStart,
    Whole(String),
}

/// The part that a step begins with.
const STEP_START: &str = r#"{"type":"step-start"}"#;

/// A text or reasoning.
#[derive(Debug)]
pub(super) struct Text {
    prose: Prose,
    id: String,
    /// What is between the quotes.
    body: String,
    provider_metadata: Option<String>,
    citations: Option<String>,
    /// It may go on.
    is_open: bool,
}

impl Text {
    pub(super) fn new(prose: Prose, id: &str) -> Self {
        Self {
            prose,
            id: id.to_owned(),
            body: String::new(),
            provider_metadata: None,
            citations: None,
            is_open: true,
        }
    }

    pub(super) fn push(&mut self, body: &str) {
        self.body.push_str(body);
    }

    pub(super) fn set_provider_metadata(&mut self, value: Option<&RawValue>) {
        keep(&mut self.provider_metadata, value);
    }

    pub(super) fn end(&mut self, citations: Option<&RawValue>) {
        self.is_open = false;
        if self.prose == Prose::Text {
            keep(&mut self.citations, citations);
        }
    }

    fn size(&self) -> usize {
        let values = size_of_optional(&self.provider_metadata) + size_of_optional(&self.citations);
        TEXT_OVERHEAD + written_size(&self.id) + self.body.len() + values
    }

    fn write(&self, text: &mut String) {
        match self.prose {
            Prose::Text => text.push_str(r#"{"type":"text","text":""#),
            Prose::Reasoning => {
                text.push_str(r#"{"type":"reasoning","id":"#);
                json::push_string(text, &self.id);
                text.push_str(r#","text":""#);
            }
        }
        text.push_str(&self.body);
        text.push_str(match self.is_open {
            true => r#"","state":"streaming""#,
            false => r#"","state":"done""#,
        });
        field(text, "citations", self.citations.as_deref());
        field(text, "providerMetadata", self.provider_metadata.as_deref());
        text.push('}');
    }
}

impl Slot {
    /// Bytes of the part with its comma, at most; without the input of a call that is being streamed.
    pub(super) fn size(&self) -> usize {
        1 + match self {
            Self::Text(text) => text.size(),
            Self::Call(call) => call.size(),
            Self::StepStart => STEP_START.len(),
            Self::Data { json, .. } | Self::Whole(json) => json.len(),
        }
    }

    /// Appends the part's JSON. The input of a call that is being streamed is left out if it is
    /// larger than `room`, of which it takes as much as it needs.
    pub(super) fn write(&self, streams: &[String], text: &mut String, room: &mut usize) {
        match self {
            Self::Text(part) => part.write(text),
            Self::Call(call) => call.write(streams, text, room),
            Self::StepStart => text.push_str(STEP_START),
            Self::Data { json, .. } | Self::Whole(json) => text.push_str(json),
        }
    }
}

/// Names of fields, quotes and braces of a text, at most.
const TEXT_OVERHEAD: usize = 112;

/// The same of any part: those of a tool's call.
pub(super) const OVERHEAD: usize = 512;

/// Bytes of `text` as JSON, without the quotes. No way to write it takes fewer.
pub(super) fn written_size(text: &str) -> usize {
    let size = |byte| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
        0..=0x1f => "\\u0000".len(),
        _ => 1,
    };
    text.bytes().map(size).sum()
}

pub(super) fn size_of_optional(value: &Option<String>) -> usize {
    value.as_ref().map_or(0, String::len)
}

/// Takes a value if there is one.
pub(super) fn keep(place: &mut Option<String>, value: Option<&RawValue>) {
    if let Some(value) = value {
        *place = owned(Some(value));
    }
}

pub(super) fn owned(value: Option<&RawValue>) -> Option<String> {
    value.map(|value| value.get().to_owned())
}

/// Appends a member of an object, if there is one.
pub(super) fn field(text: &mut String, name: &str, value: Option<&str>) {
    if let Some(value) = value {
        text.push_str(",\"");
        text.push_str(name);
        text.push_str("\":");
        text.push_str(value);
    }
}
