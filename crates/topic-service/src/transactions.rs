//! Idempotent producers and transactions.
//!
//! A transaction ends in three steps: the decision is appended; when it is durable, markers are
//! written to all participating partitions and groups; when those are durable, the completion is
//! appended. Both the request that ended the transaction and the background sweep drive these
//! steps, so neither depends on the other. After a restart, the node continues from the last
//! durable step.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::task::{Poll, Waker, ready};

use journal::{Status, Ticket};
use platform::{Durable, Pending};
use recordbatch::MarkerKind;
use topics::record::BATCH;
use topics::{
    Answer, Claim, Ending, Expected, Init, Marker, Participant, ProducerId, Step, Transaction,
};

use super::coordinating::{Coordinating, Stage};
use super::error::{ProduceError, Storage, TransactionError, UnknownPartition};
use super::partition::Slot;
use crate::service::Topics;
use crate::topic::Topic;
use crate::topic::TopicRef;
use topics::Denied;

/// A request for a producer id (InitProducerId).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitProducer<'a> {
    /// Its `transactional.id`, if it has one.
    pub name: Option<&'a str>,
    /// The transaction timeout, in milliseconds.
    pub timeout_ms: i32,
    /// The id and epoch that the producer has, if it continues after an error.
    pub expected: Option<Expected>,
}

/// A marker written by another coordinator (WriteTxnMarkers).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkerToWrite {
    /// The producer of the transaction.
    pub producer: ProducerId,
    /// The producer's epoch.
    pub epoch: i16,
    /// The coordinator's epoch.
    pub coordinator_epoch: i32,
    /// Commit or abort.
    pub ending: Ending,
}

/// The epoch of the node's own coordinator, the only one.
const COORDINATOR_EPOCH: i32 = 0;

/// The progress of a transaction's end.
enum Going {
    /// The transaction has ended.
    Over,
    /// The next step follows when this is durable.
    Waits(Durable),
    /// The next step cannot be taken now and is retried.
    Stuck,
}

impl Topics {
    /// Assigns the producer's id and epoch, and fences the previous producer of the same
    /// `transactional.id`. Fails with [`Denied::Concurrent`] while a transaction of the previous
    /// producer is being aborted.
    pub fn init_producer(&self, init: &InitProducer<'_>) -> Pending<Answer, TransactionError> {
        let mut coordinating = self.state.transactions.lock();
        let answer = self.init(&mut coordinating, init);
        match answer {
            Err(error @ TransactionError::Storage(_)) => Pending::known(Err(error)),
            answer => Pending::decided_after(self.state.durable(coordinating.last), answer),
        }
    }

    fn init(
        &self,
        coordinating: &mut Coordinating,
        init: &InitProducer<'_>,
    ) -> Result<Answer, TransactionError> {
        let (journal, now_ms) = (&self.state.journal, self.now_ms());
        let fresh = coordinating.fresh(journal, now_ms)?;
        let Some(name) = init.name else {
            return Ok(Answer {
                producer: fresh,
                epoch: 0,
            });
        };
        let InitProducer {
            timeout_ms,
            expected,
            ..
        } = *init;
        let coordinator = &coordinating.coordinator;
        match coordinator.init(name, timeout_ms, expected, fresh, self.time_ms())? {
            Init::Already(answer) => Ok(answer),
            Init::Write(transaction) => {
                let answer = Answer {
                    producer: transaction.producer,
                    epoch: transaction.epoch,
                };
                coordinating.put(journal, transaction, now_ms)?;
                Ok(answer)
            }
            Init::Abort(transaction) => {
                coordinating.put(journal, transaction, now_ms)?;
                self.state.platform.need_sweep();
                Err(Denied::Concurrent.into())
            }
        }
    }

    /// Adds partitions to a transaction (AddPartitionsToTxn): all of them or none.
    pub fn add_partitions(
        &self,
        claim: &Claim<'_>,
        partitions: &[(Arc<Topic>, u32)],
    ) -> Pending<(), TransactionError> {
        let mut participants = Vec::with_capacity(partitions.len());
        for (topic, index) in partitions {
            match participant(topic, *index) {
                Ok(participant) => participants.push(participant),
                Err(unknown) => return Pending::known(Err(unknown.into())),
            }
        }
        self.add(claim, &participants)
    }

