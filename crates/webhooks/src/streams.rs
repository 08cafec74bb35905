//! The streams of agents: one per agent, with its settings and dead letters.

use std::collections::BTreeMap;

use conversations::delivery::{Change, Deliveries};
use conversations::record::{self, AgentState, Malformed, WebhookSettings};
use journal::{AppendError, Ticket};
use store::{AppendSize, Kind, Location, Store};

use super::agent::Agent;
use crate::error::WebhookError;

/// Number of changes after which a snapshot is written.
const CHANGES_MAX: usize = 1_024;

/// Loads all agents, by name.
pub(super) fn load(store: &Store, now_ms: u64) -> Result<BTreeMap<String, Agent>, WebhookError> {
    let mut agents = BTreeMap::new();
    for (name, location) in store.all(Kind::Agent) {
        if let Some(agent) = read(store, location, now_ms)? {
            agents.insert(name, agent);
        }
    }
    Ok(agents)
}

fn read(store: &Store, location: Location, now_ms: u64) -> Result<Option<Agent>, WebhookError> {
    let (mut found, mut changes) = (None, 0);
    store.each_record(location, |record| {
        match record.tag {
            record::SNAPSHOT => {
                let state = AgentState::decode(&record.payload)?;
                let settings = WebhookSettings::decode(&state.settings)?;
                (found, changes) = (Some((settings, Deliveries::load(&state, now_ms))), 0);
            }
            record::CHANGE => {
                let change = Change::decode(&record.payload)?;
                if let Some((_, deliveries)) = &mut found {
                    deliveries.restore(&change, now_ms);
                }
                changes += 1;
            }
            record::GONE => found = None,
            _ => return Err(Malformed { what: "agent" }.into()),
        }
        Ok::<_, WebhookError>(())
    })?;
    Ok(found.map(|(settings, mut deliveries)| {
        // Answered messages follow from the read marks; pending ones in the snapshot are retries
        // requested by users.
        let state = deliveries.snapshot(Vec::new());
        let mut agent = Agent::new(settings, deliveries).revived(state.pending.into_keys());
        agent.changes = changes;
        agent
    }))
}

impl Agent {
    /// Writes a snapshot, which replaces all earlier records of the stream of that name. Creates the
    /// stream if necessary.
    pub(super) fn write_snapshot(
        &mut self,
        store: &Store,
        name: &str,
        now_ms: u64,
    ) -> Result<Ticket, WebhookError> {
        let mut bytes = Vec::new();
        self.snapshot().encode(&mut bytes);
        let refused = |error: AppendError| WebhookError::from(store.append_error(error));
        let (shard, names) = (store.shard_of(name), [(Kind::Agent, name)]);
        let size = AppendSize {
            bytes: bytes.len(),
            count: 2,
        };
        let lock = |shard| store.journal.lock(shard, now_ms);
        let locked = store.lock_or_create(shard, names, size, lock);
        let (mut guard, [at]) = locked.map_err(refused)?;
        guard.reserve(size.bytes, size.count).map_err(refused)?;
        let appended = guard.append(at.stream, None, record::SNAPSHOT, &bytes);
        let appended = appended.map_err(refused)?;
        guard.trim(at.stream, appended.offset).map_err(refused)?;
        self.changes = 0;
        Ok(appended.ticket)
    }

    /// Writes pending changes. Changes that cannot be written now stay pending.
    pub(super) fn write_changes(
        &mut self,
        store: &Store,
        name: &str,
        at: Location,
        now_ms: u64,
    ) -> Result<(), WebhookError> {
        let mut bytes = Vec::new();
        while let Some(change) = self.unwritten.front() {
            bytes.clear();
            change.encode(&mut bytes);
            let mut guard = store.journal.lock(at.shard, now_ms);
            let appended = guard.append(at.stream, None, record::CHANGE, &bytes);
            drop(guard);
            let ticket = appended.map_err(|it| store.append_error(it))?.ticket;
            if let Change::Dead {
                conversation,
                letter,
            } = change
            {
                self.burying.push((ticket, *conversation, letter.to_seq));
            }
            self.unwritten.pop_front();
            self.changes += 1;
        }
        if self.changes >= CHANGES_MAX && self.burying.is_empty() {
            self.write_snapshot(store, name, now_ms)?;
        }
        Ok(())
    }
}

/// Writes that an agent was deleted, and erases its earlier records from disk.
pub(super) fn erase(store: &Store, at: Location, now_ms: u64) -> Result<Ticket, WebhookError> {
    let refused = |error: AppendError| WebhookError::from(store.append_error(error));
    let mut guard = store.journal.lock(at.shard, now_ms);
    guard.reserve(0, 3).map_err(refused)?;
    guard.erase(at.stream).map_err(refused)?;
    let appended = guard.append(at.stream, None, record::GONE, b"");
    Ok(appended.map_err(refused)?.ticket)
}
