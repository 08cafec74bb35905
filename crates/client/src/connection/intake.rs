//! Decodes one chunk read from a connection, frame by frame.
//!
//! Replies go to the table of calls, all under one lock. Requests go to the [`Responder`], which
//! runs handlers and therefore never runs under that lock.

use std::sync::Arc;

use model::{ErrorCode, Failure};
use parking_lot::MutexGuard;
use wire::{Correlation, Credit, Flags, Goaway, Header, Kind, Payload, SubscriptionEnd};

use crate::server::{Responder, Violation};
use crate::state::completions::Completions;
use crate::state::core::{Core, State};
use crate::state::outcome::Answer;
use crate::{CallError, Sent};

/// The calling side of a connection; connections accepted by a server have none.
#[derive(Clone)]
pub(crate) struct CallingSide {
    pub(crate) core: Arc<Core>,
    pub(crate) link: u64,
}

/// Frames about the connection as a whole.
#[derive(Debug, Default)]
pub(crate) struct PeerNotices {
    /// Error with which the peer closes the connection.
    pub(crate) closing_error: Option<String>,
    /// The peer's request to move to another connection.
    pub(crate) goaway: Option<GoawayNotice>,
}

/// The content of a GOAWAY.
#[derive(Clone, Debug)]
pub(crate) struct GoawayNotice {
    pub(crate) reason: String,
    pub(crate) drain_ms: u32,
    pub(crate) address: String,
}

/// Processes the frames of one chunk.
pub(crate) struct Intake<'a> {
    calling_side: Option<&'a CallingSide>,
    state: Option<MutexGuard<'a, State>>,
    responder: &'a mut Responder,
    completions: &'a mut Completions,
    out: &'a mut Vec<u8>,
    chunk: &'a [u8],
    frame_size_max: u32,
    notices: &'a mut PeerNotices,
}

impl<'a> Intake<'a> {
    pub(crate) fn new(
        calling_side: Option<&'a CallingSide>,
        responder: &'a mut Responder,
        completions: &'a mut Completions,
        out: &'a mut Vec<u8>,
        chunk: &'a [u8],
        frame_size_max: u32,
        notices: &'a mut PeerNotices,
    ) -> Self {
        Self {
            calling_side,
            state: None,
            responder,
            completions,
            out,
            chunk,
            frame_size_max,
            notices,
        }
    }

    /// Returns the bytes of answers to the peer so far.
    pub(crate) fn out_size(&self) -> usize {
        self.out.len()
    }

    /// Processes one frame.
    #[inline]
    pub(crate) fn take(&mut self, header: Header, payload: &[u8]) -> Result<(), Violation> {
        match header.kind {
            Kind::REPLY => {
                let message = Payload::decode(header.flags, payload)?;
                self.answer(header, Ok(message.body));
                Ok(())
            }
            Kind::REQUEST => {
                // Handlers run here, so the lock must not be held.
                self.unlock();
                Ok(self.responder.take_request(header, payload, self.out)?)
            }
            _ => self.take_other(header, payload),
        }
    }

