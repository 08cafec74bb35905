//! The leader's event loop: clients, followers, and the commit.
//!
//! One thread reads the clients, sends to the followers, reads their positions and answers. The
//! other writes and syncs the own file, and rings a bell when its sync may have committed
//! something.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::Arc;

use contract::{Counts, Inbox, ZeroedFile};

use super::log::{Log, Next, Positions};
use super::peer::Follower;
use super::waiting::Waiting;
use crate::echo::CHUNK_SIZE;
use crate::group::{Group, QUEUE_SIZE_MAX, Queue, answer};
use crate::poll::{Interest, Poll, Ready};
use crate::socket::{Listener, Socket};

/// Keys in the poll: the followers from 0 on, these, then the clients.
const BELL: usize = super::FOLLOWERS;
const LISTENER: usize = BELL + 1;

/// Bytes that some node has not synced from which on the clients are left unread.
const UNSYNCED_SIZE_MAX: u64 = QUEUE_SIZE_MAX as u64;

/// Leads until a follower is lost.
pub(super) fn lead(
    listener: &Listener,
    followers: Vec<Socket>,
    file: ZeroedFile,
    ahead: usize,
    counts: Counts,
) -> io::Result<()> {
    let mut leader = Leader::new(listener, followers, ahead)?;
    let (positions, bell) = (leader.positions.clone(), leader.bell.try_clone()?);
    Log::new(file, counts).start(leader.queue.clone(), move |position| {
        if positions.set_own(position) {
            // The counter of the bell cannot overflow: it is read as often as it is rung.
            let _ = (&bell).write(&1u64.to_ne_bytes());
        }
        Next::Continue
    });
    leader.run(listener)
}

struct Leader {
    /// All descriptors.
    everything: Poll,
    /// Followers and the bell, for when clients have to wait.
    nodes: Poll,
    bell: File,
    followers: Vec<Follower>,
    clients: HashMap<usize, (Arc<Socket>, Inbox)>,
    next_key: usize,
    /// Frames on their way to the own file.
    queue: Arc<Queue>,
    positions: Arc<Positions>,
    /// Frames that are not committed.
    waiting: Waiting,
    received: u64,
    committed: u64,
}

impl Leader {
    fn new(listener: &Listener, followers: Vec<Socket>, ahead: usize) -> io::Result<Leader> {
        let leader = Leader {
            everything: Poll::new()?,
            nodes: Poll::new()?,
            bell: new_bell()?,
            followers: followers
                .into_iter()
                .map(|socket| Follower::new(socket, ahead))
                .collect(),
            clients: HashMap::new(),
            next_key: LISTENER + 1,
            queue: Arc::default(),
            positions: Arc::default(),
            waiting: Waiting::default(),
            received: 0,
            committed: 0,
        };
        for poll in [&leader.everything, &leader.nodes] {
            poll.add(leader.bell.as_raw_fd(), BELL)?;
            for (key, follower) in leader.followers.iter().enumerate() {
                poll.add(follower.socket.fd(), key)?;
            }
        }
        leader.everything.add(listener.fd(), LISTENER)?;
        Ok(leader)
    }

    fn run(&mut self, listener: &Listener) -> io::Result<()> {
        let mut ready = Vec::new();
        let mut turn = Group::default();
        let mut copy = Group::default();
        let mut committed = Group::default();
        let mut gathered = Vec::new();
        loop {
            let poll = match self.unsynced() < UNSYNCED_SIZE_MAX {
                true => &mut self.everything,
                false => &mut self.nodes,
            };
            poll.wait(-1, &mut ready)?;
            for &ready in &ready {
                match ready.key {
                    BELL => drop(self.bell.read(&mut [0; 8])?),
                    LISTENER => self.accept(listener)?,
                    key if key < BELL => self.follower_ready(ready)?,
                    key => self.client_ready(key, &mut turn),
                }
            }
            if !turn.bytes.is_empty() {
                self.received += turn.bytes.len() as u64;
                for follower in &mut self.followers {
                    follower.pending.extend_from_slice(&turn.bytes);
                }
                copy.bytes.extend_from_slice(&turn.bytes);
                self.queue.put(&mut copy);
                self.waiting.push(&mut turn);
            }
            for key in 0..self.followers.len() {
                self.flush(key)?;
            }
            if self.commit() {
                self.waiting.take(self.committed, &mut committed);
                answer(&committed, &mut gathered);
                committed.clear();
            }
        }
    }

    fn accept(&mut self, listener: &Listener) -> io::Result<()> {
        let socket = listener.accept()?;
        self.everything.add(socket.fd(), self.next_key)?;
        let client = (Arc::new(socket), Inbox::new(CHUNK_SIZE));
        self.clients.insert(self.next_key, client);
        self.next_key += 1;
        Ok(())
    }

    /// Reads once and adds the complete frames to the turn. A client that ends, or sends garbage,
    /// is dropped.
    fn client_ready(&mut self, key: usize, turn: &mut Group) {
        if let Some((socket, inbox)) = self.clients.get_mut(&key)
            && turn.receive(socket, key, inbox).is_err()
        {
            self.clients.remove(&key);
        }
    }

    fn follower_ready(&mut self, ready: Ready) -> io::Result<()> {
        if ready.readable {
            self.followers[ready.key].receive()?;
            let max = self.followers.iter().map(|follower| follower.synced).max();
            self.positions.set_followers_max(max.unwrap_or(0));
        }
        Ok(())
    }

    /// Sends to a follower what may be sent; waits for room only while there is something to send.
    fn flush(&mut self, key: usize) -> io::Result<()> {
        let follower = &mut self.followers[key];
        follower.flush()?;
        let interest = match follower.is_blocked() {
            true => Interest::ReadAndWrite,
            false => Interest::Read,
        };
        if interest != follower.interest {
            follower.interest = interest;
            for poll in [&self.everything, &self.nodes] {
                poll.change(follower.socket.fd(), key, interest)?;
            }
        }
        Ok(())
    }

    /// Bytes that were received and that some node has not synced.
    fn unsynced(&self) -> u64 {
        let nodes = self.followers.iter().map(|follower| follower.synced);
        self.received - nodes.fold(self.positions.own(), u64::min)
    }

    /// Raises the committed position to the second largest of three; whether it rose.
    fn commit(&mut self) -> bool {
        let mut positions = [self.positions.own(); 1 + super::FOLLOWERS];
        for (position, follower) in positions[1..].iter_mut().zip(&self.followers) {
            *position = follower.synced;
        }
        positions.sort_unstable();
        let before = mem::replace(&mut self.committed, positions[1]);
        before < self.committed
    }
}

/// A descriptor that is readable after it was written to.
fn new_bell() -> io::Result<File> {
    #[expect(unsafe_code, reason = "std has no eventfd")]
    // SAFETY: the descriptor is new, has no other owner, and is checked.
    unsafe {
        let fd = libc::eventfd(0, libc::EFD_CLOEXEC);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(File::from_raw_fd(fd))
    }
}
