//! A follower as its leader sees it: batches out, positions in.

use std::collections::VecDeque;
use std::io;
use std::mem;

use crate::poll::Interest;
use crate::socket::Socket;

/// A follower.
pub(super) struct Follower {
    pub(super) socket: Socket,
    pub(super) interest: Interest,
    /// Bytes of the batch that is being written, and how many of them are.
    output: Vec<u8>,
    written: usize,
    /// Bytes for the next batch.
    pub(super) pending: Vec<u8>,
    /// The position after the last batch that was begun.
    sent: u64,
    /// Ends of the batches that are not synced, the oldest first, and how many there may be.
    batches: VecDeque<u64>,
    ahead: usize,
    /// The position that the follower has synced.
    pub(super) synced: u64,
    /// Bytes of positions that were read, and how many.
    inbox: [u8; 4096],
    filled: usize,
}

impl Follower {
    /// Whether the socket had no room for all of a batch.
    pub(super) fn is_blocked(&self) -> bool {
        self.written < self.output.len()
    }

    /// A follower that is connected and has nothing. At most `ahead` batches are sent and not synced.
    pub(super) fn new(socket: Socket, ahead: usize) -> Follower {
        Follower {
            socket,
            interest: Interest::Read,
            output: Vec::new(),
            written: 0,
            pending: Vec::new(),
            sent: 0,
            batches: VecDeque::with_capacity(ahead),
            ahead,
            synced: 0,
            inbox: [0; 4096],
            filled: 0,
        }
    }

    /// Reads positions, of which the last one counts.
    pub(super) fn receive(&mut self) -> io::Result<()> {
        match self.socket.read(&mut self.inbox[self.filled..])? {
            0 => return Err(io::Error::other("a follower closed its connection")),
            size => self.filled += size,
        }
        let complete = self.filled / 8 * 8;
        if let Some(position) = self.inbox[..complete].last_chunk() {
            self.synced = u64::from_le_bytes(*position);
            self.inbox.copy_within(complete..self.filled, 0);
            self.filled -= complete;
        }
        if self.synced > self.sent {
            return Err(io::Error::other("a follower synced what it was not sent"));
        }
        while self.batches.front().is_some_and(|end| *end <= self.synced) {
            self.batches.pop_front();
        }
        Ok(())
    }

    /// Writes what there is room for, one write a batch, while not too many are under way.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        loop {
            if self.written == self.output.len() {
                if self.pending.is_empty() || self.batches.len() == self.ahead {
                    return Ok(());
                }
                self.output.clear();
                self.written = 0;
                mem::swap(&mut self.output, &mut self.pending);
                self.sent += self.output.len() as u64;
                self.batches.push_back(self.sent);
            }
            let written = self.socket.write_some(&self.output[self.written..])?;
            self.written += written;
            if self.written < self.output.len() {
                return Ok(());
            }
        }
    }
}
