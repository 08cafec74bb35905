//! The bytes that an outbox writes: buffered ones, and parts that are not copied.

use std::collections::VecDeque;
use std::io::{self, IoSlice};

use bytes::{Buf, Bytes};

use crate::file_bytes::FileBytes;
use crate::stream::{Following, Sink};

/// Buffers of one write at most.
const BUFFERS_MAX: usize = 32;

/// Bytes to write, in order.
#[derive(Default)]
pub struct Output {
    /// The buffered bytes.
    bytes: Vec<u8>,
    /// Buffered bytes that are written.
    written: usize,
    /// The parts that are not written yet.
    parts: VecDeque<Part>,
    /// The bytes of the parts that are not written yet.
    parts_size: usize,
    /// The parts in files that are not written yet.
    files: usize,
}

struct Part {
    /// The part goes before this byte of the buffered ones.
    at: usize,
    content: Content,
}

enum Content {
    /// Memory, shared with others unless it `is_own`.
    Memory { bytes: Bytes, is_own: bool },
    /// A range of a file, of which the first `sent` bytes are written.
    File {
        file: Box<dyn FileBytes>,
        sent: usize,
    },
}

impl Output {
    /// Returns the buffer, to append bytes to.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Appends bytes without copying them. If the peer does not take them at once, they are copied
    /// after all, so that a slow peer does not hold what they are a part of.
    pub fn push_shared(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            let is_own = false;
            self.push(bytes.len(), Content::Memory { bytes, is_own });
        }
    }

    /// Appends bytes of a file. They are read when they are sent.
    pub fn push_file(&mut self, file: Box<dyn FileBytes>) {
        if file.size() > 0 {
            self.push(file.size(), Content::File { file, sent: 0 });
            self.files += 1;
        }
    }

    fn push(&mut self, size: usize, content: Content) {
        let at = self.bytes.len();
        self.parts.push_back(Part { at, content });
        self.parts_size += size;
    }

    /// Returns the number of bytes that are not written yet.
    pub fn size(&self) -> usize {
        self.bytes.len() - self.written + self.parts_size
    }

    /// Returns the number of parts in files that are not written yet.
    pub fn files(&self) -> usize {
        self.files
    }

    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Returns the buffer for another use.
    pub(crate) fn into_buffer(self) -> Vec<u8> {
        self.bytes
    }

    /// Copies the shared parts.
    pub(crate) fn copy_shared(&mut self) {
        for part in &mut self.parts {
            if let Content::Memory { bytes, is_own } = &mut part.content
                && !std::mem::replace(is_own, true)
            {
                *bytes = Bytes::copy_from_slice(bytes);
            }
        }
    }

    /// Writes everything, or until an error such as `WouldBlock`.
    pub(crate) fn write_to(&mut self, sink: &dyn Sink) -> io::Result<()> {
        while self.size() > 0 {
            match self.write_some(sink) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => self.advance(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn write_some(&self, sink: &dyn Sink) -> io::Result<usize> {
        match self.parts.front() {
            None => sink.try_write(&self.bytes[self.written..]),
            Some(Part {
                at,
                content: Content::File { file, sent },
            }) if *at == self.written => sink.try_send_file(&**file, *sent),
            Some(_) => self.write_memory(sink),
        }
    }

    /// Writes what is in memory before the next range of a file.
    fn write_memory(&self, sink: &dyn Sink) -> io::Result<usize> {
        let mut buffers = [IoSlice::new(&[]); BUFFERS_MAX];
        let (mut count, mut at) = (0, self.written);
        let mut following = Following::Nothing;
        for part in &self.parts {
            if part.at > at && count < BUFFERS_MAX {
                buffers[count] = IoSlice::new(&self.bytes[at..part.at]);
                (at, count) = (part.at, count + 1);
            }
            match &part.content {
                Content::Memory { bytes, .. } if count < BUFFERS_MAX => {
                    buffers[count] = IoSlice::new(bytes);
                    count += 1;
                }
                Content::Memory { .. } | Content::File { .. } => {
                    following = Following::More;
                    break;
                }
            }
        }
        if following == Following::Nothing && at < self.bytes.len() {
            match buffers.get_mut(count) {
                Some(buffer) => {
                    *buffer = IoSlice::new(&self.bytes[at..]);
                    count += 1;
                }
                None => following = Following::More,
            }
        }
        sink.try_write_vectored(&buffers[..count], following)
    }

    /// Notes that so many bytes were written.
    fn advance(&mut self, mut count: usize) {
        while count > 0 {
            let until = self.parts.front().map_or(self.bytes.len(), |part| part.at);
            let buffered = count.min(until - self.written);
            self.written += buffered;
            count -= buffered;
            let Some(part) = self.parts.front_mut().filter(|_| count > 0) else {
                break;
            };
            let left = match &mut part.content {
                Content::Memory { bytes, .. } => {
                    let taken = count.min(bytes.len());
                    bytes.advance(taken);
                    (self.parts_size, count) = (self.parts_size - taken, count - taken);
                    bytes.len()
                }
                Content::File { file, sent } => {
                    let taken = count.min(file.size() - *sent);
                    *sent += taken;
                    (self.parts_size, count) = (self.parts_size - taken, count - taken);
                    file.size() - *sent
                }
            };
            if left == 0
                && let Some(Part { content, .. }) = self.parts.pop_front()
                && let Content::File { .. } = content
            {
                self.files -= 1;
            }
        }
    }
}

#[cfg(test)]
mod tests;
