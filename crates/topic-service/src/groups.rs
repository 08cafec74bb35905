//! Consumer groups: the group engine behind locks, one share of the groups per shard of the
//! journal.
//!
//! The engine's decisions are appended under one guard; an answer waits until everything appended
//! before it is durable. Decisions that cannot be appended now stay in a backlog, in order, and the
//! share decides nothing else until they are written, because the engine has applied them already.
//! On a full disk, requests that would need much space are therefore refused before they are
//! decided, while decisions that end something are still written.

mod requests;

use std::collections::HashMap;
use std::sync::Arc;
use std::task::Poll;

use journal::{Journal, ShardId, Ticket};
use parking_lot::{Mutex, MutexGuard};
use platform::{Durable, Later, Pending};
use store::{Kind, Location, Store};
use topics::groups::{
    Decision, Groups, Joined, Record, Refused, Restore, State as GroupState, Synced, Token,
};

use crate::error::{GroupError, OpenError, Storage};
use crate::options::Options;

/// The offset that a group has committed for one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The topic.
    pub topic: Box<str>,
    /// The partition, from 0.
    pub partition: u32,
    /// The committed offset with its metadata; `None` if nothing was committed.
    pub mark: Option<topics::groups::Committed>,
    /// True if an open transaction would commit an offset here: a request for stable offsets gets
    /// UNSTABLE_OFFSET_COMMIT.
    pub is_unstable: bool,
}

/// A row of the list of groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupView {
    /// The group id.
    pub group: Box<str>,
    /// The protocol type of its members; empty if it never had members.
    pub protocol_type: Box<str>,
    /// The group's state.
    pub state: GroupState,
}

type Each = Vec<Result<(), Refused>>;

/// The groups whose names map to one shard.
pub(super) struct Share {
    at: Location,
    held: Mutex<Held>,
}

/// The contents of a share.
pub(super) struct Held {
    groups: Groups,
    /// Requests that wait for an answer of the engine.
    waiting: HashMap<Token, Waiter>,
    next_token: u64,
    /// The last append, which must be durable before any answer.
    last: Option<Ticket>,
    /// Records that could not be appended yet, in order.
    backlog: Vec<(u8, Vec<u8>)>,
    /// Bytes appended since the stream was last rewritten, and the size after that rewrite.
    written: u64,
    alive: u64,
}

/// The engine's answer, and the append that must be durable before it is sent.
type Answered<T> = (Result<T, GroupError>, Option<Ticket>);

type Waited<T> = Arc<Later<Answered<T>>>;

enum Waiter {
    Join(Waited<Joined>),
    Sync(Waited<Synced>),
}

/// Minimum size of the stream, in bytes, for it to be rewritten.
const SIZE_MIN: u64 = 1 << 20;

/// Maximum bytes and records that are rewritten under one guard.
const AT_ONCE: (usize, usize) = (128 << 10, 256);

/// Reads the groups of every shard.
pub(super) fn open(
    store: &Store,
    options: &Options,
    now_ms: u64,
) -> Result<Box<[Share]>, OpenError> {
    let shards = 0..store.journal.shard_count();
    shards
        .map(|it| Share::open(store, options, ShardId(it), now_ms))
        .collect()
}

impl Share {
    fn open(
        store: &Store,
        options: &Options,
        shard: ShardId,
        now_ms: u64,
    ) -> Result<Self, OpenError> {
        let name = format!("groups/{}", shard.0);
        let at = store.find_or_create_in(Kind::Topics, &name, shard, now_ms)?;
        let mut options = options.groups.clone();
        let size_max = store.journal.record_size_max() / 2;
        options.group_size_max = options.group_size_max.min(size_max);
        let mut restore = Restore::new(options);
        let mut written = 0;
        store.each_record::<OpenError>(at, |it| {
            written += it.payload.len() as u64;
            restore.record(Record::decode(it.tag, &it.payload)?);
            Ok(())
        })?;
        Ok(Self {
            at,
            held: Mutex::new(Held {
                groups: restore.finish(now_ms),
                waiting: HashMap::new(),
                next_token: 0,
                last: None,
                backlog: Vec::new(),
                written,
                alive: 0,
            }),
        })
    }

    /// Locks the share after writing its backlog; fails if the backlog cannot be written.
    fn lock(&self, journal: &Journal, now_ms: u64) -> Result<MutexGuard<'_, Held>, Storage> {
        let mut held = self.held.lock();
        held.write_backlog(journal, self.at, now_ms)?;
        Ok(held)
    }
}

/// The current time on two clocks, in milliseconds.
#[derive(Clone, Copy, Debug)]
struct Times {
    /// The wall clock.
    wall_ms: u64,
    /// A clock that never steps.
    steady_ms: u64,
}

impl Held {
    /// Returns the engine, with its wall clock set to the current time.
    fn groups_now(&mut self, times: Times) -> &mut Groups {
        let shift_ms = i128::from(times.wall_ms) - i128::from(times.steady_ms);
        let shift_ms = i64::try_from(shift_ms).unwrap_or_default();
        self.groups.set_wall_shift(shift_ms);
        &mut self.groups
    }

