//! Splits a byte stream into frames, for any partitioning into chunks.

use model::limits::FRAME_SKIP_FACTOR;

use crate::header::{HEADER_SIZE, Header, Kind};

/// Maximum number of frames in a run.
pub const RUN_LENGTH_MAX: usize = 32;

/// Maximum size of the payloads of a run together, in bytes.
const RUN_SIZE_MAX: usize = 16 << 10;

/// Position of the kind in a header.
const KIND_AT: usize = 4;

/// The receiving end of one connection. Holds the incomplete frame at the end of the bytes read.
///
/// A frame that is complete in a chunk is borrowed from it. Memory is used only for an incomplete
/// frame, at most `frame_size_max` plus the header, and grows as its bytes arrive.
#[derive(Debug)]
pub struct Inbox {
    frame_size_max: u32,
    partial: Vec<u8>,
    /// Remaining bytes of a refused frame.
    skip: u64,
}

/// The next item of the stream.
#[derive(Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// A complete frame.
    Frame(Header, &'a [u8]),
    /// A frame above the limit. It is skipped if `fatal` is false. After a fatal one, nothing more
    /// can be read from the connection.
    Oversize {
        /// The refused frame.
        header: Header,
        /// True if the connection must be closed.
        fatal: bool,
    },
}

/// Consecutive frames whose headers differ in their lengths only.
#[derive(Debug)]
pub struct Run<'c> {
    /// The header of the first frame.
    pub header: Header,
    payloads: [&'c [u8]; RUN_LENGTH_MAX],
    count: usize,
}

impl<'c> Run<'c> {
    /// Returns the payloads, at least two, in order.
    pub fn payloads(&self) -> &[&'c [u8]] {
        &self.payloads[..self.count]
    }
}

impl Inbox {
    /// Creates an inbox that accepts payloads of up to `frame_size_max` bytes.
    pub fn new(frame_size_max: u32) -> Self {
        Self {
            frame_size_max,
            partial: Vec::new(),
            skip: 0,
        }
    }

    /// Changes the limit, from that of the handshake to the negotiated one.
    pub fn set_frame_size_max(&mut self, frame_size_max: u32) {
        self.frame_size_max = frame_size_max;
    }

    /// Returns the frames that `chunk` completes. Call [`Frames::next`] until it returns `None`;
    /// only then is the whole chunk consumed.
    pub fn feed<'i, 'c>(&'i mut self, chunk: &'c [u8]) -> Frames<'i, 'c> {
        Frames {
            inbox: self,
            chunk,
            clear: false,
        }
    }

    /// Returns true if a frame has begun and is not complete.
    pub fn is_partial(&self) -> bool {
        !self.partial.is_empty() || self.skip > 0
    }

    /// Returns the bytes of memory held for an incomplete frame.
    pub fn held_size(&self) -> usize {
        self.partial.capacity()
    }

    fn judge(&self, header: Header) -> Verdict {
        let limit = u64::from(self.frame_size_max);
        match u64::from(header.length) {
            length if length <= limit => Verdict::Accept,
            length if length <= limit * u64::from(FRAME_SKIP_FACTOR) => Verdict::Skip,
            _ => Verdict::Fatal,
        }
    }
}

enum Verdict {
    Accept,
    Skip,
    Fatal,
}

/// The frames of one chunk, in order.
#[derive(Debug)]
pub struct Frames<'i, 'c> {
    inbox: &'i mut Inbox,
    chunk: &'c [u8],
    /// The last returned frame was assembled in `partial`.
    clear: bool,
}

