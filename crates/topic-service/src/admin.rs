//! Creating, changing and deleting topics.

use std::sync::Arc;

use journal::{AppendError, Ticket};
use platform::{Durable, Pending};
use topics::{Alter, Catalogue, Topic as About, TopicError, TopicId, record};

use super::error::ReadOnly;
use super::error::{AdminError, Storage};
use super::partition::Slot;
use super::state::{State, Writing, stream_name};
use crate::service::Topics;
use crate::topic::Topic;
use crate::topic::TopicRef;
use store::{Kind, Location};

/// A request to create a topic.
#[derive(Clone, Copy, Debug)]
pub struct NewTopic<'a> {
    /// The name, as clients use it.
    pub name: &'a str,
    /// The number of partitions; `None` for the node's default.
    pub partitions: Option<i32>,
    /// Configuration entries; the value `None` means the default.
    pub configs: &'a [(&'a str, Option<&'a str>)],
}

/// Whether a change is made or only validated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Execution {
    /// Makes the change.
    Do,
    /// Validates only: the answer is that of the change (Kafka's `validate_only`).
    Try,
}

impl Topics {
    /// Returns all topics, by name.
    pub fn list(&self) -> Vec<Arc<Topic>> {
        let mut all = self.state.known.read().list();
        let events = self.list_events();
        if !events.is_empty() {
            all.extend(events);
            all.sort_by(|one, other| one.about().name.cmp(&other.about().name));
        }
        all
    }

    /// Returns an existing topic.
    pub fn find(&self, topic: TopicRef<'_>) -> Option<Arc<Topic>> {
        let found = self.state.known.read().find(topic);
        found.or_else(|| self.find_events(topic))
    }

    /// Returns a topic, and creates it if it does not exist and the options allow that. It is
    /// usable at once; answers about it wait until its creation is durable.
    pub fn find_or_create(&self, name: &str) -> Result<Arc<Topic>, AdminError> {
        if let Some(found) = self.find(TopicRef::Name(name)) {
            return Ok(found);
        }
        // A reserved name may be read later, but its topic is never created by a client.
        if !self.state.options.auto_create || self.check_writable(name).is_err() {
            return Err(TopicError::Unknown.into());
        }
        let topic = NewTopic {
            name,
            partitions: None,
            configs: &[],
        };
        match self.make(&topic, Execution::Do) {
            Ok((about, _)) => {
                let found = self.find(TopicRef::Id(about.id));
                found.ok_or_else(|| TopicError::Unknown.into())
            }
            // Another thread created it first.
            Err(AdminError::Topic(TopicError::Exists { .. })) => {
                let found = self.find(TopicRef::Name(name));
                found.ok_or_else(|| TopicError::Unknown.into())
            }
            Err(error) => Err(error),
        }
    }

    /// Creates a topic; answered when the creation is durable.
    pub fn create(&self, topic: &NewTopic<'_>, execution: Execution) -> Pending<About, AdminError> {
        pending(self.make(topic, execution))
    }

    /// Deletes a topic and its records; answered when the deletion is durable. The disk space is
    /// freed a little later.
    pub fn delete(&self, topic: TopicRef<'_>) -> Pending<About, AdminError> {
        pending(self.remove(topic))
    }

    /// Raises the number of a topic's partitions to a total; answered when that is durable.
    pub fn set_partitions(
        &self,
        name: &str,
        partitions: i32,
        execution: Execution,
    ) -> Pending<About, AdminError> {
        let decide = |catalogue: &Catalogue| catalogue.decide_partitions(name, partitions);
        pending(self.change_topic(name, decide, execution))
    }

