//! A node: its file, its groups, its links; and the leader's start of the other two.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use contract::{
    Address, Counts, Failure, Flags, Outcome, Serve, ZeroedFile, own_program, run_node,
};
use openraft::{BasicNode, Config, SnapshotPolicy};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::door;
use crate::group::Group;
use crate::link::Links;
use crate::listener;
use crate::machine::Machine;
use crate::network::Network;
use crate::store::{LogFile, Store};
use crate::types::{Raft, Term};

/// The node that leads; the others have the ids after it.
const LEADER: u64 = 1;
const FOLLOWERS: u64 = 2;
/// How long the cluster may take to elect its leader.
const ELECTION_PATIENCE: Duration = Duration::from_secs(20);

/// Serves as the leader, with two followers as processes of its own, until the parent goes.
pub(crate) fn serve(mut flags: Flags) -> Outcome<()> {
    let options = Serve::take(&mut flags)?;
    let Address::Tcp(listen) = options.listen else {
        return Err(Failure::usage(
            "no Unix sockets here",
            "--listen 127.0.0.1:0",
        ));
    };
    let dir: String = flags.require("dir")?;
    let file_mib = flags.number("file-mib", 256, 1, 64 << 10)?;
    let count = flags.number("groups", 1, 1, 64)? as u8;
    let blocks_max = flags.number("blocks", 2, 1, 64)? as usize;
    let hold = Duration::from_millis(flags.number("hold-ms", 20, 0, 100)?);
    let counts = Counts::take(&mut flags)?;
    flags.finish()?;
    let path = ZeroedFile::path_in(dir.as_ref());
    run_node("leader", vec![path.clone()], &counts, |children, ready| {
        let file = ZeroedFile::create(path, file_mib << 20)?;
        let mut addresses = Vec::new();
        for _ in 0..FOLLOWERS {
            let id = LEADER + 1 + addresses.len() as u64;
            let mut command = Command::new(own_program()?);
            command.args(["follow", "--dir", &dir, "--id", &id.to_string()]);
            command.args(["--file-mib", &file_mib.to_string()]);
            command.args(["--groups", &count.to_string()]);
            if let Some(path) = counts.path() {
                command.arg("--counts").arg(path);
            }
            addresses.push(children.start(command)?);
        }
        runtime()?.block_on(async {
            let node = Node::start(LEADER, count, file, counts.clone(), hold).await?;
            node.found(addresses).await?;
            let listener = TcpListener::bind(listen).await.map_err(|error| {
                Failure::run(format!("cannot listen at {listen}: {error}"), "take port 0")
            })?;
            ready(&listener.local_addr().map_err(failed)?)?;
            node.lead(listener, blocks_max).await
        })
    })
}

/// Serves as a follower of the leader that knows its address, until the parent goes.
pub(crate) fn follow(mut flags: Flags) -> Outcome<()> {
    let dir: PathBuf = flags.require("dir")?;
    let file_mib = flags.number("file-mib", 256, 1, 64 << 10)?;
    let id = flags.number("id", 2, 2, 1 + FOLLOWERS)?;
    let count = flags.number("groups", 1, 1, 64)? as u8;
    let counts = Counts::take(&mut flags)?;
    flags.finish()?;
    let path = ZeroedFile::path_in(&dir);
    run_node("follower", vec![path.clone()], &counts, |_, ready| {
        let file = ZeroedFile::create(path, file_mib << 20)?;
        runtime()?.block_on(async {
            let node = Node::start(id, count, file, counts.clone(), Duration::ZERO).await?;
            ready(&node.address)?;
            std::future::pending().await
        })
    })
}

/// A node with its groups.
struct Node {
    address: String,
    groups: Vec<Arc<Group>>,
    rafts: Vec<Raft>,
}

impl Node {
    /// Starts the groups, which have no members yet, and serves other nodes.
    async fn start(
        id: u64,
        count: u8,
        file: ZeroedFile,
        counts: Counts,
        hold: Duration,
    ) -> Outcome<Node> {
        let nodes = TcpListener::bind("127.0.0.1:0").await.map_err(failed)?;
        let address = nodes.local_addr().map_err(failed)?.to_string();
        let log = LogFile::start(file, counts);
        let links = Links::default();
        let config = config()?;
        let groups: Vec<Arc<Group>> = (0..count).map(Group::new).collect();
        let mut rafts = Vec::new();
        for group in &groups {
            let network = Network::new(links.clone(), group.clone(), hold);
            let store = Store::new(log.clone(), group.clone());
            let machine = Machine::new(group.clone());
            let raft = Raft::new(id, config.clone(), network, store, machine).await;
            rafts.push(raft.map_err(|error| not_raft(&error))?);
        }
        tokio::spawn(listener::serve(nodes, rafts.clone()));
        Ok(Node {
            address,
            groups,
            rafts,
        })
    }

    /// Makes this node and those at `addresses` the members of all groups, and waits until it
    /// leads them.
    async fn found(&self, addresses: Vec<String>) -> Outcome<()> {
        let all = [self.address.clone()].into_iter().chain(addresses);
        let members: BTreeMap<u64, BasicNode> = (LEADER..).zip(all.map(BasicNode::new)).collect();
        for raft in &self.rafts {
            let founded = raft.initialize(members.clone()).await;
            founded.map_err(|error| not_raft(&error))?;
        }
        for raft in &self.rafts {
            // The entry of the members is the first, the blank entry of the term the second.
            let wait = raft.wait(Some(ELECTION_PATIENCE));
            let led = wait
                .metrics(
                    |metrics| {
                        metrics.current_leader == Some(LEADER)
                            && metrics.last_applied.is_some_and(|last| last.index >= 1)
                    },
                    "the first node leads",
                )
                .await;
            led.map_err(|error| not_raft(&error))?;
        }
        Ok(())
    }

    /// Serves clients until Raft refuses something.
    async fn lead(&self, listener: TcpListener, blocks_max: usize) -> Outcome<()> {
        let mut proposers = JoinSet::new();
        for (group, raft) in self.groups.iter().zip(&self.rafts) {
            let term = raft.as_leader().map_err(|error| not_raft(&error))?.term();
            let (group, raft) = (group.clone(), raft.clone());
            proposers
                .spawn(async move { group.propose(&raft, Term::from(term), blocks_max).await });
        }
        tokio::select! {
            Some(failure) = proposers.join_next() => {
                Err(failure.unwrap_or_else(|error| not_raft(&error)))
            }
            error = door::accept(listener, self.groups.clone()) => Err(failed(error)),
        }
    }
}

fn config() -> Outcome<Arc<Config>> {
    let config = Config {
        cluster_name: "raft-floor".to_owned(),
        heartbeat_interval: 100,
        heartbeat_min_interval: Some(100),
        election_timeout_min: 400,
        election_timeout_max: 800,
        snapshot_policy: SnapshotPolicy::Never,
        broadcast_submitted_on_append: Some(true),
        enable_pre_vote: Some(true),
        enable_leader_restore: Some(false),
        ..Config::default()
    };
    let valid = config.validate();
    valid.map(Arc::new).map_err(|error| not_raft(&error))
}

fn runtime() -> Outcome<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(failed)
}

fn failed(error: io::Error) -> Failure {
    Failure::run(error.to_string(), "raise `ulimit -n`, and mount /proc")
}

fn not_raft(error: &dyn std::fmt::Display) -> Failure {
    Failure::run(
        format!("Raft: {error}"),
        "are the followers still running, and is the machine overloaded?",
    )
}
