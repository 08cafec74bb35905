//! `Envelope`: a message received by a subscription.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use bytes::Bytes;
use model::ErrorCode;
use wire::{Correlation, Flags, Kind, Payload};

use crate::connection::port::Port;
use crate::connection::reply_frames::{encode_only_item, too_large};
use crate::fault::Execution;
use crate::{CallError, Context, Fault};

/// A message that was sent to a subscribed name. It dereferences to its [`Context`].
///
/// If the message asks for a reply ([`Envelope::wants_reply`]) and is dropped without one, the
/// sender gets an error at once.
pub struct Envelope {
    /// Bytes of the message.
    pub body: Bytes,
    context: Context,
    reply: Option<ReplyTo>,
}

impl Envelope {
    pub(crate) fn new(body: Bytes, context: Context, reply: Option<ReplyTo>) -> Self {
        Self {
            body,
            context,
            reply,
        }
    }

    /// True if the sender waits for a reply.
    pub fn wants_reply(&self) -> bool {
        self.reply.is_some()
    }

    /// Sends the reply. Does nothing if the sender wants none. Fails with `unavailable` when the
    /// connection is gone, and with `too_large` when the reply exceeds the sender's limit.
    pub fn reply(mut self, body: impl AsRef<[u8]>) -> Result<(), CallError> {
        match self.reply.take() {
            Some(reply) => reply.answer(Ok(body.as_ref())),
            None => Ok(()),
        }
    }

    /// Replies with an error.
    pub fn refuse(mut self, fault: Fault) -> Result<(), CallError> {
        match self.reply.take() {
            Some(reply) => reply.answer(Err(fault)),
            None => Ok(()),
        }
    }

    /// Returns the context; clone it to keep it after the envelope is gone.
    pub fn context(&self) -> &Context {
        &self.context
    }

    pub(crate) fn is_one_way(&self) -> bool {
        self.reply.is_none()
    }
}

impl Deref for Envelope {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.context
    }
}

impl fmt::Debug for Envelope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Envelope")
            .field("body", &self.body)
            .field("context", &self.context)
            .field("wants_reply", &self.wants_reply())
            .finish()
    }
}

/// Sends exactly one reply to a call. Dropping it unused replies with an error.
pub(crate) struct ReplyTo {
    port: Arc<Port>,
    correlation: Correlation,
    wants_stream: bool,
    /// Size of the request in bytes; counts as in flight until the reply.
    size: usize,
    frame_size_max: u32,
    is_answered: bool,
}

impl ReplyTo {
    pub(crate) fn new(
        port: Arc<Port>,
        correlation: Correlation,
        wants_stream: bool,
        size: usize,
        frame_size_max: u32,
    ) -> Self {
        port.hold(size);
        Self {
            port,
            correlation,
            wants_stream,
            size,
            frame_size_max,
            is_answered: false,
        }
    }

    fn answer(mut self, answer: Result<&[u8], Fault>) -> Result<(), CallError> {
        let limit = self.frame_size_max;
        let (answer, outcome) = match answer {
            Ok(body) if body.len() > limit as usize => {
                let fault = too_large("the reply", body.len(), limit);
                let error = CallError::new(fault.code, fault.message.as_str());
                (Err(fault), Err(error))
            }
            answer => (answer, Ok(())),
        };
        match self.send(answer) {
            true => outcome,
            false => Err(CallError::new(
                ErrorCode::Unavailable,
                "the connection on which the request came is gone",
            )),
        }
    }

    fn send(&mut self, answer: Result<&[u8], Fault>) -> bool {
        self.is_answered = true;
        self.port.release(self.size);
        let correlation = self.correlation;
        self.port.push(|out| match answer {
            Ok(body) if self.wants_stream => encode_only_item(body, correlation, out),
            Ok(body) => Payload::body(body).encode(Kind::REPLY, Flags::NONE, 0, correlation, out),
            Err(fault) => fault.encode(Execution::Started, correlation, out),
        })
    }
}

impl Drop for ReplyTo {
    fn drop(&mut self) {
        if !self.is_answered {
            self.send(Err(Fault::new(
                "the handler dropped the request without a reply",
            )));
        }
    }
}
