//! `ReplyBatch`: outcomes of calls with one function, passed to it together.

use std::slice;

use crate::CallError;

/// A reply that lies completely in the chunk that was read; it is passed without a copy.
#[derive(Debug)]
pub(crate) struct BorrowedReply {
    /// Index of the callback.
    pub(crate) function: u32,
    pub(crate) tag: u64,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// Outcomes of calls that arrived together: an iterator over their tags and outcomes, in the order of
/// arrival.
#[derive(Debug)]
pub struct ReplyBatch<'a> {
    replies: slice::Iter<'a, BorrowedReply>,
    chunk: &'a [u8],
    /// An outcome that does not lie in the chunk.
    other: Option<(u64, Result<&'a [u8], &'a CallError>)>,
}

impl<'a> ReplyBatch<'a> {
    #[inline]
    pub(crate) fn of_replies(replies: &'a [BorrowedReply], chunk: &'a [u8]) -> Self {
        Self {
            replies: replies.iter(),
            chunk,
            other: None,
        }
    }

    pub(crate) fn of_one(tag: u64, outcome: Result<&'a [u8], &'a CallError>) -> Self {
        Self {
            replies: [].iter(),
            chunk: &[],
            other: Some((tag, outcome)),
        }
    }
}

impl<'a> Iterator for ReplyBatch<'a> {
    type Item = (u64, Result<&'a [u8], &'a CallError>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self.replies.next() {
            Some(reply) => {
                let body = &self.chunk[reply.start as usize..reply.end as usize];
                Some((reply.tag, Ok(body)))
            }
            None => self.other.take(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let count = self.replies.len() + usize::from(self.other.is_some());
        (count, Some(count))
    }
}

impl ExactSizeIterator for ReplyBatch<'_> {}
