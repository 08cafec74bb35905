//! A part that is being put together.

use serde_json::value::RawValue;

use super::chunk::{Prose, Tool, ToolStep};
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
    Whole(String),
}

/// A text or reasoning.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) prose: Prose,
    pub(super) id: String,
    /// What is between the quotes.
    body: String,
    provider_metadata: Option<String>,
    /// It may go on.
    pub(super) is_open: bool,
}

impl Text {
    pub(super) fn new(prose: Prose, id: &str) -> Self {
        Self {
            prose,
            id: id.to_owned(),
            body: String::new(),
            provider_metadata: None,
            is_open: true,
        }
    }

    pub(super) fn push(&mut self, body: &str) {
        self.body.push_str(body);
    }

    pub(super) fn set_provider_metadata(&mut self, value: Option<&RawValue>) {
        keep(&mut self.provider_metadata, value);
    }

    fn size(&self) -> usize {
        written_size(&self.id) + self.body.len() + size_of_optional(&self.provider_metadata)
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
        // Whatever ended it, nothing follows.
        text.push_str(r#"","state":"done""#);
        field(text, "providerMetadata", self.provider_metadata.as_deref());
        text.push('}');
    }
}

/// A tool's call, and what became of it.
#[derive(Debug, Default)]
pub(super) struct Call {
    pub(super) id: String,
    name: String,
    is_dynamic: bool,
    state: &'static str,
    /// The input as it is streamed: what is between the quotes.
    input_text: String,
    input: Option<String>,
    raw_input: Option<String>,
    output: Option<String>,
    error_text: Option<String>,
    approval_id: Option<String>,
    title: Option<String>,
    metadata: Option<String>,
    call_provider_metadata: Option<String>,
    result_provider_metadata: Option<String>,
    is_provider_executed: Option<bool>,
    is_preliminary: bool,
}

impl Call {
    pub(super) fn new(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            state: "input-streaming",
            ..Self::default()
        }
    }

    /// Takes what a chunk says. The piece of an input is text between quotes.
    pub(super) fn apply(&mut self, step: ToolStep, tool: &Tool<'_>, piece: &str) {
        if let Some(name) = &tool.tool_name {
            name.as_ref().clone_into(&mut self.name);
        }
        if let Some(is_dynamic) = tool.dynamic
            && self.input.is_none()
            && self.input_text.is_empty()
        {
            self.is_dynamic = is_dynamic;
        }
        if tool.provider_executed.is_some() {
            self.is_provider_executed = tool.provider_executed;
        }
        keep(&mut self.title, tool.title);
        keep(&mut self.metadata, tool.tool_metadata);
        let provider_metadata = match step {
            ToolStep::Output | ToolStep::OutputError | ToolStep::InputError => {
                &mut self.result_provider_metadata
            }
            _ => &mut self.call_provider_metadata,
        };
        keep(provider_metadata, tool.provider_metadata);
        self.advance(step, tool, piece);
    }

    fn advance(&mut self, step: ToolStep, tool: &Tool<'_>, piece: &str) {
        match step {
            ToolStep::InputStart => self.state = "input-streaming",
            ToolStep::InputDelta => self.input_text.push_str(piece),
            ToolStep::Input => {
                self.state = "input-available";
                self.input = Some(or_null(tool.input));
            }
            ToolStep::InputError => {
                self.state = "output-error";
                let input = Some(or_null(tool.input));
                // The SDK keeps an input that broke the tool's schema apart from good ones.
                match self.is_dynamic {
                    true => self.input = input,
                    false => self.raw_input = input,
                }
                self.error_text = Some(or_null(tool.error_text));
            }
            ToolStep::Approval => {
                self.state = "approval-requested";
                self.approval_id = Some(or_null(tool.approval_id));
            }
            ToolStep::Denied => self.state = "output-denied",
            ToolStep::Output => {
                self.state = "output-available";
                self.output = Some(or_null(tool.output));
                self.error_text = None;
                self.is_preliminary = tool.preliminary.unwrap_or(false);
            }
            ToolStep::OutputError => {
                self.state = "output-error";
                self.output = None;
                self.error_text = Some(or_null(tool.error_text));
                self.is_preliminary = false;
            }
        }
        if self.input.is_some() {
            self.input_text = String::new();
        }
    }

