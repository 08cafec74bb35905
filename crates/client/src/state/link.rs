//! `Link`: the calling side of one connection, with calls, routes, credit, and bytes to be written.
//!
//! Callers change it under the client's lock and never write themselves. They append to `out`, and
//! the first caller since the last turn wakes the connection's task. All frames appended until the
//! task runs leave in one write.

use std::task::Waker;

use model::ErrorCode;
use model::limits::METHOD_LENGTH_MAX;
use tokio::time::Instant;
use wire::{Bind, Cast, Correlation, Flags, HEADER_SIZE, Header, Kind, Payload, Role, Window};

use crate::connection::buffers;
use crate::state::clock::{Epoch, Timeout};
use crate::state::completions::Completions;
use crate::state::functions::Functions;
use crate::state::holder::Holder;
use crate::state::outcome::Outcome;
use crate::state::pending::PendingCalls;
use crate::state::routes::{BindResult, Hint, Routes, Target};
use crate::{CallError, Sent};

/// Size of unwritten bytes at which no more calls are accepted.
const OUT_SIZE_MAX: usize = 4 << 20;

/// Maximum size of metadata in a frame, in bytes.
const METADATA_SIZE_MAX: usize = u16::MAX as usize;

/// Role, limits and name of the peer.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) role: Role,
    pub(crate) window: Window,
    pub(crate) software: String,
    pub(crate) address: String,
}

/// A message to send.
#[derive(Clone, Copy)]
pub(crate) struct Outgoing<'a> {
    pub(crate) kind: Kind,
    pub(crate) flags: Flags,
    pub(crate) target: Target<'a>,
    pub(crate) metadata: &'a [u8],
    pub(crate) body: &'a [u8],
}

impl Outgoing<'_> {
    /// Returns the bytes that the message uses of the peer's window: metadata and body.
    pub(crate) fn credit_size(&self) -> usize {
        self.metadata.len() + self.body.len()
    }
}

/// The calling side of one connection.
pub(crate) struct Link {
    /// Number of the connection within the client, from 1.
    pub(crate) id: u64,
    pub(crate) pending: PendingCalls,
    pub(crate) peer: Peer,
    pub(crate) routes: Routes,
    calls_max: usize,
    epoch: Epoch,
    out: Vec<u8>,
    /// Number of times that `out` was taken.
    batch: u32,
    task: Option<Waker>,
    /// True while the task runs; it will check `out` before it rests.
    is_in_turn: bool,
    /// One-way messages, and their bytes, for which no credit came back.
    outstanding: (u32, u64),
    /// True once the connection is lost; only fetching outcomes remains.
    is_over: bool,
}

impl Link {
    pub(crate) fn new(id: u64, peer: Peer, in_flight_max: usize, now: Instant) -> Self {
        Self {
            id,
            calls_max: in_flight_max.min(peer.window.calls_max as usize),
            pending: PendingCalls::default(),
            peer,
            routes: Routes::default(),
            epoch: Epoch::new(now),
            out: Vec::new(),
            batch: 0,
            task: None,
            is_in_turn: true,
            outstanding: (0, 0),
            is_over: false,
        }
    }

    /// Returns how many more calls are accepted now.
    pub(crate) fn room(&self) -> usize {
        match self.out.len() < OUT_SIZE_MAX {
            true => self.calls_max.saturating_sub(self.pending.occupied()),
            false => 0,
        }
    }

    /// Returns how many more one-way messages are accepted now, by count only.
    pub(crate) fn credit(&self) -> usize {
        let credit = self.peer.window.credit_messages;
        match self.out.len() < OUT_SIZE_MAX {
            true => credit.saturating_sub(self.outstanding.0) as usize,
            false => 0,
        }
    }

    /// True if a one-way message of `size` bytes fits into the peer's window.
    pub(crate) fn fits(&self, size: usize) -> bool {
        let (messages, bytes) = self.outstanding;
        messages == 0 || bytes + size as u64 <= self.peer.window.credit_bytes
    }

