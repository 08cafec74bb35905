//! Encodes the reply of a handler.

use std::sync::Arc;

use wire::{Correlation, Flags, HEADER_SIZE, Header, Kind, Payload};

use super::borrowed::ReplyBody;
use super::item_sender::Stream;
use crate::Fault;
use crate::connection::port::Port;
use crate::connection::reply_frames::{encode_only_item, too_large};
use crate::fault::Execution;

/// Origin of a request: a call that needs a reply, or a one-way message.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Origin {
    Call {
        correlation: Correlation,
        /// True if the caller expects a stream.
        wants_stream: bool,
    },
    OneWay,
}

/// The connection to one caller.
pub(crate) struct Outlet {
    pub(crate) port: Arc<Port>,
    /// Size of the largest payload that the caller accepts.
    pub(crate) frame_size_max: u32,
}

impl Outlet {
    /// Creates the stream of a call.
    #[inline(never)]
    pub(crate) fn stream(&self, correlation: Correlation) -> Arc<Stream> {
        let (port, limit) = (self.port.clone(), self.frame_size_max);
        Arc::new(Stream::new(port, correlation, limit))
    }
}

/// Appends the one reply of a handler to `out`.
pub(crate) struct Reply<'a> {
    origin: &'a Origin,
    stream: Option<&'a Stream>,
    outlet: &'a Outlet,
    out: &'a mut Vec<u8>,
    /// Size of `out` before the reply.
    start: usize,
    is_done: bool,
}

impl<'a> Reply<'a> {
    #[inline]
    pub(crate) fn new(
        origin: &'a Origin,
        stream: Option<&'a Stream>,
        outlet: &'a Outlet,
        out: &'a mut Vec<u8>,
    ) -> Self {
        Self {
            origin,
            stream,
            outlet,
            start: out.len(),
            out,
            is_done: false,
        }
    }

    /// Returns the call to reply to, or `None` for a one-way message or after the first reply. A
    /// handler that panics after its reply therefore does not change it.
    #[inline]
    fn begin(&mut self) -> Option<(Correlation, bool)> {
        let &Origin::Call {
            correlation,
            wants_stream,
        } = self.origin
        else {
            return None;
        };
        if std::mem::replace(&mut self.is_done, true) {
            return None;
        }
        if let Some(stream) = self.stream {
            // Stops the stream and moves its queued items in front of the end.
            stream.close();
            self.outlet.port.drain_into(self.out);
        }
        Some((correlation, wants_stream))
    }

    /// Replies with a body.
    #[inline]
    pub(crate) fn reply(&mut self, body: &[u8]) {
        let Some((correlation, wants_stream)) = self.begin() else {
            return;
        };
        let limit = self.outlet.frame_size_max;
        if body.len() > limit as usize {
            self.refuse_size(body.len(), correlation);
        } else if wants_stream && self.stream.is_none() {
            encode_only_item(body, correlation, self.out);
        } else {
            Payload::body(body).encode(Kind::REPLY, Flags::NONE, 0, correlation, self.out);
        }
    }

    /// Replies with the body that `write` appends, in the place where it is sent from, or with its
    /// error.
    #[inline]
    pub(crate) fn write(&mut self, write: impl FnOnce(&mut ReplyBody<'_>) -> Result<(), Fault>) {
        self.out.extend_from_slice(&[0; HEADER_SIZE]);
        let mut body = ReplyBody::at_end_of(self.out);
        let outcome = write(&mut body);
        let size = body.size();
        match (outcome, self.origin) {
            (
                Ok(()),
                &Origin::Call {
                    correlation,
                    wants_stream: false,
                },
            ) if size <= self.outlet.frame_size_max as usize => {
                let header = Header {
                    length: size as u32,
                    kind: Kind::REPLY,
                    flags: Flags::NONE,
                    route: 0,
                    correlation,
                };
                self.out[self.start..][..HEADER_SIZE].copy_from_slice(&header.encode());
                self.is_done = true;
            }
            // A one-way message has no reply.
            (_, Origin::OneWay) => self.out.truncate(self.start),
            (outcome, _) => self.replace_written(outcome),
        }
    }

    /// Encodes a written reply that is not a plain frame.
    #[cold]
    fn replace_written(&mut self, outcome: Result<(), Fault>) {
        let body = self.out.split_off(self.start + HEADER_SIZE);
        self.out.truncate(self.start);
        match outcome {
            Ok(()) => self.reply(&body),
            Err(fault) => self.refuse(&fault),
        }
    }

    #[cold]
    fn refuse_size(&mut self, size: usize, correlation: Correlation) {
        let limit = self.outlet.frame_size_max;
        let fault = too_large("the reply", size, limit);
        fault.encode(Execution::Started, correlation, self.out);
    }

    /// Replies with an error. Removes what a handler has written before it panicked.
    pub(crate) fn refuse(&mut self, fault: &Fault) {
        if !self.is_done {
            self.out.truncate(self.start);
        }
        if let Some((correlation, _)) = self.begin() {
            fault.encode(Execution::Started, correlation, self.out);
        }
    }
}
