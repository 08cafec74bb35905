//! A connection that never waits: what is to be sent, what has come, and what is under way.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

use rustix::event::epoll::{self, EventFlags};

use super::answer::SIZE_MAX;
use crate::tally::Departure;

/// A connection, and what is under way on it in the order of its answers.
#[derive(Debug)]
pub(super) struct Caller {
    stream: Option<TcpStream>,
    inbox: Vec<u8>,
    filled: usize,
    outbox: Vec<u8>,
    written: usize,
    pub(super) flights: VecDeque<Flight>,
    /// When connecting was begun and when it was done.
    pub(super) connect_ns: (u64, u64),
    /// When the first byte of the answer that is awaited came.
    pub(super) first_byte_ns: Option<u64>,
}

/// A request under way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flight {
    /// Which of the load's templates.
    pub(super) template: usize,
    pub(super) decisions: u32,
    pub(super) departure: Departure,
    pub(super) is_counted: bool,
}

/// What reading has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inflow {
    Open,
    Ended,
}

/// What one read takes at first; a longer answer makes it grow.
const INBOX_SIZE: usize = 16 << 10;

/// Up to here: more than the longest answer that is read at all.
const INBOX_SIZE_MAX: usize = 2 * SIZE_MAX;

impl Caller {
    /// One that is not connected yet.
    pub(super) fn new() -> Self {
        Self {
            stream: None,
            inbox: vec![0; INBOX_SIZE],
            filled: 0,
            outbox: Vec::new(),
            written: 0,
            flights: VecDeque::new(),
            connect_ns: (0, 0),
            first_byte_ns: None,
        }
    }

    pub(super) fn is_connected(&self) -> bool {
        self.stream.is_some()
    }

    /// Connects, and is told about in `poll` under `key` from then on.
    ///
    /// The kernel answers for a listener on loopback, so that this takes microseconds and needs no
    /// turn of the loop.
    pub(super) fn connect(
        &mut self,
        address: SocketAddr,
        poll: &impl std::os::fd::AsFd,
        key: usize,
    ) -> io::Result<()> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        // Edges: a reader who reads all there is needs no further call to say so.
        let events = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(poll, &stream, epoll::EventData::new_u64(key as u64), events)?;
        self.stream = Some(stream);
        self.filled = 0;
        self.outbox.clear();
        self.written = 0;
        Ok(())
    }

    /// Hangs up; what is under way stays to be accounted for.
    pub(super) fn hang_up(&mut self) {
        self.stream = None;
    }

    /// What is to be sent next goes here.
    pub(super) fn outbox(&mut self) -> &mut Vec<u8> {
        &mut self.outbox
    }

    /// Sends what there is room for; the rest leaves when there is more.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        let Some(stream) = &mut self.stream else {
            return Ok(());
        };
        while self.written < self.outbox.len() {
            match stream.write(&self.outbox[self.written..]) {
                Ok(size) => self.written += size,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.outbox.clear();
        self.written = 0;
        Ok(())
    }

    /// Reads all there is. Where the end has been announced it is read up to that, for which there will
    /// be no other edge.
    pub(super) fn fill(&mut self, upto: Inflow) -> io::Result<Inflow> {
        let Some(stream) = &mut self.stream else {
            return Ok(Inflow::Ended);
        };
        loop {
            if self.filled == INBOX_SIZE_MAX {
                return Ok(Inflow::Open);
            }
            if self.filled == self.inbox.len() {
                self.inbox.resize(2 * self.inbox.len(), 0);
            }
            match stream.read(&mut self.inbox[self.filled..]) {
                Ok(0) => return Ok(Inflow::Ended),
                Ok(size) => {
                    self.filled += size;
                    // A short read has emptied the socket; what comes later is another edge.
                    if self.filled < self.inbox.len() && upto == Inflow::Open {
                        return Ok(Inflow::Open);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Inflow::Open),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// What has come and is not consumed.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.inbox[..self.filled]
    }

    /// Forgets that many bytes.
    pub(super) fn consume(&mut self, size: usize) {
        self.inbox.copy_within(size..self.filled, 0);
        self.filled -= size;
    }
}