    /// Queues a request if the peer accepts its size and target; `holder` makes the receiver of the
    /// reply. The caller has checked that there is room.
    #[inline]
    pub(crate) fn issue(
        &mut self,
        outgoing: &Outgoing<'_>,
        timeout: Timeout,
        hint: &mut Hint,
        holder: impl FnOnce(&mut Functions) -> Holder,
    ) -> Result<Correlation, CallError> {
        self.check_size(outgoing, timeout)?;
        let was_quiet = self.out.is_empty() || !self.pending.has_fresh();
        let route = self.route(outgoing.target, hint)?;
        let correlation = self.pending.insert(holder, self.batch, timeout);
        payload(outgoing, timeout).encode(
            outgoing.kind,
            outgoing.flags,
            route,
            correlation,
            self.out(),
        );
        self.wake_if(was_quiet);
        Ok(correlation)
    }

    /// Queues a one-way message if the peer accepts its size and target. The caller has checked
    /// that there is credit.
    pub(crate) fn send(&mut self, outgoing: &Outgoing<'_>) -> Result<(), CallError> {
        self.check_size(outgoing, Timeout::NONE)?;
        let was_quiet = self.out.is_empty();
        let route = self.route(outgoing.target, &mut 0)?;
        self.spend(outgoing.credit_size());
        payload(outgoing, Timeout::NONE).encode(
            outgoing.kind,
            outgoing.flags,
            route,
            Correlation::NONE,
            self.out(),
        );
        self.wake_if(was_quiet);
        Ok(())
    }

    /// Queues a one-way message with a delivery report, if the peer accepts its size and target.
    /// The deadline of the report is not sent to the peer.
    pub(crate) fn send_reported(
        &mut self,
        outgoing: &Outgoing<'_>,
        timeout: Timeout,
    ) -> Result<Correlation, CallError> {
        self.check_size(outgoing, Timeout::NONE)?;
        let route = self.route(outgoing.target, &mut 0)?;
        self.spend(outgoing.credit_size());
        let holder = Holder::Future(None);
        Ok(self.queue_request(timeout, holder, |correlation, out| {
            payload(outgoing, Timeout::NONE).encode(
                outgoing.kind,
                outgoing.flags,
                route,
                correlation,
                out,
            );
        }))
    }

    /// Checks the size of a message against the limits of the peer and of the protocol.
    #[inline]
    fn check_size(&self, outgoing: &Outgoing<'_>, timeout: Timeout) -> Result<(), CallError> {
        let limit = self.peer.window.frame_size_max;
        let size = payload_size(outgoing, timeout);
        match size <= limit as usize && outgoing.metadata.len() <= METADATA_SIZE_MAX {
            true => Ok(()),
            false => Err(self.too_large(size, outgoing.metadata.len())),
        }
    }

    #[cold]
    fn too_large(&self, size: usize, metadata: usize) -> CallError {
        let message = match metadata > METADATA_SIZE_MAX {
            true => {
                format!("metadata of {metadata} bytes is above the limit of {METADATA_SIZE_MAX}")
            }
            false => format!(
                "a payload of {size} bytes is above the limit of {} (`frame_size_max` of {})",
                self.peer.window.frame_size_max, self.peer.address
            ),
        };
        CallError::new(ErrorCode::TooLarge, message)
    }

    /// Returns the target's route number, with a BIND frame first if necessary.
    #[inline]
    fn route(&mut self, target: Target<'_>, hint: &mut Hint) -> Result<u16, CallError> {
        match self.routes.recall(*hint) {
            Some(route) => Ok(route),
            None => self.bind(target, hint),
        }
    }

    fn bind(&mut self, target: Target<'_>, hint: &mut Hint) -> Result<u16, CallError> {
        self.check_target(target)?;
        let route = match self.routes.bind(target) {
            BindResult::Existing(route) => route,
            BindResult::New(route) => {
                let bind = Bind {
                    route,
                    cast: target.cast,
                    method: target.method,
                    name: target.name,
                };
                bind.encode(self.out());
                route
            }
        };
        *hint = self.routes.hint(route);
        Ok(route)
    }

