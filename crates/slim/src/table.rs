//! `Table`: subscriptions by name, with lookups in constant time.
//!
//! It is separate from the table of native names, because SLIM names differ: they are hashes, any
//! number of connections may hold the same instance (such as the channel of a group), and the
//! client chooses the number of a subscription. Lookups take `&self`, so readers never wait for
//! each other.

mod holders;

use std::collections::{HashMap, HashSet};

use holders::Holders;

use crate::name::{Key, Name, Prefix, Uuid};

/// Error of a subscribe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubscribeError {
    /// The connection has reached the limit of subscriptions.
    #[error("the connection has reached the limit of {0} subscriptions")]
    TooMany(usize),
}

/// Error: an unknown subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no subscription {0} to this name on this connection")]
pub struct Unknown(pub u64);

/// Subscriptions of all connections. `P` is the shell's handle of a connection, `u64` its number.
#[derive(Debug)]
pub struct Table<P> {
    prefixes: HashMap<Prefix, Entry<P>>,
    connections: HashMap<u64, ConnectionSubscriptions>,
}

/// An agent name with its holders.
#[derive(Debug)]
struct Entry<P> {
    /// Name for display.
    agent: Box<str>,
    by_id: HashMap<Option<u128>, Holders<P>>,
    /// Holders of any instance, each once.
    any_instance: Holders<P>,
}

/// An agent name with its instances, for display.
#[derive(Debug)]
pub struct Agent<'a, P> {
    /// Hashed name.
    pub prefix: Prefix,
    /// Name for display.
    pub name: &'a str,
    /// Instances (empty text for the name without an id), each with a connection that holds it.
    pub instances: Vec<(String, u64, &'a P)>,
}

/// Subscriptions of a connection.
#[derive(Debug, Default)]
struct ConnectionSubscriptions {
    /// Subscription numbers by name. The connection holds the name while there is at least one.
    by_key: HashMap<Key, HashSet<u64>>,
    /// Number of names held per agent.
    by_prefix: HashMap<Prefix, usize>,
    count: usize,
}

/// Connections that may receive a message, in order.
pub type Match<'a, P> = holders::Match<'a, P>;

impl<P> Default for Table<P> {
    fn default() -> Self {
        Self {
            prefixes: HashMap::new(),
            connections: HashMap::new(),
        }
    }
}

impl<P: Clone> Table<P> {
    /// Adds a subscription. Adding it again has no effect.
    pub fn subscribe(
        &mut self,
        name: &Name<'_>,
        connection: u64,
        id: u64,
        peer: &P,
        count_max: usize,
    ) -> Result<(), SubscribeError> {
        let key = name.encoded.key();
        let subscriptions = self.connections.entry(connection).or_default();
        if subscriptions
            .by_key
            .get(&key)
            .is_some_and(|ids| ids.contains(&id))
        {
            return Ok(());
        }
        if subscriptions.count >= count_max {
            return Err(SubscribeError::TooMany(count_max));
        }
        subscriptions.count += 1;
        let ids = subscriptions.by_key.entry(key).or_default();
        let is_first = ids.is_empty();
        ids.insert(id);
        if is_first {
            let names = subscriptions.by_prefix.entry(key.prefix).or_default();
            *names += 1;
            let entry = self.prefixes.entry(key.prefix);
            let entry = entry.or_insert_with(|| Entry::new(name.agent().into()));
            if *names == 1 {
                entry.any_instance.insert(connection, peer.clone());
            }
            let holders = entry.by_id.entry(key.id).or_default();
            holders.insert(connection, peer.clone());
        }
        Ok(())
    }