    fn take_other(&mut self, header: Header, payload: &[u8]) -> Result<(), Violation> {
        match header.kind {
            Kind::RECEIPT => self.answer(header, Ok(payload)),
            Kind::ERROR => {
                let failure = wire::decode_failure(payload)?;
                match header.correlation {
                    Correlation::NONE => {
                        let (code, message) = (failure.code, failure.message);
                        self.notices.closing_error = Some(format!("{code}: {message}"));
                    }
                    _ => self.answer(header, Err(CallError::from_wire(&failure))),
                }
            }
            Kind::CREDIT if header.correlation == Correlation::NONE => {
                let Credit { messages, bytes } = Credit::decode(payload)?;
                self.with_state(|state, link, completions| {
                    if let Some(link) = state.link_mut(link) {
                        link.credit_returned(messages, bytes);
                    }
                    state.settle(completions);
                });
            }
            Kind::FLOW => {
                let is_full = wire::decode_flow(payload)?;
                self.with_state(|state, link, completions| {
                    let link = state.link_mut(link);
                    if link.is_some_and(|link| link.routes.set_full(header.route, is_full)) {
                        state.flows.wake(usize::MAX, &mut completions.wakers);
                    }
                });
            }
            Kind::ENDED => self.end_subscription(SubscriptionEnd::decode(payload)?),
            Kind::SEND | Kind::BIND | Kind::CANCEL | Kind::CREDIT => {
                self.unlock();
                self.responder.take(header, payload, self.out)?;
            }
            Kind::PING => wire::encode_pong(header.correlation, self.out),
            Kind::PONG => {}
            Kind::GOAWAY => {
                let goaway = Goaway::decode(payload)?;
                self.notices.goaway = Some(GoawayNotice {
                    reason: format!("{}: {}", goaway.code, goaway.message),
                    drain_ms: goaway.drain_ms,
                    address: goaway.address.to_owned(),
                });
            }
            Kind::SUBSCRIBE | Kind::UNSUBSCRIBE | Kind::WRITE => {
                let message = "this is an RPC server: it has methods, but no agent names";
                let failure = Failure::new(ErrorCode::Unsupported, message);
                wire::encode_failure(&failure, header.correlation, self.out);
            }
            kind if kind.is_skippable() => {}
            kind => {
                let message = format!("unexpected frame of kind {kind:?}");
                return Err(Violation(message));
            }
        }
        Ok(())
    }

    /// Processes the header of a frame above the size limit. The sender gets an error, except when
    /// the frame is so large that the connection ends.
    pub(crate) fn take_oversize(&mut self, header: Header, is_fatal: bool) {
        match header.kind {
            Kind::REPLY | Kind::ERROR | Kind::RECEIPT => {
                let limit = self.frame_size_max;
                let size = header.length;
                let message = format!(
                    "the answer of {size} bytes is above this client's limit of {limit} (`frame_size_max`)"
                );
                let error = CallError::new(ErrorCode::TooLarge, message).with_sent(Sent::Yes);
                self.answer(header, Err(error));
            }
            Kind::REQUEST | Kind::SEND if !is_fatal => {
                self.unlock();
                self.responder.take_oversize(header, self.out);
            }
            _ => {}
        }
    }

    /// Completes the changes of the chunk while the lock is still held, then releases it.
    pub(crate) fn finish(mut self) {
        let completions = &mut *self.completions;
        if completions.is_room || !completions.cancels.is_empty() {
            self.with_state(|state, link, completions| state.finish_change(link, completions));
        }
        self.unlock();
        self.responder.return_credit();
    }

    #[inline]
    fn answer(&mut self, header: Header, answer: Answer<'_>) {
        let chunk = self.chunk;
        let more = header.flags.contains(Flags::MORE);
        self.with_state(|state, link, completions| {
            let Some(found) = state.link_mut(link) else {
                return;
            };
            let correlation = header.correlation;
            found
                .pending
                .answer(correlation, more, answer, chunk, completions);
            if !completions.subscription_results.is_empty() {
                // A message to the new name may follow in the same chunk.
                state.finish_change(link, completions);
            }
        });
    }

    fn end_subscription(&mut self, ended: SubscriptionEnd<'_>) {
        self.with_state(|state, link, completions| {
            // If this client has a newer connection, that one owns the subscriptions.
            if state.is_current(link)
                && let Some(registration) = state.registry.remove(ended.name)
            {
                completions.ended.push((registration.receiver, ended.code));
            }
        });
    }

    /// Runs `change` under the lock. Consecutive calls share one acquisition of the lock.
    #[inline]
    fn with_state(&mut self, change: impl FnOnce(&mut State, u64, &mut Completions)) {
        if let Some(calling_side) = self.calling_side {
            let state = self
                .state
                .get_or_insert_with(|| calling_side.core.state.lock());
            change(state, calling_side.link, self.completions);
        }
    }

    fn unlock(&mut self) {
        self.state = None;
    }
}
