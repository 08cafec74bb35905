//! Three nodes of a cluster, each with its topics and its Kafka listener while it leads, on simulated
//! disks and a simulated network.

mod listeners;
mod running;

use std::io;
use std::time::Duration;

use journal::disk::SimulatedDisk;
use net::Stream;

use self::listeners::{Listeners, host};
use self::running::{Reports, RunningMember, Start};
use crate::Network;

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
    reports: Reports,
    starts: u64,
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
            reports: Reports::default(),
            starts: 0,
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

    /// Starts a node on its disk, unless it runs.
    pub async fn open(&mut self, id: u64) {
        let seed = self.dice.u64(..);
        let founders = self.ids();
        let listeners = self.listeners.clone();
        let member = self.member(id);
        if member.running.is_some() {
            return;
        }
        let start = Start {
            id,
            seed,
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

    /// Sets the longest time of a node's syncs.
    pub fn set_sync(&self, id: u64, longest: Duration) {
        let member = self.running().find(|(it, _)| *it == id);
        if let Some((_, running)) = member {
            running.set_sync(longest);
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

    /// Starts the nodes that do not run, and waits until all have the same blocks, all of them
    /// committed.
    ///
    /// # Panics
    ///
    /// Panics if that takes longer than a minute of simulated time, or if blocks differ.
    pub async fn agree(&mut self) {
        for id in self.ids() {
            self.open(id).await;
            self.set_sync(id, running::SYNC);
        }
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