    /// Checks that a partition was added to a transaction (AddPartitionsToTxn with `verify_only`).
    pub fn verify_partition(
        &self,
        claim: &Claim<'_>,
        topic: &Topic,
        partition: u32,
    ) -> Result<(), TransactionError> {
        let participant = participant(topic, partition)?;
        Ok(self.state.transactions.lock().verify(claim, &participant)?)
    }

    /// Adds the offsets of a group to a transaction (AddOffsetsToTxn).
    pub fn add_group(&self, claim: &Claim<'_>, group: &str) -> Pending<(), TransactionError> {
        self.add(claim, &[Participant::Group(group.to_owned())])
    }

    fn add(
        &self,
        claim: &Claim<'_>,
        participants: &[Participant],
    ) -> Pending<(), TransactionError> {
        let mut coordinating = self.state.transactions.lock();
        let added = coordinating
            .coordinator
            .add(claim, participants, self.time_ms());
        let written = match added {
            Err(denied) => Err(denied.into()),
            Ok(Step::Already) => Ok(()),
            Ok(Step::Write(transaction)) => {
                let put = coordinating.put(&self.state.journal, transaction, self.now_ms());
                put.map(drop).map_err(TransactionError::from)
            }
        };
        self.state.platform.need_sweep();
        match written {
            Err(error @ TransactionError::Storage(_)) => Pending::known(Err(error)),
            written => Pending::decided_after(self.state.durable(coordinating.last), written),
        }
    }

    /// Ends a transaction; answered when the end is irrevocable and the producer may begin the next
    /// one.
    pub fn end_transaction(
        &self,
        claim: &Claim<'_>,
        ending: Ending,
    ) -> Pending<(), TransactionError> {
        let mut coordinating = self.state.transactions.lock();
        let step = coordinating.coordinator.end(claim, ending, self.time_ms());
        let durable = |it: &Coordinating| self.state.durable(it.last);
        let transaction = match step {
            Err(denied) => {
                return Pending::decided_after(durable(&coordinating), Err(denied.into()));
            }
            Ok(Step::Already) => return Pending::after(durable(&coordinating), ()),
            Ok(Step::Write(transaction)) => transaction,
        };
        if let Err(storage) = coordinating.put(&self.state.journal, transaction, self.now_ms()) {
            return Pending::known(Err(storage.into()));
        }
        drop(coordinating);
        self.state.platform.need_sweep();
        let (topics, name, epoch) = (self.clone(), claim.name.to_owned(), claim.epoch);
        Pending::steps(move |waker| topics.poll_end(&name, epoch, waker))
    }

    /// Drives the end of a transaction until it is complete, or sure to complete: a prepared end is
    /// finished by the background sweep in any case.
    fn poll_end(
        &self,
        name: &str,
        epoch: i16,
        waker: &Waker,
    ) -> Poll<Result<(), TransactionError>> {
        loop {
            let going = {
                let mut coordinating = self.state.transactions.lock();
                match coordinating.is_ending(name, epoch) {
                    true => self.go_on(&mut coordinating, name),
                    false => Going::Over,
                }
            };
            match going {
                Going::Over | Going::Stuck => return Poll::Ready(Ok(())),
                Going::Waits(durable) => ready!(durable.poll_durable(waker))?,
            }
        }
    }

