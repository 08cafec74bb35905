//! Conversation events as read-only topics, one per namespace.
//!
//! `org.namespace.conversations` has one partition per shard of the journal; the offsets of a
//! partition are those of the shard's events ([`EventFeed`]). There is no second copy: batches are
//! built from events when they are read. An event that was deleted keeps its offset and has no
//! record, as after compaction.
//!
//! The encoding of an event is not known here.

mod read;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use store::namespace_of;
use topics::{Config, NAME_LENGTH_MAX, Topic as About, TopicId};

use crate::event_partitions::{EventFeed, EventPartition, Events};
use crate::topic::Topic;

/// Only durable events are shown, so no event can be replaced after a crash and one epoch is
/// enough.
const LEADER_EPOCH: i32 = 0;

/// The suffix of such a topic's name.
const SUFFIX: &str = ".conversations";

/// Maximum events of one batch, and maximum bytes of the messages that they refer to.
const ROWS_MAX: usize = 1_000;
const BYTES_MAX: usize = 1 << 20;

/// The event topics of all namespaces.
pub(super) struct EventTopics {
    /// The events; without it there are no event topics.
    feed: Option<Arc<dyn EventFeed>>,
    found: Mutex<AssignedTopics>,
}

impl EventTopics {
    pub(super) fn new(feed: Option<Arc<dyn EventFeed>>) -> Self {
        Self {
            feed,
            found: Mutex::default(),
        }
    }
}

#[derive(Default)]
struct AssignedTopics {
    /// The number of event partitions that are assigned to topics.
    entered: usize,
    by_name: BTreeMap<String, Arc<Topic>>,
    by_id: HashMap<TopicId, Arc<Topic>>,
}

/// Returns whether a name is reserved for an event topic.
pub(super) fn is_reserved(name: &str) -> bool {
    name.strip_suffix(SUFFIX).is_some_and(|it| it.contains('.'))
}

/// Returns the topic name of a namespace; characters that a topic name may not contain become `_`.
fn topic_name(namespace: &str) -> String {
    let namespace = namespace.replace('/', ".").replace(':', "_");
    format!("{namespace}{SUFFIX}")
}

impl AssignedTopics {
    /// Returns whether namespaces of newly found partitions map to the same topic name, which has no
    /// owner yet. The order of the partitions decides then.
    fn has_conflict(&self, found: &[EventPartition]) -> bool {
        let mut owners: HashMap<String, &str> = HashMap::new();
        found.iter().any(|partition| {
            let namespace = namespace_of(&partition.name);
            let name = topic_name(namespace);
            !self.by_name.contains_key(&name)
                && *owners.entry(name).or_insert(namespace) != namespace
        })
    }

    /// Assigns newly found event partitions to their topics. `age` sorts them, the oldest first.
    fn enter(
        &mut self,
        journal: u64,
        shards: u32,
        mut found: Vec<EventPartition>,
        age: impl Fn(&EventPartition) -> (u64, u64),
    ) {
        if self.has_conflict(&found) {
            found.sort_by_cached_key(age);
        }
        for partition in found {
            self.entered += 1;
            let Some((namespace, shard)) = partition.name.rsplit_once('/') else {
                continue;
            };
            let Ok(shard) = shard.parse::<usize>() else {
                continue;
            };
            let name = topic_name(namespace);
            // If two namespaces map to the same topic name, the older one has it, also after a
            // restart.
            let topic = match self.by_name.get(&name) {
                Some(topic) => topic.clone(),
                None if name.len() > NAME_LENGTH_MAX => continue,
                None => self.make(journal, shards, &name, namespace, partition.topic_number),
            };
            let Some(events) = topic.events.as_ref().filter(|it| it.namespace == namespace) else {
                continue;
            };
            if let Some(place) = events.partitions.write().get_mut(shard) {
                *place = Some(partition.clone());
            }
        }
    }

    /// Creates a topic. Its id consists of the journal's id and the number of the topic, or the next
    /// free one: unique, and the same after a restart.
    fn make(
        &mut self,
        journal: u64,
        shards: u32,
        name: &str,
        namespace: &str,
        mut number: u64,
    ) -> Arc<Topic> {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&journal.to_be_bytes());
        id[8..].copy_from_slice(&number.to_be_bytes());
        while self.by_id.contains_key(&TopicId(id)) {
            number = number.wrapping_add(1);
            id[8..].copy_from_slice(&number.to_be_bytes());
        }
        let about = About {
            id: TopicId(id),
            name: name.to_owned(),
            partitions: shards,
            created_ms: 0,
            config: Config::default(),
        };
        let events = Events {
            namespace: namespace.to_owned(),
            partitions: RwLock::new(vec![None; shards as usize]),
        };
        let topic = Arc::new(Topic::of_events(about, events));
        self.by_name.insert(name.to_owned(), topic.clone());
        self.by_id.insert(TopicId(id), topic.clone());
        topic
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a partition of a namespace, and its age.
    fn partition(namespace: &str, number: u64, created_ms: u64) -> (EventPartition, (u64, u64)) {
        let partition = EventPartition {
            number,
            topic_number: number,
            name: format!("{namespace}/0"),
        };
        (partition, (created_ms, number))
    }

    /// Returns the namespace that has a topic name, and the id of the topic.
    fn owner(batches: &[&[(EventPartition, (u64, u64))]]) -> (String, TopicId) {
        let mut known = AssignedTopics::default();
        for batch in batches {
            let found = batch.iter().map(|(it, _)| it.clone()).collect();
            let age = |it: &EventPartition| {
                let (_, age) = batch.iter().find(|(other, _)| other == it).unwrap();
                *age
            };
            known.enter(7, 4, found, age);
        }
        let topic = &known.by_name["acme.a_b.conversations"];
        let events = topic.events.as_ref().unwrap();
        (events.namespace.clone(), topic.about.id)
    }

    #[test]
    fn older_namespace_has_the_topic_name_also_after_a_restart() {
        // Numbers of different shards do not tell which one is older.
        let older = partition("acme/a:b", 9, 1_000);
        let other = partition("acme/other", 5, 1_500);
        let newer = partition("acme/a_b", 6, 2_000);
        let first = [older.clone()];
        let expected = owner(&[&first, &[other.clone(), newer.clone()]]);
        assert_eq!(expected.0, "acme/a:b");
        for found in [
            [other.clone(), newer.clone(), older.clone()],
            [older, other, newer],
        ] {
            assert_eq!(owner(&[&found]), expected);
        }
    }
}
