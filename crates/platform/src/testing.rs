//! Fixtures for tests of services: a manual clock, counted numbers instead of random ones, and a
//! journal on a simulated disk whose writer and compaction are stepped by the test.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use journal::disk::SimulatedDisk;
use journal::{Background, Journal, Line, OpenError, ShardId};

use crate::clock::{Clock, Entropy, Ports};
use crate::membership::{
    Alone, CallError, CallFuture, Member, Membership, PeerState, ShardReplication, ShardRole,
};
use crate::offload::Inline;
use crate::platform::Platform;

/// A manual clock. Its wall clock changes only if it is set.
#[derive(Debug, Default)]
pub struct ManualClock {
    now_ns: AtomicU64,
    unix_ms: AtomicU64,
}

impl ManualClock {
    /// Creates a clock whose wall clock shows `unix_ms`.
    pub fn at(unix_ms: u64) -> Arc<Self> {
        let clock = Self::default();
        clock.unix_ms.store(unix_ms, Ordering::Relaxed);
        Arc::new(clock)
    }

    /// Advances the clock, but not the wall clock.
    pub fn pass_ns(&self, ns: u64) {
        self.now_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// Steps the wall clock.
    pub fn step_wall_ms(&self, step_ms: i64) {
        let unix_ms = self.unix_ms.load(Ordering::Relaxed);
        let stepped = unix_ms.saturating_add_signed(step_ms);
        self.unix_ms.store(stepped, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now_ns(&self) -> u64 {
        self.now_ns.load(Ordering::Relaxed)
    }

    fn unix_ms(&self) -> u64 {
        self.unix_ms.load(Ordering::Relaxed)
    }
}

/// Entropy that counts in steps of 2^16.
#[derive(Debug, Default)]
struct CountingEntropy(AtomicU64);

impl Entropy for CountingEntropy {
    fn next_u64(&self) -> u64 {
        self.0.fetch_add(1 << 16, Ordering::Relaxed)
    }
}

/// Returns ports with that clock, and numbers from `first` on instead of random ones.
pub fn ports(clock: Arc<dyn Clock>, first: u64) -> Ports {
    Ports {
        clock,
        entropy: Arc::new(CountingEntropy(AtomicU64::new(first))),
    }
}

/// Returns a platform with that clock, numbers from 0 on, and work that runs inline.
pub fn platform(clock: Arc<dyn Clock>) -> Arc<Platform> {
    Arc::new(Platform::new(
        ports(clock, 0),
        Arc::new(Inline),
        Arc::new(Alone::new(1)),
    ))
}

/// The membership of node 1 of three. Node `id` has the Kafka address `node-ID:9092`, the HTTP address
/// `node-ID:7401` and the native address `node-ID:7400`. The leader is the same in all shards, and
/// node 3 is behind.
#[derive(Debug)]
pub struct ThreeMembers {
    cluster_id: u64,
    members: Arc<[Member]>,
    /// The leader; 0 while it is unknown.
    leader: AtomicU64,
}

impl ThreeMembers {
    /// Creates the membership of a cluster that node 1 leads.
    pub fn new(cluster_id: u64) -> Self {
        let member = |id: u64| Member {
            id,
            name: format!("node-{id}"),
            kafka: Some((format!("node-{id}"), 9092)),
            http: Some(format!("node-{id}:7401")),
            native: Some(format!("node-{id}:7400")),
        };
        Self {
            cluster_id,
            members: (1..=3).map(member).collect(),
            leader: AtomicU64::new(1),
        }
    }

    /// Changes the leader of all shards.
    pub fn set_leader(&self, leader: Option<u64>) {
        self.leader.store(leader.unwrap_or(0), Ordering::Relaxed);
    }
}

impl Membership for ThreeMembers {
    fn own_id(&self) -> u64 {
        1
    }

    fn is_clustered(&self) -> bool {
        true
    }

    fn cluster_id(&self) -> u64 {
        self.cluster_id
    }

    fn members(&self) -> Arc<[Member]> {
        self.members.clone()
    }

    fn shard(&self, _: ShardId) -> ShardRole {
        let leader = self.leader.load(Ordering::Relaxed);
        ShardRole {
            leader: Some(leader).filter(|it| *it > 0),
            term: 5,
            replicas: Arc::new([1, 2, 3]),
            in_sync: Arc::new([1, 2]),
        }
    }

    fn replication(&self) -> Vec<ShardReplication> {
        Vec::new()
    }

    fn peers(&self) -> Vec<PeerState> {
        Vec::new()
    }

    fn is_clock_off(&self) -> bool {
        false
    }

    fn call(&self, _: u64, _: Bytes, _: Duration) -> CallFuture {
        Box::pin(std::future::ready(Err(CallError::NotSent)))
    }
}

/// Opens a journal on a simulated disk. `starts` distinguishes the starts of a node.
pub fn journal_on(
    disk: &SimulatedDisk,
    starts: u64,
) -> Result<(Arc<Journal>, Line, Background), OpenError> {
    let options = journal::Options {
        journal_id: 1,
        entropy: starts,
        segment_size: 1 << 20,
        reserve_size: 0,
        ..journal::Options::default()
    };
    let opened = Journal::open_stepped(Arc::new(disk.clone()), &options)?;
    Ok((Arc::new(opened.journal), opened.line, opened.background))
}