    /// Takes the next steps of a transaction's end.
    fn go_on(&self, coordinating: &mut Coordinating, name: &str) -> Going {
        let journal = &self.state.journal;
        loop {
            let Some(stage) = coordinating.endings.get(name) else {
                return Going::Over;
            };
            let waits = match stage {
                Stage::Prepared(ticket) => ticket.as_slice(),
                Stage::Marked(tickets) => tickets,
            };
            let pending = waits
                .iter()
                .find(|it| journal.status(**it) != Status::Durable);
            if let Some(ticket) = pending {
                return Going::Waits(match stage {
                    Stage::Prepared(_) => self.state.durable(Some(*ticket)),
                    // The end is stored even if a marker is not.
                    Stage::Marked(_) => Durable::of_earlier(journal, [Some(*ticket), None]),
                });
            }
            let stage = stage.clone();
            let Some(transaction) = coordinating.coordinator.get(name).cloned() else {
                coordinating.endings.remove(name);
                return Going::Over;
            };
            let done = match stage {
                Stage::Prepared(_) => self.mark(&transaction).map(|tickets| {
                    let stage = Stage::Marked(tickets);
                    coordinating.endings.insert(name.to_owned(), stage);
                }),
                Stage::Marked(_) => self.complete(coordinating, &transaction),
            };
            if done.is_err() {
                return Going::Stuck;
            }
        }
    }

    /// Completes a transaction whose markers are all durable.
    fn complete(
        &self,
        coordinating: &mut Coordinating,
        transaction: &Transaction,
    ) -> Result<(), Storage> {
        let Transaction { name, epoch, .. } = transaction;
        let over = coordinating
            .coordinator
            .complete(name, *epoch, self.time_ms());
        if let Some(over) = over {
            coordinating.put(&self.state.journal, over, self.now_ms())?;
        }
        coordinating.endings.remove(name);
        Ok(())
    }

    /// Writes markers to all participants. A deleted participant needs none.
    fn mark(&self, transaction: &Transaction) -> Result<Vec<Ticket>, Storage> {
        let Some(ending) = transaction.state.ending() else {
            return Ok(Vec::new());
        };
        let marker = MarkerToWrite {
            producer: transaction.producer,
            epoch: transaction.epoch,
            coordinator_epoch: COORDINATOR_EPOCH,
            ending,
        };
        let mut tickets = BTreeSet::new();
        for participant in &transaction.participants {
            match participant {
                Participant::Group(group) => {
                    tickets.extend(self.end_in_group(group, transaction.producer, ending)?);
                }
                Participant::Partition { topic, index } => {
                    let Some(topic) = self.find(TopicRef::Id(*topic)) else {
                        continue;
                    };
                    let Ok(slot) = topic.slot(*index) else {
                        continue;
                    };
                    match self.put_own_marker(slot, marker) {
                        Ok(ticket) => tickets.extend(ticket),
                        Err(ProduceError::Unknown(_)) => {}
                        Err(ProduceError::Storage(storage)) => return Err(storage),
                        // The transaction stays open while one of its partitions has no marker.
                        Err(refused) => return Err(Storage::unreadable(refused)),
                    }
                }
            }
        }
        Ok(tickets.into_iter().collect())
    }

    /// Writes the end marker of a transaction of this coordinator. A client may have raised a
    /// partition's epochs with WriteTxnMarkers; the marker is then written in those epochs, so that
    /// the transaction does not stay open. `None` if the partition has no such transaction.
    fn put_own_marker(
        &self,
        slot: &Slot,
        marker: MarkerToWrite,
    ) -> Result<Option<Ticket>, ProduceError> {
        let heard = {
            let live = slot.lock(&self.state.journal)?;
            live.partition.producer(marker.producer)
        };
        let Some(heard) = heard else {
            return self.put_marker(slot, &marker).map(Some);
        };
        if heard.epoch > marker.epoch && heard.transaction_start.is_none() {
            return Ok(None);
        }
        let marker = MarkerToWrite {
            epoch: marker.epoch.max(heard.epoch),
            coordinator_epoch: marker.coordinator_epoch.max(heard.coordinator_epoch),
            ..marker
        };
        self.put_marker(slot, &marker).map(Some)
    }

    /// Writes a marker into a partition, for an administrator who aborts a hanging transaction. Its
    /// coordinator epoch is capped at the node's own, so that it cannot fence the node's own
    /// markers.
    pub fn write_marker(
        &self,
        topic: &Topic,
        partition: u32,
        marker: &MarkerToWrite,
    ) -> Pending<(), ProduceError> {
        let marker = &MarkerToWrite {
            coordinator_epoch: marker.coordinator_epoch.min(COORDINATOR_EPOCH),
            ..*marker
        };
        // The marker might end no transaction, so it must not use the space reserved for ends.
        let room = self.check_room().map_err(ProduceError::from);
        let slot = room.and_then(|()| Ok(topic.slot(partition)?));
        match slot.and_then(|slot| self.put_marker(slot, marker)) {
            Ok(ticket) => Pending::after(self.state.durable(Some(ticket)), ()),
            Err(error) => Pending::known(Err(error)),
        }
    }

