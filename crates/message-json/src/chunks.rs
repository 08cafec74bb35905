//! Streamed answers: assembles the AI SDK's UI message chunks into the parts of one message.
//!
//! The chunks are those of the AI SDK's UI message stream, version 1 (`ui-message-chunks.ts` and
//! `process-ui-message-stream.ts` of `vercel/ai`,
//! <https://ai-sdk.dev/docs/ai-sdk-ui/stream-protocol>), one JSON object per line or event. A
//! [`Splitter`] finds the objects in a body that arrives in any pieces. An [`Assembly`] takes them
//! one by one and can return the message at any time, because the stream may break off at any
//! moment.
//!
//! The message is the one that `readUIMessageStream` of `ai` 7 makes of the same chunks, also when
//! they break off. The content of a chunk goes into the message byte for byte: texts are joined as
//! they are written, with their escapes.
//!
//! Invariant: *neither the message nor the memory for it exceeds the limit*.

mod assembly;
mod call;
mod chunk;
mod chunk_error;
mod ending;
mod metadata;
mod repair;
mod slot;
mod split;
#[cfg(test)]
mod tests;
mod tools;
mod written;

pub use assembly::{Assembly, Sizes};
pub use chunk_error::ChunkError;
pub use ending::{Assembled, AuthorEnding};
pub use split::{Framing, Splitter, TooLong};

/// Assembles the messages of drafts for a node, which knows no JSON. An invalid chunk ends a draft.
#[derive(Clone, Copy, Debug)]
pub struct Assembler;

impl conversation_service::Assemble for Assembler {
    fn assemble(
        &self,
        limits: &conversation_service::Limits,
        chunks: &mut dyn Iterator<Item = &[u8]>,
    ) -> conversation_service::AssembledContent {
        assemble(Sizes::of(limits), chunks)
    }
}

/// Returns the message of these chunks up to the first invalid one.
fn assemble(
    sizes: Sizes,
    chunks: &mut dyn Iterator<Item = &[u8]>,
) -> conversation_service::AssembledContent {
    let mut assembly = Assembly::new(sizes);
    for chunk in chunks {
        let Ok(chunk) = std::str::from_utf8(chunk) else {
            break;
        };
        if assembly.push(chunk).is_err() {
            break;
        }
    }
    assembly.message().into()
}
