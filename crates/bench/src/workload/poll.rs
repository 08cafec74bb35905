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

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;

    use super::*;

    /// Accepts three bytes, then nothing until the next flush.
    struct Narrow(Vec<u8>, bool);

    impl Write for Narrow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.1 = !self.1;
            if !self.1 {
                return Err(ErrorKind::WouldBlock.into());
            }
            let size = bytes.len().min(3);
            self.0.extend_from_slice(&bytes[..size]);
            Ok(size)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn unsent_bytes_leave_with_the_next_flush() {
        let (mut outbox, mut stream) = (Outbox::default(), Narrow(Vec::new(), false));
        outbox.bytes().extend_from_slice(b"12345");
        outbox.flush(&mut stream).unwrap();
        assert_eq!((&stream.0[..], outbox.is_empty()), (&b"123"[..], false));
        outbox.bytes().push(b'6');
        outbox.flush(&mut stream).unwrap();
        assert_eq!((&stream.0[..], outbox.is_empty()), (&b"123456"[..], true));
    }

    #[test]
    fn an_event_has_the_key_of_its_connection_and_tells_its_end() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut peer, _) = listener.accept().unwrap();
        let (poll, mut events) = (Poll::new().unwrap(), Events::new(0));
        poll.add(&stream, 7).unwrap();
        let mut next = || {
            poll.wait(&mut events, 5_000_000_000).unwrap();
            events.drain().collect::<Vec<_>>()
        };
        let ready = |has_ended| Ready { key: 7, has_ended };
        assert_eq!(next(), [ready(false)], "writable");
        peer.write_all(b"x").unwrap();
        assert_eq!(next(), [ready(false)]);
        assert_eq!(stream.read(&mut [0; 8]).unwrap(), 1);
        drop(peer);
        assert_eq!(next(), [ready(true)]);
    }
}