    /// Carries out the engine's decisions: appends records and answers waiting requests.
    fn carry_out(
        &mut self,
        journal: &Journal,
        at: Location,
        decisions: Vec<Decision>,
        now_ms: u64,
    ) -> Result<(), Storage> {
        for decision in &decisions {
            if let Decision::Keep(record) = decision {
                let mut bytes = Vec::new();
                record.encode(&mut bytes);
                self.backlog.push((record.tag(), bytes));
            }
        }
        let kept = self.write_backlog(journal, at, now_ms);
        for decision in decisions {
            match decision {
                Decision::Keep(_) => {}
                Decision::Joined { token, answer } => {
                    if let Some(Waiter::Join(waiter)) = self.waiting.remove(&token) {
                        waiter.put(self.answered(&kept, answer));
                    }
                }
                Decision::Synced { token, answer } => {
                    if let Some(Waiter::Sync(waiter)) = self.waiting.remove(&token) {
                        waiter.put(self.answered(&kept, answer));
                    }
                }
            }
        }
        kept
    }

    fn answered<T>(&self, kept: &Result<(), Storage>, answer: Result<T, Refused>) -> Answered<T> {
        let answer = match kept {
            Ok(()) => answer.map_err(GroupError::from),
            Err(storage) => Err(storage.clone().into()),
        };
        (answer, self.last)
    }

    /// Appends the whole backlog or nothing.
    fn write_backlog(
        &mut self,
        journal: &Journal,
        at: Location,
        now_ms: u64,
    ) -> Result<(), Storage> {
        if self.backlog.is_empty() {
            return Ok(());
        }
        let size = self.backlog.iter().map(|(_, bytes)| bytes.len()).sum();
        let refused = |error| Storage::append(journal, error);
        let mut guard = journal.lock(at.shard, now_ms).for_room();
        guard.reserve(size, self.backlog.len()).map_err(refused)?;
        for (tag, bytes) in &self.backlog {
            let appended = guard.append(at.stream, None, *tag, bytes);
            self.last = Some(appended.map_err(refused)?.ticket);
        }
        self.backlog.clear();
        self.written += size as u64;
        Ok(())
    }

    fn wait(&mut self, waiter: Waiter) -> Token {
        self.next_token += 1;
        let token = Token(self.next_token);
        self.waiting.insert(token, waiter);
        token
    }

    /// Rewrites the stream if most of its records are superseded, and trims the old part. The
    /// records of one group are written under one guard as far as they fit, because a crash may
    /// come between two groups.
    fn shorten(&mut self, journal: &Journal, at: Location, now_ms: u64) -> Result<(), Storage> {
        if self.written < SIZE_MIN.max(4 * self.alive) || !self.backlog.is_empty() {
            return Ok(());
        }
        let refused = |error| Storage::append(journal, error);
        let start = journal.stream(at.shard, at.stream).map_or(0, |it| it.next);
        let (mut size, mut chunk, mut group) = (0, Chunk::default(), None);
        for record in self.groups.records() {
            let is_next = group.as_ref() != Some(record.group());
            if is_next && chunk.is_full() {
                size += chunk.write(journal, at, now_ms).map_err(refused)?;
            }
            group = Some(record.group().clone());
            chunk.push(&record);
        }
        size += chunk.write(journal, at, now_ms).map_err(refused)?;
        let trimmed = journal.lock(at.shard, now_ms).trim(at.stream, start);
        self.last = Some(trimmed.map_err(refused)?);
        (self.written, self.alive) = (size, size);
        Ok(())
    }
}

/// Records to be written under one guard.
#[derive(Default)]
struct Chunk {
    records: Vec<(u8, Vec<u8>)>,
    size: usize,
}

impl Chunk {
    fn push(&mut self, record: &Record) {
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        self.size += bytes.len();
        self.records.push((record.tag(), bytes));
    }

    fn is_full(&self) -> bool {
        self.size >= AT_ONCE.0 || self.records.len() >= AT_ONCE.1
    }

    /// Writes the records and returns their total bytes.
    fn write(
        &mut self,
        journal: &Journal,
        at: Location,
        now_ms: u64,
    ) -> Result<u64, journal::AppendError> {
        let mut guard = journal.lock(at.shard, now_ms);
        for (tag, bytes) in self.records.drain(..) {
            guard.append(at.stream, None, tag, &bytes)?;
        }
        Ok(std::mem::take(&mut self.size) as u64)
    }
}

/// Returns a pending answer that ends with the engine's answer, once that is durable.
fn waited<T: Send + 'static>(journal: &Arc<Journal>, waited: Waited<T>) -> Pending<T, GroupError> {
    let journal = journal.clone();
    let mut answered = None;
    Pending::steps(move |waker| {
        if answered.is_none() {
            let Some((answer, last)) = waited.take(waker) else {
                return Poll::Pending;
            };
            answered = Some((answer, Durable::new(&journal, [None, last])));
        }
        if let Some((_, durable)) = &mut answered {
            std::task::ready!(durable.poll_durable(waker))?;
        }
        match answered.take() {
            Some((answer, _)) => Poll::Ready(answer),
            None => Poll::Pending,
        }
    })
}

/// Approximate bytes of a committed offset, without its strings.
const MARK_SIZE: usize = 32;
