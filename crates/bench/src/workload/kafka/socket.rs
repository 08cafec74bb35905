//! A connection that never waits: what is to be sent, and what has come.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;

use bytes::BytesMut;
use rustix::event::epoll::{self, EventFlags};

/// What one read takes.
const READ_SIZE: usize = 16 << 10;

/// A connection to a broker.
#[derive(Debug)]
pub(super) struct Socket {
    stream: TcpStream,
    pub(super) inbox: BytesMut,
    pub(super) outbox: Vec<u8>,
    written: usize,
}

impl Socket {
    /// Takes over a connection, of which `poll` tells under `key` from then on.
    pub(super) fn of(
        stream: TcpStream,
        poll: &impl std::os::fd::AsFd,
        key: usize,
    ) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        // Edges: a reader who reads all there is needs no further call to say so.
        let events = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(poll, &stream, epoll::EventData::new_u64(key as u64), events)?;
        Ok(Self {
            stream,
            inbox: BytesMut::new(),
            outbox: Vec::new(),
            written: 0,
        })
    }

    /// From here on it waits for room and for what comes.
    pub(super) fn wait(&self) -> io::Result<()> {
        self.stream.set_nonblocking(false)
    }

    /// Sends what there is room for; the rest leaves when there is more.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        while self.written < self.outbox.len() {
            match self.stream.write(&self.outbox[self.written..]) {
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

    /// Whether all of it has left.
    pub(super) fn is_flushed(&self) -> bool {
        self.outbox.is_empty()
    }

    /// Reads all there is.
    ///
    /// # Errors
    /// When the broker has closed the connection too.
    pub(super) fn fill(&mut self) -> io::Result<()> {
        loop {
            let have = self.inbox.len();
            self.inbox.resize(have + READ_SIZE, 0);
            let read = self.stream.read(&mut self.inbox[have..]);
            self.inbox.truncate(have + *read.as_ref().unwrap_or(&0));
            match read {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                // A short read has emptied the socket; what comes later is another edge.
                Ok(size) if size < READ_SIZE => return Ok(()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}
