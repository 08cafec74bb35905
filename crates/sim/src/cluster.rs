//! Three nodes of a cluster, each with its topics and its Kafka listener while it leads, on simulated
//! disks and a simulated network.

mod disk;
mod listeners;
mod running;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use journal::disk::SimulatedDisk;
use net::Stream;

use self::disk::{DiskState, SYNC};
use self::listeners::{Listeners, host};
use self::running::{Reports, RunningMember, Start};
use crate::Network;
use crate::world::SimClock;

/// Nodes of the cluster.
const NODES: u64 = 3;

/// Limit on the time in which the nodes agree when nothing fails any more.
const AGREE_MAX: Duration = Duration::from_secs(60);

/// Pause between two looks at nodes that do not agree.
const AGREE_POLL: Duration = Duration::from_millis(50);

/// A cluster of three nodes, with the ids from 1 on.
pub struct Cluster {
    dice: fastrand::Rng,
    listeners: Listeners,
    members: Vec<Member>,
}

/// A node across restarts.
struct Member {
    id: u64,
    disk: SimulatedDisk,
    /// The clock of the machine, which goes on while the node does not run.
    clock: Arc<SimClock>,
    reports: Reports,
    starts: u64,
    /// The disk has been full, failing or hanging since the node was started.
    had_disk_fault: bool,
    running: Option<RunningMember>,
}

/// Opens connections of one client to the nodes. Cheap to clone.
#[derive(Clone)]
pub struct ClusterClient {
    host: &'static str,
    listeners: Listeners,
}

impl ClusterClient {
    /// Connects to the Kafka listener of a node. If another node leads, the connection is passed on to
    /// it.
    ///
    /// # Errors
    ///
    /// The node does not run, or knows no leader that can be reached.
    pub async fn kafka(&self, node: u64) -> io::Result<Stream> {
        self.listeners.connect(self.host, node).await
    }
}

impl Cluster {
    /// Begins a cluster on empty disks. Everything about it follows from `seed`.
    pub async fn start(seed: u64, network: &Network) -> Cluster {
        let mut dice = fastrand::Rng::with_seed(seed);
        let member = |id| Member {
            id,
            disk: SimulatedDisk::new(dice.u64(..)),
            clock: Arc::new(SimClock::start()),
            reports: Reports::default(),
            starts: 0,
            had_disk_fault: false,
            running: None,
        };
        let members = (1..=NODES).map(member).collect();
        let mut cluster = Cluster {
            listeners: Listeners::new(network.clone()),
            members,
            dice,
        };
        for id in cluster.ids() {
            cluster.open(id).await;
        }
        cluster
    }

    /// Returns the ids of the nodes.
    pub fn ids(&self) -> Vec<u64> {
        self.members.iter().map(|it| it.id).collect()
    }

    fn member(&mut self, id: u64) -> &mut Member {
        &mut self.members[id as usize - 1]
    }

    fn running(&self) -> impl Iterator<Item = (u64, &RunningMember)> {
        let members = self.members.iter();
        members.filter_map(|it| Some((it.id, it.running.as_ref()?)))
    }

    /// Starts a node on its disk, unless it runs. The disk is repaired before.
    pub async fn open(&mut self, id: u64) {
        let seed = self.dice.u64(..);
        let founders = self.ids();
        let listeners = self.listeners.clone();
        let member = self.member(id);
        if member.running.is_some() {
            return;
        }
        disk::repair(&member.disk);
        member.had_disk_fault = false;
        let start = Start {
            id,
            seed,
            clock: member.clock.clone(),
            reports: member.reports.clone(),
            founders: (member.starts == 0).then_some(founders),
        };
        member.starts += 1;
        member.running = Some(RunningMember::start(start, &member.disk, listeners).await);
    }

    /// Ends a node without warning. A power failure also loses unsynced data.
    pub fn stop(&mut self, id: u64, is_power_failure: bool) {
        let mut dice = self.dice.fork();
        let member = self.member(id);
        let Some(running) = member.running.take() else {
            return;
        };
        running.end();
        match is_power_failure {
            true => member.disk.crash(&mut dice),
            false => member.disk.kill(),
        }
    }

