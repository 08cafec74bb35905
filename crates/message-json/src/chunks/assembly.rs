//! The assembly of a message from chunks.

use std::collections::HashMap;

use conversation_service::PartFact;
use serde_json::value::RawValue;

use super::call::Call;
use super::chunk::{Chunk, Data, Metadata, Piece, Prose};
use super::chunk_error::ChunkError;
use super::ending::{Assembled, AuthorEnding};
use super::metadata::MessageMetadata;
use super::slot::{Slot, Text};
use super::tools::Partial;
use super::written::OVERHEAD;
use crate::facts::{self, PARTS_MAX};

/// The size limits of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// The size of its parts, in bytes.
    pub parts_max: usize,
    /// The size of its metadata, in bytes.
    pub metadata_max: usize,
}

/// A message in assembly. Chunks are added in order; the message can be read at any time.
#[derive(Debug)]
pub struct Assembly {
    pub(super) sizes: Sizes,
    pub(super) slots: Vec<Slot>,
    /// The number of slots that the message shows: as in the AI SDK, the start of a step appears
    /// with its first part.
    shown: usize,
    /// The largest size of all slots together, in bytes.
    size: usize,
    /// The indexes of texts that may continue, by id.
    texts: HashMap<(Prose, String), usize>,
    /// Inputs of tools that may continue, by the id of their call.
    pub(super) inputs: HashMap<String, Partial>,
    /// The received text of those inputs, as it is written between quotes.
    pub(super) streams: Vec<String>,
    /// The size of all streams, in bytes.
    pub(super) streamed_size: usize,
    metadata: MessageMetadata,
    error: Option<String>,
}

impl Sizes {
    /// Returns the sizes for a node's messages, whose limit applies to parts and metadata together.
    pub fn of(limits: &conversation_service::Limits) -> Self {
        let metadata_max = limits.metadata_bytes_max;
        Self {
            parts_max: limits.message_bytes_max.saturating_sub(metadata_max),
            metadata_max,
        }
    }
}

impl Assembly {
    /// Returns an empty message.
    pub fn new(sizes: Sizes) -> Self {
        Self {
            sizes,
            slots: Vec::new(),
            shown: 0,
            size: "[]".len(),
            texts: HashMap::new(),
            inputs: HashMap::new(),
            streams: Vec::new(),
            streamed_size: 0,
            metadata: MessageMetadata::default(),
            error: None,
        }
    }

    /// Adds the next chunk, a JSON object. Returns how the message ended if it is the last one.
    pub fn push(&mut self, text: &str) -> Result<Option<AuthorEnding>, ChunkError> {
        let chunk = Chunk::read(text)?;
        match chunk {
            Chunk::Metadata(metadata) => self.set_metadata(&metadata).map(|()| None),
            Chunk::Finish(metadata) => {
                self.set_metadata(&Metadata {
                    message_id: None,
                    ..metadata
                })?;
                Ok(Some(match self.error {
                    None => AuthorEnding::Finished,
                    Some(_) => AuthorEnding::Failed,
                }))
            }
            Chunk::Abort => Ok(Some(AuthorEnding::Aborted)),
            chunk => {
                self.check_room(text.len())?;
                self.take(chunk, text).map(|()| None)
            }
        }
    }

    /// Returns the present message.
    pub fn message(&self) -> Assembled {
        let mut parts = String::with_capacity(self.size);
        let mut room = self.sizes.parts_max.saturating_sub(self.size);
        parts.push('[');
        for (index, slot) in self.slots[..self.shown].iter().enumerate() {
            if index > 0 {
                parts.push(',');
            }
            slot.write(&self.streams, &mut parts, &mut room);
        }
        parts.push(']');
        let mut facts: Vec<PartFact> = Vec::with_capacity(self.shown);
        if let Err(error) = facts::extract(parts.as_bytes(), &mut facts) {
            unreachable!("parts made here are wrong: {error}");
        }
        let error = self.error.as_deref();
        Assembled {
            parts,
            facts,
            metadata: self.metadata.with_error(error, self.sizes.metadata_max),
        }
    }

    /// Checks that `size` bytes more fit, with the names of fields around them.
    pub(super) fn check_room(&self, size: usize) -> Result<(), ChunkError> {
        let size_max = self.sizes.parts_max;
        if self.size + size + OVERHEAD > size_max {
            return Err(ChunkError::TooLarge { size_max });
        }
        Ok(())
    }

    /// Checks that `size` bytes more of tool inputs fit.
    pub(super) fn check_streamed(&self, size: usize) -> Result<(), ChunkError> {
        let size_max = self.sizes.parts_max;
        if self.streamed_size + size > size_max {
            return Err(ChunkError::TooLarge { size_max });
        }
        Ok(())
    }

