//! Conversation events as read-only topics, one per namespace.
//!
//! `org.namespace.conversations` has one partition per shard of the journal; the offsets of a
//! partition are those of the shard's events ([`EventFeed`]). There
//! is no second copy: batches are built from events when they are read. An event that was deleted
//! keeps its offset and has no record, as after compaction.
//!
//! The encoding of an event is not known here.

mod read;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
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
    /// Assigns newly found event partitions to their topics.
    fn enter(&mut self, journal: u64, shards: u32, found: Vec<EventPartition>) {
        for partition in found {
            self.entered += 1;
            let Some((namespace, shard)) = partition.name.rsplit_once('/') else {
                continue;
            };
            let Ok(shard) = shard.parse::<usize>() else {
                continue;
            };
            let name = topic_name(namespace);
            // If two namespaces map to the same topic name, the older one has it.
            let topic = match self.by_name.get(&name) {
                Some(topic) => topic.clone(),
                None if name.len() > NAME_LENGTH_MAX => continue,
                None => self.make(journal, shards, &name, namespace, partition.number),
            };
            let Some(events) = topic.events.as_ref().filter(|it| it.namespace == namespace) else {
                continue;
            };
            if let Some(place) = events.partitions.write().get_mut(shard) {
                *place = Some(partition.clone());
            }
        }
    }

    /// Creates a topic. Its id derives from the journal's id and its first partition: unique, and
    /// the same after a restart.
    fn make(
        &mut self,
        journal: u64,
        shards: u32,
        name: &str,
        namespace: &str,
        number: u64,
    ) -> Arc<Topic> {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&journal.to_be_bytes());
        id[8..].copy_from_slice(&number.to_be_bytes());
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
