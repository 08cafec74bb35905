//! The echo floor's server: a thread per connection, one write for everything one read brought.

use std::io;
use std::thread;

use contract::{Failure, Flags, Outcome, Serve, announce, end_with_parent};

use crate::frame::Inbox;
use crate::socket::{Listener, Socket};

/// Bytes that one read takes at most, unless a single frame is longer.
pub(crate) const CHUNK_SIZE: usize = 256 << 10;

/// Serves until the parent goes.
pub(crate) fn serve(mut flags: Flags) -> Outcome<()> {
    let options = Serve::take(&mut flags)?;
    flags.finish()?;
    let listener = Listener::bind(&options.listen)?;
    end_with_parent(listener.files());
    announce(&listener.address()?)?;
    loop {
        let socket = listener.accept().map_err(|error| {
            Failure::run(format!("cannot accept: {error}"), "raise `ulimit -n`")
        })?;
        // A connection that breaks, or sends garbage, ends alone.
        thread::spawn(move || echo(&socket));
    }
}

fn echo(socket: &Socket) -> io::Result<()> {
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
