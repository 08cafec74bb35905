//! Messages as clients write them in requests.
//!
//! Parts and metadata are validated and stored as the bytes that arrived, never parsed into trees.
//! Two short forms are expanded: `content`, and `tool_calls` and `tool_call_id` of OpenAI's chat
//! completions.

use std::borrow::Cow;
use std::ops::Range;

use conversation_service::{NewMessage, Original, PartFact, Status};
use http_api::Problem;
use http_api::body::{unknown, wrong_at};
use http_api::time::parse_rfc3339;
use json::Text;
use message_json::{facts, metadata};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use smallvec::SmallVec;
use utoipa::ToSchema;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, OneOfBuilder, Schema, Type};

const STATUSES: [Status; 4] = [
    Status::Complete,
    Status::Interrupted,
    Status::Aborted,
    Status::Stopped,
];

/// A message to append.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewMessage)]
pub(crate) struct Incoming<'a> {
    /// Id, 1 to 128 of `A-Z a-z 0-9 . _ : -`. A message whose id exists already is not appended
    /// again. If absent, the node generates one.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, example = "m-7f3")]
    id: Option<Text<'a>>,
    /// Role of the author in the conversation, 1 to 32 of `a-z 0-9 _ -`.
    #[serde(borrow)]
    #[schema(value_type = String, example = "user")]
    role: Text<'a>,
    /// Name of the author.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, example = "alice")]
    from: Option<Text<'a>>,
    /// Content as parts of the AI SDK, OpenAI or Anthropic; stored byte for byte.
    #[serde(borrow, default)]
    #[schema(value_type = Option<Vec<Object>>)]
    parts: Option<&'a RawValue>,
    /// Short form of `parts`: a string for one text part, or an array of parts.
    #[serde(borrow, default)]
    #[schema(schema_with = content_schema)]
    content: Option<&'a RawValue>,
    /// Tool calls as in OpenAI's chat completions; each becomes a part.
    #[serde(borrow, default)]
    #[schema(value_type = Option<Vec<Object>>)]
    tool_calls: Option<Vec<&'a RawValue>>,
    /// As in OpenAI's chat completions: `content` is the result of this tool call.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    tool_call_id: Option<Text<'a>>,
    /// Token count, if the author knows it; else estimated as a quarter of the bytes of the parts.
    #[serde(default)]
    tokens: Option<u32>,
    /// A JSON object; stored byte for byte.
    #[serde(borrow, default)]
    #[schema(value_type = Option<Object>)]
    metadata: Option<&'a RawValue>,
}

/// Returns the schema of `content`: a string, or an array of parts.
fn content_schema() -> Schema {
    let object = |kind| ObjectBuilder::new().schema_type(kind);
    let parts = ArrayBuilder::new().items(object(Type::Object));
    let content = OneOfBuilder::new()
        .item(object(Type::String))
        .item(parts)
        .item(object(Type::Null));
    Schema::OneOf(content.build())
}

/// Validated messages, ready for the node.
#[derive(Debug, Default)]
pub(super) struct Ready<'a> {
    messages: SmallVec<[ReadyMessage<'a>; 1]>,
    facts: Vec<PartFact>,
}

#[derive(Debug)]
struct ReadyMessage<'a> {
    id: Option<Cow<'a, str>>,
    role: Cow<'a, str>,
    from: Cow<'a, str>,
    tokens: Option<u32>,
    facts: Range<usize>,
    parts: Cow<'a, str>,
    metadata: &'a str,
}

impl<'a> Ready<'a> {
    /// Validates the JSON of messages, which the node does not read. `key` becomes the id of a
    /// message without one; with several messages, `:INDEX` is added to it.
    pub(super) fn new<I>(incoming: I, key: Option<&str>) -> Result<Self, Problem>
    where
        I: IntoIterator<Item = Incoming<'a>, IntoIter: ExactSizeIterator>,
    {
        let incoming = incoming.into_iter();
        let count = incoming.len();
        let mut ready = Self::default();
        ready.messages.reserve(count);
        for (index, message) in incoming.enumerate() {
            let id = match (message.id.as_ref(), key) {
                (None, Some(key)) if count == 1 => Some(Cow::Owned(key.to_owned())),
                (None, Some(key)) => Some(Cow::Owned(format!("{key}:{index}"))),
                _ => None,
            };
            ready.push(message, id).map_err(|(path, reason)| {
                wrong_at(&format!("messages[{index}]{path}"), &reason).with("index", index)
            })?;
        }
        Ok(ready)
    }

    /// Validates and adds a message. The error is the path within the message and the reason.
    fn push(
        &mut self,
        message: Incoming<'a>,
        id: Option<Cow<'a, str>>,
    ) -> Result<(), (String, String)> {
        let metadata = metadata(message.metadata).map_err(|it| (".metadata".to_owned(), it))?;
        let parts = message.parts().map_err(|it| (String::new(), it))?;
        let first = self.facts.len();
        facts::extract(parts.as_bytes(), &mut self.facts)
            .map_err(|error| (".parts".to_owned(), error.to_string()))?;
        self.messages.push(ReadyMessage {
            id: id.or(message.id.map(|id| id.0)),
            role: message.role.0,
            from: message.from.map_or(Cow::Borrowed(""), |from| from.0),
            tokens: message.tokens,
            facts: first..self.facts.len(),
            parts,
            metadata,
        });
        Ok(())
    }

