//! `Connection`: one blocking connection and its calls.

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use model::ErrorCode;
use net::Address;
use wire::{
    Bind, Correlation, FEATURES, Flags, HEADER_SIZE, Header, Hello, Inbox, Item, Kind, Payload,
    Role, VERSION, VERSION_MIN, Window,
};

use super::socket::{Reader, Socket, is_timeout, now};
use super::spin::{Spin, Spinner};
use crate::connection::handshake::{FIRST_FRAME_SIZE_MAX, HANDSHAKE_TIMEOUT, check_welcome};
use crate::state::link::{Peer, to_method};
use crate::state::routes::{BindResult, Routes};
use crate::{CallError, ConnectError, Sent};

/// Maximum bytes of requests in flight. It is small enough for the socket buffers, so that the two
/// sides never wait for each other to read.
const IN_FLIGHT_SIZE_MAX: usize = 64 << 10;

/// Maximum number of calls in flight.
const IN_FLIGHT_MAX: usize = 1024;

const CHUNK_SIZE: usize = 64 << 10;

/// Idle time after which the connection is checked before the next call.
const IDLE: Duration = Duration::from_secs(1);

/// Contents of HELLO, and options of the connection.
pub(crate) struct HandshakeOptions<'a> {
    pub(crate) token: &'a str,
    pub(crate) window: Window,
    pub(crate) name: &'a str,
    pub(crate) deadline: Duration,
    pub(crate) spin: Spin,
}

/// A blocking connection.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: Socket,
    reader: Reader,
    inbox: Inbox,
    chunk: Vec<u8>,
    out: Vec<u8>,
    peer: Peer,
    routes: Routes,
    /// Name of the called agent; empty for a server.
    name: String,
    deadline: Duration,
    frame_size_max: u32,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Calls that wait for their outcome, oldest first.
    sent: VecDeque<(Correlation, Instant)>,
    used: Instant,
    is_usable: bool,
    closing_error: Option<String>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    generation: u32,
    /// Index of the body, while the call waits for its outcome.
    waiting: Option<usize>,
    size: usize,
}

pub(super) type Settle<'s> = &'s mut dyn FnMut(usize, Result<&[u8], CallError>);

impl Connection {
    pub(crate) fn open(
        address: &Address,
        handshake: HandshakeOptions<'_>,
    ) -> Result<Self, ConnectError> {
        let text = address.to_string();
        if matches!(address, Address::Tls { .. } | Address::Inproc { .. }) {
            return Err(ConnectError::Unsupported {
                address: text,
                hint: "the blocking client supports tcp:// and unix://; use `Client` for other transports",
            });
        }
        let io_error = |cause: io::Error| match is_timeout(&cause) {
            true => ConnectError::Timeout {
                address: text.clone(),
                timeout: HANDSHAKE_TIMEOUT,
            },
            false => ConnectError::Io {
                address: text.clone(),
                cause,
            },
        };
        let mut socket = Socket::connect(address, HANDSHAKE_TIMEOUT).map_err(io_error)?;
        let hello = Hello {
            version_min: VERSION_MIN,
            version_max: VERSION,
            features: FEATURES,
            window: handshake.window,
            token: handshake.token,
            name: "",
        };
        let mut out = Vec::new();
        hello.encode(&mut out);
        socket
            .set_write_timeout(handshake.deadline)
            .map_err(io_error)?;
        socket.write_all(&out).map_err(io_error)?;
        out.clear();
        let mut reader = Reader::new(Spinner::new(handshake.spin));
        let deadline = now() + HANDSHAKE_TIMEOUT;
        let mut head = [0; HEADER_SIZE];
        read_exact(&mut reader, &mut socket, &mut head, deadline).map_err(io_error)?;
        let header = Header::decode(&head);
        if header.length > FIRST_FRAME_SIZE_MAX {
            return Err(ConnectError::Protocol {
                address: text,
                cause: format!("the first frame is larger than {FIRST_FRAME_SIZE_MAX} bytes"),
            });
        }
        let mut payload = vec![0; header.length as usize];
        read_exact(&mut reader, &mut socket, &mut payload, deadline).map_err(io_error)?;
        let peer = check_welcome(&text, header, &payload)?;
        Ok(Self {
            socket,
            reader,
            inbox: Inbox::new(handshake.window.frame_size_max),
            chunk: vec![0; CHUNK_SIZE],
            out,
            peer,
            routes: Routes::default(),
            name: handshake.name.to_owned(),
            deadline: handshake.deadline,
            frame_size_max: handshake.window.frame_size_max,
            slots: Vec::new(),
            free: Vec::new(),
            sent: VecDeque::new(),
            used: now(),
            is_usable: true,
            closing_error: None,
        })
    }

