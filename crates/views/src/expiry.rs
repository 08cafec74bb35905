//! Expired conversations, and conversations that are due to a webhook.

use ::journal::StreamId;
use model::Name;
use platform::Counter;

use super::scope::Scope;
use super::service::Views;
use crate::error::ViewsError;

/// Maximum number of conversations erased per step.
const AT_ONCE: usize = 1_000;

/// A conversation with unanswered messages for a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    /// `org/namespace/x`.
    pub name: String,
    /// The newest message.
    pub head_seq: u64,
    /// The read mark of the webhook: the last message that it answered.
    pub read_seq: u64,
    /// The time of the newest message, in milliseconds since 1970-01-01 UTC.
    pub active_ms: u64,
}

impl Views {
    /// Returns up to `limit` conversations of `org/namespace` that name this webhook as their agent
    /// and have messages of others after its read mark. The ones that have waited longest come
    /// first.
    pub fn due(&self, namespace: &str, agent: &str, limit: usize) -> Result<Vec<Due>, ViewsError> {
        let tables = self.catch_up()?;
        let namespace = Scope::namespace(namespace);
        let places = self.checked(tables.oldest(namespace.due(agent), limit))?;
        let mut due = Vec::new();
        for place in places {
            let row = self.checked(tables.row(place.number))?;
            let named = self.store.named(StreamId(place.number));
            let (Some(row), Some((_, name, _))) = (row, named) else {
                continue;
            };
            let participant = tables.participant(place.number, namespace.participant(agent));
            let participant = self.checked(participant)?;
            due.push(Due {
                name,
                head_seq: row.head,
                read_seq: participant.unwrap_or_default().read,
                active_ms: row.activity_ms,
            });
        }
        Ok(due)
    }

    /// Erases expired conversations. Returns true if there are more.
    pub(super) fn expire(&self) -> Result<bool, ViewsError> {
        let expired = self.expired(AT_ONCE)?;
        let is_more = expired.len() == AT_ONCE;
        let mut erased = 0;
        for name in &expired {
            if let Ok(name) = Name::parse(name) {
                erased += usize::from(self.conversations.expire(&name)?);
            }
        }
        let counters = &self.platform.counters;
        counters.add_to(Counter::ConversationsExpired, erased as u64);
        // A conversation that turned out not to be expired is updated when the views catch up.
        Ok(is_more && erased > 0)
    }

    fn expired(&self, limit: usize) -> Result<Vec<String>, ViewsError> {
        let (tables, _) = self.opened()?;
        let now_ms = self.platform.expiry_ms();
        let numbers = self.checked(tables.expired(now_ms, limit))?;
        let named = numbers
            .into_iter()
            .filter_map(|it| self.store.named(StreamId(it)));
        Ok(named.map(|(_, name, _)| name).collect())
    }
}
