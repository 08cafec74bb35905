//! State of topics in memory, and its loading at startup.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use journal::{Journal, ShardId, Ticket};
use parking_lot::{Mutex, RwLock};
use platform::Platform;
use store::{Kind, Location, Store};
use topics::record::{self, Malformed};
use topics::{Catalogue, Room, Topic as About, TopicId};

use super::compacting::{Compaction, Failures};
use super::coordinating::Coordinating;
use super::counts::Counts;
use super::error::OpenError;
use super::event_partitions::EventFeed;
use super::events::EventTopics;
use super::options::Options;
use super::partition::{Leading, Rules, Slot};
use super::records::Unpacked;
use super::tend::Looks;
use super::topic::{Topic, TopicRef};
use super::users::UserSessions;
use super::{groups, loading, users};

/// All topics. The catalogue and the maps always agree.
#[derive(Default)]
pub(super) struct TopicTable {
    pub(super) catalogue: Catalogue,
    by_name: BTreeMap<String, Arc<Topic>>,
    by_id: HashMap<TopicId, Arc<Topic>>,
}

impl TopicTable {
    pub(super) fn list(&self) -> Vec<Arc<Topic>> {
        self.by_name.values().cloned().collect()
    }

    pub(super) fn find(&self, topic: TopicRef<'_>) -> Option<Arc<Topic>> {
        match topic {
            TopicRef::Name(name) => self.by_name.get(name).cloned(),
            TopicRef::Id(id) => self.by_id.get(&id).cloned(),
        }
    }

    /// Adds or replaces a topic, with its partitions.
    pub(super) fn put(&mut self, about: About, slots: Box<[Arc<Slot>]>) {
        self.catalogue.put(about.clone());
        let (name, id) = (about.name.clone(), about.id);
        let rules = Rules::of(&about.config);
        let topic = Arc::new(Topic {
            about,
            rules,
            slots,
            events: None,
        });
        self.by_name.insert(name, topic.clone());
        self.by_id.insert(id, topic);
    }

    /// Removes a topic.
    pub(super) fn remove(&mut self, id: TopicId) -> Option<Arc<Topic>> {
        self.catalogue.remove(id);
        let topic = self.by_id.remove(&id)?;
        self.by_name.remove(&topic.about.name);
        Some(topic)
    }
}

/// The state of the topics.
pub(super) struct State {
    pub(super) platform: Arc<Platform>,
    pub(super) store: Arc<Store>,
    pub(super) sessions: Arc<dyn UserSessions>,
    pub(super) options: Options,
    pub(super) journal: Arc<Journal>,
    /// The time at which the topics were opened: on the wall clock in milliseconds, and on the
    /// steady clock in nanoseconds.
    pub(super) opened: (u64, u64),
    pub(super) leading: Leading,
    pub(super) known: RwLock<TopicTable>,
    /// The stream of the catalogue, in the same shard as the directory of streams, so that the
    /// partitions of a durable topic are durable too. Lock it to change the catalogue.
    pub(super) writing: Mutex<Writing>,
    /// Streams of deleted topics, to be trimmed when the deletion is durable.
    pub(super) doomed: Mutex<Vec<(Ticket, Vec<Location>)>>,
    /// One share per shard of the journal.
    pub(super) groups: Box<[groups::Share]>,
    pub(super) transactions: Mutex<Coordinating>,
    pub(super) users: Mutex<users::UserStore>,
    pub(super) counts: Counts,
    pub(super) events: EventTopics,
    pub(super) looks: Mutex<Looks>,
    /// The compaction in progress, and whether a thread is running it now.
    pub(super) compaction: Mutex<Option<Compaction>>,
    pub(super) is_compacting: AtomicBool,
    /// Partitions whose compaction has failed.
    pub(super) compaction_failures: Mutex<Failures>,
    /// The memory of batches that are unpacked for readers.
    pub(super) unpacked: Arc<Unpacked>,
}

/// The catalogue's stream.
pub(super) struct Writing {
    pub(super) at: Location,
    /// Records since it was last rewritten.
    pub(super) records: usize,
    /// Number of partitions that were ever created, including those of deleted topics.
    pub(super) partitions_made: usize,
}

/// The shard of the catalogue, equal to that of the directory.
const SHARD: ShardId = store::DIRECTORY.0;

