//! Non-blocking connection with its buffers and its requests in flight.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read};
use std::net::{SocketAddr, TcpStream};

use super::answer::SIZE_MAX;
use bench::tally::Departure;
use bench::workload::poll::{Outbox, Poll};

/// A connection, and its requests in flight in the order of their answers.
#[derive(Debug)]
pub(super) struct Caller {
    stream: Option<TcpStream>,
    inbox: Vec<u8>,
    filled: usize,
    outbox: Outbox,
    pub(super) flights: VecDeque<Flight>,
    /// Start and end of connecting.
    pub(super) connect_ns: (u64, u64),
    /// Arrival of the first byte of the current response.
    pub(super) first_byte_ns: Option<u64>,
}

/// A request in flight.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flight {
    /// Index of the load's template.
    pub(super) template: usize,
    pub(super) decisions: u32,
    pub(super) departure: Departure,
    pub(super) is_counted: bool,
}

/// State of the connection after reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadState {
    Open,
    Ended,
}

/// Initial size of the read buffer; a longer response makes it grow.
const INBOX_SIZE: usize = 16 << 10;

/// Maximum size of the read buffer: larger than the longest accepted response.
const INBOX_SIZE_MAX: usize = 2 * SIZE_MAX;

impl Caller {
    /// Makes a caller without a connection.
    pub(super) fn new() -> Self {
        Self {
            stream: None,
            inbox: vec![0; INBOX_SIZE],
            filled: 0,
            outbox: Outbox::default(),
            flights: VecDeque::new(),
            connect_ns: (0, 0),
            first_byte_ns: None,
        }
    }

    pub(super) fn is_connected(&self) -> bool {
        self.stream.is_some()
    }

    /// Connects. `poll` reports events of the connection under `key`.
    ///
    /// The kernel accepts for a listener on loopback, so this takes microseconds and need not be
    /// asynchronous.
    pub(super) fn connect(
        &mut self,
        address: SocketAddr,
        poll: &Poll,
        key: usize,
    ) -> io::Result<()> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        poll.add(&stream, key)?;
        self.stream = Some(stream);
        self.filled = 0;
        self.outbox.clear();
        Ok(())
    }

    /// Closes the connection. Requests in flight remain to be accounted for.
    pub(super) fn hang_up(&mut self) {
        self.stream = None;
    }

    /// Returns the buffer for outgoing requests.
    pub(super) fn outbox(&mut self) -> &mut Vec<u8> {
        self.outbox.bytes()
    }

    /// Sends as much as the socket accepts; the rest leaves when there is room.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        match &mut self.stream {
            Some(stream) => self.outbox.flush(stream),
            None => Ok(()),
        }
    }

    /// Reads all available bytes. If the peer has announced the end, reads up to it, because no
    /// other edge will follow.
    pub(super) fn fill(&mut self, upto: ReadState) -> io::Result<ReadState> {
        let Some(stream) = &mut self.stream else {
            return Ok(ReadState::Ended);
        };
        loop {
            if self.filled == INBOX_SIZE_MAX {
                return Ok(ReadState::Open);
            }
            if self.filled == self.inbox.len() {
                self.inbox.resize(2 * self.inbox.len(), 0);
            }
            match stream.read(&mut self.inbox[self.filled..]) {
                Ok(0) => return Ok(ReadState::Ended),
                Ok(size) => {
                    self.filled += size;
                    // A short read has emptied the socket; later bytes cause a new edge.
                    if self.filled < self.inbox.len() && upto == ReadState::Open {
                        return Ok(ReadState::Open);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(ReadState::Open),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the received bytes that are not consumed.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.inbox[..self.filled]
    }

    /// Drops the first `size` received bytes.
    pub(super) fn consume(&mut self, size: usize) {
        self.inbox.copy_within(size..self.filled, 0);
        self.filled -= size;
    }
}
