//! The event partitions of a namespace: one per shard, named `org/namespace/SHARD`.

use journal::{AppendError, StreamId};

use store::{Kind, Location};

use super::Conversations;

impl Conversations {
    /// Returns the event partition of a conversation, and creates it if it does not exist.
    ///
    /// Its directory entry precedes that of the first conversation that uses it, so waiting for the
    /// conversation's entry covers both.
    pub(super) fn event_partition(
        &self,
        conversation: &str,
        now_ms: u64,
    ) -> Result<StreamId, AppendError> {
        let shard = self.store.shard_of(conversation);
        let namespace = conversation.rsplit_once('/').map_or("", |(it, _)| it);
        let name = format!("{namespace}/{}", shard.0);
        let Location { stream, .. } =
            self.store
                .find_or_create_in(Kind::Events, &name, shard, now_ms)?;
        Ok(stream)
    }
}
