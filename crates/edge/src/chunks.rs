//! A streamed answer: the AI SDK's UI message chunks, read as they come and put together into the
//! parts of one message.
//!
//! The chunks are those of the AI SDK's UI message stream, version 1 (`ui-message-chunks.ts` and
//! `process-ui-message-stream.ts` of `vercel/ai`, <https://ai-sdk.dev/docs/ai-sdk-ui/stream-protocol>),
//! one JSON object a line or an event. A [`Splitter`] finds the objects in whatever pieces a body
//! arrives, an [`Assembly`] takes them one by one and can be asked for the message at any time,
//! because any moment may be the last.
//!
//! The message is the one that `readUIMessageStream` of `ai` 7 makes of the same chunks, also when they
//! break off. What is inside a chunk goes into the message byte for byte: texts are joined as they are
//! written, escapes and all.
//!
//! Invariant: *the message is never larger than its limit, and neither is what is held for it*.

mod assembly;
mod call;
mod chunk;
mod ending;
mod metadata;
mod repair;
mod slot;
mod split;
#[cfg(test)]
mod tests;
mod tools;

pub use assembly::{Assembly, ChunkError, Sizes};
pub use ending::{Assembled, Ended};
pub use split::{Framing, Splitter, TooLong};

/// Makes messages of drafts for a node, which knows no JSON. What is no chunk ends a draft.
#[derive(Clone, Copy, Debug)]
pub struct Assembler {
    /// What a message may take.
    pub sizes: Sizes,
}

impl node::conversations::Assemble for Assembler {
    fn assemble(&self, chunks: &mut dyn Iterator<Item = &[u8]>) -> node::conversations::Assembled {
        let mut assembly = Assembly::new(self.sizes);
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
}
