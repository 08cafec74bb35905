//! The part of a tool call: it is completed in place by its result.

use serde_json::value::RawValue;

use super::chunk::{Approved, Tool};
use super::repair::partial_value;
use super::written::{OVERHEAD, field, owned, size_of_optional, written_size};

/// The received part of a tool's streamed input: the first `len` bytes of one of the assembly's
/// streams, which hold the text between the quotes of the deltas.
#[derive(Clone, Copy, Debug)]
pub(super) struct Streamed {
    pub(super) stream: usize,
    pub(super) len: usize,
    /// True if the input is a text instead of JSON.
    pub(super) is_text: bool,
}

impl Streamed {
    fn body<'s>(&self, streams: &'s [String]) -> &'s str {
        &streams[self.stream][..self.len]
    }

    /// Returns the complete input, or its completed beginning, as JSON; `None` if it is not valid
    /// yet.
    fn value(&self, streams: &[String]) -> Option<String> {
        let body = self.body(streams);
        if self.is_text {
            return Some(format!("\"{body}\""));
        }
        let unescaped = |body: &str| serde_json::from_str::<String>(&format!("\"{body}\"")).ok();
        // The first half of a surrogate pair is not a valid text yet.
        let cut = || body.rfind("\\u").map(|at| &body[..at]);
        let input = unescaped(body).or_else(|| unescaped(cut()?))?;
        partial_value(&input)
    }
}

/// A tool's input.
#[derive(Debug, Default)]
pub(super) enum Input {
    #[default]
    Absent,
    /// JSON.
    Value(String),
    /// The input may be incomplete.
    Streamed(Streamed),
}

/// The fields that a chunk sets in a call, as the AI SDK does.
#[derive(Debug, Default)]
pub(super) struct Update {
    pub(super) state: &'static str,
    pub(super) input: Input,
    pub(super) raw_input: Option<Streamed>,
    pub(super) encoding: Option<String>,
    pub(super) output: Option<String>,
    pub(super) error_text: Option<String>,
    pub(super) preliminary: Option<bool>,
    /// The following fields keep their value if they are absent.
    pub(super) title: Option<String>,
    pub(super) metadata: Option<String>,
    pub(super) provider_executed: Option<bool>,
    pub(super) provider_metadata: Option<String>,
}

impl Update {
    /// An update with the fields that mean the same in every chunk.
    pub(super) fn new(state: &'static str, tool: &Tool<'_>) -> Self {
        Self {
            state,
            metadata: owned(tool.tool_metadata),
            provider_executed: tool.provider_executed,
            provider_metadata: owned(tool.provider_metadata),
            ..Self::default()
        }
    }
}

/// An approval request and its response.
#[derive(Debug)]
struct Approval {
    id: String,
    /// The fields of the request, each with the comma before it.
    request: String,
    approved: Option<bool>,
    reason: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) is_dynamic: bool,
    state: &'static str,
    input: Input,
    raw_input: Option<Streamed>,
    encoding: Option<String>,
    output: Option<String>,
    error_text: Option<String>,
    approval: Option<Approval>,
    title: Option<String>,
    metadata: Option<String>,
    call_provider_metadata: Option<String>,
    result_provider_metadata: Option<String>,
    provider_executed: Option<bool>,
    preliminary: Option<bool>,
}

impl Call {
    pub(super) fn new(id: &str, is_dynamic: bool) -> Self {
        Self {
            id: id.to_owned(),
            is_dynamic,
            ..Self::default()
        }
    }

    pub(super) fn update(&mut self, name: Option<&str>, update: Update) {
        if let Some(name) = name {
            name.clone_into(&mut self.name);
        }
        self.state = update.state;
        self.input = update.input;
        self.raw_input = update.raw_input;
        self.encoding = update.encoding;
        self.output = update.output;
        self.error_text = update.error_text;
        self.preliminary = update.preliminary;
        replace(&mut self.title, update.title);
        replace(&mut self.metadata, update.metadata);
        self.provider_executed = update.provider_executed.or(self.provider_executed);
        let provider_metadata = match update.state {
            "output-available" | "output-error" => &mut self.result_provider_metadata,
            _ => &mut self.call_provider_metadata,
        };
        replace(provider_metadata, update.provider_metadata);
    }