    fn take(&mut self, chunk: Chunk<'_>, text: &str) -> Result<(), ChunkError> {
        match chunk {
            Chunk::Metadata(_)
            | Chunk::Finish(_)
            | Chunk::Abort
            | Chunk::Transient
            | Chunk::FinishStep => Ok(()),
            Chunk::Error(error) => {
                self.error = Some(error.into_owned());
                Ok(())
            }
            Chunk::StartStep => {
                let shown = self.shown;
                self.add(Slot::StepStart)?;
                self.shown = shown;
                Ok(())
            }
            Chunk::ResetStep => {
                self.reset_step();
                Ok(())
            }
            Chunk::ProseStart(prose, piece) => {
                let mut text = Text::new(prose, &piece.id);
                text.set_provider_metadata(piece.provider_metadata);
                let index = self.add(Slot::Text(text))?;
                self.texts.insert((prose, piece.id.into_owned()), index);
                Ok(())
            }
            Chunk::ProseDelta(prose, piece) => {
                let field = ChunkError::Field { field: "delta" };
                let body = piece.delta.and_then(json::string_body).ok_or(field)?;
                self.change_text(prose, &piece, |text| text.push(body))
            }
            Chunk::ProseEnd(prose, piece) => {
                self.change_text(prose, &piece, |text| text.end(piece.citations))?;
                self.texts.remove(&(prose, piece.id.into_owned()));
                Ok(())
            }
            Chunk::Tool(step, tool) => self.change_tool(step, &tool),
            Chunk::Approved(response) => self.respond_to_approval(&response),
            Chunk::Data(data) => self.set_data(&data, text),
            Chunk::Picked(names) => {
                let part = json::picked(text, names);
                check_part(&part)?;
                self.add(Slot::Whole(part)).map(drop)
            }
            Chunk::Part => {
                check_part(text)?;
                self.add(Slot::Whole(text.to_owned())).map(drop)
            }
        }
    }

    /// Adds a part and returns its index.
    pub(super) fn add(&mut self, slot: Slot) -> Result<usize, ChunkError> {
        if self.slots.len() == PARTS_MAX {
            return Err(ChunkError::TooManyParts);
        }
        self.size += slot.size();
        self.slots.push(slot);
        self.shown = self.slots.len();
        Ok(self.slots.len() - 1)
    }

    /// Changes the slot at `index` and updates the size.
    fn change(&mut self, index: usize, change: impl FnOnce(&mut Slot, &[String])) {
        let Some(slot) = self.slots.get_mut(index) else {
            return;
        };
        self.size -= slot.size();
        change(slot, &self.streams);
        self.size += slot.size();
        self.shown = self.slots.len();
    }

    pub(super) fn change_call(&mut self, index: usize, change: impl FnOnce(&mut Call, &[String])) {
        self.change(index, |slot, streams| {
            if let Slot::Call(call) = slot {
                change(call, streams);
            }
        });
    }

    fn change_text(
        &mut self,
        prose: Prose,
        piece: &Piece<'_>,
        change: impl FnOnce(&mut Text),
    ) -> Result<(), ChunkError> {
        let key = (prose, piece.id.clone().into_owned());
        let Some(index) = self.texts.get(&key).copied() else {
            let prose = match prose {
                Prose::Text => "text",
                Prose::Reasoning => "reasoning",
            };
            return Err(ChunkError::NoText { prose, id: key.1 });
        };
        self.change(index, |slot, _| {
            if let Slot::Text(text) = slot {
                change(text);
                text.set_provider_metadata(piece.provider_metadata);
            }
        });
        Ok(())
    }

    /// Returns the index of the first part of the present step.
    pub(super) fn step_begin(&self) -> usize {
        let start = |slot: &Slot| matches!(slot, Slot::StepStart);
        self.slots.iter().rposition(start).map_or(0, |at| at + 1)
    }

    /// Removes the parts of the present step.
    fn reset_step(&mut self) {
        self.texts.clear();
        self.inputs.clear();
        let taken = self.slots.drain(self.step_begin()..);
        let size: usize = taken.map(|slot| slot.size()).sum();
        if size > 0 {
            self.size -= size;
            self.shown = self.slots.len();
        }
    }

    fn set_data(&mut self, data: &Data<'_>, text: &str) -> Result<(), ChunkError> {
        let is_it = |slot: &Slot| {
            matches!(slot, Slot::Data { kind, id: Some(id), .. }
                if *kind == data.kind && data.id.as_ref().is_some_and(|new| id == new))
        };
        let Some(index) = self.slots.iter().position(is_it) else {
            check_part(text)?;
            return self
                .add(Slot::Data {
                    kind: data.kind.clone().into_owned(),
                    id: data.id.clone().map(std::borrow::Cow::into_owned),
                    json: text.to_owned(),
                })
                .map(drop);
        };
        let new = data.data.0.map(RawValue::get);
        self.change(index, |slot, _| {
            if let Slot::Data { json, .. } = slot {
                *json = json::with_field(json, "data", new);
            }
        });
        Ok(())
    }

    fn set_metadata(&mut self, metadata: &Metadata<'_>) -> Result<(), ChunkError> {
        if let Some(value) = metadata.message_metadata {
            let merged = self.metadata.merged(value.get());
            let size_max = self.sizes.metadata_max;
            if merged.size() > size_max {
                return Err(ChunkError::TooLarge { size_max });
            }
            self.metadata = merged;
        } else if metadata.message_id.is_none() {
            return Ok(());
        }
        self.shown = self.slots.len();
        Ok(())
    }
}

/// Checks that a chunk is a valid part as it is.
fn check_part(text: &str) -> Result<(), ChunkError> {
    match facts::of_part(text) {
        Ok(_) => Ok(()),
        Err(reason) => Err(ChunkError::Malformed(format!("chunk{reason}"))),
    }
}
