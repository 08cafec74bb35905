//! A message that is being streamed.
//!
//! What has come is kept here, chunk by chunk, for watchers to read at their own pace, and handed to
//! the log of drafts a little later. Chunks are numbered from 0; a draft never loses or renumbers
//! one, so that a watcher who knows the index of the last one it saw goes on behind it.
//!
//! Invariant: *nothing of a draft is shown before its opening is durable, and what was logged is a
//! prefix of what has come.*

use std::collections::BTreeMap;

use crate::message::Status;
use crate::record::{DRAFT_CARRIED, DRAFT_CHUNKS, DRAFT_CLOSE, DRAFT_ERASE, DRAFT_OPEN};
use crate::record::{DraftCarried, DraftChunks, DraftClose, DraftOpen, Malformed};

/// A draft that is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// Its chunks, each with a line feed behind it.
    lines: Vec<u8>,
    /// Where each ends, its line feed included.
    ends: Vec<u32>,
    /// Chunks that were handed to the log.
    logged: u32,
    bytes_max: usize,
    is_shown: bool,
    is_stopped: bool,
}

/// Why a chunk is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The draft would be too large.
    #[error("a streamed message has at most {max} bytes")]
    Size {
        /// The limit.
        max: usize,
    },
    /// A chunk is one line.
    #[error("a chunk has no line feed in it")]
    LineFeed,
}

impl Draft {
    /// An empty one that takes so many bytes, at most 4 GiB.
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

    /// Takes the next chunk, and says its index.
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

    /// How many chunks there are.
    pub fn len(&self) -> u32 {
        self.ends.len() as u32
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Everything that has come: lines.
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

    /// The opening is durable: watchers may see it.
    pub fn show(&mut self) {
        self.is_shown = true;
    }

    /// Whether watchers may see it.
    pub fn is_shown(&self) -> bool {
        self.is_shown
    }

    /// What a watcher has not seen, from that chunk on; nothing before the draft may be seen.
    pub fn chunks(&self, from: u32) -> impl Iterator<Item = (u32, &[u8])> + '_ {
        let end = if self.is_shown { self.len() } else { 0 };
        (from..end).map(|index| {
            let line = &self.lines[self.begin(index)..self.begin(index + 1) - 1];
            (index, line)
        })
    }

    /// What is appended to the log when the draft is carried: everything that has come. Then say
    /// [`Draft::logged`].
    pub fn all(&self, number: u64) -> DraftChunks<'_> {
        DraftChunks {
            draft: number,
            first: 0,
            lines: &self.lines,
        }
    }

    /// What is to be appended to the log, if anything has come since. Then say [`Draft::logged`].
    pub fn unlogged(&self, number: u64) -> Option<DraftChunks<'_>> {
        (self.logged < self.len()).then(|| DraftChunks {
            draft: number,
            first: self.logged,
            lines: &self.lines[self.begin(self.logged)..],
        })
    }

    /// Chunks up to that index, but not that one, were appended to the log.
    pub fn logged(&mut self, next: u32) {
        self.logged = self.logged.max(next.min(self.len()));
    }

    /// Somebody asks for it to stop. True the first time.
    pub fn stop(&mut self) -> bool {
        !std::mem::replace(&mut self.is_stopped, true)
    }

    /// Whether its author is to stop.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped
    }
}

/// How a draft's message ends when its author says no word about it.
pub fn lost_status(draft: &Draft) -> Status {
    match draft.is_stopped {
        true => Status::Stopped,
        false => Status::Interrupted,
    }
}

/// Which drafts of a log are open, and so what of the log is needed.
///
/// What an erased conversation streamed must leave the disk while others are being streamed. From
/// [`Log::erase`] on, those that were open before are *carried*: written again, behind. When all of
/// them are over or carried, the log is erased before them.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// By number, where each begins.
    open: BTreeMap<u64, u64>,
    /// What is before this offset is to leave the disk.
    erased: Option<u64>,
}

/// What may be done about the beginning of a log, before an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// It may be trimmed.
    Trim(u64),
    /// It is to leave the disk. Then say [`Log::cut`].
    Erase(u64),
}

impl Log {
    /// A draft was opened: its record is at that offset, which is its number.
    pub fn opened(&mut self, number: u64) {
        self.open.insert(number, number);
    }

    /// A draft begins at that offset now: it was written again there.
    pub fn carried(&mut self, number: u64, begin: u64) {
        self.open.insert(number, begin);
    }

    /// What is before this offset is to leave the disk: a record of it stands there.
    pub fn erase(&mut self, before: u64) {
        self.erased = self.erased.max(Some(before));
    }

    /// Whether a draft is to be carried, if it is not over soon.
    pub fn is_in_the_way(&self, number: u64) -> bool {
        let begin = self.open.get(&number);
        begin.is_some_and(|begin| Some(*begin) < self.erased)
    }

    /// Whether something is to leave the disk.
    pub fn is_erasing(&self) -> bool {
        self.erased.is_some()
    }

    /// A draft is over. False if it was not open.
    pub fn closed(&mut self, number: u64) -> bool {
        self.open.remove(&number).is_some()
    }

    /// Whether no draft is open.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// What may be done about its beginning; `next` is the offset of its next record.
    pub fn to_cut(&self, next: u64) -> Cut {
        let before = self.open.values().min().map_or(next, |oldest| *oldest);
        match self.erased {
            Some(erased) if before > erased => Cut::Erase(before),
            _ => Cut::Trim(before),
        }
    }

    /// That was done.
    pub fn cut(&mut self, cut: Cut) {
        if let Cut::Erase(_) = cut {
            self.erased = None;
        }
    }
}

/// A draft that was open when its node was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Its number.
    pub number: u64,
    /// Where in the log it begins.
    pub begin: u64,
    /// The stream of the conversation's messages.
    pub conversation: u64,
    /// When it was opened, in milliseconds since 1970-01-01 UTC.
    pub opened_ms: u64,
    /// The id of the message that it becomes.
    pub id: String,
    /// What its author is in the conversation.
    pub role: String,
    /// Who wrote it.
    pub from: String,
    /// Opaque.
    pub metadata: Vec<u8>,
    /// What had come and was logged.
    pub draft: Draft,
}

/// Finds the drafts that a log leaves open.
#[derive(Debug)]
pub struct Recovery {
    bytes_max: usize,
    open: BTreeMap<u64, Lost>,
    erased: Option<u64>,
}

impl Recovery {
    /// Of a log whose drafts have at most so many bytes.
    pub fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            open: BTreeMap::new(),
            erased: None,
        }
    }

    /// Reads a record of the log, in order.
    pub fn record(&mut self, offset: u64, tag: u8, bytes: &[u8]) -> Result<(), Malformed> {
        match tag {
            DRAFT_OPEN => self.open(offset, offset, &DraftOpen::decode(bytes)?),
            DRAFT_CARRIED => {
                let DraftCarried { draft, open } = DraftCarried::decode(bytes)?;
                // Its number is where it was opened, and that lies behind us.
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
        let lost = Lost {
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

    /// Chunks of a draft that is over say nothing. What was let in with a larger limit is kept.
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

    /// What is before this offset is to leave the disk, if anything was when the node was lost.
    pub fn erased(&self) -> Option<u64> {
        self.erased
    }

    /// The log was read: what is open, oldest first.
    pub fn finish(self) -> impl Iterator<Item = Lost> {
        self.open.into_values()
    }
}

#[cfg(test)]
mod tests;