    /// Cuts the power of all nodes at one moment.
    pub fn cut_power(&mut self) {
        for id in self.ids() {
            self.stop(id, true);
        }
    }

    /// Ends the processes of nodes that have failed.
    ///
    /// # Panics
    ///
    /// Panics if a node has failed on a good disk.
    pub fn end_failed(&mut self) {
        for id in self.ids() {
            if let Some(reason) = self.disk_state(id).and_then(DiskState::failure) {
                let is_explained = self.member(id).had_disk_fault;
                assert!(is_explained, "node {id} fails on a good disk: {reason}");
                self.stop(id, false);
            }
        }
    }

    fn disk_state(&self, id: u64) -> Option<&DiskState> {
        let mut running = self.running().filter(|(it, _)| *it == id);
        running.next().map(|(_, running)| running.disk())
    }

    /// Sets the longest time of a node's syncs.
    pub fn set_sync(&self, id: u64, longest: Duration) {
        if let Some(disk) = self.disk_state(id) {
            disk.set_sync(longest);
        }
    }

    /// Lets no call of a node's disk return any more, until the node is stopped or the disk repaired.
    pub fn hang_disk(&mut self, id: u64) {
        if let Some(disk) = self.disk_state(id) {
            disk.set_hanging(true);
        }
        self.member(id).had_disk_fault = true;
    }

    /// Leaves less room on a node's disk than a segment needs.
    pub fn fill_disk(&mut self, id: u64) {
        let member = self.member(id);
        disk::fill(&member.disk);
        member.had_disk_fault = true;
    }

    /// Lets the next sync of a node's disk fail.
    pub fn fail_sync(&mut self, id: u64) {
        let member = self.member(id);
        disk::fail_sync(&member.disk);
        member.had_disk_fault = true;
    }

    /// Sets the difference of a node's clock to the true time, in milliseconds.
    pub fn set_skew(&self, id: u64, skew_ms: i64) {
        self.members[id as usize - 1].clock.set_skew(skew_ms);
    }

    /// Ends all faults of disks and clocks, and starts the nodes that do not run.
    pub async fn repair(&mut self) {
        self.end_failed();
        for id in self.ids() {
            disk::repair(&self.member(id).disk);
            self.set_skew(id, 0);
            self.open(id).await;
            if let Some(disk) = self.disk_state(id) {
                disk.set_sync(SYNC);
                disk.set_hanging(false);
            }
        }
    }

    /// Blocks one direction between two nodes, until the network heals.
    pub fn block(&self, from: u64, to: u64) {
        self.listeners.network.block(&host(from), &host(to));
    }

    /// Returns the node whose topics are open, if there is one.
    pub fn serving(&self) -> Option<u64> {
        let mut serving = self.running().filter(|(_, it)| it.is_serving());
        serving.next().map(|(id, _)| id)
    }

    /// Returns the connections of a client.
    pub fn client(&self, host: &'static str) -> ClusterClient {
        ClusterClient {
            host,
            listeners: self.listeners.clone(),
        }
    }

    /// Ends the faults of disks and clocks, starts the nodes that do not run, and waits until all have
    /// the same blocks, all of them committed.
    ///
    /// # Panics
    ///
    /// Panics if that takes longer than a minute of simulated time, or if blocks differ.
    pub async fn agree(&mut self) {
        self.repair().await;
        let agreed = async {
            while !self.is_agreed() {
                tokio::time::sleep(AGREE_POLL).await;
            }
        };
        let agreed = tokio::time::timeout(AGREE_MAX, agreed).await;
        agreed.expect("the nodes agree when nothing fails any more");
        let mut blocks = self.running().map(|(_, it)| it.blocks());
        let first = blocks.next();
        assert!(blocks.all(|it| Some(it) == first), "blocks differ");
    }

    fn is_agreed(&self) -> bool {
        let mut ends = self.running().map(|(_, it)| it.ends());
        let first = ends.next();
        let is_committed = first.iter().flatten().all(|end| end.last == end.committed);
        is_committed && ends.all(|it| Some(it) == first)
    }
}