    /// Removes a subscription. The connection holds the name as long as it has another subscription
    /// to it.
    pub fn unsubscribe(&mut self, key: Key, connection: u64, id: u64) -> Result<(), Unknown> {
        let subscriptions = self.connections.get_mut(&connection);
        let subscriptions = subscriptions.ok_or(Unknown(id))?;
        let ids = subscriptions.by_key.get_mut(&key).ok_or(Unknown(id))?;
        if !ids.remove(&id) {
            return Err(Unknown(id));
        }
        subscriptions.count -= 1;
        if ids.is_empty() {
            subscriptions.by_key.remove(&key);
            let is_last = subscriptions.release(key.prefix);
            self.remove_holder(key, connection, is_last);
        }
        Ok(())
    }

    /// Removes all subscriptions of a connection.
    pub fn remove(&mut self, connection: u64) {
        let Some(mut subscriptions) = self.connections.remove(&connection) else {
            return;
        };
        for key in std::mem::take(&mut subscriptions.by_key).into_keys() {
            let is_last = subscriptions.release(key.prefix);
            self.remove_holder(key, connection, is_last);
        }
    }

    fn remove_holder(&mut self, key: Key, connection: u64, is_last_of_prefix: bool) {
        let Some(entry) = self.prefixes.get_mut(&key.prefix) else {
            return;
        };
        if let Some(holders) = entry.by_id.get_mut(&key.id) {
            holders.remove(connection);
            if holders.is_empty() {
                entry.by_id.remove(&key.id);
            }
        }
        if is_last_of_prefix {
            entry.any_instance.remove(connection);
        }
        if entry.by_id.is_empty() {
            self.prefixes.remove(&key.prefix);
        }
    }
}

impl<P> Table<P> {
    /// Returns candidates for a message to one subscriber: the connections that hold the name,
    /// round robin, without the sender. The caller takes the first one with room.
    pub fn any(&self, key: &Key, sender: u64) -> Match<'_, P> {
        self.holders(key)
            .map_or_else(Match::nobody, |holders| holders.in_turn(sender))
    }

    /// Returns the receivers of a message to all subscribers: the connections that hold the name,
    /// each once, without the sender.
    pub fn all(&self, key: &Key, sender: u64) -> Match<'_, P> {
        self.holders(key)
            .map_or_else(Match::nobody, |holders| holders.everybody(sender))
    }

    fn holders(&self, key: &Key) -> Option<&Holders<P>> {
        let entry = self.prefixes.get(&key.prefix)?;
        match key.id {
            None => Some(&entry.any_instance),
            id => entry.by_id.get(&id),
        }
    }

    /// Returns the number of subscriptions.
    pub fn subscription_count(&self) -> usize {
        self.connections
            .values()
            .map(|subscriptions| subscriptions.count)
            .sum()
    }

    /// Iterates over all names with their holders, in arbitrary order.
    pub fn agents(&self) -> impl Iterator<Item = Agent<'_, P>> {
        self.prefixes.iter().map(|(prefix, entry)| Agent {
            prefix: *prefix,
            name: &entry.agent,
            instances: entry.instances(),
        })
    }

    /// Returns the number of agent names, without instances.
    pub fn name_count(&self) -> usize {
        self.prefixes.len()
    }
}

impl ConnectionSubscriptions {
    /// Counts down the names held of an agent. Returns true if that was the last one.
    fn release(&mut self, prefix: Prefix) -> bool {
        let Some(names) = self.by_prefix.get_mut(&prefix) else {
            return false;
        };
        *names -= 1;
        if *names == 0 {
            self.by_prefix.remove(&prefix);
            return true;
        }
        false
    }
}

impl<P> Entry<P> {
    fn instances(&self) -> Vec<(String, u64, &P)> {
        let mut instances = Vec::new();
        for (id, holders) in &self.by_id {
            let id = id.map_or(String::new(), |id| Uuid(id).to_string());
            let rows = holders
                .iter()
                .map(|(connection, peer)| (id.clone(), *connection, peer));
            instances.extend(rows);
        }
        instances.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
        instances
    }

    fn new(agent: Box<str>) -> Self {
        Self {
            agent,
            by_id: HashMap::new(),
            any_instance: Holders::default(),
        }
    }
}

#[cfg(test)]
mod tests;
