//! `BorrowedRequest` and `ReplyBody`: the arguments of a handler that copies nothing.
//!
//! The request is borrowed from the bytes read from the connection, and the reply is written where
//! it will be sent from. Both last as long as the call of the handler.

use std::io;

use tokio::time::Instant;

use super::arrival::Arrival;
use super::request::Request;

/// A request that lies in the read buffer of its connection.
pub struct BorrowedRequest<'a> {
    arrival: &'a Arrival<'a>,
}

impl<'a> BorrowedRequest<'a> {
    #[inline]
    pub(super) fn new(arrival: &'a Arrival<'a>) -> Self {
        Self { arrival }
    }

    /// Returns the bytes that the caller sent.
    #[inline]
    pub fn body(&self) -> &'a [u8] {
        self.arrival.message.body
    }

    /// Returns the called method; empty for a plain message.
    pub fn method(&self) -> &str {
        self.arrival.method()
    }

    /// Returns the time at which the caller stops waiting.
    pub fn deadline(&self) -> Option<Instant> {
        self.arrival.deadline
    }

    /// Copies the request, with its metadata and its delivery.
    pub fn to_request(&self) -> Request {
        self.arrival.request()
    }
}

impl std::fmt::Debug for BorrowedRequest<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BorrowedRequest")
            .field("method", &self.method())
            .field("size", &self.body().len())
            .finish_non_exhaustive()
    }
}

/// The body of a reply, empty at first. It is sent when its handler returns `Ok`.
pub struct ReplyBody<'a> {
    /// Bytes to be sent on the connection, with the body so far at the end.
    out: &'a mut Vec<u8>,
    start: usize,
}

impl<'a> ReplyBody<'a> {
    /// Creates a body that begins at the end of `out`.
    #[inline]
    pub(super) fn at_end_of(out: &'a mut Vec<u8>) -> Self {
        let start = out.len();
        Self { out, start }
    }

    /// Appends bytes.
    #[inline]
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Returns the size of the body so far in bytes.
    #[inline]
    pub fn size(&self) -> usize {
        self.out.len() - self.start
    }
}

impl io::Write for ReplyBody<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl std::fmt::Debug for ReplyBody<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ReplyBody({} bytes)", self.size())
    }
}