    /// Returns the ids that the authors gave to the messages.
    pub(super) fn ids(&self) -> impl ExactSizeIterator<Item = Option<&str>> {
        self.messages.iter().map(|message| message.id.as_deref())
    }

    /// Returns the messages in the node's form.
    pub(super) fn messages(&self) -> SmallVec<[NewMessage<'_>; 1]> {
        self.messages
            .iter()
            .map(|it| NewMessage {
                id: it.id.as_deref(),
                role: &it.role,
                from: &it.from,
                tokens: it.tokens,
                facts: &self.facts[it.facts.clone()],
                parts: it.parts.as_bytes(),
                metadata: it.metadata.as_bytes(),
            })
            .collect()
    }
}

impl<'a> Incoming<'a> {
    /// Returns the parts, with short forms expanded.
    fn parts(&self) -> Result<Cow<'a, str>, String> {
        let content = self.content.filter(|content| content.get() != "null");
        let calls = self.tool_calls.as_deref().unwrap_or_default();
        match (self.parts, content) {
            (Some(_), Some(_)) => Err("`parts` and `content` cannot be combined".to_owned()),
            (Some(_), None) if !calls.is_empty() || self.tool_call_id.is_some() => {
                Err("`tool_calls` and `tool_call_id` require `content`, not `parts`".to_owned())
            }
            (Some(parts), None) => Ok(Cow::Borrowed(parts.get())),
            (None, None) if calls.is_empty() => Err("`parts` or `content` is missing".to_owned()),
            (None, content) => self.written_out(content.map(RawValue::get), calls),
        }
    }

    fn written_out(
        &self,
        content: Option<&'a str>,
        calls: &[&RawValue],
    ) -> Result<Cow<'a, str>, String> {
        // Room for the members around one content.
        const AROUND: usize = 64;
        let size = content.map_or(0, str::len) + AROUND;
        let mut parts = String::with_capacity(size);
        parts.push('[');
        match (content, &self.tool_call_id) {
            (None, None) => {}
            (content, Some(id)) => {
                parts.push_str(r#"{"type":"tool_result","tool_call_id":"#);
                json::push_string(&mut parts, &id.0);
                parts.push_str(r#","content":"#);
                parts.push_str(content.unwrap_or("null"));
                parts.push('}');
            }
            (Some(text), None) if text.starts_with('"') => {
                parts.push_str(r#"{"type":"text","text":"#);
                parts.push_str(text);
                parts.push('}');
            }
            (Some(array), None) if array.starts_with('[') => {
                if calls.is_empty() {
                    return Ok(Cow::Borrowed(array));
                }
                parts.push_str(array[1..array.len() - 1].trim());
            }
            (Some(_), None) => {
                return Err("`content` must be a string or an array of parts".to_owned());
            }
        }
        for call in calls {
            if parts.len() > 1 {
                parts.push(',');
            }
            parts.push_str(call.get());
        }
        parts.push(']');
        Ok(Cow::Owned(parts))
    }
}

/// A message of an export. Its sequence number and event offset are ignored, since they differ in
/// each conversation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Imported<'a> {
    #[serde(borrow, default)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    role: Text<'a>,
    #[serde(borrow, default)]
    from: Option<Text<'a>>,
    #[serde(borrow, default)]
    parts: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(default)]
    tokens: Option<u32>,
    #[serde(default)]
    estimated: bool,
    #[serde(borrow, default)]
    metadata: Option<&'a RawValue>,
    #[serde(default, rename = "seq")]
    _seq: IgnoredAny,
    #[serde(borrow, default)]
    status: Option<Text<'a>>,
    #[serde(borrow, default)]
    at: Option<Text<'a>>,
    #[serde(default, rename = "event")]
    _event: IgnoredAny,
}

impl<'a> Imported<'a> {
    /// Returns the status and the original time of the message, or an error for an invalid one.
    pub(super) fn original(&self) -> Result<Original, Problem> {
        let status = match &self.status {
            None => Status::Complete,
            Some(word) => {
                let known = STATUSES.into_iter().find(|it| it.as_str() == word.0);
                let words = STATUSES.iter().map(|it| it.as_str());
                known.ok_or_else(|| wrong_at("status", &unknown("status", &word.0, words)))?
            }
        };
        let at_ms = match &self.at {
            None => None,
            Some(at) => {
                let at_ms = parse_rfc3339(&at.0);
                let wrong = || wrong_at("at", "must be a time like 2026-03-21T12:00:00.000Z");
                Some(at_ms.ok_or_else(wrong)?)
            }
        };
        Ok(Original { status, at_ms })
    }

    /// Converts to a message as its author would append it.
    pub(super) fn into_incoming(self) -> Incoming<'a> {
        Incoming {
            id: self.id,
            role: self.role,
            from: self.from,
            parts: self.parts,
            content: self.content,
            tool_calls: None,
            tool_call_id: None,
            tokens: self.tokens.filter(|_| !self.estimated),
            metadata: self.metadata,
        }
    }
}

/// Validates metadata; returns the bytes to store: a non-empty object, or nothing.
pub(super) fn metadata(value: Option<&RawValue>) -> Result<&str, String> {
    let Some(text) = value
        .map(RawValue::get)
        .filter(|it| !matches!(*it, "null" | "{}"))
    else {
        return Ok("");
    };
    metadata::check(text.as_bytes()).map_err(|error| error.to_string())?;
    Ok(text)
}
