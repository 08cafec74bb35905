//! Frames that share a sync: gathered in a queue, answered with one write per connection.

use std::io;
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use contract::Inbox;

use crate::socket::Socket;

/// Queued bytes from which on [`Queue::put`] waits.
pub(crate) const QUEUE_SIZE_MAX: usize = 32 << 20;

/// Frames that will share a sync, and whose they are.
#[derive(Default)]
pub(crate) struct Group {
    pub(crate) bytes: Vec<u8>,
    /// Runs of bytes in order: the connection, its key, and how many bytes.
    pub(crate) runs: Vec<(Arc<Socket>, usize, usize)>,
}

impl Group {
    /// Adds complete frames of the connection `key`.
    pub(crate) fn push(&mut self, socket: &Arc<Socket>, key: usize, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        match self.runs.last_mut() {
            Some((_, last, size)) if *last == key => *size += bytes.len(),
            _ => self.runs.push((socket.clone(), key, bytes.len())),
        }
    }

    /// Reads once and adds the complete frames. An end or garbage is an error.
    pub(crate) fn receive(
        &mut self,
        socket: &Arc<Socket>,
        key: usize,
        inbox: &mut Inbox,
    ) -> io::Result<()> {
        match socket.read(inbox.space())? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            size => inbox.advance(size),
        }
        let complete = inbox.complete().map_err(|_| io::ErrorKind::InvalidData)?;
        if complete > 0 {
            self.push(socket, key, &inbox.bytes()[..complete]);
            inbox.consume(complete);
        }
        Ok(())
    }

    /// Forgets everything but the room it took.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.runs.clear();
    }
}

/// Bytes that were read and are not on disk yet.
#[derive(Default)]
pub(crate) struct Queue {
    group: Mutex<Group>,
    filled: Condvar,
    emptied: Condvar,
}

impl Queue {
    /// Appends a turn's frames; waits while too many are queued.
    pub(crate) fn put(&self, turn: &mut Group) {
        let mut group = self.lock();
        while group.bytes.len() > QUEUE_SIZE_MAX {
            group = self
                .emptied
                .wait(group)
                .unwrap_or_else(PoisonError::into_inner);
        }
        let was_empty = group.bytes.is_empty();
        if was_empty {
            mem::swap(&mut *group, turn);
        } else {
            group.bytes.extend_from_slice(&turn.bytes);
            group.runs.append(&mut turn.runs);
        }
        drop(group);
        turn.clear();
        if was_empty {
            self.filled.notify_one();
        }
    }

    /// Takes everything into `taken`, which is empty; waits while there is nothing.
    pub(crate) fn take(&self, taken: &mut Group) {
        let mut group = self.lock();
        while group.bytes.is_empty() {
            group = self
                .filled
                .wait(group)
                .unwrap_or_else(PoisonError::into_inner);
        }
        mem::swap(&mut *group, taken);
        drop(group);
        if taken.bytes.len() > QUEUE_SIZE_MAX {
            self.emptied.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Group> {
        self.group.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Echoes the group: one write for all the bytes of a connection, in their order.
pub(crate) fn answer(group: &Group, gathered: &mut Vec<u8>) {
    let mut offset = 0;
    let mut runs: Vec<(&Arc<Socket>, usize, &[u8])> = Vec::with_capacity(group.runs.len());
    for (socket, key, size) in &group.runs {
        runs.push((socket, *key, &group.bytes[offset..offset + size]));
        offset += size;
    }
    runs.sort_by_key(|(_, key, _)| *key);
    for runs in runs.chunk_by(|(_, left, _), (_, right, _)| left == right) {
        // A connection that cannot be written to has ended; the reader will notice.
        let _ = match runs {
            [(socket, _, bytes)] => socket.write_all(bytes),
            _ => {
                gathered.clear();
                runs.iter()
                    .for_each(|(_, _, bytes)| gathered.extend_from_slice(bytes));
                runs[0].0.write_all(gathered)
            }
        };
    }
}