    fn check_target(&self, target: Target<'_>) -> Result<(), CallError> {
        if target.method.len() > METHOD_LENGTH_MAX {
            let message = format!("a method name of {} bytes", target.method.len());
            return Err(CallError::new(ErrorCode::InvalidArgument, message));
        }
        match (self.peer.role, target.name.is_empty()) {
            (Role::Server, false) => Err(not_a_node(&self.peer.address)),
            (Role::Node, true) => Err(CallError::new(
                ErrorCode::InvalidArgument,
                format!("{} is a node: a name is needed", self.peer.address),
            )),
            _ => Ok(()),
        }
    }

    /// Queues a frame that `write` encodes with the correlation of its answer.
    pub(crate) fn queue_request(
        &mut self,
        timeout: Timeout,
        holder: Holder,
        write: impl FnOnce(Correlation, &mut Vec<u8>),
    ) -> Correlation {
        let was_quiet = self.out.is_empty() || !self.pending.has_fresh();
        let correlation = self.pending.insert(|_| holder, self.batch, timeout);
        write(correlation, self.out());
        self.wake_if(was_quiet);
        correlation
    }

    /// Queues a frame without an answer.
    pub(crate) fn queue_frame(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let was_quiet = self.out.is_empty();
        write(self.out());
        self.wake_if(was_quiet);
    }

    /// Counts a one-way message of `size` bytes against the peer's window.
    pub(crate) fn spend(&mut self, size: usize) {
        self.outstanding.0 += 1;
        self.outstanding.1 += size as u64;
    }

    /// Adds credit that the peer returned.
    pub(crate) fn credit_returned(&mut self, messages: u32, bytes: u64) {
        self.outstanding.0 = self.outstanding.0.saturating_sub(messages);
        self.outstanding.1 = self.outstanding.1.saturating_sub(bytes);
    }

    /// Sends CANCEL for calls that were given up.
    pub(crate) fn cancel(&mut self, completions: &mut Completions) {
        for correlation in completions.cancels.drain(..) {
            let was_quiet = self.out.is_empty();
            wire::encode_cancel(correlation, self.out());
            self.wake_if(was_quiet);
        }
    }

    /// Begins a turn of the task, which need not be woken until the turn ends.
    pub(crate) fn begin_turn(&mut self, task: &Waker) {
        self.is_in_turn = true;
        if !self
            .task
            .as_ref()
            .is_some_and(|known| known.will_wake(task))
        {
            self.task = Some(task.clone());
        }
        if self.pending.has_fresh() {
            self.pending.stamp(self.epoch.start(Instant::now()));
        }
    }

    /// Ends a turn of the task, which wants to be woken from now on.
    pub(crate) fn end_turn(&mut self) {
        self.is_in_turn = false;
    }

    /// Returns the bytes to write next and leaves `out` empty.
    pub(crate) fn take_out(&mut self) -> Vec<u8> {
        if !self.out.is_empty() {
            self.batch = self.batch.wrapping_add(1);
        }
        std::mem::take(&mut self.out)
    }

    /// True if no call waits for an outcome.
    pub(crate) fn is_quiet(&self) -> bool {
        self.pending.is_quiet()
    }

    pub(crate) fn has_out(&self) -> bool {
        !self.out.is_empty()
    }

    /// Returns a lower bound of the deadlines.
    pub(crate) fn deadline_min(&self) -> Option<Instant> {
        let earliest = self.pending.deadline_min()?;
        self.epoch.instant(earliest)
    }

    /// Takes the outcome of a call if it is complete. A failure comes with the call's deadline.
    pub(crate) fn take(
        &mut self,
        correlation: Correlation,
        completions: &mut Completions,
    ) -> Option<(Outcome, Option<Instant>)> {
        let (outcome, deadline) = self.pending.take(correlation, completions)?;
        let deadline = match &outcome {
            Ok(_) => None,
            Err(_) => self.epoch.instant(deadline),
        };
        Some((outcome, deadline))
    }

    /// Fails the calls whose deadline has passed and cancels them at the peer.
    pub(crate) fn expire(&mut self, now: Instant, completions: &mut Completions) {
        let unsent = self.batch;
        let error = |batch| {
            let sent = match batch == unsent {
                true => Sent::No,
                false => Sent::Unknown,
            };
            deadline_error(sent)
        };
        let expired = self
            .pending
            .expire(self.epoch.reached(now), error, completions);
        let mut voided = Vec::new();
        for call in expired {
            match call.batch == unsent {
                true => voided.push(call.correlation),
                false => wire::encode_cancel(call.correlation, self.out()),
            }
        }
        if !voided.is_empty() {
            void_frames(&mut self.out, &voided);
        }
    }

