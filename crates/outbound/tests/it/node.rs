//! A node in this process, with its journal in a directory, and an archive.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use conversation_service::archive::ArchiveView;
use conversation_service::feed::{ArchivedRetention, Partitions};
use conversation_service::{Batch, NewMessage, Page, RetractExtent, RetractRequest, Side};
use journal::Journal;
use journal::disk::RealDisk;
use model::{ErrorCode, Name};
use node::{Parts, StorageParts};
use outbound::archive::{Archive, Options};
use platform::{Clock, Entropy, Ports};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::postgres::{Postgres, eventually};

struct World(Instant);

impl Clock for World {
    fn now_ns(&self) -> u64 {
        self.0.elapsed().as_nanos() as u64
    }

    fn unix_ms(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.unwrap().as_millis() as u64
    }
}

impl Entropy for World {
    fn next_u64(&self) -> u64 {
        fastrand::u64(..)
    }
}

/// Directory of nodes with the same history, which run one after the other.
pub(crate) struct Home {
    dir: TempDir,
    journal_id: u64,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self::of(fastrand::u64(..))
    }

    pub(crate) fn of(journal_id: u64) -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            journal_id,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

pub(crate) fn options(url: String) -> Options {
    Options {
        url,
        interval: Duration::from_millis(10),
        statement_timeout: Duration::from_millis(500),
        read_timeout: Duration::from_millis(500),
        keep: ArchivedRetention::default(),
    }
}

/// A node. When it is dropped, events not yet archived stay unarchived.
pub(crate) struct Node {
    pub(crate) handle: node::Node,
    /// Stops the archive task.
    _runtime: Runtime,
}

impl Node {
    pub(crate) fn start(home: &Home, options: Options) -> Self {
        let world = Arc::new(World(Instant::now()));
        let ports = Ports {
            clock: world.clone(),
            entropy: world.clone(),
        };
        let journal_options = journal::Options {
            journal_id: home.journal_id,
            entropy: fastrand::u64(..),
            segment_size: 4 << 20,
            reserve_size: 0,
            ..journal::Options::default()
        };
        let disk = Arc::new(RealDisk::new(home.dir.path().join("journal")));
        let (journal, _) = Journal::open(disk, &journal_options, move || world.unix_ms()).unwrap();
        let archive = Archive::new(options).unwrap();
        let storage = StorageParts {
            archive: Some(archive.reader()),
            ..StorageParts::new(Arc::new(journal))
        };
        let handle = node::Node::open(Parts::with_storage(ports, storage)).unwrap();
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().build().unwrap();
        runtime.spawn(archive.run(handle.clone()));
        Self {
            handle,
            _runtime: runtime,
        }
    }

    /// Starts a node with an archive in the database.
    pub(crate) fn archived(home: &Home, postgres: &Postgres) -> Self {
        Self::start(home, options(postgres.url()))
    }

    /// Appends messages with these parts and waits until they are on disk.
    pub(crate) fn append_parts(&self, name: &str, parts: &[&str]) {
        for batch in parts.chunks(200) {
            let messages: Vec<_> = batch
                .iter()
                .map(|parts| NewMessage {
                    id: None,
                    role: "user",
                    from: "alice",
                    tokens: None,
                    facts: &[],
                    parts: parts.as_bytes(),
                    metadata: b"{\"k\":1}",
                })
                .collect();
            let batch = Batch {
                expect: None,
                messages: &messages,
            };
            let conversations = self.handle.conversations().unwrap();
            let pending = conversations.append(&named(name), batch).unwrap();
            wait(pending).unwrap();
        }
    }

    /// Appends many small messages.
    pub(crate) fn append_many(&self, name: &str, count: usize) {
        let parts = vec![r#"[{"type":"text","text":"Hi"}]"#; count];
        self.append_parts(name, &parts);
    }

    pub(crate) fn erase(&self, name: &str) {
        let conversations = self.handle.conversations().unwrap();
        wait(conversations.delete(&named(name)).unwrap()).unwrap();
    }

    pub(crate) fn clear(&self, name: &str) {
        let conversations = self.handle.conversations().unwrap();
        wait(conversations.clear(&named(name), None).unwrap()).unwrap();
    }

    pub(crate) fn retract(&self, name: &str, expect: u64, count: u64) {
        let conversations = self.handle.conversations().unwrap();
        let request = RetractRequest {
            id: None,
            expect,
            extent: RetractExtent::Newest(count),
        };
        wait(conversations.retract(&named(name), request).unwrap()).unwrap();
    }

    /// Reads a page: sequence number and parts of each message.
    pub(crate) fn read(
        &self,
        name: &str,
        side: Side,
        limit: usize,
    ) -> Result<Vec<(u64, Vec<u8>)>, ErrorCode> {
        let page = Page {
            side,
            limit,
            bytes: 8 << 20,
        };
        let conversations = self.handle.conversations().unwrap();
        let read = conversations.read(&named(name), page);
        let read = read.map_err(|refusal| refusal.code())?;
        let messages = read.messages().map(|message| {
            let message = message.unwrap();
            (message.seq, message.view.parts.to_vec())
        });
        Ok(messages.collect())
    }

    pub(crate) fn archive(&self) -> ArchiveView {
        self.handle.conversations().unwrap().archive().unwrap()
    }

    /// Waits until all durable events are in the archive.
    #[track_caller]
    pub(crate) fn settle(&self, postgres: &Postgres) {
        let conversations = self.handle.conversations().unwrap();
        let mut partitions = Partitions::default();
        conversations.find_partitions(&mut partitions);
        let ends = partitions
            .found
            .iter()
            .map(|it| conversations.reach(it).end);
        let wanted = ends.sum::<u64>().to_string();
        let sql = format!(
            "SELECT sum(next) FROM telpher.marks WHERE journal = {}",
            conversations.journal_id() as i64
        );
        eventually("the archive has everything", || {
            postgres.try_sql(&sql).as_ref() == Ok(&wanted)
        });
    }
}

pub(crate) fn named(name: &str) -> Name {
    Name::parse(name).unwrap()
}

fn wait<T>(
    pending: conversation_service::Pending<T>,
) -> Result<T, conversation_service::ConversationError> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.build().unwrap().block_on(pending)
}
