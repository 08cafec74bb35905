//! State of topics in memory, and its loading at startup.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use journal::{AppendError, Journal, Round, ShardId, Ticket};
use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use platform::Platform;
use store::{AppendSize, Kind, Location, Store};
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
use super::places::streams_of;
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

    /// Adds or replaces a topic, with its partitions. It may have fewer of them than the catalogue
    /// says, and is used with those that it has.
    pub(super) fn put(&mut self, about: About, slots: Box<[Arc<Slot>]>) {
        self.catalogue.put(about.clone());
        let about = About {
            partitions: slots.len() as u32,
            ..about
        };
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

/// The table of topics, with the number of its changes.
#[derive(Default)]
pub(super) struct KnownTopics {
    table: RwLock<TopicTable>,
    changes: AtomicU64,
}

impl KnownTopics {
    pub(super) fn read(&self) -> RwLockReadGuard<'_, TopicTable> {
        self.table.read()
    }

    /// Locks the table to change it.
    pub(super) fn write(&self) -> RwLockWriteGuard<'_, TopicTable> {
        let table = self.table.write();
        self.changes.fetch_add(1, Ordering::Release);
        table
    }

    /// Returns the number of changes. Read it before a look-up: while it stays the same, a further
    /// look-up returns the same topic.
    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
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
    pub(super) known: KnownTopics,
    /// The stream of the catalogue. Lock it to change the catalogue.
    pub(super) writing: Mutex<Writing>,
    /// Topics with fewer partitions than the catalogue says: a crash has lost them, and they could
    /// not be created at the start. They are created later.
    pub(super) incomplete: Mutex<Vec<About>>,
    /// Partitions of deleted topics, to be emptied when the deletion is durable, never before.
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

/// The shard of the catalogue, on every node and for ever.
pub(super) const SHARD: ShardId = ShardId(0);

/// An offset after the end of any stream.
pub(super) const END: u64 = u64::MAX;

/// The catalogue as it is stored.
#[derive(Default)]
struct StoredCatalogue {
    topics: BTreeMap<TopicId, About>,
    /// Topics whose deletion is stored.
    gone: BTreeSet<TopicId>,
    /// Number of records.
    records: usize,
}

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
        let StoredCatalogue {
            mut topics,
            gone,
            records,
        } = catalogue(&store, at)?;
        let partitions = partitions_by_topic(&store);
        let mut state = Self {
            journal: store.journal.clone(),
            opened: (now_ms, clock.now_ns()),
            leading: Leading::of(&store.journal),
            known: KnownTopics::default(),
            writing: Mutex::new(Writing {
                at,
                records,
                partitions_made: partitions.len(),
            }),
            incomplete: Mutex::default(),
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
        while let Some((_, about)) = topics.pop_first() {
            let slots = state.unread_slots(&about, &partitions, now_ms);
            all.extend(slots.iter().cloned());
            if slots.len() < about.partitions as usize {
                state.incomplete.get_mut().push(about.clone());
            }
            known.put(about, slots);
        }
        loading::read_back(&state.journal, &all, &state.options, &state.leading)?;
        *state.known.write() = known;
        state.empty_deleted(&gone, &partitions, now_ms);
        Ok(state)
    }

    /// Returns the partitions of a topic, without their content. Creates those that are missing: the
    /// catalogue and the partitions are in different shards, and a crash may retain a topic that was
    /// never acknowledged without some of its partitions. Returns fewer if one cannot be created now.
    fn unread_slots(
        &mut self,
        about: &About,
        partitions: &HashMap<(TopicId, u32), Location>,
        now_ms: u64,
    ) -> Box<[Arc<Slot>]> {
        let round = self.journal.round();
        let mut slots = Vec::new();
        for index in 0..about.partitions {
            let at = match partitions.get(&(about.id, index)) {
                Some(at) => *at,
                None => match self.create_partition(&round, about.id, index, now_ms) {
                    Ok((at, _)) => {
                        self.writing.get_mut().partitions_made += 1;
                        at
                    }
                    Err(_) => break,
                },
            };
            let slot = Slot::unread(&self.journal, at, about, &self.options);
            slots.push(Arc::new(slot));
        }
        slots.into()
    }

    /// Creates the stream of a partition. Returns the ticket of its creation.
    pub(super) fn create_partition(
        &self,
        round: &Round,
        id: TopicId,
        index: u32,
        now_ms: u64,
    ) -> Result<(Location, Ticket), AppendError> {
        let name = stream_name(id, index);
        let (shard, names) = (self.store.shard_of(&name), [(Kind::Partition, &*name)]);
        let lock = |shard| round.lock(shard, now_ms);
        let locked = self
            .store
            .lock_or_create(shard, names, AppendSize::default(), lock);
        let (mut guard, [at]) = locked?;
        let mut ticket = guard.last_ticket(store::DIRECTORY);
        // An earlier creation that was never acknowledged may have left records.
        for stream in streams_of(at.stream) {
            ticket = ticket.max(guard.trim(stream, END)?);
        }
        Ok((at, ticket))
    }

    /// Empties the partitions of deleted topics that have records. A topic that the catalogue does
    /// not know was deleted long ago, or its creation was never committed; its deletion is written
    /// first. It cannot become known later: only this node writes the catalogue, and an id is used
    /// once.
    fn empty_deleted(
        &self,
        gone: &BTreeSet<TopicId>,
        partitions: &HashMap<(TopicId, u32), Location>,
        now_ms: u64,
    ) {
        let known = self.known.read();
        let mut deleted: BTreeMap<TopicId, Vec<Location>> = BTreeMap::new();
        for ((id, _), at) in partitions {
            if !known.by_id.contains_key(id) && self.has_records(*at) {
                deleted.entry(*id).or_default().push(*at);
            }
        }
        drop(known);
        for (id, mut places) in deleted {
            places.sort_unstable_by_key(|at| (at.shard, at.stream));
            if gone.contains(&id) {
                self.empty_now(&places, now_ms);
                continue;
            }
            let written = self.enter(&mut self.writing.lock(), record::TOPIC_GONE, &id.0, now_ms);
            // A deletion that cannot be written now is written at the next start.
            if let Ok(ticket) = written {
                self.doomed.lock().push((ticket, places));
            }
        }
    }

    fn has_records(&self, at: Location) -> bool {
        streams_of(at.stream).into_iter().any(|stream| {
            let state = self.journal.stream(at.shard, stream);
            state.is_some_and(|it| it.start < it.next)
        })
    }
}

/// Reads the catalogue.
fn catalogue(store: &Store, at: Location) -> Result<StoredCatalogue, OpenError> {
    let mut stored = StoredCatalogue::default();
    store.each_record::<OpenError>(at, |it| {
        stored.records += 1;
        match it.tag {
            record::TOPIC => {
                let topic = About::decode(&it.payload)?;
                stored.topics.insert(topic.id, topic);
            }
            record::TOPIC_GONE => {
                let id = <[u8; 16]>::try_from(&*it.payload);
                let id = id.map_err(|_| Malformed {
                    what: "id of a topic",
                })?;
                stored.topics.remove(&TopicId(id));
                stored.gone.insert(TopicId(id));
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
    Ok(stored)
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
