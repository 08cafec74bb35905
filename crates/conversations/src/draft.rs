//! Drafts: messages that are being streamed.
//!
//! A draft holds the chunks received so far, which watchers read at their own pace and which are
//! written to the log of drafts a little later. Chunks are numbered from 0. A draft never loses or
//! renumbers a chunk, so a watcher that knows the index of its last chunk continues after it.
//!
//! Invariant: *no chunk is shown before the draft's opening is durable, and the logged chunks are a
//! prefix of the received ones.*

use std::collections::BTreeMap;

use crate::message::Status;
use crate::record::{DRAFT_CARRIED, DRAFT_CHUNKS, DRAFT_CLOSE, DRAFT_ERASE, DRAFT_OPEN};
use crate::record::{DraftCarried, DraftChunks, DraftClose, DraftOpen, Malformed};

/// An open draft.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// The chunks, each followed by a line feed.
    lines: Vec<u8>,
    /// The end position of each chunk, including its line feed.
    ends: Vec<u32>,
    /// Number of chunks that were handed to the log.
    logged: u32,
    bytes_max: usize,
    is_shown: bool,
    is_stopped: bool,
}

/// The reason why a chunk is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The draft would exceed its maximum size.
    #[error("the streamed message exceeds {max} bytes (conversation.draft_size_max)")]
    Size {
        /// The limit.
        max: usize,
    },
    /// The chunk contains a line feed.
    #[error("the chunk contains a line feed")]
    LineFeed,
}

impl Draft {
    /// Creates an empty draft for less than `bytes_max` bytes, at most 4 GiB.
    pub fn new(bytes_max: usize) -> Self {
        Self {
            lines: Vec::new(),
            ends: Vec::new(),
            logged: 0,
            bytes_max: bytes_max.min(u32::MAX as usize),
            is_shown: false,
            is_stopped: false,
        }
    }

    /// Adds the next chunk and returns its index.
    pub fn push(&mut self, chunk: &[u8]) -> Result<u32, Refused> {
        let max = self.bytes_max;
        if self.lines.len() + chunk.len() >= max {
            return Err(Refused::Size { max });
        }
        if chunk.contains(&b'\n') {
            return Err(Refused::LineFeed);
        }
        let index = self.len();
        self.lines.extend_from_slice(chunk);
        self.lines.push(b'\n');
        self.ends.push(self.lines.len() as u32);
        Ok(index)
    }

    /// Returns the number of chunks.
    pub fn len(&self) -> u32 {
        self.ends.len() as u32
    }

    /// Returns whether there are no chunks.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns all chunks, each followed by a line feed.
    pub fn lines(&self) -> &[u8] {
        &self.lines
    }

    fn begin(&self, index: u32) -> usize {
        match index.checked_sub(1) {
            None => 0,
            Some(before) => {
                let end = self.ends.get(before as usize);
                end.map_or(self.lines.len(), |end| *end as usize)
            }
        }
    }

    /// Makes the draft visible to watchers, once its opening is durable.
    pub fn show(&mut self) {
        self.is_shown = true;
    }

    /// Returns whether watchers may see the draft.
    pub fn is_shown(&self) -> bool {
        self.is_shown
    }

    /// Returns the chunks from index `from` on, if the draft is visible to watchers.
    pub fn chunks(&self, from: u32) -> impl Iterator<Item = (u32, &[u8])> + '_ {
        let end = if self.is_shown { self.len() } else { 0 };
        (from..end).map(|index| {
            let line = &self.lines[self.begin(index)..self.begin(index + 1) - 1];
            (index, line)
        })
    }

    /// Returns all chunks, to append to the log when the draft is carried. Afterwards
    /// [`Draft::logged`] must be called.
    pub fn all(&self, number: u64) -> DraftChunks<'_> {
        DraftChunks {
            draft: number,
            first: 0,
            lines: &self.lines,
        }
    }

    /// Returns the chunks that are not logged yet, if any. Afterwards [`Draft::logged`] must be
    /// called.
    pub fn unlogged(&self, number: u64) -> Option<DraftChunks<'_>> {
        (self.logged < self.len()).then(|| DraftChunks {
            draft: number,
            first: self.logged,
            lines: &self.lines[self.begin(self.logged)..],
        })
    }

    /// Records that the chunks before index `next` were appended to the log.
    pub fn logged(&mut self, next: u32) {
        self.logged = self.logged.max(next.min(self.len()));
    }

    /// Requests that the author stops. Returns true for the first request.
    pub fn stop(&mut self) -> bool {
        !std::mem::replace(&mut self.is_stopped, true)
    }

    /// Returns whether the author was requested to stop.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped
    }
}

/// Returns the final status of a draft whose author disappeared.
pub fn lost_status(draft: &Draft) -> Status {
    match draft.is_stopped {
        true => Status::Stopped,
        false => Status::Interrupted,
    }
}

/// The open drafts of a log, which determine the part of the log that is needed.
///
/// Chunks of an erased conversation must leave the disk even while other drafts stay open. From
/// [`Log::erase`] on, drafts that were opened before are *carried*: written again at the end of the
/// log. Once all of them are closed or carried, the log is erased up to the oldest remaining one.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// The offset at which each open draft begins, by draft number.
    open: BTreeMap<u64, u64>,
    /// Records before this offset must leave the disk.
    erased: Option<u64>,
}

