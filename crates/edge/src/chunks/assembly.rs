//! A message that is being put together from chunks.

use node::conversations::{PartFact, Status};
use serde_json::value::RawValue;

use super::chunk::{Chunk, Data, Piece, Prose, Tool, ToolStep};
use super::slot::{Call, OVERHEAD, Slot, Text};
use crate::facts::{self, PARTS_MAX};
use crate::json;

/// What a message may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Its parts, in bytes.
    pub parts_max: usize,
    /// Its metadata, in bytes.
    pub metadata_max: usize,
}

/// Why a chunk is not taken. The message stays as it was.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChunkError {
    /// It is no JSON object of that kind.
    #[error("{0}")]
    Malformed(String),
    /// There is no such kind, and it looks like another.
    #[error("there is no chunk of type `{kind}`; is `{nearest}` meant?")]
    Kind {
        /// What it says it is.
        kind: String,
        /// What it may be.
        nearest: &'static str,
    },
    /// Objects and arrays lie too deep within each other.
    #[error("objects and arrays lie more than {max} deep", max = json::DEPTH_MAX - 1)]
    TooDeep,
    /// A text that is not under way.
    #[error("`{id}` is not under way: `{prose}-start` begins it")]
    NoText {
        /// `text` or `reasoning`.
        prose: &'static str,
        /// Its id.
        id: String,
    },
    /// A call that nobody began.
    #[error("there is no tool call `{id}`: `tool-input-start` or `tool-input-available` begins it")]
    NoCall {
        /// Its id.
        id: String,
    },
    /// A field that this kind of chunk needs.
    #[error("`{field}` is missing or of the wrong type")]
    Field {
        /// Which one.
        field: &'static str,
    },
    /// The message would be larger than allowed.
    #[error("the message would be larger than {size_max} bytes")]
    TooLarge {
        /// The limit, in bytes.
        size_max: usize,
    },
    /// The message would have too many parts.
    #[error("the message would have more than {PARTS_MAX} parts")]
    TooManyParts,
}

/// How the author ended the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// `finish`.
    Finished,
    /// `abort`.
    Aborted,
}

impl Ended {
    /// What the message is then.
    pub fn status(self) -> Status {
        match self {
            Self::Finished => Status::Complete,
            Self::Aborted => Status::Aborted,
        }
    }
}

/// What a message is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assembled {
    /// A JSON array.
    pub parts: String,
    /// One for each part.
    pub facts: Vec<PartFact>,
    /// A JSON object, empty if there are none. What an `error` chunk said is its `error`, unless its
    /// author used that name.
    pub metadata: String,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Assembly {
    sizes: Sizes,
    slots: Vec<Slot>,
    /// Bytes of all slots, at most.
    size: usize,
    metadata: String,
    error: Option<String>,
}

impl From<Assembled> for node::conversations::Assembled {
    fn from(assembled: Assembled) -> Self {
        let metadata = assembled.metadata;
        Self {
            parts: assembled.parts.into_bytes(),
            facts: assembled.facts,
            metadata: (!metadata.is_empty()).then(|| metadata.into_bytes()),
        }
    }
}

impl Sizes {
    /// Those of a node's messages: parts and metadata together are a message.
    pub fn of(limits: &node::conversations::Limits) -> Self {
        let metadata_max = limits.metadata_bytes_max;
        Self {
            parts_max: limits.message_bytes_max.saturating_sub(metadata_max),
            metadata_max,
        }
    }
}

impl Assembly {
    /// An empty message.
    pub fn new(sizes: Sizes) -> Self {
        Self {
            sizes,
            slots: Vec::new(),
            size: "[]".len(),
            metadata: String::new(),
            error: None,
        }
    }

    /// Takes the next chunk, a JSON object; says whether it is the last.
    pub fn push(&mut self, text: &str) -> Result<Option<Ended>, ChunkError> {
        let chunk = Chunk::read(text)?;
        match chunk {
            Chunk::Metadata(metadata) => self.merge(metadata).map(|()| None),
            Chunk::Finish(metadata) => self.merge(metadata).map(|()| Some(Ended::Finished)),
            Chunk::Abort => Ok(Some(Ended::Aborted)),
            chunk => {
                self.check_room(text.len())?;
                self.take(chunk, text).map(|()| None)
            }
        }
    }

