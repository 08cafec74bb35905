//! Making, changing and deleting topics.

use std::sync::Arc;

use ::topics::{Alter, Catalogue, Topic as About, TopicError, TopicId, record};
use journal::{AppendError, Ticket};

use super::error::{AdminError, Storage};
use super::events::ReadOnly;
use super::partition::Slot;
use super::pending::Pending;
use super::state::{State, Topic, Writing, stream_name};
use super::{TopicRef, Topics};
use crate::durable::Durable;
use crate::store::{Kind, Location};

/// A topic that is to be made.
#[derive(Clone, Copy, Debug)]
pub struct NewTopic<'a> {
    /// What clients call it.
    pub name: &'a str,
    /// How many partitions it has; as many as the node's options say if nobody does.
    pub partitions: Option<i32>,
    /// What is configured otherwise than by default; `None` for the default.
    pub configs: &'a [(&'a str, Option<&'a str>)],
}

/// Whether something is done, or only looked at whether it could be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Execution {
    /// It is done.
    Do,
    /// It is not done: the answer is what it would be (Kafka's `validate_only`).
    Try,
}

impl Topics {
    /// All topics, by name.
    pub fn list(&self) -> Vec<Arc<Topic>> {
        let mut all = self.state.known.read().list();
        let events = self.list_events();
        if !events.is_empty() {
            all.extend(events);
            all.sort_by(|one, other| one.about().name.cmp(&other.about().name));
        }
        all
    }

    /// A topic that is there.
    pub fn find(&self, topic: TopicRef<'_>) -> Option<Arc<Topic>> {
        let found = self.state.known.read().find(topic);
        found.or_else(|| self.find_events(topic))
    }

    /// A topic that is made if there is none, where the options allow that. It may be used at once:
    /// whatever is told of it waits until it is on disk.
    pub fn find_or_create(&self, name: &str) -> Result<Arc<Topic>, AdminError> {
        if let Some(found) = self.find(TopicRef::Name(name)) {
            return Ok(found);
        }
        // What is to be read may come to be; what is to be made is refused.
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
            // Somebody else was faster.
            Err(AdminError::Topic(TopicError::Exists { .. })) => {
                let found = self.find(TopicRef::Name(name));
                found.ok_or_else(|| TopicError::Unknown.into())
            }
            Err(error) => Err(error),
        }
    }

    /// Makes a topic; answered when it is on disk.
    pub fn create(
        &self,
        topic: &NewTopic<'_>,
        execution: Execution,
    ) -> Pending<Result<About, AdminError>> {
        told(self.make(topic, execution))
    }

    /// Deletes a topic and everything in it; answered when that is on disk. The room on the disk comes
    /// back a little later.
    pub fn delete(&self, topic: TopicRef<'_>) -> Pending<Result<About, AdminError>> {
        told(self.remove(topic))
    }

    /// Gives a topic so many partitions in all; answered when that is on disk.
    pub fn set_partitions(
        &self,
        name: &str,
        partitions: i32,
        execution: Execution,
    ) -> Pending<Result<About, AdminError>> {
        let decide = |catalogue: &Catalogue| catalogue.decide_partitions(name, partitions);
        told(self.change_topic(name, decide, execution))
    }

    /// Alters some values of a topic's configuration (IncrementalAlterConfigs); answered when that is
    /// on disk.
    pub fn alter(
        &self,
        name: &str,
        alters: &[(&str, Alter<'_>)],
        execution: Execution,
    ) -> Pending<Result<About, AdminError>> {
        told(self.change_topic(name, |it| it.decide_alter(name, alters), execution))
    }

    /// Sets these values of a topic's configuration and no others (AlterConfigs); answered when that
    /// is on disk.
    pub fn configure(
        &self,
        name: &str,
        configs: &[(&str, Option<&str>)],
        execution: Execution,
    ) -> Pending<Result<About, AdminError>> {
        told(self.change_topic(name, |it| it.decide_replace(name, configs), execution))
    }
}

/// What was decided about a topic, and what must be durable before it is told.
type Made = Result<(About, Durable), AdminError>;

fn told(made: Made) -> Pending<Result<About, AdminError>> {
    match made {
        Ok((about, durable)) => Pending::after(durable, Ok(about)),
        Err(error) => Pending::now(Err(error)),
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

    /// Writes a topic and takes it; with streams for the partitions that are new.
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
        self.inner.need_sweep();
        Ok((about, self.state.durable(Some(ticket))))
    }

    /// Whether there may have been so many partitions.
    fn check_names(&self, count: usize) -> Result<(), AdminError> {
        let checked = self
            .inner
            .store
            .as_ref()
            .map(|it| it.check_partitions(count));
        let checked = checked.unwrap_or(Ok(()));
        checked.map_err(|limit| AdminError::Names { limit })
    }

    /// The stream of a new partition.
    fn place(&self, id: TopicId, index: u32) -> Result<Location, AppendError> {
        let store = self.inner.store.as_ref().ok_or(AppendError::Failed)?;
        let name = stream_name(id, index);
        store.find_or_create(Kind::Partition, &name, self.now_ms())
    }

    /// An id that no topic has had.
    fn fresh_id(&self) -> TopicId {
        let entropy = &self.inner.ports.entropy;
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
        self.inner.need_sweep();
        Ok((topic.about().clone(), self.state.durable(Some(ticket))))
    }
}

impl State {
    /// Ends when that is durable; at once if there is nothing.
    pub(super) fn durable(&self, ticket: Option<Ticket>) -> Durable {
        Durable::new(&self.journal, [ticket, None])
    }

    /// Appends a record to the catalogue. What is gone gives room: that is written on a full disk, too.
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