    pub(crate) fn role(&self) -> Role {
        self.peer.role
    }

    /// True if calls can be made on the connection.
    pub(crate) fn is_usable(&self) -> bool {
        self.is_usable
    }

    /// Checks a connection that was idle: answers frames of the peer and notices a closed
    /// connection.
    pub(crate) fn check_idle(&mut self) {
        if now().saturating_duration_since(self.used) < IDLE {
            return;
        }
        loop {
            let mut chunk = std::mem::take(&mut self.chunk);
            let read = self.socket.read_now(&mut chunk);
            let outcome = match read {
                Ok(0) => Err(self.lost("the peer closed the connection")),
                Ok(count) => self.process(&chunk[..count], &mut |_, _| {}),
                Err(error) if is_timeout(&error) => {
                    self.chunk = chunk;
                    break;
                }
                Err(error) => Err(self.lost(&error.to_string())),
            };
            self.chunk = chunk;
            if outcome.is_err() || self.flush().is_err() {
                self.is_usable = false;
                break;
            }
        }
    }

    /// Makes a call with each body. `settle` gets every outcome once.
    pub(crate) fn run(&mut self, method: &str, bodies: &[&[u8]], settle: Settle<'_>) {
        let mut next = 0;
        let mut left = bodies.len();
        let mut settle = |index: usize, answer: Result<&[u8], CallError>| {
            left -= 1;
            settle(index, answer);
        };
        // After a loss of the connection the remaining calls are settled below.
        let outcome = self.pump(method, bodies, &mut next, &mut settle);
        self.used = now();
        if let Err(error) = outcome {
            self.is_usable = false;
            self.abandon(&error, &mut settle);
            for index in next..bodies.len() {
                let message = error.message.clone();
                settle(index, Err(CallError::new(ErrorCode::Unavailable, message)));
            }
        }
        debug_assert_eq!(left, 0, "every call is settled once");
    }

    fn pump(
        &mut self,
        method: &str,
        bodies: &[&[u8]],
        next: &mut usize,
        settle: Settle<'_>,
    ) -> Result<(), CallError> {
        loop {
            self.queue(method, bodies, next, settle);
            self.flush()?;
            let Some(deadline) = self.oldest_deadline() else {
                match *next == bodies.len() {
                    true => return Ok(()),
                    false => continue,
                }
            };
            let mut chunk = std::mem::take(&mut self.chunk);
            let read = self.reader.read(&mut self.socket, &mut chunk, deadline);
            let outcome = match read {
                Ok(0) => Err(self.lost("the peer closed the connection")),
                Ok(count) => self.process(&chunk[..count], settle),
                Err(error) if is_timeout(&error) => {
                    self.expire(settle);
                    Ok(())
                }
                Err(error) => Err(self.lost(&error.to_string())),
            };
            self.chunk = chunk;
            outcome?;
        }
    }