impl State {
    /// Loads the stored topics.
    pub(super) fn open(
        platform: Arc<Platform>,
        store: Arc<Store>,
        options: Options,
        feed: Option<Arc<dyn EventFeed>>,
        sessions: Arc<dyn UserSessions>,
    ) -> Result<Self, OpenError> {
        let clock = &platform.ports.clock;
        let now_ms = clock.unix_ms();
        let find = |name| store.find_or_create_in(Kind::Topics, name, SHARD, now_ms);
        let at = find("catalogue")?;
        let (mut catalogue, records) = catalogue(&store, at)?;
        let partitions = partitions_by_topic(&store);
        let state = Self {
            journal: store.journal.clone(),
            opened: (now_ms, clock.now_ns()),
            leading: Leading::of(&store.journal),
            known: RwLock::default(),
            writing: Mutex::new(Writing {
                at,
                records,
                partitions_made: partitions.len(),
            }),
            doomed: Mutex::default(),
            groups: groups::open(&store, &options, now_ms)?,
            transactions: Mutex::new(Coordinating::open(&store, &options, now_ms)?),
            users: Mutex::new(users::UserStore::open(&store, now_ms)?),
            counts: Counts::default(),
            events: EventTopics::new(feed),
            looks: Mutex::default(),
            compaction: Mutex::default(),
            is_compacting: AtomicBool::new(false),
            compaction_failures: Mutex::default(),
            unpacked: Unpacked::new(options.unpacked_size_max),
            options,
            store,
            sessions,
            platform,
        };
        let mut known = TopicTable {
            catalogue: Catalogue::new(Room {
                partitions_max: state.options.partitions_max,
            }),
            ..TopicTable::default()
        };
        let mut all = Vec::new();
        while let Some((_, about)) = catalogue.pop_first() {
            let slots = state.unread_slots(&about, &partitions)?;
            all.extend(slots.iter().cloned());
            known.put(about, slots);
        }
        loading::read_back(&state.journal, &all, &state.options, state.leading)?;
        let orphans = orphans(&known, &partitions);
        *state.known.write() = known;
        state.empty_now(&orphans, now_ms);
        Ok(state)
    }

    /// Returns the partitions of a topic, without their content.
    fn unread_slots(
        &self,
        about: &About,
        partitions: &HashMap<(TopicId, u32), Location>,
    ) -> Result<Box<[Arc<Slot>]>, OpenError> {
        let slot = |index| {
            let at = partitions.get(&(about.id, index)).copied();
            let at = at.ok_or(Malformed {
                what: "topic without its partitions",
            })?;
            let slot = Slot::unread(&self.journal, at, about, &self.options);
            Ok(Arc::new(slot))
        };
        (0..about.partitions).map(slot).collect()
    }
}

/// Reads the topics of the catalogue; also returns the number of its records.
fn catalogue(store: &Store, at: Location) -> Result<(BTreeMap<TopicId, About>, usize), OpenError> {
    let mut topics = BTreeMap::new();
    let mut records = 0;
    store.each_record::<OpenError>(at, |it| {
        records += 1;
        match it.tag {
            record::TOPIC => {
                let topic = About::decode(&it.payload)?;
                topics.insert(topic.id, topic);
            }
            record::TOPIC_GONE => {
                let id = <[u8; 16]>::try_from(&*it.payload);
                let id = id.map_err(|_| Malformed {
                    what: "id of a topic",
                })?;
                topics.remove(&TopicId(id));
            }
            _ => {
                return Err(Malformed {
                    what: "record of the catalogue of topics",
                }
                .into());
            }
        }
        Ok(())
    })?;
    Ok((topics, records))
}

/// Returns the name of a partition's stream.
pub(super) fn stream_name(id: TopicId, index: u32) -> String {
    format!("{id:?}/{index}")
}

fn partitions_by_topic(store: &Store) -> HashMap<(TopicId, u32), Location> {
    let all = store.all(Kind::Partition).into_iter();
    let named = all.filter_map(|(name, at)| {
        let (id, index) = name.split_once('/')?;
        let id = u128::from_str_radix(id, 16).ok()?;
        Some(((TopicId(id.to_be_bytes()), index.parse().ok()?), at))
    });
    named.collect()
}

/// Returns the streams whose topic was deleted.
fn orphans(known: &TopicTable, partitions: &HashMap<(TopicId, u32), Location>) -> Vec<Location> {
    let orphans = partitions.iter().filter(|((id, index), _)| {
        let topic = known.by_id.get(id);
        topic.is_none_or(|topic| *index >= topic.about.partitions)
    });
    let orphans: BTreeSet<_> = orphans.map(|(_, at)| (at.shard, at.stream)).collect();
    let at = |(shard, stream)| Location { shard, stream };
    orphans.into_iter().map(at).collect()
}