    /// Alters some entries of a topic's configuration (IncrementalAlterConfigs); answered when that
    /// is durable.
    pub fn alter(
        &self,
        name: &str,
        alters: &[(&str, Alter<'_>)],
        execution: Execution,
    ) -> Pending<About, AdminError> {
        pending(self.change_topic(name, |it| it.decide_alter(name, alters), execution))
    }

    /// Replaces a topic's configuration by these entries (AlterConfigs); answered when that is
    /// durable.
    pub fn configure(
        &self,
        name: &str,
        configs: &[(&str, Option<&str>)],
        execution: Execution,
    ) -> Pending<About, AdminError> {
        pending(self.change_topic(name, |it| it.decide_replace(name, configs), execution))
    }
}

/// The topic after a change, and the durability that its answer waits for.
type Made = Result<(About, Durable), AdminError>;

fn pending(made: Made) -> Pending<About, AdminError> {
    match made {
        Ok((about, durable)) => Pending::after(durable, about),
        Err(error) => Pending::known(Err(error)),
    }
}

impl Topics {
    fn make(&self, topic: &NewTopic<'_>, execution: Execution) -> Made {
        self.check_writable(topic.name)?;
        let mut writing = self.state.writing.lock();
        let default = i32::try_from(self.state.options.partitions).unwrap_or(i32::MAX);
        let about = self.state.known.read().catalogue.decide_create(
            self.fresh_id(),
            topic.name,
            topic.partitions.unwrap_or(default),
            topic.configs,
            self.time_ms(),
        )?;
        self.write(&mut writing, about, execution)
    }

    fn change_topic(
        &self,
        name: &str,
        decide: impl FnOnce(&Catalogue) -> Result<About, TopicError>,
        execution: Execution,
    ) -> Made {
        self.check_writable(name)?;
        let mut writing = self.state.writing.lock();
        let about = decide(&self.state.known.read().catalogue)?;
        self.write(&mut writing, about, execution)
    }

    /// Writes a topic to the catalogue and puts it into effect, with streams for its new
    /// partitions.
    fn write(&self, writing: &mut Writing, about: About, execution: Execution) -> Made {
        let before = self.find(TopicRef::Id(about.id));
        let old = before.as_ref().map_or(&[][..], |it| &it.slots);
        let made = writing.partitions_made + about.partitions as usize - old.len();
        if made > writing.partitions_made {
            self.check_names(made)?;
        }
        if execution == Execution::Try {
            return Ok((about, self.state.durable(None)));
        }
        let refused = |error| Storage::append(&self.state.journal, error);
        let mut places = Vec::new();
        for index in old.len() as u32..about.partitions {
            places.push(self.place(about.id, index).map_err(refused)?);
        }
        let mut bytes = Vec::new();
        about.encode(&mut bytes);
        let appended = self
            .state
            .enter(writing, record::TOPIC, &bytes, self.now_ms());
        let ticket = appended.map_err(refused)?;
        writing.partitions_made = made;
        let new = places.into_iter().map(|at| {
            let State {
                journal,
                options,
                leading,
                ..
            } = &*self.state;
            let slot = Slot::new(journal, at, &about, options, *leading, ticket);
            Arc::new(slot)
        });
        let slots: Box<[_]> = old.iter().cloned().chain(new).collect();
        for slot in &slots {
            slot.configure(&about.config);
        }
        self.state.known.write().put(about.clone(), slots);
        self.state.platform.need_sweep();
        Ok((about, self.state.durable(Some(ticket))))
    }

    /// Checks the limit on partitions that were ever created.
    fn check_names(&self, count: usize) -> Result<(), AdminError> {
        let checked = self.state.store.check_partitions(count);
        checked.map_err(|limit| AdminError::Names { limit })
    }

    /// Creates the stream of a new partition.
    fn place(&self, id: TopicId, index: u32) -> Result<Location, AppendError> {
        let store = &self.state.store;
        let name = stream_name(id, index);
        store.find_or_create(Kind::Partition, &name, self.now_ms())
    }

    /// Returns an id that no topic has had.
    fn fresh_id(&self) -> TopicId {
        let entropy = &self.state.platform.ports.entropy;
        let halves = [entropy.next_u64(), entropy.next_u64() | 1].map(u64::to_be_bytes);
        let mut id = [0; 16];
        id.copy_from_slice(halves.as_flattened());
        TopicId(id)
    }

    fn remove(&self, topic: TopicRef<'_>) -> Made {
        let mut writing = self.state.writing.lock();
        let topic = self.find(topic).ok_or(TopicError::Unknown)?;
        if topic.events.is_some() {
            return Err(ReadOnly.into());
        }
        let id = topic.about().id;
        let appended = self
            .state
            .enter(&mut writing, record::TOPIC_GONE, &id.0, self.now_ms());
        let ticket = appended.map_err(|error| Storage::append(&self.state.journal, error))?;
        self.state.known.write().remove(id);
        let places = topic.slots.iter().map(|slot| {
            slot.close();
            slot.at
        });
        let places = places.collect();
        self.state.doomed.lock().push((ticket, places));
        drop(writing);
        self.forget_topic(&topic.about().name);
        self.state.platform.need_sweep();
        Ok((topic.about().clone(), self.state.durable(Some(ticket))))
    }
}

impl State {
    /// Returns a future of the ticket's durability; it is ready at once if there is no ticket.
    pub(super) fn durable(&self, ticket: Option<Ticket>) -> Durable {
        Durable::new(&self.journal, [None, ticket])
    }

    /// Appends a record to the catalogue. A deletion is written even on a full disk, because it
    /// frees space.
    pub(super) fn enter(
        &self,
        writing: &mut Writing,
        tag: u8,
        bytes: &[u8],
        now_ms: u64,
    ) -> Result<Ticket, AppendError> {
        let mut guard = self.journal.lock(writing.at.shard, now_ms);
        if tag == record::TOPIC_GONE {
            guard = guard.for_room();
        }
        let appended = guard.append(writing.at.stream, None, tag, bytes)?;
        writing.records += 1;
        Ok(appended.ticket)
    }
}