    /// Queues the next requests, as many as may be in flight.
    fn queue(&mut self, method: &str, bodies: &[&[u8]], next: &mut usize, settle: Settle<'_>) {
        let calls_max = IN_FLIGHT_MAX
            .min(self.peer.window.calls_max as usize)
            .max(1);
        let mut size = self.in_flight_size();
        let mut sent_at = None;
        while let Some(body) = bodies.get(*next) {
            let payload = body.len() + 4;
            let limit = self.peer.window.frame_size_max;
            if payload > limit as usize {
                let message = format!(
                    "a payload of {payload} bytes is above the limit of {limit} (`frame_size_max` of the peer)"
                );
                settle(*next, Err(CallError::new(ErrorCode::TooLarge, message)));
                *next += 1;
                continue;
            }
            let occupied = self.slots.len() - self.free.len();
            if occupied >= calls_max || (size > 0 && size + payload > IN_FLIGHT_SIZE_MAX) {
                if self.sent.is_empty() {
                    let message = "the window is full: the peer has not answered expired calls";
                    settle(*next, Err(CallError::new(ErrorCode::Busy, message)));
                    *next += 1;
                    continue;
                }
                break;
            }
            size += payload;
            let deadline = *sent_at.get_or_insert_with(now) + self.deadline;
            self.request(method, body, *next, deadline);
            *next += 1;
        }
    }

