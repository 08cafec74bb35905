//! A server with a thread for each connection.

use std::io;
use std::thread;

use contract::{Failure, Flags, Outcome, Serve, announce, end_with_parent};

use crate::socket::{Listener, Socket};

/// Serves until the parent goes. A connection that breaks, or sends garbage, ends alone.
pub(crate) fn run(connection: fn(&Socket) -> io::Result<()>, mut flags: Flags) -> Outcome<()> {
    let options = Serve::take(&mut flags)?;
    flags.finish()?;
    let listener = Listener::bind(&options.listen)?;
    end_with_parent(listener.files());
    announce(&listener.address()?)?;
    loop {
        let socket = listener.accept().map_err(|error| {
            Failure::run(format!("cannot accept: {error}"), "raise `ulimit -n`")
        })?;
        thread::spawn(move || connection(&socket));
    }
}
