//! Who is subscribed to what, in constant time at any number of names.
//!
//! It is a table of its own beside that of native names, because names mean something else here: they
//! are hashes, any number of connections may hold the same instance (a group's channel is one), and
//! a subscription is a number that its client chose. Matching takes `&self`, so readers never wait
//! for each other.

mod holders;

use std::collections::{HashMap, HashSet};

use holders::Holders;

use crate::name::{Key, Name, Prefix, Uuid};

/// Why nobody is subscribed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubscribeError {
    /// The connection has as many as it may.
    #[error("a connection has at most {0} subscriptions")]
    TooMany(usize),
}

/// A subscription that there is none of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no subscription {0} to this name on this connection")]
pub struct Unknown(pub u64);

/// See the module's documentation. `P` is what the shell reaches a connection by, `u64` its number.
#[derive(Debug)]
pub struct Table<P> {
    prefixes: HashMap<Prefix, Entry<P>>,
    connections: HashMap<u64, Held>,
}

/// An agent's name.
#[derive(Debug)]
struct Entry<P> {
    /// As people are shown it.
    agent: Box<str>,
    by_id: HashMap<Option<u128>, Holders<P>>,
    /// Those of all ids, each once.
    anybody: Holders<P>,
}

/// An agent's name and who holds it.
#[derive(Debug)]
pub struct Agent<'a, P> {
    /// The name, as numbers.
    pub prefix: Prefix,
    /// The name, as people are shown it.
    pub name: &'a str,
    /// Its instances (empty for the name alone), each with a connection that holds it.
    pub instances: Vec<(String, u64, &'a P)>,
}

/// What a connection is subscribed to.
#[derive(Debug, Default)]
struct Held {
    /// The numbers a name was subscribed with: the name is held while there is one.
    by_key: HashMap<Key, HashSet<u64>>,
    /// How many names of an agent it holds.
    by_prefix: HashMap<Prefix, usize>,
    count: usize,
}

/// Connections that a message may go to, in order.
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
    /// Adds a subscription. The same one again changes nothing.
    pub fn subscribe(
        &mut self,
        name: &Name<'_>,
        connection: u64,
        id: u64,
        peer: &P,
        count_max: usize,
    ) -> Result<(), SubscribeError> {
        let key = name.encoded.key();
        let held = self.connections.entry(connection).or_default();
        if held.by_key.get(&key).is_some_and(|ids| ids.contains(&id)) {
            return Ok(());
        }
        if held.count >= count_max {
            return Err(SubscribeError::TooMany(count_max));
        }
        held.count += 1;
        let ids = held.by_key.entry(key).or_default();
        let is_first = ids.is_empty();
        ids.insert(id);
        if is_first {
            let names = held.by_prefix.entry(key.prefix).or_default();
            *names += 1;
            let entry = self.prefixes.entry(key.prefix);
            let entry = entry.or_insert_with(|| Entry::new(name.agent().into()));
            if *names == 1 {
                entry.anybody.insert(connection, peer.clone());
            }
            let holders = entry.by_id.entry(key.id).or_default();
            holders.insert(connection, peer.clone());
        }
        Ok(())
    }

    /// Removes a subscription. Its name stays with the connection while another number holds it.
    pub fn unsubscribe(&mut self, key: Key, connection: u64, id: u64) -> Result<(), Unknown> {
        let held = self.connections.get_mut(&connection);
        let held = held.ok_or(Unknown(id))?;
        let ids = held.by_key.get_mut(&key).ok_or(Unknown(id))?;
        if !ids.remove(&id) {
            return Err(Unknown(id));
        }
        held.count -= 1;
        if ids.is_empty() {
            held.by_key.remove(&key);
            let is_last = held.let_go_of(key.prefix);
            self.forget(key, connection, is_last);
        }
        Ok(())
    }

    /// Removes whatever a connection is subscribed to.
    pub fn remove(&mut self, connection: u64) {
        let Some(mut held) = self.connections.remove(&connection) else {
            return;
        };
        for key in std::mem::take(&mut held.by_key).into_keys() {
            let is_last = held.let_go_of(key.prefix);
            self.forget(key, connection, is_last);
        }
    }

    fn forget(&mut self, key: Key, connection: u64, is_last_of_prefix: bool) {
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
            entry.anybody.remove(connection);
        }
        if entry.by_id.is_empty() {
            self.prefixes.remove(&key.prefix);
        }
    }
}

impl<P> Table<P> {
    /// Whom a message may reach that is for one: round robin over the connections that hold the name,
    /// never the sender's. Take the first that has room.
    pub fn any(&self, key: &Key, sender: u64) -> Match<'_, P> {
        self.holders(key)
            .map_or_else(Match::nobody, |holders| holders.in_turn(sender))
    }

    /// Whom a message reaches that is for all: each connection that holds the name once, but for the
    /// sender's.
    pub fn all(&self, key: &Key, sender: u64) -> Match<'_, P> {
        self.holders(key)
            .map_or_else(Match::nobody, |holders| holders.everybody(sender))
    }

    fn holders(&self, key: &Key) -> Option<&Holders<P>> {
        let entry = self.prefixes.get(&key.prefix)?;
        match key.id {
            None => Some(&entry.anybody),
            id => entry.by_id.get(&id),
        }
    }

    /// Count of subscriptions.
    pub fn subscription_count(&self) -> usize {
        self.connections.values().map(|held| held.count).sum()
    }

    /// Every name and who holds it, in no order.
    pub fn agents(&self) -> impl Iterator<Item = Agent<'_, P>> {
        self.prefixes.iter().map(|(prefix, entry)| Agent {
            prefix: *prefix,
            name: &entry.agent,
            instances: entry.instances(),
        })
    }

    /// Count of names, instances not counted.
    pub fn name_count(&self) -> usize {
        self.prefixes.len()
    }
}

impl Held {
    /// Whether that was the last name of the agent.
    fn let_go_of(&mut self, prefix: Prefix) -> bool {
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
            let held = holders
                .iter()
                .map(|(connection, peer)| (id.clone(), *connection, peer));
            instances.extend(held);
        }
        instances.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
        instances
    }

    fn new(agent: Box<str>) -> Self {
        Self {
            agent,
            by_id: HashMap::new(),
            anybody: Holders::default(),
        }
    }
}

#[cfg(test)]
mod tests;
