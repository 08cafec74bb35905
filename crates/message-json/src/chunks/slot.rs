//! The parts of a message in assembly.

use serde_json::value::RawValue;

use super::call::Call;
use super::chunk::Prose;
use super::written::{field, keep, size_of_optional, written_size};

/// A part of a message in assembly. Everything except ids and names is JSON as it was received.
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

/// The part at the start of a step.
const STEP_START: &str = r#"{"type":"step-start"}"#;

/// A text or reasoning part.
#[derive(Debug)]
pub(super) struct Text {
    prose: Prose,
    id: String,
    /// The text as it is written between quotes.
    body: String,
    provider_metadata: Option<String>,
    citations: Option<String>,
    /// True while it may continue.
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
    /// Returns the largest size of the part with its comma, in bytes, without a streamed input of a
    /// call.
    pub(super) fn size(&self) -> usize {
        1 + match self {
            Self::Text(text) => text.size(),
            Self::Call(call) => call.size(),
            Self::StepStart => STEP_START.len(),
            Self::Data { json, .. } | Self::Whole(json) => json.len(),
        }
    }

    /// Appends the part's JSON. A streamed input of a call is left out if it is larger than `room`,
    /// which is reduced by its size.
    pub(super) fn write(&self, streams: &[String], text: &mut String, room: &mut usize) {
        match self {
            Self::Text(part) => part.write(text),
            Self::Call(call) => call.write(streams, text, room),
            Self::StepStart => text.push_str(STEP_START),
            Self::Data { json, .. } | Self::Whole(json) => text.push_str(json),
        }
    }
}

/// The largest size of the names of fields, quotes and braces of a text, in bytes.
const TEXT_OVERHEAD: usize = 112;