impl<'c> Frames<'_, 'c> {
    /// Returns the unread bytes of the chunk, to be fed again later.
    pub fn into_rest(self) -> &'c [u8] {
        if self.clear {
            self.inbox.partial = Vec::new();
        }
        self.chunk
    }

    /// Returns the next frames together if at least two of this kind are complete in the chunk, and
    /// their headers differ in their lengths only. Otherwise returns `None` and takes none.
    #[inline]
    pub fn next_run(&mut self, kind: Kind) -> Option<Run<'c>> {
        match self.chunk.get(KIND_AT) {
            Some(found) if *found == kind.0 && self.is_between_frames() => self.take_run(),
            _ => None,
        }
    }

    fn take_run(&mut self) -> Option<Run<'c>> {
        let (header, payload, mut rest) = self.complete(self.chunk)?;
        let (second, _, _) = self
            .complete(rest)
            .filter(|(it, ..)| is_alike(*it, header))?;
        let mut size = payload.len();
        if size + second.length as usize > RUN_SIZE_MAX {
            return None;
        }
        let mut payloads: [&[u8]; RUN_LENGTH_MAX] = [&[]; RUN_LENGTH_MAX];
        payloads[0] = payload;
        let mut count = 1;
        while count < RUN_LENGTH_MAX
            && let Some((next, payload, after)) = self.complete(rest)
            && is_alike(next, header)
            && size + payload.len() <= RUN_SIZE_MAX
        {
            payloads[count] = payload;
            (count, size, rest) = (count + 1, size + payload.len(), after);
        }
        self.chunk = rest;
        Some(Run {
            header,
            payloads,
            count,
        })
    }

    /// Returns the frame at the front of these bytes and the rest, if it is complete and within the
    /// limit.
    #[inline]
    fn complete<'b>(&self, bytes: &'b [u8]) -> Option<(Header, &'b [u8], &'b [u8])> {
        let (head, rest) = bytes.split_first_chunk::<HEADER_SIZE>()?;
        let header = Header::decode(head);
        if header.length > self.inbox.frame_size_max {
            return None;
        }
        let (payload, rest) = rest.split_at_checked(header.length as usize)?;
        Some((header, payload, rest))
    }

    /// Returns whether the chunk begins with a frame.
    #[inline]
    fn is_between_frames(&self) -> bool {
        self.inbox.partial.is_empty() && self.inbox.skip == 0 && !self.clear
    }

    /// Returns the next frame; `None` at the end of the chunk.
    #[expect(
        clippy::should_implement_trait,
        reason = "an item borrows from the iterator itself"
    )]
    #[inline]
    pub fn next(&mut self) -> Option<Item<'_>> {
        // Fast path: nearly every frame is complete in its chunk and within the limit.
        if self.is_between_frames()
            && let Some((header, payload, rest)) = self.complete(self.chunk)
        {
            self.chunk = rest;
            return Some(Item::Frame(header, payload));
        }
        self.next_of_any_kind()
    }

    fn next_of_any_kind(&mut self) -> Option<Item<'_>> {
        if std::mem::take(&mut self.clear) {
            self.inbox.partial = Vec::new();
        }
        self.skip();
        if self.chunk.is_empty() {
            return None;
        }
        if self.inbox.partial.is_empty() {
            self.next_in_chunk()
        } else {
            self.next_in_partial()
        }
    }

    fn skip(&mut self) {
        let skipped = self.inbox.skip.min(self.chunk.len() as u64);
        self.inbox.skip -= skipped;
        self.chunk = &self.chunk[skipped as usize..];
    }

    fn next_in_chunk(&mut self) -> Option<Item<'_>> {
        let Some((head, rest)) = self.chunk.split_first_chunk::<HEADER_SIZE>() else {
            self.keep(self.chunk.len());
            return None;
        };
        let header = Header::decode(head);
        match self.inbox.judge(header) {
            Verdict::Accept => {}
            Verdict::Skip => return Some(self.refuse(header, HEADER_SIZE)),
            Verdict::Fatal => return Some(self.refuse_fatally(header)),
        }
        match rest.split_at_checked(header.length as usize) {
            Some((payload, rest)) => {
                self.chunk = rest;
                Some(Item::Frame(header, payload))
            }
            None => {
                self.keep(self.chunk.len());
                None
            }
        }
    }

    fn next_in_partial(&mut self) -> Option<Item<'_>> {
        let missing = HEADER_SIZE.saturating_sub(self.inbox.partial.len());
        self.keep(missing);
        let head = *self.inbox.partial.first_chunk::<HEADER_SIZE>()?;
        let header = Header::decode(&head);
        match self.inbox.judge(header) {
            Verdict::Accept => {}
            Verdict::Skip => {
                self.inbox.partial = Vec::new();
                return Some(self.refuse(header, 0));
            }
            Verdict::Fatal => return Some(self.refuse_fatally(header)),
        }
        let size = HEADER_SIZE + header.length as usize;
        self.keep(size - self.inbox.partial.len());
        if self.inbox.partial.len() < size {
            return None;
        }
        self.clear = true;
        Some(Item::Frame(header, &self.inbox.partial[HEADER_SIZE..]))
    }

    /// Appends up to `count` bytes of the chunk to the partial frame.
    fn keep(&mut self, count: usize) {
        let (kept, rest) = self.chunk.split_at(count.min(self.chunk.len()));
        self.inbox.partial.extend_from_slice(kept);
        self.chunk = rest;
    }

    /// Refuses a frame and skips it. `header_size` bytes of its header are still in the chunk.
    fn refuse(&mut self, header: Header, header_size: usize) -> Item<'static> {
        self.chunk = &self.chunk[header_size..];
        self.inbox.skip = u64::from(header.length);
        Item::Oversize {
            header,
            fatal: false,
        }
    }

    fn refuse_fatally(&mut self, header: Header) -> Item<'static> {
        self.inbox.partial = Vec::new();
        self.chunk = &[];
        self.inbox.skip = u64::MAX;
        Item::Oversize {
            header,
            fatal: true,
        }
    }
}

/// Returns whether two headers differ in their lengths only.
fn is_alike(one: Header, other: Header) -> bool {
    let length = other.length;
    Header { length, ..one } == other
}

#[cfg(test)]
mod tests;
