//! The facts of one part: its kind, and the tool call that it belongs to.

use std::borrow::Cow;

use conversation_service::{PartFact, PartKind, Stub, call_hash};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::stub;
use super::word::Word;

/// The fields that determine the kind of a part. Except for `type`, a field that is not a text is
/// ignored: a data part may use any name for anything.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Part<'a> {
    #[serde(borrow, rename = "type")]
    kind: Word<'a>,
    #[serde(borrow)]
    id: Word<'a>,
    #[serde(borrow)]
    state: Word<'a>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    // AI SDK.
    #[serde(borrow, rename = "toolCallId")]
    tool_call_id: Word<'a>,
    #[serde(borrow, rename = "toolInvocation")]
    invocation: Option<&'a RawValue>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
    #[serde(borrow, rename = "errorText")]
    error_text: Option<&'a RawValue>,
    #[serde(borrow)]
    approval: Option<&'a RawValue>,
    // OpenAI.
    #[serde(borrow, rename = "tool_call_id")]
    answered_id: Word<'a>,
    #[serde(borrow)]
    call_id: Word<'a>,
    #[serde(borrow)]
    tool_calls: Option<&'a RawValue>,
    // Anthropic.
    #[serde(borrow)]
    tool_use_id: Word<'a>,
}

/// The object around a tool part in the AI SDK up to version 4.
#[derive(Deserialize)]
struct Invocation<'a> {
    #[serde(borrow, default, rename = "toolCallId")]
    tool_call_id: Word<'a>,
    #[serde(borrow, default)]
    state: Word<'a>,
}

/// The decision on a call that needed an approval.
#[derive(Deserialize)]
struct Approval {
    approved: Option<bool>,
}

/// A call in the `tool_calls` of OpenAI's chat completions.
#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow, default)]
    id: Word<'a>,
}

/// A kind, and the id of the tool call if there is one.
type Meaning<'a> = (PartKind, Option<Cow<'a, str>>);

/// The beginning of a part that is only a text, as most parts are written.
const TEXT_BEGIN: &str = r#"{"type":"text","text":""#;

/// Returns the facts of the only part of a message if it is written like
/// `[{"type":"text","text":"Hi"}]`, as most messages are; `None` if the parser must decide. Unlike
/// the parser, it reads the text only once, by vector instructions.
pub(super) fn read_single_text(parts: &str) -> Option<PartFact> {
    let part = parts.strip_prefix('[')?.strip_suffix(']')?;
    let rest = json::behind_valid_string(part.strip_prefix(TEXT_BEGIN)?)?;
    (rest == "}").then(|| text_fact(part))
}

/// Returns the facts of a part that is known to be valid JSON, or the path and the error. A part
/// that is only a text needs no second pass of the parser.
pub(super) fn read_valid(part: &RawValue) -> Result<PartFact, String> {
    let part = part.get();
    let rest = part.strip_prefix(TEXT_BEGIN);
    match rest.map(|rest| json::behind_string(rest.as_bytes())) {
        Some(b"}") => Ok(text_fact(part)),
        _ => read(part),
    }
}

/// Returns the facts of a part that is only a text.
fn text_fact(part: &str) -> PartFact {
    // The closing brace takes the place of the opening quote.
    let long = part.len() - TEXT_BEGIN.len();
    PartFact {
        kind: PartKind::Text,
        size: size_of(part),
        call: 0,
        stub: stub::measure(part, long),
    }
}

/// Returns the facts of the part in `text`, or the path and the error.
pub(super) fn read(text: &str) -> Result<PartFact, String> {
    if !text.starts_with('{') {
        return Err(format!(": an object is expected, found {}", what(text)));
    }
    let part: Part<'_> = serde_json::from_str(text).map_err(|error| format!(": {error}"))?;
    let long = part.text.map_or(0, |text| text.get().len());
    let (kind, id) = meaning(part)?;
    Ok(PartFact {
        kind,
        size: size_of(text),
        call: id.map_or(0, |id| call_hash(&id)),
        stub: match kind {
            // Old reasoning is left out completely.
            PartKind::Reasoning => Stub::NONE,
            _ => stub::measure(text, long),
        },
    })
}

fn size_of(part: &str) -> u32 {
    u32::try_from(part.len()).unwrap_or(u32::MAX)
}

