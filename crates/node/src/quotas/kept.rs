//! What outlives the node's memory.
//!
//! Three streams in one shard of the journal: the *state* (cells, holds, ids), the *changes* (limits,
//! factors, halts, overrides) and the *audit*. Of everything in the first two the last record stands.
//! When a stream has grown to more than what is alive in it, everything alive is written behind it
//! anew, a few cells at a time, and the rest is trimmed: whatever changes meanwhile is written behind
//! it, too.
//!
//! Invariant: *records of one cell are in the order of what happened to it*: whoever appends one holds
//! the cell's shard.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use journal::{Guard, Journal, ReadError, ShardId, StreamId, Ticket};
use parking_lot::Mutex;
use quota::record::{self, Audit, Change, Malformed, PoliciesRecord};
use quota::{Hold, Limit, Policies, Rules, Subject};

use super::desk::Desk;
use super::outcome::Durable;
use super::take::Note;
use super::{Options, Quotas, SHARDS, Take, admin};
use crate::store::{Kind as StreamKind, Location, Store};

/// Cells that are written anew at a time.
const CELLS_AT_ONCE: usize = 4_096;
/// Bytes of a record of cells, about.
const RECORD_SIZE: usize = 256 << 10;
/// A stream that is shorter is not written anew.
const SIZE_MIN: u64 = 4 << 20;

/// Where it is kept.
pub(super) struct Kept {
    journal: Arc<Journal>,
    shard: ShardId,
    state: StreamId,
    changes: StreamId,
    audit: StreamId,
    /// What tells whether the configuration is another one than last time.
    digest: AtomicU64,
    /// Bytes of state since it was written anew last.
    written: AtomicU64,
    rewriting: Mutex<Rewriting>,
}

/// How far the state has been written anew.
#[derive(Default)]
struct Rewriting {
    /// Bytes that it took last time.
    alive: u64,
    /// Under way: what is before that offset goes when it is done; the shard, the place in it.
    under_way: Option<(u64, u16, usize)>,
    /// Bytes that it took so far.
    size: u64,
}

