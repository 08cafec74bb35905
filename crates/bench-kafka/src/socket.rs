//! Non-blocking connection with an outgoing and an incoming buffer.

use std::io::{self, ErrorKind, Read};
use std::net::TcpStream;

use bench::workload::poll::{Outbox, Poll};
use bytes::BytesMut;

/// Size of a read.
const READ_SIZE: usize = 16 << 10;

/// A connection to a broker.
#[derive(Debug)]
pub(super) struct Socket {
    stream: TcpStream,
    pub(super) inbox: BytesMut,
    pub(super) outbox: Outbox,
}

impl Socket {
    /// Takes over a connection. `poll` reports its events under `key`.
    pub(super) fn of(stream: TcpStream, poll: &Poll, key: usize) -> io::Result<Self> {
        poll.add(&stream, key)?;
        Ok(Self {
            stream,
            inbox: BytesMut::new(),
            outbox: Outbox::default(),
        })
    }

    /// Makes the socket blocking.
    pub(super) fn wait(&self) -> io::Result<()> {
        self.stream.set_nonblocking(false)
    }

    /// Sends as much as the socket accepts; the rest leaves when there is room.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.outbox.flush(&mut self.stream)
    }

    /// Returns true if everything was sent.
    pub(super) fn is_flushed(&self) -> bool {
        self.outbox.is_empty()
    }

    /// Reads all available bytes.
    ///
    /// # Errors
    /// When the connection fails, or the broker has closed it.
    pub(super) fn fill(&mut self) -> io::Result<()> {
        loop {
            let have = self.inbox.len();
            self.inbox.resize(have + READ_SIZE, 0);
            let read = self.stream.read(&mut self.inbox[have..]);
            self.inbox.truncate(have + *read.as_ref().unwrap_or(&0));
            match read {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                // A short read has emptied the socket; later bytes cause a new edge.
                Ok(size) if size < READ_SIZE => return Ok(()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}