fn meaning(mut part: Part<'_>) -> Result<Meaning<'_>, String> {
    if let Some(id) = std::mem::take(&mut part.answered_id).text() {
        return Ok((PartKind::ToolResult, Some(id)));
    }
    let kind = match &part.kind {
        Word::Text(kind) => kind.clone(),
        Word::Other => return Err(".type: a text is expected".to_owned()),
        Word::Absent => return untyped(part.tool_calls, part.text),
    };
    Ok(match &*kind {
        "text" | "input_text" | "output_text" | "refusal" => (PartKind::Text, None),
        "reasoning" | "reasoning-file" | "thinking" | "redacted_thinking" => {
            (PartKind::Reasoning, None)
        }
        "file" | "image" | "image_url" | "input_image" | "input_file" | "input_audio"
        | "document" => (PartKind::File, None),
        "source" | "source-url" | "source-document" | "search_result" => (PartKind::Source, None),
        "tool_use" | "server_tool_use" | "mcp_tool_use" | "function" => {
            (PartKind::ToolCall, part.id.text())
        }
        "function_call" | "custom_tool_call" | "computer_call" | "local_shell_call"
        | "shell_call" | "apply_patch_call" => (PartKind::ToolCall, part.call_id.text()),
        kind if kind.ends_with("_call_output") => (PartKind::ToolResult, part.call_id.text()),
        "tool-invocation" => return Ok(invocation(part.invocation)),
        "tool-call" if part.state.is_absent() => (PartKind::ToolCall, part.tool_call_id.text()),
        "tool-result" | "tool-error" if part.state.is_absent() => {
            (PartKind::ToolResult, part.tool_call_id.text())
        }
        "tool-approval-request" | "tool-approval-response" if part.state.is_absent() => {
            (PartKind::Other, None)
        }
        // A part of a UI message is completed in place. Until then it is a call without a result.
        kind if kind == "dynamic-tool" || kind.starts_with("tool-") => {
            let kind = match is_answered(&part) {
                true => PartKind::ToolPair,
                false => PartKind::ToolCall,
            };
            (kind, part.tool_call_id.text())
        }
        kind if kind == "tool_result" || kind.ends_with("_tool_result") => {
            (PartKind::ToolResult, part.tool_use_id.text())
        }
        kind if kind.starts_with("data-") => (PartKind::Data, None),
        _ => (PartKind::Other, None),
    })
}

/// Returns whether a tool part of a UI message has its result: an output, an error or a denial. The
/// states are those of `UIToolInvocation` (`ui-messages.ts` of `vercel/ai`).
fn is_answered(part: &Part<'_>) -> bool {
    match &part.state {
        Word::Text(state) => match &**state {
            "output-available" | "output-error" | "output-denied" => true,
            "approval-responded" => {
                let approval = part.approval.map(RawValue::get);
                let approval = approval.and_then(|it| serde_json::from_str::<Approval>(it).ok());
                approval.and_then(|it| it.approved) == Some(false)
            }
            _ => false,
        },
        Word::Absent | Word::Other => part.output.is_some() || part.error_text.is_some(),
    }
}

fn untyped<'a>(
    calls: Option<&'a RawValue>,
    text: Option<&RawValue>,
) -> Result<Meaning<'a>, String> {
    let calls = calls.and_then(|calls| serde_json::from_str::<Vec<Call<'_>>>(calls.get()).ok());
    match calls.as_deref() {
        None | Some([]) => match text {
            Some(text) if text.get().starts_with('"') => Ok((PartKind::Text, None)),
            _ => Ok((PartKind::Other, None)),
        },
        Some([_]) => {
            let call = calls.and_then(|mut calls| calls.pop());
            Ok((PartKind::ToolCall, call.and_then(|call| call.id.text())))
        }
        Some(several) => Err(format!(
            ".tool_calls holds {} calls: write each as a part of its own",
            several.len()
        )),
    }
}

fn invocation(json: Option<&RawValue>) -> Meaning<'_> {
    let invocation = json.and_then(|json| serde_json::from_str::<Invocation<'_>>(json.get()).ok());
    match invocation {
        None => (PartKind::Other, None),
        Some(invocation) => {
            let kind = match &invocation.state {
                Word::Text(state) if state != "result" => PartKind::ToolCall,
                _ => PartKind::ToolPair,
            };
            (kind, invocation.tool_call_id.text())
        }
    }
}

/// Returns the type of a JSON value, by its first byte.
fn what(json: &str) -> &'static str {
    match json.as_bytes().first() {
        Some(b'"') => "a text",
        Some(b'[') => "an array",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    }
}
