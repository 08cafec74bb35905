//! Running a member: services while this node leads, a front while it does not.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use ::journal::{Health, Journal, Reign, SyncTimes};
use cluster::{Addresses, Leadership, Members, Node, stall};
use config::Config;
use console::{Exit, Failure, SignalAction, Signals};
use door_kafka::KnownServices;
use parking_lot::Mutex;

use super::consensus::{Consensus, NoConsensus, Parts};
use super::damaged;
use super::front::Front;
use super::identity::{Identity, addresses, key_path, read_key};
use super::image::DirectoryImage;
use super::kafka::KafkaClients;
use super::pipes::{self, Call, MemberServices, ReadServices};
use super::report_file::DataFile;
use super::status::Cluster;
use super::watch::watch;
use crate::gate::TokenGate;
use crate::journal::failure as journal_failure;
use crate::listeners::{self, MemberSockets};
use crate::reload::Reload;
use crate::revocation;
use crate::running::{Dependencies, Member, NodeJournal, Running};

/// Time for the leadership to pass to another member before this one ends.
const HAND_OVER_MAX: Duration = Duration::from_secs(3);

/// Time in which the end of a reign is noticed that has let the opening of services fail.
const REIGN_END_MAX: Duration = Duration::from_secs(1);

/// Interval of looks for a leader.
const LEADER_POLL: Duration = Duration::from_millis(20);

/// Interval of looks at the health of the journal while another member leads.
const HEALTH: Duration = Duration::from_secs(1);

/// Interval of looks at the addresses that the others know of this node.
const ADDRESSES: Duration = Duration::from_secs(2);

/// Interval in which the others are told the services of Kafka.
const SERVICES: Duration = Duration::from_secs(1);

/// Interval of purges.
const PURGE: Duration = Duration::from_secs(2);

/// Time limit of a call to another member.
const CALL_MAX: Duration = Duration::from_secs(5);

/// The configuration and the parts of a member.
pub(crate) struct Start<'a> {
    pub(crate) config: &'a Config,
    pub(crate) identity: Identity,
    pub(crate) journal: Arc<Journal>,
    pub(crate) sync_times: Arc<SyncTimes>,
    /// Returns the dependencies of a node, but for its journal and its cluster.
    pub(crate) dependencies: &'a dyn Fn(NodeJournal, Option<Member>) -> Dependencies,
    /// Returns what reloads the files of a node.
    pub(crate) reload: &'a dyn Fn(node::Node) -> Reload<'a>,
    pub(crate) announcement: Announcement<'a>,
    pub(crate) gate: Arc<TokenGate>,
}

/// Tells the addresses of a node when it serves clients for the first time.
pub(crate) struct Announcement<'a> {
    announce: &'a dyn Fn(&listeners::Addresses) -> Result<(), Failure>,
    is_made: Cell<bool>,
}

impl<'a> Announcement<'a> {
    pub(crate) fn new(
        announce: &'a dyn Fn(&listeners::Addresses) -> Result<(), Failure>,
    ) -> Announcement<'a> {
        let is_made = Cell::new(false);
        Announcement { announce, is_made }
    }

    fn make(&self, config: &Config) -> Result<(), Failure> {
        match self.is_made.replace(true) {
            true => Ok(()),
            false => (self.announce)(&listeners::Addresses::of_member(config)),
        }
    }
}

/// The cause of the end of a leader's services.
enum EndCause {
    Reign,
    Signal,
    Journal(String),
    Outdated(Failure),
}

/// Runs a member until a signal ends it. Returns the failure if the journal or the consensus has failed.
pub(crate) async fn run(
    start: Start<'_>,
    signals: &mut Signals,
) -> Result<Option<Failure>, Failure> {
    let Start {
        config, journal, ..
    } = &start;
    let own = addresses(config)?;
    let key = read_key(&key_path(config))?;
    DirectoryImage::remove_left(&config.data.dir);
    let ports = crate::ports::real();
    let services = Arc::new(MemberServices {
        data: config.data.dir.clone(),
        ports: ports.clone(),
        hold_size: config.cluster.hold_size.as_u64(),
        segment_size: config.journal.segment_size.as_u64(),
        runtime: tokio::runtime::Handle::current(),
        node: Default::default(),
        listeners: Default::default(),
        own: Mutex::default(),
        known: Arc::default(),
    });
    let parts = Parts {
        identity: start.identity.clone(),
        key,
        journal: journal.clone(),
        services: services.clone(),
        reports: DataFile::new(&config.data.dir),
        ports,
    };
    let consensus = match Consensus::start(config, parts).await {
        Ok(consensus) => consensus,
        Err(NoConsensus::Other(failure)) => return Err(failure),
        Err(NoConsensus::Damaged(damage)) => {
            return Err(damaged::run(config, start.gate.clone(), damage, signals).await);
        }
    };
    let _ = services.node.set(consensus.node.clone());
    let telling = tokio::spawn(tell_addresses(consensus.node.clone(), own));
    let purging = purge(
        consensus.node.clone(),
        services.hold_size,
        services.segment_size,
    );
    let purging = tokio::spawn(purging);
    let watching = tokio::spawn(watch(consensus.node.clone()));
    let telling_services = tokio::spawn(tell_services(consensus.node.clone(), services.clone()));
    let ended = serve(&start, &consensus, &services, signals).await;
    telling.abort();
    telling_services.abort();
    purging.abort();
    watching.abort();
    match ended {
        Ok(Some(failure)) if consensus.node.outdated().borrow().is_some() => {
            // The links stay, so that all members see by name who is kept out.
            Err(damaged::run(config, start.gate.clone(), failure, signals).await)
        }
        ended => ended,
    }
}

