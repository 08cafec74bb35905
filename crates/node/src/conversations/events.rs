//! The event partitions of a namespace: one per shard, called `org/namespace/SHARD`.

use journal::{AppendError, StreamId};

use crate::store::{Kind, Location, Store};

impl Store {
    /// The event partition that a conversation's events are in, made if there is none.
    ///
    /// It is entered in the directory before the first conversation that needs it: whoever waits for
    /// that one's entry waits for both.
    pub(super) fn event_partition(
        &self,
        conversation: &str,
        now_ms: u64,
    ) -> Result<StreamId, AppendError> {
        let shard = self.shard_of(conversation);
        let namespace = conversation.rsplit_once('/').map_or("", |(it, _)| it);
        let name = format!("{namespace}/{}", shard.0);
        let Location { stream, .. } = self.find_or_create_in(Kind::Events, &name, shard, now_ms)?;
        Ok(stream)
    }
}
