//! The transaction coordinator's stream: transactions and producer ids.

use std::collections::BTreeMap;

use journal::{Guard, Journal, Ticket};
use topics::record::{PRODUCER_IDS, TRANSACTION, TRANSACTION_GONE};
use topics::{
    Bounds, Claim, Coordinator, Denied, Participant, ProducerId, ProducerIds, Reserved, State,
    Transaction,
};

use super::error::OpenError;
use super::error::{Storage, TransactionError};
use crate::options::Options;
use store::{Kind, Location, Store};

/// The coordinator's state, and its writes that are not durable yet.
pub(super) struct Coordinating {
    at: Location,
    pub(super) coordinator: Coordinator,
    ids: ProducerIds,
    /// The durable reservation of producer ids: all ids before it may have been assigned.
    reserved: Option<Reserved>,
    /// The last append, which must be durable before any answer.
    pub(super) last: Option<Ticket>,
    /// Transactions that are being ended.
    pub(super) endings: BTreeMap<String, Stage>,
    /// The start of each open transaction: in milliseconds of the wall clock, as stored, and of the
    /// clock that never steps.
    begun: BTreeMap<String, (i64, u64)>,
    /// Bytes appended since the stream was last rewritten, and the size after that rewrite.
    written: u64,
    alive: u64,
}

/// Progress of ending a transaction.
#[derive(Clone, Debug)]
pub(super) enum Stage {
    /// The end is appended, and irrevocable when this ticket is durable.
    Prepared(Option<Ticket>),
    /// The markers are appended, and durable when these tickets are.
    Marked(Vec<Ticket>),
}

/// Minimum size of the stream, in bytes, for it to be rewritten.
const SIZE_MIN: u64 = 1 << 20;

impl Coordinating {
    /// Reads the coordinator's stream.
    pub(super) fn open(store: &Store, options: &Options, now_ms: u64) -> Result<Self, OpenError> {
        let name = "transactions";
        let shard = store.shard_of(name);
        let at = store.find_or_create_in(Kind::Topics, name, shard, now_ms)?;
        let mut coordinating = Self {
            at,
            coordinator: Coordinator::new(Bounds {
                timeout_ms_max: options.transaction_timeout_ms_max,
                ..Bounds::default()
            }),
            ids: ProducerIds::default(),
            reserved: None,
            last: None,
            endings: BTreeMap::new(),
            begun: BTreeMap::new(),
            written: 0,
            alive: 0,
        };
        store.each_record::<OpenError>(at, |it| {
            coordinating.written += it.payload.len() as u64;
            coordinating.restore(it.tag, &it.payload)
        })?;
        let prepared = coordinating.coordinator.prepared();
        let prepared = prepared.map(|(it, _)| (it.name.clone(), Stage::Prepared(None)));
        coordinating.endings = prepared.collect();
        Ok(coordinating)
    }

    fn restore(&mut self, tag: u8, bytes: &[u8]) -> Result<(), OpenError> {
        match tag {
            TRANSACTION => self.coordinator.put(Transaction::decode(bytes)?),
            TRANSACTION_GONE => {
                let name = std::str::from_utf8(bytes).map_err(|_| MALFORMED)?;
                self.coordinator.remove(name);
            }
            PRODUCER_IDS => {
                let reserved = Reserved::decode(bytes)?;
                self.ids.restore(reserved);
                self.reserved = Some(reserved);
            }
            _ => return Err(MALFORMED.into()),
        }
        Ok(())
    }

    fn append(
        &mut self,
        journal: &Journal,
        tag: u8,
        bytes: &[u8],
        now_ms: u64,
    ) -> Result<Ticket, Storage> {
        self.append_in(journal, journal.lock(self.at.shard, now_ms), tag, bytes)
    }

    fn append_in(
        &mut self,
        journal: &Journal,
        mut guard: Guard<'_>,
        tag: u8,
        bytes: &[u8],
    ) -> Result<Ticket, Storage> {
        let appended = guard.append(self.at.stream, None, tag, bytes);
        let ticket = appended
            .map_err(|error| Storage::append(journal, error))?
            .ticket;
        self.last = Some(ticket);
        self.written += bytes.len() as u64;
        Ok(ticket)
    }

    /// Appends a transaction and applies it. The end of a transaction is written even on a full
    /// disk, since readers wait for it.
    pub(super) fn put(
        &mut self,
        journal: &Journal,
        transaction: Transaction,
        now_ms: u64,
    ) -> Result<Ticket, Storage> {
        let mut bytes = Vec::new();
        transaction.encode(&mut bytes);
        let mut guard = journal.lock(self.at.shard, now_ms);
        if !matches!(transaction.state, State::Empty | State::Ongoing) {
            guard = guard.for_room();
        }
        let ticket = self.append_in(journal, guard, TRANSACTION, &bytes)?;
        if transaction.state.ending().is_some() {
            let stage = Stage::Prepared(Some(ticket));
            self.endings.insert(transaction.name.clone(), stage);
        }
        self.coordinator.put(transaction);
        Ok(ticket)
    }