async fn serve(
    start: &Start<'_>,
    consensus: &Consensus,
    services: &Arc<MemberServices>,
    signals: &mut Signals,
) -> Result<Option<Failure>, Failure> {
    let (config, journal) = (start.config, &start.journal);
    let sockets = Arc::new(MemberSockets::bind(config).await?);
    let (_clients_end, end) = tokio::sync::watch::channel(());
    let gate = start.gate.clone();
    let clients = KafkaClients::new(config, gate, &consensus.node, services, end);
    let mut leadership = Leadership::new(consensus.node.clone());
    loop {
        let mut front = Front::start(start, &consensus.node, &sockets, &clients)?;
        let next = loop {
            tokio::select! {
                reigns = leadership.next() => break Ok(reigns),
                () = another_leader(&consensus.node), if !start.announcement.is_made.get() => {
                    start.announcement.make(config)?;
                }
                action = signals.next_or_hangup() => match action {
                    SignalAction::Reload => tracing::info!("files are reloaded when this node leads"),
                    SignalAction::End => break Err(None),
                },
                failure = failure(config, journal, &consensus.node) => break Err(Some(failure)),
                failure = outdated(&consensus.node) => break Err(Some(failure)),
            }
        };
        front.close_passed().await;
        let reigns = match next {
            Ok(reigns) => reigns,
            Err(ended) => return Ok(ended),
        };
        let opening = Opening {
            sockets: &sockets,
            clients: &clients,
            front,
            reigns: &reigns,
        };
        match lead(start, consensus, services, signals, opening).await? {
            EndCause::Reign => tracing::info!("this node does not lead any more"),
            EndCause::Signal => return Ok(None),
            EndCause::Journal(reason) => return Ok(Some(journal_failure(config, &reason))),
            EndCause::Outdated(failure) => return Ok(Some(failure)),
        }
    }
}

/// The beginning of a leadership.
struct Opening<'a> {
    sockets: &'a Arc<MemberSockets>,
    clients: &'a KafkaClients,
    /// Accepts Kafka clients until the services are open.
    front: Front,
    reigns: &'a [(Reign, u64)],
}

/// Opens the services and serves clients until a reign ends.
async fn lead(
    start: &Start<'_>,
    consensus: &Consensus,
    services: &MemberServices,
    signals: &mut Signals,
    opening: Opening<'_>,
) -> Result<EndCause, Failure> {
    let config = start.config;
    let Opening {
        sockets,
        clients,
        front,
        reigns,
    } = opening;
    tracing::info!(id = consensus.node.id(), "this node leads the cluster");
    let journal = NodeJournal {
        journal: Arc::new(start.journal.in_reigns(reigns)),
        sync_times: start.sync_times.clone(),
    };
    let member = Member {
        membership: Arc::new(Members::new(consensus.node.clone())),
        cluster: Cluster {
            node: consensus.node.clone(),
            shard_count: start.journal.shard_count(),
        },
        sockets: sockets.clone(),
        // Encrypted clients cannot be passed to another member after their handshake with this one.
        kafka_taker: config.tls.files().is_none().then(|| clients.taker()),
    };
    let started = Running::start(config, (start.dependencies)(journal, Some(member))).await;
    let mut running = match started {
        Ok(running) => running,
        Err(failure) => {
            let over = consensus.node.end_of_any(reigns);
            return match tokio::time::timeout(REIGN_END_MAX, over).await {
                Ok(()) => {
                    tracing::warn!(error = %failure, "the leadership ended at its beginning");
                    Ok(EndCause::Reign)
                }
                Err(_) => Err(failure),
            };
        }
    };
    *services.own.lock() = running.node().topics().map(|topics| {
        let read = move || KnownServices::of(&topics);
        Box::new(read) as ReadServices
    });
    services.read_own();
    let addresses = running.addresses().clone();
    services.listeners.send_replace(Some(addresses));
    drop(front);
    start.announcement.make(config)?;
    running.spawn(revocation::enforce(start.gate.clone(), running.node()));
    let reload = (start.reload)(running.node());
    let ended = loop {
        tokio::select! {
            () = consensus.node.end_of_any(reigns) => break EndCause::Reign,
            () = consensus.node.loss_of_quorum() => {
                tracing::warn!("no quorum of members answers");
                break EndCause::Reign;
            }
            () = stall(&start.journal) => {
                tracing::warn!("the disk does not answer: the leadership is handed over");
                consensus.node.hand_over(HAND_OVER_MAX).await;
                if consensus.node.leader() != Some(consensus.node.id()) {
                    break EndCause::Reign;
                }
            }
            action = signals.next_or_hangup() => match action {
                SignalAction::Reload => reload.run(),
                SignalAction::End => break EndCause::Signal,
            },
            reason = running.journal_failure(config.journal.exit_on_failure) => {
                break EndCause::Journal(reason);
            }
            failure = outdated(&consensus.node) => break EndCause::Outdated(failure),
        }
    };
    services.listeners.send_replace(None);
    *services.own.lock() = None;
    match ended {
        EndCause::Signal => {
            consensus.node.hand_over(HAND_OVER_MAX).await;
            sockets.stop_kafka();
            running.shut_down(config, signals).await;
        }
        EndCause::Reign | EndCause::Journal(_) | EndCause::Outdated(_) => running.crash().await,
    }
    Ok(ended)
}