    fn request(&mut self, method: &str, body: &[u8], index: usize, deadline: Instant) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot {
                generation: 0,
                waiting: None,
                size: 0,
            });
            self.slots.len() as u32 - 1
        });
        let entry = &mut self.slots[slot as usize];
        entry.generation = entry.generation.checked_add(1).unwrap_or(1);
        entry.waiting = Some(index);
        entry.size = body.len();
        let correlation = Correlation {
            slot,
            generation: entry.generation,
        };
        let target = to_method(&self.name, method);
        let route = match self.routes.bind(target) {
            BindResult::Existing(route) => route,
            BindResult::New(route) => {
                let bind = Bind {
                    route,
                    cast: target.cast,
                    method: target.method,
                    name: target.name,
                };
                bind.encode(&mut self.out);
                route
            }
        };
        let milliseconds = self.deadline.as_millis().try_into().unwrap_or(u32::MAX);
        let payload = Payload {
            deadline_ms: Some(milliseconds),
            metadata: &[],
            body,
        };
        payload.encode(
            Kind::REQUEST,
            Flags::NONE,
            route,
            correlation,
            &mut self.out,
        );
        self.sent.push_back((correlation, deadline));
    }

    fn flush(&mut self) -> Result<(), CallError> {
        if self.out.is_empty() {
            return Ok(());
        }
        let written = self.socket.write_all(&self.out);
        self.out.clear();
        written.map_err(|error| self.lost(&error.to_string()))
    }

    fn process(&mut self, chunk: &[u8], settle: Settle<'_>) -> Result<(), CallError> {
        let mut inbox = std::mem::replace(&mut self.inbox, Inbox::new(0));
        let mut frames = inbox.feed(chunk);
        let mut outcome = Ok(());
        while outcome.is_ok()
            && let Some(item) = frames.next()
        {
            outcome = match item {
                Item::Frame(header, payload) => self.take(header, payload, settle),
                Item::Oversize { header, fatal } => self.take_oversize(header, fatal, settle),
            };
        }
        self.inbox = inbox;
        outcome
    }

    fn take(
        &mut self,
        header: Header,
        payload: &[u8],
        settle: Settle<'_>,
    ) -> Result<(), CallError> {
        let malformed = |error: wire::Malformed| {
            CallError::new(ErrorCode::Protocol, error.to_string()).with_sent(Sent::Unknown)
        };
        match header.kind {
            Kind::REPLY if header.flags.contains(Flags::MORE) => {}
            Kind::REPLY => {
                let message = Payload::decode(header.flags, payload).map_err(malformed)?;
                self.answer(header.correlation, Ok(message.body), settle);
            }
            Kind::ERROR => {
                let failure = wire::decode_failure(payload).map_err(malformed)?;
                match header.correlation {
                    Correlation::NONE => {
                        self.closing_error = Some(format!("{}: {}", failure.code, failure.message));
                    }
                    call => self.answer(call, Err(CallError::from_wire(&failure)), settle),
                }
            }
            Kind::PING => wire::encode_pong(header.correlation, &mut self.out),
            // The next call uses a new connection.
            Kind::GOAWAY => self.is_usable = false,
            _ => {}
        }
        Ok(())
    }

    fn take_oversize(
        &mut self,
        header: Header,
        fatal: bool,
        settle: Settle<'_>,
    ) -> Result<(), CallError> {
        let (size, limit) = (header.length, self.frame_size_max);
        let message = format!(
            "the answer of {size} bytes is above this client's limit of {limit} (`frame_size_max`)"
        );
        let error = CallError::new(ErrorCode::TooLarge, message).with_sent(Sent::Yes);
        if fatal {
            return Err(error);
        }
        self.answer(header.correlation, Err(error), settle);
        Ok(())
    }

    fn answer(
        &mut self,
        correlation: Correlation,
        answer: Result<&[u8], CallError>,
        settle: Settle<'_>,
    ) {
        let Some(slot) = self.slots.get_mut(correlation.slot as usize) else {
            return;
        };
        if slot.generation != correlation.generation || slot.size == FREE {
            return;
        }
        let waiting = slot.waiting.take();
        slot.size = FREE;
        self.free.push(correlation.slot);
        if let Some(index) = waiting {
            settle(index, answer);
        }
    }

    /// Returns the deadline of the oldest call that waits.
    fn oldest_deadline(&mut self) -> Option<Instant> {
        while let Some((correlation, deadline)) = self.sent.front() {
            if self.waits(*correlation) {
                return Some(*deadline);
            }
            self.sent.pop_front();
        }
        None
    }

    fn waits(&self, correlation: Correlation) -> bool {
        let slot = &self.slots[correlation.slot as usize];
        slot.generation == correlation.generation && slot.waiting.is_some()
    }

    /// Fails the calls whose deadline has passed and cancels them at the peer.
    fn expire(&mut self, settle: Settle<'_>) {
        let now = now();
        while let Some((correlation, deadline)) = self.sent.front().copied() {
            if self.waits(correlation) {
                if deadline > now {
                    break;
                }
                wire::encode_cancel(correlation, &mut self.out);
                let index = self.slots[correlation.slot as usize].waiting.take();
                if let Some(index) = index {
                    settle(
                        index,
                        Err(crate::state::link::deadline_error(Sent::Unknown)),
                    );
                }
            }
            self.sent.pop_front();
        }
    }

    /// Fails every call in flight after a loss of the connection.
    fn abandon(&mut self, error: &CallError, settle: Settle<'_>) {
        for slot in &mut self.slots {
            if let Some(index) = slot.waiting.take() {
                settle(index, Err(error.clone()));
            }
        }
        self.sent.clear();
    }

    fn in_flight_size(&self) -> usize {
        let sizes = self.slots.iter().map(|slot| slot.size);
        sizes
            .filter(|size| *size != FREE)
            .map(|size| size + 4)
            .sum()
    }

    fn lost(&mut self, reason: &str) -> CallError {
        let message = self
            .closing_error
            .take()
            .unwrap_or_else(|| reason.to_owned());
        CallError::new(ErrorCode::Unconfirmed, message).with_sent(Sent::Unknown)
    }
}

/// Size that marks a free slot.
const FREE: usize = usize::MAX;

fn read_exact(
    reader: &mut Reader,
    socket: &mut Socket,
    buffer: &mut [u8],
    deadline: Instant,
) -> io::Result<()> {
    let mut filled = 0;
    while filled < buffer.len() {
        match reader.read(socket, &mut buffer[filled..], deadline)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => filled += count,
        }
    }
    Ok(())
}