    /// Fails all calls of a lost connection. `is_last_unwritten` says that no byte of the last
    /// batch was written.
    pub(crate) fn lose(
        &mut self,
        is_last_unwritten: bool,
        reason: &str,
        completions: &mut Completions,
    ) {
        let (unsent, last) = (self.batch, self.batch.wrapping_sub(1));
        self.pending.fail_all(
            self.epoch.start(Instant::now()),
            |batch| match batch == unsent || (batch == last && is_last_unwritten) {
                true => CallError::new(ErrorCode::Unavailable, reason),
                false => CallError::new(ErrorCode::Unconfirmed, reason).with_sent(Sent::Unknown),
            },
            completions,
        );
        self.is_over = true;
        self.task = None;
        self.out = Vec::new();
    }

    /// True if the connection is lost and all its outcomes are fetched.
    pub(crate) fn is_spent(&self) -> bool {
        self.is_over && self.pending.occupied() == 0
    }

    #[inline]
    fn out(&mut self) -> &mut Vec<u8> {
        if self.out.capacity() == 0 {
            self.out = buffers::take();
        }
        &mut self.out
    }

    #[inline]
    fn wake_if(&self, was_quiet: bool) {
        if was_quiet {
            self.wake();
        }
    }

    /// Wakes the task unless it is in a turn.
    pub(crate) fn wake(&self) {
        if !self.is_in_turn
            && let Some(task) = &self.task
        {
            task.wake_by_ref();
        }
    }
}

pub(crate) fn not_a_node(address: &str) -> CallError {
    let message = format!("{address} is an RPC server: it has methods, but no agent names");
    CallError::new(ErrorCode::Unsupported, message)
}

/// Returns the error for a call whose deadline has passed.
pub(crate) fn deadline_error(sent: Sent) -> CallError {
    let message = match sent {
        Sent::No => "the deadline passed before the call could be sent",
        _ => "no answer came within the deadline",
    };
    CallError::new(ErrorCode::DeadlineExceeded, message).with_sent(sent)
}

#[inline]
fn payload_size(outgoing: &Outgoing<'_>, timeout: Timeout) -> usize {
    let deadline = timeout.as_wire().map_or(0, |_| 4);
    let metadata = match outgoing.metadata.len() {
        0 => 0,
        length => 2 + length,
    };
    deadline + metadata + outgoing.body.len()
}

#[inline]
fn payload<'a>(outgoing: &Outgoing<'a>, timeout: Timeout) -> Payload<'a> {
    Payload {
        deadline_ms: timeout.as_wire(),
        metadata: outgoing.metadata,
        body: outgoing.body,
    }
}

/// Replaces queued frames of expired calls by requests with deadline 0 and no body. The frames
/// cannot be removed, because the peer expects every slot to be used in its turn.
fn void_frames(out: &mut Vec<u8>, voided: &[Correlation]) {
    let mut kept = Vec::with_capacity(out.len());
    let mut rest = &out[..];
    while let Some((head, behind)) = rest.split_first_chunk::<HEADER_SIZE>() {
        let header = Header::decode(head);
        let (payload, next) = behind.split_at((header.length as usize).min(behind.len()));
        match header.kind != Kind::CANCEL && voided.contains(&header.correlation) {
            true => {
                let nothing = Payload {
                    deadline_ms: Some(0),
                    ..Payload::default()
                };
                let correlation = header.correlation;
                nothing.encode(
                    Kind::REQUEST,
                    Flags::NONE,
                    header.route,
                    correlation,
                    &mut kept,
                );
            }
            false => {
                kept.extend_from_slice(head);
                kept.extend_from_slice(payload);
            }
        }
        rest = next;
    }
    *out = kept;
}

/// Returns the target for a method of an agent, or of a server if `name` is empty.
pub(crate) fn to_method<'a>(name: &'a str, method: &'a str) -> Target<'a> {
    Target {
        name,
        method,
        cast: Cast::Any,
    }
}