/// Waits until another member leads, to which clients are passed.
async fn another_leader(node: &Node) {
    while node.other_leader().is_none() {
        tokio::time::sleep(LEADER_POLL).await;
    }
}

/// Waits until the journal or the consensus has failed, and returns the failure.
async fn failure(config: &Config, journal: &Journal, node: &Node) -> Failure {
    loop {
        if let Health::Failed { reason } = journal.health() {
            return journal_failure(config, &reason.to_string());
        }
        if let Some(reason) = node.failure() {
            let message = format!("the consensus has failed: {reason}");
            return Failure::new(Exit::Failed, message)
                .hint("start the node again: it takes part with what is on its disk");
        }
        tokio::time::sleep(HEALTH).await;
    }
}

/// Waits until a member has found out that this one has lost data, and returns the failure.
async fn outdated(node: &Node) -> Failure {
    let mut outdated = node.outdated();
    loop {
        if let Some(outdated) = *outdated.borrow_and_update() {
            let by = outdated.by;
            let message = format!("{outdated}; node {by} has a record of it");
            return damaged::removal(node.id(), message);
        }
        // The sender is in the node, so it is not dropped.
        let _ = outdated.changed().await;
    }
}

/// Tells the leader the addresses of this node whenever the members have others.
async fn tell_addresses(node: Arc<Node>, own: Addresses) {
    loop {
        tokio::time::sleep(ADDRESSES).await;
        let members = node.members();
        let known = members.iter().find(|it| it.id == node.id());
        if known.is_none_or(|it| it.addresses == own) {
            continue;
        }
        let said = match node.leader() {
            Some(leader) if leader == node.id() => {
                let set = node.set_addresses(leader, own.clone()).await;
                set.map_err(|error| error.to_string())
            }
            Some(leader) => tell(&node, leader, &own).await,
            None => continue,
        };
        if let Err(error) = said {
            tracing::warn!(error, "the leader does not take the addresses of this node");
        }
    }
}

/// Tells the other members the services of Kafka, while this node leads.
async fn tell_services(node: Arc<Node>, services: Arc<MemberServices>) {
    let mut opened = services.listeners.subscribe();
    loop {
        // A new leader tells them at once. The sender is in `services`, so it is not dropped.
        let _ = tokio::time::timeout(SERVICES, opened.changed()).await;
        if let Some(own) = services.read_own() {
            let others = node.members().into_iter().filter(|it| it.id != node.id());
            let calls = others.map(|it| pipes::tell_services(&node, it.id, &own, CALL_MAX));
            futures_util::future::join_all(calls).await;
        }
    }
}

async fn tell(node: &Node, leader: u64, own: &Addresses) -> Result<(), String> {
    let call = Call::Addresses {
        name: own.name.clone(),
        link: own.link.clone(),
        kafka: own.kafka.clone(),
        http: own.http.clone(),
        native: own.native.clone(),
    };
    match node.call(leader, call.encode(), CALL_MAX).await {
        Ok(answer) if answer == "ok" => Ok(()),
        Ok(answer) => Err(String::from_utf8_lossy(&answer).into_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Purges what all members have, here and at the others, while this node leads.
async fn purge(node: Arc<Node>, hold_size: u64, segment_size: u64) {
    loop {
        tokio::time::sleep(PURGE).await;
        let Some(last) = node.acknowledged_by_all() else {
            continue;
        };
        node.purge_segments(&last, hold_size, segment_size).await;
        let last = last.into_iter().map(|index| index.0).collect();
        let call = Call::Purge { last }.encode();
        let others = node.members().into_iter().filter(|it| it.id != node.id());
        let calls = others.map(|member| node.call(member.id, call.clone(), CALL_MAX));
        // A member that does not answer is told again.
        futures_util::future::join_all(calls).await;
    }
}
