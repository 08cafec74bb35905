//! A follower: bytes from the leader, to disk, and the position back.
//!
//! With one thread the socket gathers while the file is synced. With two, one reads and the other
//! writes, syncs and acknowledges.

use std::io;
use std::sync::Arc;

use contract::{Address, Counts, Failure, Flags, Outcome, ZeroedFile, run_node, take_place};

use super::log::{Log, Next};
use crate::group::{Group, Queue};
use crate::socket::{Listener, Socket};

/// Bytes that one read takes at most.
const CHUNK_SIZE: usize = 1 << 20;

/// Follows the one leader that connects, until it goes.
pub(crate) fn follow(mut flags: Flags) -> Outcome<()> {
    let (path, size) = take_place(&mut flags)?;
    let threads = flags.number("threads", 1, 1, 2)?;
    let counts = Counts::take(&mut flags)?;
    flags.finish()?;
    run_node("follower", vec![path.clone()], &counts, |_, ready| {
        let file = ZeroedFile::create(path, size)?;
        let local = Address::Tcp(([127, 0, 0, 1], 0).into());
        let listener = Listener::bind(&local)?;
        ready(&listener.address()?)?;

        let log = Log::new(file, counts.clone());
        let outcome = listener.accept().and_then(|socket| match threads {
            1 => run_in_one(&socket, log),
            _ => run_in_two(socket, log),
        });
        outcome
            .map_err(|error| Failure::run(format!("the leader is lost: {error}"), "does it run?"))
    })
}

fn run_in_one(socket: &Socket, mut log: Log) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK_SIZE];
    loop {
        match socket.read(&mut chunk)? {
            0 => return Ok(()),
            size => acknowledge(socket, log.append(&chunk[..size]))?,
        }
    }
}

fn run_in_two(socket: Socket, log: Log) -> io::Result<()> {
    let (socket, queue) = (Arc::new(socket), Arc::new(Queue::default()));
    let leader = socket.clone();
    log.start(queue.clone(), move |position| {
        match acknowledge(&leader, position) {
            Ok(()) => Next::Continue,
            Err(_) => Next::End,
        }
    });
    let mut chunk = vec![0; CHUNK_SIZE];
    let mut group = Group::default();
    loop {
        match socket.read(&mut chunk)? {
            0 => return Ok(()),
            size => group.bytes.extend_from_slice(&chunk[..size]),
        }
        queue.put(&mut group);
    }
}

/// Tells the leader the position up to which this node's file is synced.
fn acknowledge(socket: &Socket, position: u64) -> io::Result<()> {
    socket.write_all(&position.to_le_bytes())
}
