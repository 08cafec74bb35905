//! Conversation events as the feed of event topics.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use conversation_service::Conversations;
use conversation_service::feed::{BatchLimit, Partition, Partitions, Row};
use parking_lot::Mutex;
use store::namespace_of;
use topic_service::{EventFeed, EventLimit, EventPartition, EventRecord};

/// Encodes conversation events as records of topics.
pub trait EventEncoder: Send + Sync {
    /// Appends the record of an event of `conversation` (`org/namespace/x`) to `out`.
    fn encode(&self, conversation: &str, row: &Row, out: &mut Vec<u8>);
}

/// The events of conversations, encoded as records.
pub(crate) struct ConversationEvents {
    conversations: Conversations,
    encoder: Arc<dyn EventEncoder>,
    found: Mutex<FoundPartitions>,
}

/// The event partitions found so far.
#[derive(Default)]
struct FoundPartitions {
    partitions: Partitions,
    /// The index of a partition, by its number.
    by_number: HashMap<u64, usize>,
}

impl FoundPartitions {
    fn find(&self, partition: &EventPartition) -> Option<&Partition> {
        let index = self.by_number.get(&partition.number)?;
        self.partitions.found.get(*index)
    }
}

impl ConversationEvents {
    pub(crate) fn new(conversations: Conversations, encoder: Arc<dyn EventEncoder>) -> Self {
        Self {
            conversations,
            encoder,
            found: Mutex::default(),
        }
    }

    fn partition(&self, partition: &EventPartition) -> Option<Partition> {
        self.found.lock().find(partition).cloned()
    }
}

/// Returns the number of the topic that begins with a partition. Partitions of format 1 have their
/// own number: the first one of a namespace is known for ever. The others of a namespace have the
/// same number, in any order in which they are found.
fn topic_number(partition: &Partition) -> u64 {
    const NAMESPACE_BIT: u64 = 1 << 63;
    match partition.is_carried_over {
        true => partition.number,
        false => model::fnv1a_64(namespace_of(&partition.name).bytes()) | NAMESPACE_BIT,
    }
}

impl EventFeed for ConversationEvents {
    fn partitions_after(&self, known: usize) -> Vec<EventPartition> {
        let mut found = self.found.lock();
        let FoundPartitions {
            partitions,
            by_number,
        } = &mut *found;
        self.conversations.find_partitions(partitions);
        for (index, partition) in partitions.found.iter().enumerate().skip(by_number.len()) {
            by_number.insert(partition.number, index);
        }
        let new = partitions.found.get(known..).unwrap_or_default().iter();
        let new = new.map(|it| EventPartition {
            number: it.number,
            topic_number: topic_number(it),
            name: it.name.clone(),
        });
        new.collect()
    }

    fn age(&self, partition: &EventPartition) -> (u64, u64) {
        let created = match self.partition(partition) {
            // They are older than all others, and their numbers rise with the time.
            Some(it) if it.is_carried_over => Some(0),
            Some(it) => self.conversations.created_ms(&it),
            None => None,
        };
        (created.unwrap_or(u64::MAX), partition.number)
    }

    fn extent(&self, partition: &EventPartition) -> Range<u64> {
        let found = self.found.lock();
        let reach = found.find(partition).map(|it| self.conversations.reach(it));
        reach.map_or(0..0, |it| it.start..it.end)
    }

    fn read(
        &self,
        partition: &EventPartition,
        from: u64,
        limit: EventLimit,
        take: &mut dyn FnMut(EventRecord<'_>),
    ) -> Result<u64, String> {
        let Some(partition) = self.partition(partition) else {
            return Ok(from);
        };
        let limit = BatchLimit {
            rows: limit.rows,
            bytes: limit.bytes,
        };
        let batch = self.conversations.feed(&partition, from, limit);
        let batch = batch.map_err(|error| error.to_string())?;
        let mut rows: Vec<_> = batch.rows.iter().collect();
        rows.sort_unstable_by_key(|row| row.event);
        let mut value = Vec::new();
        for row in rows {
            let conversation = batch.names.get(&row.conversation);
            let conversation = conversation.map_or("", String::as_str);
            value.clear();
            self.encoder.encode(conversation, row, &mut value);
            take(EventRecord {
                offset: row.event,
                at_ms: row.at_ms,
                key: conversation,
                value: &value,
            });
        }
        Ok(batch.next)
    }

    fn time_ms(&self, partition: &EventPartition, offset: u64) -> Option<u64> {
        let partition = self.partition(partition)?;
        self.conversations.happened_ms(&partition, offset)
    }
}