    fn size(&self) -> usize {
        let values = [
            &self.input,
            &self.raw_input,
            &self.output,
            &self.error_text,
            &self.approval_id,
            &self.title,
            &self.metadata,
            &self.call_provider_metadata,
            &self.result_provider_metadata,
        ];
        let values: usize = values.into_iter().map(size_of_optional).sum();
        written_size(&self.id) + written_size(&self.name) + self.input_text.len() + values
    }

    fn write(&self, text: &mut String) {
        if self.is_dynamic {
            text.push_str(r#"{"type":"dynamic-tool","toolName":"#);
            json::push_string(text, &self.name);
        } else {
            text.push_str(r#"{"type":"#);
            json::push_string(text, &format!("tool-{}", self.name));
        }
        text.push_str(r#","toolCallId":"#);
        json::push_string(text, &self.id);
        text.push_str(r#","state":""#);
        text.push_str(self.state);
        text.push('"');
        field(text, "title", self.title.as_deref());
        field(text, "toolMetadata", self.metadata.as_deref());
        field(text, "input", self.input.as_deref());
        field(text, "rawInput", self.raw_input.as_deref());
        if !self.input_text.is_empty() {
            self.write_streamed_input(text);
        }
        field(text, "output", self.output.as_deref());
        field(text, "errorText", self.error_text.as_deref());
        if let Some(id) = &self.approval_id {
            text.push_str(r#","approval":{"id":"#);
            text.push_str(id);
            text.push('}');
        }
        let executed = self.is_provider_executed.map(|is| is.to_string());
        field(text, "providerExecuted", executed.as_deref());
        if self.is_preliminary {
            field(text, "preliminary", Some("true"));
        }
        let metadata = self.call_provider_metadata.as_deref();
        field(text, "callProviderMetadata", metadata);
        let metadata = self.result_provider_metadata.as_deref();
        field(text, "resultProviderMetadata", metadata);
        text.push('}');
    }

    /// An input that was never said to be complete: a value if it is one, else the text so far.
    fn write_streamed_input(&self, text: &mut String) {
        let quoted = format!("\"{}\"", self.input_text);
        let input = serde_json::from_str::<String>(&quoted).ok();
        let is_value = |input: &String| {
            let is_json = serde_json::from_str::<&RawValue>(input).is_ok();
            is_json && json::depth(input.as_bytes()) < json::DEPTH_MAX - 1
        };
        match input.filter(is_value) {
            Some(input) => field(text, "input", Some(input.trim())),
            None => field(text, "rawInput", Some(&quoted)),
        }
    }
}

impl Slot {
    /// Bytes of the part, at most.
    pub(super) fn size(&self) -> usize {
        OVERHEAD
            + match self {
                Self::Text(text) => text.size(),
                Self::Call(call) => call.size(),
                Self::Data { json, .. } | Self::Whole(json) => json.len(),
            }
    }

    /// Appends the part's JSON.
    pub(super) fn write(&self, text: &mut String) {
        match self {
            Self::Text(part) => part.write(text),
            Self::Call(call) => call.write(text),
            Self::Data { json, .. } | Self::Whole(json) => text.push_str(json),
        }
    }
}

/// Names of fields, quotes and braces of a part, at most: those of a tool's call.
pub(super) const OVERHEAD: usize = 320;

/// Bytes of `text` as JSON, without the quotes. No way to write it takes fewer.
fn written_size(text: &str) -> usize {
    let size = |byte| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
        0..=0x1f => "\\u0000".len(),
        _ => 1,
    };
    text.bytes().map(size).sum()
}

fn size_of_optional(value: &Option<String>) -> usize {
    value.as_ref().map_or(0, String::len)
}

fn keep(place: &mut Option<String>, value: Option<&RawValue>) {
    if let Some(value) = value {
        *place = Some(value.get().to_owned());
    }
}

fn or_null(value: Option<&RawValue>) -> String {
    value.map_or("null", RawValue::get).to_owned()
}

fn field(text: &mut String, name: &str, value: Option<&str>) {
    if let Some(value) = value {
        text.push_str(",\"");
        text.push_str(name);
        text.push_str("\":");
        text.push_str(value);
    }
}