    pub(super) fn put_marker(
        &self,
        slot: &Slot,
        marker: &MarkerToWrite,
    ) -> Result<Ticket, ProduceError> {
        let (journal, now_ms) = (&self.state.journal, self.now_ms());
        let mut live = slot.lock(journal)?;
        let mut facts = Marker {
            id: marker.producer,
            epoch: marker.epoch,
            ending: marker.ending,
            coordinator_epoch: marker.coordinator_epoch,
            size: 0,
            timestamp: self.time_ms(),
        };
        let offset = live.partition.decide_marker(&facts)?;
        let mut bytes = Vec::new();
        let batch = recordbatch::Marker {
            producer_id: marker.producer.0,
            producer_epoch: marker.epoch,
            kind: match marker.ending {
                Ending::Abort => MarkerKind::Abort,
                Ending::Commit => MarkerKind::Commit,
            },
            coordinator_epoch: marker.coordinator_epoch,
        };
        let base_offset = i64::try_from(offset).unwrap_or(i64::MAX);
        batch.encode(base_offset, live.epoch(), facts.timestamp, &mut bytes);
        facts.size = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        // Written even on a full disk: readers wait for the marker, and there are no more ends than
        // beginnings.
        let mut guard = journal.lock(slot.at.shard, now_ms).for_room();
        let appended = guard.append(slot.at.stream, None, BATCH, &bytes);
        let ticket = appended
            .map_err(|error| Storage::append(journal, error))?
            .ticket;
        live.marked(offset, &facts, now_ms);
        drop(guard);
        let woken = live.wait_for(ticket, offset, &[&bytes]);
        drop(live);
        woken.wake();
        Ok(ticket)
    }

    /// Returns all transactions, by name; participating topics are given by id.
    pub fn transactions(&self) -> Vec<Transaction> {
        let coordinating = self.state.transactions.lock();
        coordinating.coordinator.iter().cloned().collect()
    }

    /// Returns the transaction of a `transactional.id`.
    pub fn transaction(&self, name: &str) -> Option<Transaction> {
        self.state
            .transactions
            .lock()
            .coordinator
            .get(name)
            .cloned()
    }

    /// Drives all ends and aborts transactions that exceed their timeout; returns whether work
    /// remains.
    pub(super) fn tend_transactions(&self) -> bool {
        let (journal, now_ms) = (&self.state.journal, self.now_ms());
        let mut coordinating = self.state.transactions.lock();
        for transaction in coordinating.overdue(self.time_ms(), self.steady_ms()) {
            // If the write fails, the transaction is still overdue at the next sweep.
            if coordinating.put(journal, transaction, now_ms).is_err() {
                break;
            }
        }
        let names: Vec<_> = coordinating.endings.keys().cloned().collect();
        for name in names {
            self.go_on(&mut coordinating, &name);
        }
        // A failed rewrite is repeated later.
        let _ = coordinating.shorten(journal, now_ms);
        coordinating.is_busy()
    }

    /// Forgets transactional ids that were unused for too long.
    pub(super) fn expire_transactions(&self) {
        let unused_ms = self.state.options.transactional_id_unused_ms;
        let mut coordinating = self.state.transactions.lock();
        let expired = coordinating
            .coordinator
            .expired(self.expiry_ms(), unused_ms);
        let expired: Vec<_> = expired.map(str::to_owned).collect();
        for name in expired {
            let forgotten = coordinating.forget(&self.state.journal, &name, self.now_ms());
            if forgotten.is_err() {
                break;
            }
        }
    }
}

fn participant(topic: &Topic, index: u32) -> Result<Participant, UnknownPartition> {
    topic.slot(index)?;
    let topic = topic.about().id;
    Ok(Participant::Partition { topic, index })
}
