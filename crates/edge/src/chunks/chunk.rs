//! One chunk, as the AI SDK writes it.

use std::borrow::Cow;

use model::nearest;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::assembly::ChunkError;
use crate::json;

/// What a chunk says. Values are borrowed as they are written.
#[derive(Debug)]
pub(super) enum Chunk<'a> {
    /// The message begins, ends, or has metadata.
    Metadata(Option<&'a RawValue>),
    Finish(Option<&'a RawValue>),
    Abort,
    Error(Cow<'a, str>),
    StartStep,
    FinishStep,
    /// A text begins, goes on or ends.
    ProseStart(Prose, Piece<'a>),
    ProseDelta(Prose, Piece<'a>),
    ProseEnd(Prose, Piece<'a>),
    /// Something about a tool's call.
    Tool(ToolStep, Tool<'a>),
    /// Data; a later one of the same type and id takes its place.
    Data(Data<'a>),
    /// Data that is not part of the message.
    Transient,
    /// A part as it stands: a file, a source, or what later versions may send.
    Part,
}

/// Which kind of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Prose {
    Text,
    Reasoning,
}

/// What happens to a tool's call.
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

/// Fields of the chunks of a text.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Piece<'a> {
    #[serde(borrow)]
    pub(super) id: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) delta: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) provider_metadata: Option<&'a RawValue>,
}

/// Fields of the chunks of a tool's call.
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
    pub(super) input: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) output: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) error_text: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) approval_id: Option<&'a RawValue>,
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

/// Fields of a data chunk.
#[derive(Debug, Deserialize)]
pub(super) struct Data<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) id: Option<Cow<'a, str>>,
    #[serde(default)]
    pub(super) transient: bool,
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow)]
    message_metadata: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Failure<'a> {
    #[serde(borrow)]
    error_text: Cow<'a, str>,
}

/// The chunks of a text or a call. What is nearly one of them is a slip, not a later invention.
const KINDS: [&str; 14] = [
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
];

impl<'a> Chunk<'a> {
    /// Reads a JSON object.
    pub(super) fn read(text: &'a str) -> Result<Self, ChunkError> {
        if json::depth(text.as_bytes()) >= json::DEPTH_MAX {
            return Err(ChunkError::TooDeep);
        }
        let head: Head<'a> = parse(text)?;
        Ok(match &*head.kind {
            "start" | "message-metadata" => {
                Self::Metadata(parse::<Metadata<'a>>(text)?.message_metadata)
            }
            "finish" => Self::Finish(parse::<Metadata<'a>>(text)?.message_metadata),
            "abort" => Self::Abort,
            "error" => Self::Error(parse::<Failure<'a>>(text)?.error_text),
            "start-step" => Self::StartStep,
            "finish-step" => Self::FinishStep,
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
            "tool-output-denied" => Self::Tool(ToolStep::Denied, parse(text)?),
            "tool-output-available" => Self::Tool(ToolStep::Output, parse(text)?),
            "tool-output-error" => Self::Tool(ToolStep::OutputError, parse(text)?),
            kind if kind.starts_with("data-") => match parse::<Data<'a>>(text)? {
                data if data.transient => Self::Transient,
                data => Self::Data(data),
            },
            "file"
            | "source-url"
            | "source-document"
            | "reasoning-file"
            | "custom"
            | "tool-approval-response" => Self::Part,
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
