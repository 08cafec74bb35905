//! Creating, changing and deleting topics.

use std::sync::Arc;
use std::task::{Poll, ready};

use journal::{AppendError, Ticket};
use platform::{Durable, Pending};
use topics::{Alter, Catalogue, Topic as About, TopicError, TopicId, record};

use super::error::ReadOnly;
use super::error::{AdminError, Storage};
use super::partition::Slot;
use super::state::{State, Writing};
use crate::service::Topics;
use crate::topic::Topic;
use crate::topic::TopicRef;

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
        self.pending(self.make(topic, execution))
    }

    /// Deletes a topic and its records; answered when the deletion is durable. The disk space is
    /// freed a little later.
    pub fn delete(&self, topic: TopicRef<'_>) -> Pending<About, AdminError> {
        self.pending(self.remove(topic))
    }

    /// Raises the number of a topic's partitions to a total; answered when that is durable.
    pub fn set_partitions(
        &self,
        name: &str,
        partitions: i32,
        execution: Execution,
    ) -> Pending<About, AdminError> {
        let decide = |catalogue: &Catalogue| catalogue.decide_partitions(name, partitions);
        self.pending(self.change_topic(name, decide, execution))
    }

    /// Alters some entries of a topic's configuration (IncrementalAlterConfigs); answered when that
    /// is durable.
    pub fn alter(
        &self,
        name: &str,
        alters: &[(&str, Alter<'_>)],
        execution: Execution,
    ) -> Pending<About, AdminError> {
        let decide = |it: &Catalogue| it.decide_alter(name, alters);
        self.pending(self.change_topic(name, decide, execution))
    }

    /// Replaces a topic's configuration by these entries (AlterConfigs); answered when that is
    /// durable.
    pub fn configure(
        &self,
        name: &str,
        configs: &[(&str, Option<&str>)],
        execution: Execution,
    ) -> Pending<About, AdminError> {
        let decide = |it: &Catalogue| it.decide_replace(name, configs);
        self.pending(self.change_topic(name, decide, execution))
    }
}

/// The topic after a change, and the writes that its answer waits for.
type Made = Result<(About, Writes), AdminError>;

/// The writes of a change.
#[derive(Default)]
struct Writes {
    /// The creation of the partitions: the last ticket of each shard.
    partitions: Vec<Ticket>,
    /// The record in the catalogue, without which the change has no effect.
    catalogue: Option<Ticket>,
}

impl Topics {
    /// Returns the answer to a change, which waits for its writes.
    fn pending(&self, made: Made) -> Pending<About, AdminError> {
        let (about, writes) = match made {
            Ok(made) => made,
            Err(error) => return Pending::known(Err(error)),
        };
        let Writes {
            partitions,
            catalogue,
        } = writes;
        if partitions.is_empty() {
            return Pending::after(self.state.durable(catalogue), about);
        }
        let partitions = partitions.into_iter().map(Some);
        let journal = &self.state.journal;
        let writes: Vec<_> = partitions
            .map(|it| Durable::new(journal, [it, catalogue]))
            .collect();
        Pending::steps(move |waker| {
            for write in &writes {
                ready!(write.poll_durable(waker))?;
            }
            Poll::Ready(Ok(about.clone()))
        })
    }

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
            return Ok((about, Writes::default()));
        }
        let refused = |error| Storage::append(&self.state.journal, error);
        let now_ms = self.now_ms();
        let round = self.state.journal.round();
        let (mut places, mut tickets) = (Vec::new(), Vec::new());
        for index in old.len() as u32..about.partitions {
            let created = self.state.create_partition(&round, about.id, index, now_ms);
            let (at, ticket) = created.map_err(refused)?;
            places.push(at);
            tickets.push(ticket);
        }
        let mut bytes = Vec::new();
        about.encode(&mut bytes);
        let appended = self.state.enter(writing, record::TOPIC, &bytes, now_ms);
        drop(round);
        let ticket = appended.map_err(refused)?;
        writing.partitions_made = made;
        let new = places.into_iter().map(|at| {
            let State {
                journal,
                options,
                leading,
                ..
            } = &*self.state;
            let slot = Slot::new(journal, at, &about, options, leading, ticket);
            Arc::new(slot)
        });
        let slots: Box<[_]> = old.iter().cloned().chain(new).collect();
        for slot in &slots {
            slot.configure(&about.config);
        }
        self.state.known.write().put(about.clone(), slots);
        self.state.platform.need_sweep();
        let writes = Writes {
            partitions: newest_by_shard(tickets),
            catalogue: Some(ticket),
        };
        Ok((about, writes))
    }

    /// Creates partitions that topics lack; returns whether some still cannot be created.
    pub(crate) fn complete_topics(&self) -> bool {
        let mut incomplete = self.state.incomplete.lock();
        if incomplete.is_empty() {
            return false;
        }
        let mut writing = self.state.writing.lock();
        incomplete.retain(|about| {
            let topic = self.find(TopicRef::Id(about.id));
            let is_incomplete = |it: &Topic| it.slots.len() < about.partitions as usize;
            // The configuration may have been changed meanwhile, and the change has created them.
            topic.as_deref().is_some_and(is_incomplete)
                && self
                    .write(&mut writing, about.clone(), Execution::Do)
                    .is_err()
        });
        !incomplete.is_empty()
    }

    /// Checks the limit on partitions that were ever created.
    fn check_names(&self, count: usize) -> Result<(), AdminError> {
        let checked = self.state.store.check_partitions(count);
        checked.map_err(|limit| AdminError::Names { limit })
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
        // A partition that is closed is known to be doomed.
        let mut doomed = self.state.doomed.lock();
        let places = topic.slots.iter().map(|slot| {
            slot.close();
            slot.at
        });
        doomed.push((ticket, places.collect()));
        drop(doomed);
        drop(writing);
        self.forget_topic(&topic.about().name);
        self.state.platform.need_sweep();
        let writes = Writes {
            catalogue: Some(ticket),
            ..Writes::default()
        };
        Ok((topic.about().clone(), writes))
    }
}

/// Returns the last ticket of each shard: it becomes durable after the shard's other ones.
fn newest_by_shard(mut tickets: Vec<Ticket>) -> Vec<Ticket> {
    tickets.sort_unstable_by(|one, other| other.cmp(one));
    tickets.dedup_by_key(|it| it.shard);
    tickets
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