    /// The message as it is now.
    pub fn message(&self) -> Assembled {
        let mut parts = String::with_capacity(self.size);
        parts.push('[');
        for (index, slot) in self.slots.iter().enumerate() {
            if index > 0 {
                parts.push(',');
            }
            slot.write(&mut parts);
        }
        parts.push(']');
        let mut facts = Vec::with_capacity(self.slots.len());
        if let Err(error) = facts::extract(parts.as_bytes(), &mut facts) {
            unreachable!("parts made here are wrong: {error}");
        }
        Assembled {
            parts,
            facts,
            metadata: self.metadata_with_error(),
        }
    }

    fn metadata_with_error(&self) -> String {
        let Some(error) = &self.error else {
            return self.metadata.clone();
        };
        let mut said = String::from(r#"{"error":"#);
        json::push_string(&mut said, error);
        said.push('}');
        let metadata = json::merge(&said, or_empty(&self.metadata), json::Null::Replaces);
        if metadata.len() <= self.sizes.metadata_max {
            metadata
        } else {
            self.metadata.clone()
        }
    }

    /// Whether a chunk of `size` bytes fits, whatever it is: it adds no more than that and what is
    /// around it.
    fn check_room(&self, size: usize) -> Result<(), ChunkError> {
        let size_max = self.sizes.parts_max;
        if self.size + size + OVERHEAD > size_max {
            return Err(ChunkError::TooLarge { size_max });
        }
        Ok(())
    }

    fn take(&mut self, chunk: Chunk<'_>, text: &str) -> Result<(), ChunkError> {
        match chunk {
            Chunk::Metadata(_) | Chunk::Finish(_) | Chunk::Abort | Chunk::Transient => Ok(()),
            Chunk::Error(error) => {
                self.error = Some(error.into_owned());
                Ok(())
            }
            Chunk::StartStep => self.add(Slot::Whole(r#"{"type":"step-start"}"#.to_owned())),
            Chunk::FinishStep => {
                self.close_texts();
                Ok(())
            }
            Chunk::ProseStart(prose, piece) => {
                let mut text = Text::new(prose, &piece.id);
                text.set_provider_metadata(piece.provider_metadata);
                self.add(Slot::Text(text))
            }
            Chunk::ProseDelta(prose, piece) => {
                let field = ChunkError::Field { field: "delta" };
                let body = piece.delta.and_then(json::string_body).ok_or(field)?;
                self.change_text(prose, &piece, |text| text.push(body))
            }
            Chunk::ProseEnd(prose, piece) => {
                self.change_text(prose, &piece, |text| text.is_open = false)
            }
            Chunk::Tool(step, tool) => self.change_call(step, &tool),
            Chunk::Data(data) => self.set_data(&data, text),
            Chunk::Part => {
                check_part(text)?;
                self.add(Slot::Whole(text.to_owned()))
            }
        }
    }

    fn add(&mut self, slot: Slot) -> Result<(), ChunkError> {
        if self.slots.len() == PARTS_MAX {
            return Err(ChunkError::TooManyParts);
        }
        self.size += slot.size();
        self.slots.push(slot);
        Ok(())
    }

    /// Changes the slot at `index`, and knows its size afterwards.
    fn change(&mut self, index: usize, change: impl FnOnce(&mut Slot)) {
        let Some(slot) = self.slots.get_mut(index) else {
            return;
        };
        self.size -= slot.size();
        change(slot);
        self.size += slot.size();
    }

    fn close_texts(&mut self) {
        for slot in &mut self.slots {
            if let Slot::Text(text) = slot {
                text.is_open = false;
            }
        }
    }

    fn change_text(
        &mut self,
        prose: Prose,
        piece: &Piece<'_>,
        change: impl FnOnce(&mut Text),
    ) -> Result<(), ChunkError> {
        let is_it = |slot: &Slot| {
            matches!(slot, Slot::Text(text)
                if text.is_open && text.prose == prose && text.id == piece.id)
        };
        let Some(index) = self.slots.iter().rposition(is_it) else {
            let prose = match prose {
                Prose::Text => "text",
                Prose::Reasoning => "reasoning",
            };
            let id = piece.id.clone().into_owned();
            return Err(ChunkError::NoText { prose, id });
        };
        self.change(index, |slot| {
            if let Slot::Text(text) = slot {
                change(text);
                text.set_provider_metadata(piece.provider_metadata);
            }
        });
        Ok(())
    }

    fn change_call(&mut self, step: ToolStep, tool: &Tool<'_>) -> Result<(), ChunkError> {
        let piece = tool.input_text_delta.and_then(json::string_body);
        let needs_error = matches!(step, ToolStep::InputError | ToolStep::OutputError);
        if needs_error && tool.error_text.and_then(json::string_body).is_none() {
            return Err(ChunkError::Field { field: "errorText" });
        }
        if step == ToolStep::InputDelta && piece.is_none() {
            let field = "inputTextDelta";
            return Err(ChunkError::Field { field });
        }
        if step == ToolStep::Approval && tool.approval_id.and_then(json::string_body).is_none() {
            let field = "approvalId";
            return Err(ChunkError::Field { field });
        }
        let is_it = |slot: &Slot| matches!(slot, Slot::Call(call) if call.id == tool.tool_call_id);
        let piece = piece.unwrap_or_default();
        if let Some(index) = self.slots.iter().rposition(is_it) {
            self.change(index, |slot| {
                if let Slot::Call(call) = slot {
                    call.apply(step, tool, piece);
                }
            });
            return Ok(());
        }
        let begins = matches!(
            step,
            ToolStep::InputStart | ToolStep::Input | ToolStep::InputError
        );
        if !begins {
            let id = tool.tool_call_id.clone().into_owned();
            return Err(ChunkError::NoCall { id });
        }
        if tool.tool_name.is_none() {
            return Err(ChunkError::Field { field: "toolName" });
        }
        let mut call = Call::new(&tool.tool_call_id);
        call.apply(step, tool, piece);
        self.add(Slot::Call(Box::new(call)))
    }

    fn set_data(&mut self, data: &Data<'_>, text: &str) -> Result<(), ChunkError> {
        check_part(text)?;
        let slot = Slot::Data {
            kind: data.kind.clone().into_owned(),
            id: data.id.clone().map(std::borrow::Cow::into_owned),
            json: text.to_owned(),
        };
        let is_it = |slot: &Slot| {
            matches!(slot, Slot::Data { kind, id: Some(id), .. }
                if *kind == data.kind && data.id.as_ref().is_some_and(|new| id == new))
        };
        match self.slots.iter().rposition(is_it) {
            Some(index) => {
                self.change(index, |before| *before = slot);
                Ok(())
            }
            None => self.add(slot),
        }
    }

    fn merge(&mut self, metadata: Option<&RawValue>) -> Result<(), ChunkError> {
        let Some(metadata) = metadata else {
            return Ok(());
        };
        if !metadata.get().starts_with('{') {
            let field = "messageMetadata";
            return Err(ChunkError::Field { field });
        }
        let merged = json::merge(
            or_empty(&self.metadata),
            metadata.get(),
            json::Null::Replaces,
        );
        let size_max = self.sizes.metadata_max;
        if merged.len() > size_max {
            return Err(ChunkError::TooLarge { size_max });
        }
        self.metadata = merged;
        Ok(())
    }
}

/// Whether a chunk can stand among the parts as it is.
fn check_part(text: &str) -> Result<(), ChunkError> {
    match facts::of_part(text) {
        Ok(_) => Ok(()),
        Err(reason) => Err(ChunkError::Malformed(format!("chunk{reason}"))),
    }
}

fn or_empty(object: &str) -> &str {
    if object.is_empty() { "{}" } else { object }
}
