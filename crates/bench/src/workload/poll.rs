//! `epoll` for load generators on raw sockets: one thread, non-blocking connections, each with its
//! outgoing bytes.

use std::io::{self, ErrorKind, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;

use rustix::event::epoll::{self, EventFlags};
use rustix::event::{Timespec, epoll::EventData};

/// Set of connections that are waited for.
#[derive(Debug)]
pub struct Poll(OwnedFd);

/// Buffer for the events of one wait.
pub struct Events(Vec<epoll::Event>);

/// Event of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ready {
    /// Key under which the connection was added.
    pub key: usize,
    /// True if the peer has closed the connection, or it has failed: no other event will follow.
    pub has_ended: bool,
}

impl Poll {
    /// Makes an empty set.
    ///
    /// # Errors
    /// When the process has too many descriptors.
    pub fn new() -> io::Result<Self> {
        Ok(Self(epoll::create(epoll::CreateFlags::CLOEXEC)?))
    }

    /// Makes a connection non-blocking and adds it under `key`.
    ///
    /// Events are edge-triggered: a reader that always drains the socket needs no further system
    /// call.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn add(&self, stream: &TcpStream, key: usize) -> io::Result<()> {
        stream.set_nonblocking(true)?;
        let events = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(&self.0, stream, EventData::new_u64(key as u64), events)?;
        Ok(())
    }

    /// Waits for events, for at most `limit_ns`. A signal ends the wait without events.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn wait(&self, events: &mut Events, limit_ns: u64) -> io::Result<()> {
        let limit = Timespec {
            tv_sec: (limit_ns / 1_000_000_000) as i64,
            tv_nsec: (limit_ns % 1_000_000_000) as i64,
        };
        let room = rustix::buffer::spare_capacity(&mut events.0);
        match epoll::wait(&self.0, room, Some(&limit)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Events {
    /// Makes a buffer for at most `count` events of a wait, at least one.
    #[must_use]
    pub fn new(count: usize) -> Self {
        Self(Vec::with_capacity(count.max(1)))
    }

    /// Removes and returns the events of the last wait.
    pub fn drain(&mut self) -> impl Iterator<Item = Ready> {
        let ending = EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
        self.0.drain(..).map(move |event| {
            let epoll::Event { flags, data } = event;
            Ready {
                key: data.u64() as usize,
                has_ended: flags.intersects(ending),
            }
        })
    }
}

/// Outgoing bytes of a connection.
#[derive(Debug, Default)]
pub struct Outbox {
    bytes: Vec<u8>,
    written: usize,
}

impl Outbox {
    /// Returns the buffer, to append bytes.
    #[inline]
    pub fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Returns true if everything was sent.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Drops all bytes.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.written = 0;
    }

    /// Sends as much as the socket accepts; the rest leaves when there is room.
    ///
    /// # Errors
    /// When the connection fails.
    #[inline]
    pub fn flush(&mut self, stream: &mut impl Write) -> io::Result<()> {
        while self.written < self.bytes.len() {
            match stream.write(&self.bytes[self.written..]) {
                Ok(size) => self.written += size,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.clear();
        Ok(())
    }
}
