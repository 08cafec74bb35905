//! Consumer groups without members: commits of one offset each, over the Kafka protocol.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use bench::workload::node::Node;
use bench::workload::role::Failure;
use bench_kafka::session::{Session, error_name};
use bench_kafka::topic::{self, TopicSettings};
use kafka::offset_commit;

use super::deadline::Deadline;
use super::load::{Amount, Schedule};

/// Connections, each with one commit in flight.
const CONNECTIONS: usize = 16;

/// The topic whose offsets are committed.
const TOPIC: &str = "growth";

/// Connections that commit offsets of groups.
pub(super) struct Groups {
    sessions: Vec<Session>,
    items: u64,
    /// Offset of the next commit, so that each differs from the one before.
    offset: i64,
}

impl Groups {
    /// Connects, and creates the topic.
    pub(super) fn open(node: &Node, items: u64) -> Result<Self, Failure> {
        let address = node.kafka_address();
        let address = address.ok_or("the node has no Kafka listener")?;
        let sessions = (0..CONNECTIONS).map(|_| Session::open(address));
        let mut sessions = sessions.collect::<Result<Vec<_>, _>>()?;
        let settings = TopicSettings {
            partitions: 1,
            replicas: 1,
            configs: &[],
        };
        topic::create(&mut sessions[0], TOPIC, &settings)?;
        Ok(Self {
            sessions,
            items,
            offset: 0,
        })
    }

    /// Commits offsets. Returns their number.
    pub(super) fn send(&mut self, amount: Amount, deadline: Deadline) -> Result<u64, Failure> {
        let schedule = Schedule::new(amount, self.items, deadline);
        let (next, done) = (AtomicU64::new(0), AtomicU64::new(0));
        let offset = self.offset;
        self.offset += 1;
        thread::scope(|scope| {
            let (next, done) = (&next, &done);
            let share = |session: &mut Session| -> Result<(), Failure> {
                while let Some(item) = schedule.item(next.fetch_add(1, Ordering::Relaxed)) {
                    commit(session, item, offset)?;
                    done.fetch_add(1, Ordering::Relaxed);
                }
                Ok(())
            };
            let threads: Vec<_> = self
                .sessions
                .iter_mut()
                .map(|session| scope.spawn(move || share(session)))
                .collect();
            for thread in threads {
                let ended = thread.join();
                ended.map_err(|_| "a connection's thread panicked")??;
            }
            Ok::<_, Failure>(())
        })?;
        Ok(done.into_inner())
    }
}

fn commit(session: &mut Session, group: u64, offset: i64) -> Result<(), Failure> {
    let partition = offset_commit::Partition {
        partition_index: 0,
        committed_offset: offset,
        committed_metadata: Some(String::new()),
        ..offset_commit::Partition::default()
    };
    let request = offset_commit::Request {
        group_id: format!("growth-{group}"),
        topics: vec![offset_commit::Topic {
            name: TOPIC.to_owned(),
            partitions: vec![partition],
        }],
        ..offset_commit::Request::default()
    };
    let answer = session.ask(&request)?;
    let mut codes = answer.topics.iter().flat_map(|topic| &topic.partitions);
    match codes.find(|one| one.error_code.is_error()) {
        Some(one) => {
            Err(format!("the node rejects an offset: {}", error_name(one.error_code)).into())
        }
        None => Ok(()),
    }
}
