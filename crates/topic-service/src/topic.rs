//! [`Topic`]: a topic as of its lookup.

use std::sync::Arc;

use topics::{Topic as About, TopicId};

use super::error::UnknownPartition;
use super::event_partitions::Events;
use super::partition::{Rules, Slot};

/// A reference to a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicRef<'a> {
    /// The name, as clients use it.
    Name(&'a str),
    /// The permanent id.
    Id(TopicId),
}

/// A topic as of its lookup. Operations on a topic that was deleted since are refused.
pub struct Topic {
    pub(super) about: About,
    pub(super) rules: Rules,
    pub(super) slots: Box<[Arc<Slot>]>,
    /// The event partitions, for a topic of conversation events.
    pub(super) events: Option<Events>,
}

impl Topic {
    /// Creates a topic of the events of a namespace.
    pub(super) fn of_events(about: About, events: Events) -> Self {
        Self {
            rules: Rules::of(&about.config),
            about,
            slots: Box::default(),
            events: Some(events),
        }
    }

    /// Returns the name, number of partitions and configuration.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Returns whether the topic has this name or id.
    pub(super) fn is(&self, topic: TopicRef<'_>) -> bool {
        match topic {
            TopicRef::Name(name) => self.about.name == name,
            TopicRef::Id(id) => self.about.id == id,
        }
    }

    /// Returns the settings for partition operations.
    pub(super) fn rules(&self) -> Rules {
        self.rules
    }

    /// Returns a partition by number.
    pub(super) fn slot(&self, partition: u32) -> Result<&Arc<Slot>, UnknownPartition> {
        let slot = usize::try_from(partition)
            .ok()
            .and_then(|it| self.slots.get(it));
        slot.ok_or(UnknownPartition)
    }
}

impl std::fmt::Debug for Topic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Topic({})", self.about.name)
    }
}
