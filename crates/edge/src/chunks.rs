//! A streamed answer: the AI SDK's UI message chunks, read as they come and put together into the
//! parts of one message.
//!
//! The chunks are those of the AI SDK's UI message stream, version 1 (`ui-message-chunks.ts` and
//! `process-ui-message-stream.ts` of `vercel/ai`, <https://ai-sdk.dev/docs/ai-sdk-ui/stream-protocol>),
//! one JSON object a line or an event. A [`Splitter`] finds the objects in whatever pieces a body
//! arrives, an [`Assembly`] takes them one by one and can be asked for the message at any time,
//! because any moment may be the last.
//!
//! What is inside a chunk goes into the message byte for byte: texts are joined as they are
//! written, escapes and all, and values are never read.
//!
//! Invariant: *the message is never larger than its limit, and neither is what is held for it*.

mod assembly;
mod chunk;
mod slot;
mod split;
#[cfg(test)]
mod tests;

pub use assembly::{Assembled, Assembly, ChunkError, Ended, Sizes};
pub use split::{Framing, Splitter, TooLong};

/// The message that `lines`, chunks as JSON lines, make: what a draft is when nobody can finish it
/// any more. A line that is no chunk ends it.
pub fn assemble(lines: &[u8], sizes: Sizes) -> Assembled {
    let mut assembly = Assembly::new(sizes);
    for line in lines.split(|byte| *byte == b'\n') {
        let Ok(line) = std::str::from_utf8(line) else {
            break;
        };
        if !line.is_empty() && assembly.push(line).is_err() {
            break;
        }
    }
    assembly.message()
}
