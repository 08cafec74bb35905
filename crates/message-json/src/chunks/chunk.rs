//! Parsing of one chunk.

use std::borrow::Cow;

use model::nearest;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::chunk_error::ChunkError;

/// A chunk. Values are borrowed as they are written.
#[derive(Debug)]
pub(super) enum Chunk<'a> {
    /// The message begins, or gets metadata. `message_id` is set if it begins.
    Metadata(Metadata<'a>),
    Finish(Metadata<'a>),
    Abort,
    Error(Cow<'a, str>),
    StartStep,
    FinishStep,
    /// The parts of the present step are removed.
    ResetStep,
    /// A text begins, continues or ends.
    ProseStart(Prose, Piece<'a>),
    ProseDelta(Prose, Piece<'a>),
    ProseEnd(Prose, Piece<'a>),
    /// A step of a tool call.
    Tool(ToolStep, Box<Tool<'a>>),
    /// The response to an approval request.
    Approved(Box<Approved<'a>>),
    /// Data; it replaces earlier data of the same type and id.
    Data(Data<'a>),
    /// Data that does not become a part of the message.
    Transient,
    /// A part that keeps only these fields: a file, a source.
    Picked(&'static [&'static str]),
    /// Another kind of part, taken as it is: later versions may send it.
    Part,
}

/// The kind of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Prose {
    Text,
    Reasoning,
}

/// The steps of a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToolStep {
    InputStart,
    InputDelta,
    Input,
    InputError,
    Approval,
    Denied,
    Output,
    OutputError,
}

/// A field in which `null` differs from absent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Present<'a>(pub(super) Option<&'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for Present<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(deserializer).map(|value| Self(Some(value)))
    }
}

/// The fields of the chunks of a text.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Piece<'a> {
    #[serde(borrow)]
    pub(super) id: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) delta: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) citations: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) provider_metadata: Option<&'a RawValue>,
}

/// The fields of the chunks of a tool call.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Tool<'a> {
    #[serde(borrow)]
    pub(super) tool_call_id: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) tool_name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) input_text_delta: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) input_encoding: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) input: Present<'a>,
    #[serde(borrow, default)]
    pub(super) output: Present<'a>,
    #[serde(borrow)]
    pub(super) error_text: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) approval_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) approval_descriptor: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) input_schema_input: Present<'a>,
    #[serde(borrow)]
    pub(super) reason: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) signature: Option<&'a RawValue>,
    pub(super) is_automatic: Option<bool>,
    #[serde(borrow)]
    pub(super) title: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) tool_metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) provider_metadata: Option<&'a RawValue>,
    pub(super) provider_executed: Option<bool>,
    pub(super) dynamic: Option<bool>,
    pub(super) preliminary: Option<bool>,
}

/// The fields of a `tool-approval-response`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Approved<'a> {
    #[serde(borrow)]
    pub(super) approval_id: Cow<'a, str>,
    pub(super) approved: bool,
    #[serde(borrow)]
    pub(super) reason: Option<&'a RawValue>,
    pub(super) provider_executed: Option<bool>,
    #[serde(borrow)]
    pub(super) provider_metadata: Option<&'a RawValue>,
}

/// The fields of a data chunk.
#[derive(Debug, Deserialize)]
pub(super) struct Data<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) data: Present<'a>,
    #[serde(default)]
    pub(super) transient: bool,
}

/// The fields of the chunks with message metadata.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Metadata<'a> {
    #[serde(borrow)]
    pub(super) message_metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) message_id: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Failure<'a> {
    #[serde(borrow)]
    error_text: Cow<'a, str>,
}

/// The chunk types of texts and calls, and those that change existing parts. A type that nearly
/// equals one of them is an error and not a type of a later version.
const KINDS: [&str; 16] = [
    "text-start",
    "text-delta",
    "text-end",
    "reasoning-start",
    "reasoning-delta",
    "reasoning-end",
    "tool-input-start",
    "tool-input-delta",
    "tool-input-available",
    "tool-input-error",
    "tool-output-available",
    "tool-output-error",
    "tool-output-denied",
    "tool-approval-request",
    "tool-approval-response",
    "reset-step",
];

const FILE: [&str; 4] = ["type", "mediaType", "url", "providerMetadata"];
const SOURCE_URL: [&str; 5] = ["type", "sourceId", "url", "title", "providerMetadata"];
const SOURCE_DOCUMENT: [&str; 6] = [
    "type",
    "sourceId",
    "mediaType",
    "title",
    "filename",
    "providerMetadata",
];
const CUSTOM: [&str; 3] = ["type", "kind", "providerMetadata"];
const STEERING: [&str; 3] = ["type", "id", "parts"];

impl<'a> Chunk<'a> {
    /// Parses a JSON object.
    pub(super) fn read(text: &'a str) -> Result<Self, ChunkError> {
        if json::depth(text.as_bytes()) >= json::DEPTH_MAX {
            return Err(ChunkError::TooDeep);
        }
        let head: Head<'a> = parse(text)?;
        Ok(match &*head.kind {
            "start" => Self::Metadata(parse(text)?),
            "message-metadata" => Self::Metadata(Metadata {
                message_id: None,
                ..parse(text)?
            }),
            "finish" => Self::Finish(parse(text)?),
            "abort" => Self::Abort,
            "error" => Self::Error(parse::<Failure<'a>>(text)?.error_text),
            "start-step" => Self::StartStep,
            "finish-step" => Self::FinishStep,
            "reset-step" => Self::ResetStep,
            "text-start" => Self::ProseStart(Prose::Text, parse(text)?),
            "text-delta" => Self::ProseDelta(Prose::Text, parse(text)?),
            "text-end" => Self::ProseEnd(Prose::Text, parse(text)?),
            "reasoning-start" => Self::ProseStart(Prose::Reasoning, parse(text)?),
            "reasoning-delta" => Self::ProseDelta(Prose::Reasoning, parse(text)?),
            "reasoning-end" => Self::ProseEnd(Prose::Reasoning, parse(text)?),
            "tool-input-start" => Self::Tool(ToolStep::InputStart, parse(text)?),
            "tool-input-delta" => Self::Tool(ToolStep::InputDelta, parse(text)?),
            "tool-input-available" => Self::Tool(ToolStep::Input, parse(text)?),
            "tool-input-error" => Self::Tool(ToolStep::InputError, parse(text)?),
            "tool-approval-request" => Self::Tool(ToolStep::Approval, parse(text)?),
            "tool-approval-response" => Self::Approved(parse(text)?),
            "tool-output-denied" => Self::Tool(ToolStep::Denied, parse(text)?),
            "tool-output-available" => Self::Tool(ToolStep::Output, parse(text)?),
            "tool-output-error" => Self::Tool(ToolStep::OutputError, parse(text)?),
            kind if kind.starts_with("data-") => match parse::<Data<'a>>(text)? {
                data if data.transient => Self::Transient,
                data => Self::Data(data),
            },
            "file" | "reasoning-file" => Self::Picked(&FILE),
            "source-url" => Self::Picked(&SOURCE_URL),
            "source-document" => Self::Picked(&SOURCE_DOCUMENT),
            "custom" => Self::Picked(&CUSTOM),
            "steering-message" => Self::Picked(&STEERING),
            kind => match nearest(kind, KINDS) {
                None => Self::Part,
                Some(nearest) => {
                    return Err(ChunkError::Kind {
                        kind: kind.to_owned(),
                        nearest,
                    });
                }
            },
        })
    }
}

fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, ChunkError> {
    serde_json::from_str(text).map_err(|error| ChunkError::Malformed(error.to_string()))
}
