//! The echo floor's server: a thread per connection, one write for everything one read brought.

use std::io;

use contract::Inbox;

use crate::socket::Socket;

/// Bytes that one read takes at most, unless a single frame is longer.
pub(crate) const CHUNK_SIZE: usize = 256 << 10;

/// Answers one connection until it ends.
pub(crate) fn echo(socket: &Socket) -> io::Result<()> {
    let mut inbox = Inbox::new(CHUNK_SIZE);
    loop {
        match socket.read(inbox.space())? {
            0 => return Ok(()),
            size => inbox.advance(size),
        }
        let complete = inbox.complete().map_err(|_| io::ErrorKind::InvalidData)?;
        if complete > 0 {
            socket.write_all(&inbox.bytes()[..complete])?;
            inbox.consume(complete);
        }
    }
}
