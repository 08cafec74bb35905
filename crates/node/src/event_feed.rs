//! Conversation events as the feed of event topics.

use std::ops::Range;
use std::sync::Arc;

use conversation_service::Conversations;
use conversation_service::feed::{BatchLimit, Partition, Partitions, Row};
use parking_lot::Mutex;
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
    found: Mutex<Partitions>,
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
        find(&self.found.lock(), partition).cloned()
    }
}

/// Finds a partition by its number, which rises in the order of creation.
fn find<'a>(partitions: &'a Partitions, partition: &EventPartition) -> Option<&'a Partition> {
    let found = &partitions.found;
    let index = found.binary_search_by_key(&partition.number, |it| it.number);
    found.get(index.ok()?)
}

impl EventFeed for ConversationEvents {
    fn partitions_after(&self, known: usize) -> Vec<EventPartition> {
        let mut found = self.found.lock();
        self.conversations.find_partitions(&mut found);
        let new = found.found.get(known..).unwrap_or_default().iter();
        let new = new.map(|it| EventPartition {
            number: it.number,
            name: it.name.clone(),
        });
        new.collect()
    }

    fn extent(&self, partition: &EventPartition) -> Range<u64> {
        let found = self.found.lock();
        let reach = find(&found, partition).map(|it| self.conversations.reach(it));
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