    /// Forgets a transaction.
    pub(super) fn forget(
        &mut self,
        journal: &Journal,
        name: &str,
        now_ms: u64,
    ) -> Result<(), Storage> {
        self.append(journal, TRANSACTION_GONE, name.as_bytes(), now_ms)?;
        self.coordinator.remove(name);
        Ok(())
    }

    /// Returns an unused producer id. The reservation that must be durable before the answer has
    /// been appended then.
    pub(super) fn fresh(
        &mut self,
        journal: &Journal,
        now_ms: u64,
    ) -> Result<ProducerId, TransactionError> {
        let mut ids = self.ids.clone();
        let exhausted = |it| Storage::unreadable(it);
        let fresh = ids.take().map_err(exhausted)?;
        if let Some(reserve) = fresh.reserve {
            self.append(journal, PRODUCER_IDS, &reserve.encode(), now_ms)?;
            self.reserved = Some(reserve);
        }
        self.ids = ids;
        Ok(fresh.id)
    }

    /// Checks that a participant was added to a producer's transaction.
    pub(super) fn verify(
        &self,
        claim: &Claim<'_>,
        participant: &Participant,
    ) -> Result<(), Denied> {
        self.coordinator.verify(claim, participant)
    }

    /// Returns whether any transaction is open or being ended.
    pub(super) fn is_busy(&self) -> bool {
        !self.endings.is_empty() || self.coordinator.ongoing().next().is_some()
    }

    /// Returns the transactions that exceeded their timeout, prepared to be aborted. The time
    /// counts from the first call that finds the transaction open, by `steady_ms`; for one that was
    /// open when the node started, from its stored start.
    pub(super) fn overdue(&mut self, unix_ms: i64, steady_ms: u64) -> Vec<Transaction> {
        let (coordinator, begun) = (&self.coordinator, &mut self.begun);
        begun.retain(|name, (started_ms, _)| {
            let transaction = coordinator.get(name);
            transaction.is_some_and(|it| it.state == State::Ongoing && it.started_ms == *started_ms)
        });
        for it in coordinator.ongoing() {
            if !begun.contains_key(&it.name) {
                let age_ms = unix_ms.saturating_sub(it.started_ms);
                let age_ms = age_ms.clamp(0, i64::from(it.timeout_ms.max(0)));
                let since_ms = steady_ms.saturating_sub(age_ms.unsigned_abs());
                begun.insert(it.name.clone(), (it.started_ms, since_ms));
            }
        }
        let age_ms = |it: &Transaction| {
            let since_ms = begun.get(&it.name).map_or(steady_ms, |it| it.1);
            i64::try_from(steady_ms.saturating_sub(since_ms)).unwrap_or(i64::MAX)
        };
        coordinator.overdue(unix_ms, age_ms).collect()
    }

    /// Returns whether the transaction is being ended in this epoch.
    pub(super) fn is_ending(&self, name: &str, epoch: i16) -> bool {
        let transaction = self.coordinator.get(name);
        transaction.is_some_and(|it| {
            let is_prepared = matches!(it.state, State::PrepareCommit | State::PrepareAbort);
            it.epoch == epoch && is_prepared
        })
    }

    /// Rewrites the stream if most of its records are superseded. The newest record of each item
    /// counts, so a crash midway is harmless.
    pub(super) fn shorten(&mut self, journal: &Journal, now_ms: u64) -> Result<(), Storage> {
        if self.written < SIZE_MIN.max(4 * self.alive) {
            return Ok(());
        }
        let Location { shard, stream } = self.at;
        let start = journal.stream(shard, stream).map_or(0, |it| it.next);
        self.written = 0;
        if let Some(reserved) = self.reserved {
            self.append(journal, PRODUCER_IDS, &reserved.encode(), now_ms)?;
        }
        let all: Vec<_> = self.coordinator.iter().cloned().collect();
        for transaction in all {
            let mut bytes = Vec::new();
            transaction.encode(&mut bytes);
            self.append(journal, TRANSACTION, &bytes, now_ms)?;
        }
        self.alive = self.written;
        let trimmed = journal.lock(shard, now_ms).trim(stream, start);
        trimmed.map_err(|error| Storage::append(journal, error))?;
        Ok(())
    }
}

const MALFORMED: topics::record::Malformed = topics::record::Malformed {
    what: "record of the coordinator of transactions",
};