    /// Applies the result of the call; its input stays.
    pub(super) fn finish(&mut self, streams: &[String], update: Update) {
        let input = match std::mem::take(&mut self.input) {
            Input::Streamed(streamed) => match streamed.value(streams) {
                Some(value) => Input::Value(value),
                None => Input::Absent,
            },
            input => input,
        };
        let is_failed = update.state == "output-error" && !self.is_dynamic;
        let raw_input = self.raw_input.filter(|_| is_failed);
        let update = Update {
            input,
            raw_input,
            ..update
        };
        self.update(None, update);
    }

    pub(super) fn deny(&mut self) {
        self.state = "output-denied";
    }

    pub(super) fn request_approval(&mut self, id: &str, tool: &Tool<'_>) {
        self.state = "approval-requested";
        let mut request = String::new();
        for (name, value) in [
            ("descriptor", tool.approval_descriptor),
            ("inputSchemaInput", tool.input_schema_input.0),
            ("requestReason", tool.reason),
            ("signature", tool.signature),
        ] {
            field(&mut request, name, value.map(RawValue::get));
        }
        if tool.is_automatic == Some(true) {
            field(&mut request, "isAutomatic", Some("true"));
        }
        self.approval = Some(Approval {
            id: id.to_owned(),
            request,
            approved: None,
            reason: None,
        });
    }

    /// Returns whether the call has an approval request of this id.
    pub(super) fn has_approval(&self, id: &str) -> bool {
        self.approval.as_ref().is_some_and(|it| it.id == id)
    }

    pub(super) fn respond_to_approval(&mut self, response: &Approved<'_>) {
        self.state = "approval-responded";
        if let Some(approval) = &mut self.approval {
            approval.approved = Some(response.approved);
            replace(&mut approval.reason, owned(response.reason));
        }
        self.provider_executed = response.provider_executed.or(self.provider_executed);
        replace(
            &mut self.call_provider_metadata,
            owned(response.provider_metadata),
        );
    }

    /// Returns the largest size of the part without a streamed input, in bytes.
    pub(super) fn size(&self) -> usize {
        let values = [
            &self.output,
            &self.encoding,
            &self.error_text,
            &self.title,
            &self.metadata,
            &self.call_provider_metadata,
            &self.result_provider_metadata,
        ];
        let values: usize = values.into_iter().map(size_of_optional).sum();
        let input = match &self.input {
            Input::Value(value) => value.len(),
            Input::Absent | Input::Streamed(_) => 0,
        };
        let raw_input = self.raw_input.map_or(0, |it| it.len);
        let approval = self.approval.as_ref().map_or(0, |it| {
            written_size(&it.id) + it.request.len() + size_of_optional(&it.reason)
        });
        let names = written_size(&self.id) + written_size(&self.name);
        OVERHEAD + names + values + input + raw_input + approval
    }

    pub(super) fn write(&self, streams: &[String], text: &mut String, room: &mut usize) {
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
        match &self.input {
            Input::Absent => {}
            Input::Value(value) => field(text, "input", Some(value)),
            Input::Streamed(streamed) => {
                let value = streamed.value(streams).filter(|it| it.len() <= *room);
                *room -= value.as_ref().map_or(0, String::len);
                field(text, "input", value.as_deref());
            }
        }
        let encoding = self.encoding.as_ref().map(|it| format!("\"{it}\""));
        field(text, "inputEncoding", encoding.as_deref());
        let raw_input = self.raw_input.map(|it| it.body(streams));
        let raw_input = raw_input.map(|body| format!("\"{body}\""));
        field(text, "rawInput", raw_input.as_deref());
        field(text, "output", self.output.as_deref());
        field(text, "errorText", self.error_text.as_deref());
        if let Some(approval) = &self.approval {
            text.push_str(r#","approval":{"id":"#);
            json::push_string(text, &approval.id);
            text.push_str(&approval.request);
            let approved = approval.approved.map(|is| is.to_string());
            field(text, "approved", approved.as_deref());
            field(text, "reason", approval.reason.as_deref());
            text.push('}');
        }
        let flag = |is: Option<bool>| is.map(|is| is.to_string());
        field(
            text,
            "providerExecuted",
            flag(self.provider_executed).as_deref(),
        );
        field(text, "preliminary", flag(self.preliminary).as_deref());
        let metadata = self.call_provider_metadata.as_deref();
        field(text, "callProviderMetadata", metadata);
        let metadata = self.result_provider_metadata.as_deref();
        field(text, "resultProviderMetadata", metadata);
        text.push('}');
    }
}

fn replace(place: &mut Option<String>, value: Option<String>) {
    if value.is_some() {
        *place = value;
    }
}