/// Why what is kept of quotas cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It cannot be read.
    #[error("what is kept of quotas cannot be read: {0}")]
    Read(#[from] ReadError),
    /// It was read, and makes no sense.
    #[error("what is kept of quotas: {0}")]
    Malformed(#[from] Malformed),
    /// It cannot be written.
    #[error("quotas cannot be kept: {0}")]
    Append(#[from] journal::AppendError),
    /// The limits cannot stand.
    #[error("the limits of the configuration cannot stand: {0}")]
    Refused(String),
    /// The limits make no sense.
    #[error("{} of the limits make no sense: {}", .0.len(), .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Limits(Vec<quota::Mistake>),
}

impl Quotas<'_> {
    /// Begins: what is kept is read, and the limits of the configuration stand if they are others than
    /// last time; else what was said last does. Called once, before anybody takes.
    pub fn open(self, options: Options, limits: Vec<Limit>) -> Result<(), OpenError> {
        let state = self.state();
        state.set_options(options);
        let digest = digest(&limits);
        let mut known = None;
        if let Some(store) = &self.inner.store {
            known = self.restore(store)?;
        }
        if known != Some(digest) && (known.is_some() || !limits.is_empty()) {
            let policies = state.rules.read().policies().next(limits);
            let policies = policies.map_err(OpenError::Limits)?;
            if let Some(kept) = state.kept.get() {
                kept.digest.store(digest, Ordering::Relaxed);
            }
            let by = admin::By {
                who: "configuration",
                reason: "the limits of the configuration are others than last time",
            };
            // What is taken meanwhile is journaled behind it.
            let _applied = self
                .put_policies(policies, by)
                .map_err(|error| match error {
                    admin::ChangeError::Append(error) => OpenError::Append(error),
                    other => OpenError::Refused(other.to_string()),
                })?;
        }
        self.note_what_is_on();
        Ok(())
    }

    /// Reads everything back; the digest of the configuration that stood then.
    fn restore(self, store: &Store) -> Result<Option<u64>, OpenError> {
        let now_ms = self.inner.ports.clock.unix_ms();
        let shard = store.shard_of("quotas");
        let find = |name| store.find_or_create_in(StreamKind::Quotas, name, shard, now_ms);
        let at = |stream| Location { shard, stream };
        let kept = Kept {
            journal: store.journal.clone(),
            shard,
            state: find("state")?.stream,
            changes: find("changes")?.stream,
            audit: find("audit")?.stream,
            digest: AtomicU64::new(0),
            written: AtomicU64::new(0),
            rewriting: Mutex::default(),
        };
        let mut rules = (**self.state().rules.read()).clone();
        let mut known = None;
        let mut since_ns = 0;
        store.each_record::<OpenError>(at(kept.changes), |record| {
            match record.tag {
                record::POLICIES => {
                    let read = PoliciesRecord::decode(&record.payload)?;
                    (known, since_ns) = (Some(read.digest), read.since_ns);
                    rules.restore_policies(read.policies);
                }
                tag => rules.apply(Change::decode(tag, &record.payload)?),
            }
            Ok(())
        })?;
        self.restore_state(store, at(kept.state), &rules, since_ns)?;
        let size = store.journal.bytes(shard, kept.state).unwrap_or(SIZE_MIN);
        kept.written.store(size, Ordering::Relaxed);
        if let Some(digest) = known {
            kept.digest.store(digest, Ordering::Relaxed);
        }
        *self.state().rules.write() = Arc::new(rules);
        // Quotas are opened once.
        let _ = self.state().kept.set(kept);
        self.state().is_listed.store(false, Ordering::Release);
        self.need_sweep();
        Ok(known)
    }

    fn restore_state(
        self,
        store: &Store,
        at: Location,
        rules: &Rules,
        since_ns: u64,
    ) -> Result<(), OpenError> {
        let (state, now_ns) = (self.state(), self.now_ns());
        store.each_record::<OpenError>(at, |record| {
            match record.tag {
                record::CELLS => {
                    for cell in record::decode_cells(&record.payload) {
                        let cell = cell?;
                        let mut shard = state.shard(rules.table_of_key(cell.key));
                        cell.restore(rules, since_ns, &mut shard.table, now_ns);
                    }
                }
                record::HOLD => {
                    let (id, hold) = record::decode_hold(&record.payload)?;
                    state.shard(home_of(id)).holds.insert(id, hold);
                }
                record::ENDED => {
                    for id in record::decode_ended(&record.payload) {
                        let id = id?;
                        state.shard(home_of(id)).holds.remove(id);
                    }
                }
                record::TAKEN => self.restore_id(rules, &record.payload, now_ns)?,
                _ => return Err(Malformed { what: "state" }.into()),
            }
            Ok(())
        })?;
        self.restore_slots(rules, now_ns);
        Ok(())
    }

    fn restore_id(self, rules: &Rules, bytes: &[u8], now_ns: u64) -> Result<(), Malformed> {
        let taken = record::Taken::decode(bytes)?;
        let subject = taken.id.split_once('\n').map(|(subject, _)| subject);
        if let Some(Ok(subject)) = subject.map(Subject::parse) {
            let mut shard = self.state().shard(rules.home_of(&subject));
            shard
                .recent
                .insert(taken.id, taken.hold, taken.until_ns, now_ns);
        }
        Ok(())
    }

    /// Slots are used by what is held, and by nothing else.
    fn restore_slots(self, rules: &Rules, now_ns: u64) {
        let mut desk = Desk::new();
        for home in 0..SHARDS {
            let shard = self.state().shard(home);
            let holds: Vec<Hold> = shard.holds.iter().map(|(_, hold)| hold.clone()).collect();
            drop(shard);
            for hold in holds {
                let Ok(subject) = Subject::parse(&hold.subject) else {
                    continue;
                };
                rules.plan_slots(&mut desk.plan, &subject, &hold);
                let mut locked = self.lock(&desk.plan);
                // What there is no room for any more is not bounded until its hold ends.
                let _ = quota::settle(rules, &mut desk.plan, &subject, &hold, &mut locked, now_ns);
            }
        }
    }

    /// Whether anything outlives the memory.
    pub(super) fn is_kept(self) -> bool {
        self.state().kept.get().is_some()
    }

    /// What must be on disk for everything to be there that was kept so far.
    pub(super) fn everything_so_far(self) -> Option<Durable> {
        let kept = self.state().kept.get()?;
        let guard = kept
            .journal
            .lock(kept.shard, self.inner.ports.clock.unix_ms());
        let ticket = guard.last_ticket(kept.state);
        Some(Durable::new(&kept.journal, ticket))
    }

    /// Keeps a take before its answer, if one of its limits wants that. Its cells are locked.
    pub(super) fn keep_taken(
        self,
        rules: &Rules,
        desk: &mut Desk,
        take: &Take<'_>,
        note: Option<&Note>,
    ) -> Result<Option<Durable>, String> {
        let records = note.map_or(&[][..], |note| &note.records);
        self.keep_sync(rules, desk, &take.subject, records)
    }

    /// Keeps the end of a hold before its answer, if one of its limits wants that.
    pub(super) fn keep_ended(
        self,
        rules: &Rules,
        desk: &mut Desk,
        subject: &Subject<'_>,
        ended: &[u8],
    ) -> Result<Option<Durable>, String> {
        let records = [(record::ENDED, ended.to_vec())];
        self.keep_sync(rules, desk, subject, &records)
    }

    fn keep_sync(
        self,
        rules: &Rules,
        desk: &mut Desk,
        subject: &Subject<'_>,
        records: &[(u8, Vec<u8>)],
    ) -> Result<Option<Durable>, String> {
        let Some(kept) = self.state().kept.get().filter(|_| desk.plan.is_sync(rules)) else {
            return Ok(None);
        };
        desk.bytes.clear();
        desk.plan.encode_cells(rules, subject, &mut desk.bytes);
        let cells = (!desk.bytes.is_empty()).then_some((record::CELLS, &desk.bytes[..]));
        let others = records.iter().map(|(tag, bytes)| (*tag, &bytes[..]));
        let all: Vec<(u8, &[u8])> = cells.into_iter().chain(others).collect();
        let guard = kept
            .journal
            .lock(kept.shard, self.inner.ports.clock.unix_ms());
        match kept.append(guard, &all) {
            Ok(ticket) => Ok(ticket.map(|ticket| Durable::new(&kept.journal, ticket))),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Tells the journal what has changed. True if something is left to be told.
    pub(super) fn flush(self) -> bool {
        let Some(kept) = self.state().kept.get() else {
            return false;
        };
        let mut is_left = false;
        let rules = self.state().rules.read();
        for table in 0..SHARDS {
            is_left |= self.flush_shard(kept, &rules, table).is_err();
        }
        let is_rewriting = self.rewrite(kept, &rules);
        is_left || is_rewriting
    }

    /// The shard is held until everything is appended, so that records of a cell stay in order.
    fn flush_shard(
        self,
        kept: &Kept,
        rules: &Rules,
        table: u16,
    ) -> Result<(), journal::AppendError> {
        let mut shard = self.state().shard(table);
        if !shard.table.is_dirty() && shard.unkept.is_empty() {
            return Ok(());
        }
        let mut batches = vec![Vec::new()];
        shard.table.each_dirty(|key, cell| {
            if batches
                .last()
                .is_some_and(|batch| batch.len() >= RECORD_SIZE)
            {
                batches.push(Vec::new());
            }
            if let Some(batch) = batches.last_mut() {
                record::encode_cell(rules, key, cell, batch);
            }
        });
        let cells = batches.iter().filter(|batch| !batch.is_empty());
        let cells = cells.map(|batch| (record::CELLS, &batch[..]));
        let others = shard.unkept.iter().map(|(tag, bytes)| (*tag, &bytes[..]));
        let all: Vec<(u8, &[u8])> = cells.chain(others).collect();
        let now_ms = self.inner.ports.clock.unix_ms();
        let round = kept.journal.round();
        for record in &all {
            kept.append(round.lock(kept.shard, now_ms), std::slice::from_ref(record))?;
        }
        drop(all);
        shard.table.clean();
        shard.unkept.clear();
        Ok(())
    }

    /// Writes everything alive anew, a part at a time, when more than that is dead. True while that is
    /// under way.
    fn rewrite(self, kept: &Kept, rules: &Rules) -> bool {
        let mut rewriting = kept.rewriting.lock();
        let written = kept.written.load(Ordering::Relaxed);
        let now_ms = self.inner.ports.clock.unix_ms();
        let (until, table, from) = match rewriting.under_way {
            Some(place) => place,
            None if written < SIZE_MIN.max(rewriting.alive * 2) => return false,
            None => {
                rewriting.size = 0;
                let guard = kept.journal.lock(kept.shard, now_ms);
                (guard.next(kept.state), 0, 0)
            }
        };
        let shard = self.state().shard(table);
        let mut cells = Vec::new();
        let next = shard.table.walk(from, CELLS_AT_ONCE, |key, cell| {
            record::encode_cell(rules, key, cell, &mut cells);
        });
        let mut records = vec![(record::CELLS, cells)];
        if from == 0 {
            let holds = shard.holds.iter().map(|(id, hold)| {
                let mut bytes = Vec::new();
                record::encode_hold(id, hold, &mut bytes);
                (record::HOLD, bytes)
            });
            records.extend(holds);
            let ids = shard.recent.iter().map(|(id, hold, until_ns)| {
                let mut bytes = Vec::new();
                let hold = *hold;
                record::Taken { until_ns, hold, id }.encode(&mut bytes);
                (record::TAKEN, bytes)
            });
            records.extend(ids);
        }
        records.retain(|(_, bytes)| !bytes.is_empty());
        rewriting.size += records
            .iter()
            .map(|(_, bytes)| bytes.len() as u64)
            .sum::<u64>();
        let records: Vec<_> = records
            .iter()
            .map(|(tag, bytes)| (*tag, &bytes[..]))
            .collect();
        let round = kept.journal.round();
        for record in &records {
            let guard = round.lock(kept.shard, now_ms);
            if kept.append(guard, std::slice::from_ref(record)).is_err() {
                return false;
            }
        }
        drop((round, shard));
        rewriting.under_way = match next {
            Some(next) => Some((until, table, next)),
            None if table + 1 < SHARDS => Some((until, table + 1, 0)),
            None => {
                // What is trimmed stands again behind: in the same line, before this.
                let _ = kept
                    .journal
                    .lock(kept.shard, now_ms)
                    .trim(kept.state, until);
                rewriting.alive = rewriting.size;
                kept.written.store(rewriting.size, Ordering::Relaxed);
                None
            }
        };
        rewriting.under_way.is_some()
    }

    /// Has everything that has changed on its way to the disk; what must be on disk for it to be
    /// there. The last thing that a node does.
    pub fn flush_all(self) -> Option<Durable> {
        self.flush();
        self.everything_so_far()
    }

    /// Keeps a change, with who made it; nobody is told before it is on disk.
    pub(super) fn keep_change(
        self,
        changes: &[(u8, Vec<u8>)],
        audit: &Audit,
    ) -> Result<Option<Durable>, journal::AppendError> {
        let Some(kept) = self.state().kept.get() else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        audit.encode(&mut bytes);
        let size = bytes.len() + changes.iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
        let mut guard = kept
            .journal
            .lock(kept.shard, self.inner.ports.clock.unix_ms());
        guard.reserve(size, changes.len() + 1)?;
        for (tag, change) in changes {
            guard.append(kept.changes, None, *tag, change)?;
        }
        let audited = guard.append(kept.audit, None, record::AUDIT, &bytes)?;
        let audit_max = self.state().options.read().audit_max as u64;
        if audited.offset >= audit_max * 2 {
            guard.trim(kept.audit, audited.offset - audit_max)?;
        }
        Ok(Some(Durable::new(&kept.journal, audited.ticket)))
    }

    /// Trims the changes once everything that stands was written behind them anew.
    pub(super) fn compact_changes(self, rules: &Rules, policies: &[u8]) {
        let Some(kept) = self.state().kept.get() else {
            return;
        };
        let standing = rules.changes();
        let now_ms = self.inner.ports.clock.unix_ms();
        let start = kept
            .journal
            .stream(kept.shard, kept.changes)
            .map_or(0, |it| it.start);
        let mut guard = kept.journal.lock(kept.shard, now_ms);
        let from = guard.next(kept.changes);
        if from - start < 1_024.max(standing.len() as u64 * 4) {
            return;
        }
        let mut records = vec![(record::POLICIES, policies.to_vec())];
        for change in standing {
            let mut bytes = Vec::new();
            change.encode(&mut bytes);
            records.push((change.tag(), bytes));
        }
        let size = records.iter().map(|(_, bytes)| bytes.len()).sum();
        if guard.reserve(size, records.len()).is_err() {
            return;
        }
        let written = records
            .iter()
            .try_for_each(|(tag, bytes)| guard.append(kept.changes, None, *tag, bytes).map(drop));
        if written.is_ok() {
            // A trim that fails is tried again with the next change.
            let _ = guard.trim(kept.changes, from);
        }
    }

    pub(super) fn digest(self) -> u64 {
        let kept = self.state().kept.get();
        kept.map_or(0, |kept| kept.digest.load(Ordering::Relaxed))
    }

    /// Who changed what, from that number on; the number of the first of them.
    pub fn audit(self, from: u64, count: usize) -> Result<(u64, Vec<Audit>), OpenError> {
        let Some(kept) = self.state().kept.get() else {
            return Ok((from, Vec::new()));
        };
        let start = kept
            .journal
            .stream(kept.shard, kept.audit)
            .map_or(0, |state| state.start);
        let from = from.max(start);
        let limit = journal::ReadLimit {
            records: count.clamp(1, 1_000),
            bytes: 1 << 20,
        };
        let read = kept.journal.read(kept.shard, kept.audit, from, limit)?;
        let audits = read
            .records
            .iter()
            .map(|record| Audit::decode(&record.payload));
        Ok((from, audits.collect::<Result<_, _>>()?))
    }
}

impl Kept {
    /// Appends to the state records that become durable at once or not at all.
    fn append(
        &self,
        mut guard: Guard<'_>,
        records: &[(u8, &[u8])],
    ) -> Result<Option<Ticket>, journal::AppendError> {
        let size: usize = records.iter().map(|(_, bytes)| bytes.len()).sum();
        if records.len() > 1 {
            guard.reserve(size, records.len())?;
        }
        let mut ticket = None;
        for (tag, bytes) in records {
            ticket = Some(guard.append(self.state, None, *tag, bytes)?.ticket);
        }
        self.written.fetch_add(size as u64, Ordering::Relaxed);
        Ok(ticket)
    }
}

fn home_of(id: quota::HoldId) -> u16 {
    (id.0 % u64::from(SHARDS)) as u16
}

/// FNV-1a over the limits as they would be kept: the same for the same configuration.
fn digest(limits: &[Limit]) -> u64 {
    let mut bytes = Vec::new();
    if let Ok(policies) = Policies::default().next(limits.to_vec()) {
        let record = PoliciesRecord {
            policies,
            since_ns: 0,
            digest: 0,
        };
        record.encode(&mut bytes);
    }
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
