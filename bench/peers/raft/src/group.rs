//! A Raft group on the node that leads it: frames become blocks, blocks become entries.
//!
//! Clients add frames to the building block. The proposer closes it and proposes it while fewer
//! than `blocks_max` blocks are under way and Raft has taken the last one into the log; what
//! arrives meanwhile is the next block. So blocks grow with the load, and nothing lingers. A block
//! is taken in the order of its number or not at all.

use std::collections::VecDeque;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use contract::{Failure, Outcome};
use openraft::impls::ProgressResponder;
use tokio::sync::Notify;

use crate::pipe::Pipe;
use crate::types::{Block, Raft, Term};

/// Bytes of the building block from which on clients are left unread.
const BUILDING_SIZE_MAX: usize = 32 << 20;

/// The largest id of a node.
const NODE_MAX: usize = 3;

/// The group.
pub(crate) struct Group {
    /// Its number among the groups of the node, from 0.
    pub(crate) number: u8,
    building: Mutex<Building>,
    /// Rung when the building block has frames, or Raft has taken a block.
    bell: Notify,
    /// Rung when a full building block was closed.
    room: Notify,
    /// Blocks that are proposed and not applied, the oldest first.
    proposed: Mutex<VecDeque<Proposed>>,
    /// Blocks that Raft has taken into the log.
    taken: AtomicU64,
    /// The next entry that each reader of the log needs: the state machine, then the other nodes
    /// by their id; `u64::MAX` for those that read nothing here.
    needed: [AtomicU64; 1 + NODE_MAX],
}

#[derive(Default)]
struct Building {
    bytes: BytesMut,
    runs: Vec<Run>,
}

/// Frames in a row of one client.
struct Run {
    client: Arc<Client>,
    size: usize,
}

struct Proposed {
    number: u64,
    body: Bytes,
    runs: Vec<Run>,
}

/// A client's connection.
pub(crate) struct Client {
    pub(crate) pipe: Arc<Pipe>,
    /// Its number among all clients of the node.
    pub(crate) number: u64,
}

impl Group {
    /// A group without blocks.
    pub(crate) fn new(number: u8) -> Arc<Group> {
        Arc::new(Group {
            number,
            building: Mutex::default(),
            bell: Notify::new(),
            room: Notify::new(),
            proposed: Mutex::default(),
            taken: AtomicU64::new(0),
            needed: [0, u64::MAX, u64::MAX, u64::MAX].map(AtomicU64::new),
        })
    }

    /// Notes that a reader needs no entry before `index`: the state machine (0) or a node.
    pub(crate) fn set_needed(&self, reader: u64, index: u64) {
        self.needed[reader as usize].store(index, Ordering::Relaxed);
    }

    /// The first entry that any reader needs.
    pub(crate) fn needed(&self) -> u64 {
        let needed = self.needed.iter();
        needed.fold(u64::MAX, |first, index| {
            first.min(index.load(Ordering::Relaxed))
        })
    }

    /// Adds complete frames of a client to the building block.
    pub(crate) fn push(&self, client: &Arc<Client>, frames: &[u8]) {
        let mut building = lock(&self.building);
        let was_empty = building.bytes.is_empty();
        building.bytes.extend_from_slice(frames);
        match building.runs.last_mut() {
            Some(run) if run.client.number == client.number => run.size += frames.len(),
            _ => building.runs.push(Run {
                client: client.clone(),
                size: frames.len(),
            }),
        }
        drop(building);
        if was_empty {
            self.bell.notify_one();
        }
    }

    /// Waits while the building block is full.
    pub(crate) async fn wait_for_room(&self) {
        while lock(&self.building).bytes.len() > BUILDING_SIZE_MAX {
            self.room.notified().await;
        }
    }

    /// Notes that Raft has taken a block into the log.
    pub(crate) fn set_taken(&self, number: u64) {
        self.taken.store(number + 1, Ordering::Release);
        self.bell.notify_one();
    }

    /// Proposes block after block, `blocks_max` at a time at most. Ends when Raft refuses one.
    pub(crate) async fn propose(&self, raft: &Raft, term: Term, blocks_max: usize) -> Failure {
        let mut number = 0;
        let mut answers = VecDeque::with_capacity(blocks_max);
        loop {
            while answers.len() < blocks_max
                && self.taken.load(Ordering::Acquire) == number
                && let Some(block) = self.close_block(number)
            {
                number += 1;
                let (responder, answer) = ProgressResponder::complete_only();
                let write = raft.write(block).with_leader(term).responder(responder);
                if let Err(error) = write.await {
                    return refused(&error);
                }
                answers.push_back(answer);
            }
            let bell = self.bell.notified();
            let answered = match answers.front_mut() {
                None => {
                    bell.await;
                    continue;
                }
                Some(answer) => tokio::select! {
                    () = bell => continue,
                    answered = answer => answered,
                },
            };
            answers.pop_front();
            match answered {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => return refused(&error),
                Err(error) => return refused(&error),
            }
        }
    }

    /// Closes the building block, if it has frames.
    fn close_block(&self, number: u64) -> Option<Block> {
        let mut building = lock(&self.building);
        if building.bytes.is_empty() {
            return None;
        }
        let body = building.bytes.split().freeze();
        // The next block will be about as long: it should not grow by copying.
        building.bytes.reserve(body.len());
        let runs = mem::take(&mut building.runs);
        drop(building);
        if body.len() > BUILDING_SIZE_MAX {
            self.room.notify_waiters();
        }
        lock(&self.proposed).push_back(Proposed {
            number,
            body: body.clone(),
            runs,
        });
        Some(Block { number, body })
    }

    /// The oldest block that is under way is committed: adds its frames to `committed`. A block
    /// that this node did not propose has no clients here.
    pub(crate) fn commit(&self, block: &Block, committed: &mut Committed) -> Outcome<()> {
        let mut proposed = lock(&self.proposed);
        let Some(oldest) = proposed.pop_front() else {
            return Ok(());
        };
        if oldest.number != block.number {
            let what = format!(
                "block {} is committed before {}",
                block.number, oldest.number
            );
            return Err(Failure::run(what, "this is a mistake of the program"));
        }
        let mut start = 0;
        for run in oldest.runs {
            let frames = oldest.body.slice(start..start + run.size);
            start += run.size;
            committed.runs.push((run.client, frames));
        }
        Ok(())
    }
}

/// Frames to echo.
#[derive(Default)]
pub(crate) struct Committed {
    runs: Vec<(Arc<Client>, Bytes)>,
}

impl Committed {
    /// Echoes all frames, with one write for each client, in their order.
    pub(crate) fn answer(&mut self) {
        self.runs.sort_by_key(|(client, _)| client.number);
        let same_client = |(left, _): &(Arc<Client>, _), (right, _): &(Arc<Client>, _)| {
            left.number == right.number
        };
        for runs in self.runs.chunk_by(same_client) {
            runs[0].0.pipe.send(|out| {
                for (_, frames) in runs {
                    out.extend_from_slice(frames);
                }
            });
        }
        self.runs.clear();
    }
}

fn refused(error: &dyn std::fmt::Display) -> Failure {
    Failure::run(
        format!("Raft refused a block: {error}"),
        "is the machine so busy that followers are silent for most of a second?",
    )
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