/// A possible cut of the beginning of a log, up to an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The records may be trimmed.
    Trim(u64),
    /// The records must leave the disk. Afterwards [`Log::cut`] must be called.
    Erase(u64),
}

impl Log {
    /// Records that a draft was opened. Its number is the offset of its record.
    pub fn opened(&mut self, number: u64) {
        self.open.insert(number, number);
    }

    /// Records that a draft was written again and now begins at `begin`.
    pub fn carried(&mut self, number: u64, begin: u64) {
        self.open.insert(number, begin);
    }

    /// Records that everything before this offset, at which the erase record lies, must leave the
    /// disk.
    pub fn erase(&mut self, before: u64) {
        self.erased = self.erased.max(Some(before));
    }

    /// Returns whether a draft must be carried unless it is closed soon.
    pub fn is_in_the_way(&self, number: u64) -> bool {
        let begin = self.open.get(&number);
        begin.is_some_and(|begin| Some(*begin) < self.erased)
    }

    /// Returns whether records must leave the disk.
    pub fn is_erasing(&self) -> bool {
        self.erased.is_some()
    }

    /// Records that a draft was closed. Returns false if it was not open.
    pub fn closed(&mut self, number: u64) -> bool {
        self.open.remove(&number).is_some()
    }

    /// Returns whether no draft is open.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Returns the possible cut of the log's beginning; `next` is the offset of its next record.
    pub fn to_cut(&self, next: u64) -> Cut {
        let before = self.open.values().min().map_or(next, |oldest| *oldest);
        match self.erased {
            Some(erased) if before > erased => Cut::Erase(before),
            _ => Cut::Trim(before),
        }
    }

    /// Records that the cut was done.
    pub fn cut(&mut self, cut: Cut) {
        if let Cut::Erase(_) = cut {
            self.erased = None;
        }
    }
}

/// A draft that was open when its node failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbandonedDraft {
    /// The draft's number.
    pub number: u64,
    /// The offset at which it begins in the log.
    pub begin: u64,
    /// The conversation, as the stream of its messages.
    pub conversation: u64,
    /// The time of its opening, in milliseconds since 1970-01-01 UTC.
    pub opened_ms: u64,
    /// The id of the message that it becomes.
    pub id: String,
    /// The author's role.
    pub role: String,
    /// The author.
    pub from: String,
    /// The metadata, as opaque bytes.
    pub metadata: Vec<u8>,
    /// The logged chunks.
    pub draft: Draft,
}

/// Recovery of the open drafts from a log.
#[derive(Debug)]
pub struct Recovery {
    bytes_max: usize,
    open: BTreeMap<u64, AbandonedDraft>,
    erased: Option<u64>,
}

impl Recovery {
    /// Starts the recovery of a log whose drafts have less than `bytes_max` bytes.
    pub fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            open: BTreeMap::new(),
            erased: None,
        }
    }

    /// Processes a record of the log, in order.
    pub fn record(&mut self, offset: u64, tag: u8, bytes: &[u8]) -> Result<(), Malformed> {
        match tag {
            DRAFT_OPEN => self.open(offset, offset, &DraftOpen::decode(bytes)?),
            DRAFT_CARRIED => {
                let DraftCarried { draft, open } = DraftCarried::decode(bytes)?;
                // The number is the offset of the original record, which lies before this one.
                if draft >= offset {
                    return Err(Malformed {
                        what: "a carried draft",
                    });
                }
                self.open(draft, offset, &open);
            }
            DRAFT_ERASE => self.erased = Some(offset),
            DRAFT_CHUNKS => self.chunks(&DraftChunks::decode(bytes)?)?,
            DRAFT_CLOSE => {
                self.open.remove(&DraftClose::decode(bytes)?.draft);
            }
            _ => {
                return Err(Malformed {
                    what: "log of drafts",
                });
            }
        }
        Ok(())
    }

    fn open(&mut self, number: u64, begin: u64, open: &DraftOpen<'_>) {
        let lost = AbandonedDraft {
            number,
            begin,
            conversation: open.conversation,
            opened_ms: open.opened_ms,
            id: open.id.to_owned(),
            role: open.role.to_owned(),
            from: open.from.to_owned(),
            metadata: open.metadata.to_vec(),
            draft: Draft::new(self.bytes_max),
        };
        self.open.insert(number, lost);
    }

    /// Adds logged chunks. Chunks of a closed draft are ignored. A draft that was accepted under a
    /// larger size limit is restored whole.
    fn chunks(&mut self, chunks: &DraftChunks<'_>) -> Result<(), Malformed> {
        let Some(lost) = self.open.get_mut(&chunks.draft) else {
            return Ok(());
        };
        let malformed = Malformed {
            what: "chunks of a draft",
        };
        let draft = &mut lost.draft;
        if chunks.first != draft.len() {
            return Err(malformed);
        }
        let size = draft.lines.len() + chunks.lines.len();
        draft.bytes_max = draft.bytes_max.max(size + 1);
        for chunk in chunks.iter() {
            draft.push(chunk).map_err(|_| malformed)?;
        }
        draft.logged = draft.len();
        Ok(())
    }

    /// Returns the offset before which records must leave the disk, if an erasure was not
    /// completed.
    pub fn erased(&self) -> Option<u64> {
        self.erased
    }

    /// Returns the open drafts after the last record, oldest first.
    pub fn finish(self) -> impl Iterator<Item = AbandonedDraft> {
        self.open.into_values()
    }
}

#[cfg(test)]
mod tests;
