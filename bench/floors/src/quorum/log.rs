//! The thread that writes and syncs a node's file, and the position that it has reached.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use contract::{Counts, ZeroedFile};

use crate::group::{Group, Queue};

/// A file of the log, with how much of it is synced.
pub(super) struct Log {
    file: ZeroedFile,
    synced: u64,
    counts: Counts,
}

impl Log {
    /// A log without bytes.
    pub(super) fn new(file: ZeroedFile, counts: Counts) -> Log {
        Log {
            file,
            synced: 0,
            counts,
        }
    }

    /// Writes the bytes, syncs once and returns the position after them. A disk that fails ends
    /// the program.
    pub(super) fn append(&mut self, bytes: &[u8]) -> u64 {
        match self.file.append(bytes) {
            Ok(took_ns) => self.counts.record(took_ns, bytes.len()),
            Err(error) => self.file.fail(&error),
        }
        self.synced += bytes.len() as u64;
        self.synced
    }

    /// Starts a thread that appends all that is queued, time after time, and calls `synced` with
    /// the position after each sync. It ends when that says so.
    pub(super) fn start(
        mut self,
        queue: Arc<Queue>,
        mut synced: impl FnMut(u64) -> Next + Send + 'static,
    ) {
        thread::spawn(move || {
            let mut group = Group::default();
            loop {
                queue.take(&mut group);
                let position = self.append(&group.bytes);
                group.clear();
                if synced(position) == Next::End {
                    return;
                }
            }
        });
    }
}

/// Whether a thread goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// With the next group.
    Continue,
    /// No more.
    End,
}

/// The positions that decide a commit, as the leader's two threads tell them to each other.
///
/// Each thread stores its own position before it loads the other's, so at least one of them sees
/// both, and a sync that decides nothing wakes no thread.
#[derive(Default)]
pub(super) struct Positions {
    own: AtomicU64,
    followers_max: AtomicU64,
}

impl Positions {
    /// Notes the position that the own file is synced to. Returns whether that can commit
    /// something: whether a follower was ahead of the position before.
    pub(super) fn set_own(&self, position: u64) -> bool {
        let before = self.own.swap(position, Ordering::SeqCst);
        self.followers_max.load(Ordering::SeqCst) > before
    }

    /// The position that the own file is synced to.
    pub(super) fn own(&self) -> u64 {
        self.own.load(Ordering::SeqCst)
    }

    /// Notes the largest position that a follower has synced.
    pub(super) fn set_followers_max(&self, position: u64) {
        self.followers_max.store(position, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_own_sync_commits_only_what_a_follower_has() {
        let positions = Positions::default();
        assert!(!positions.set_own(10));
        positions.set_followers_max(10);
        assert!(!positions.set_own(20));
        positions.set_followers_max(21);
        assert!(positions.set_own(30));
        assert_eq!(positions.own(), 30);
    }
}
