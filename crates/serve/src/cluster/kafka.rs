//! Kafka clients of a member that does not lead, or is not sure to. They stay connected while leaders
//! change, and when this node begins to lead.
//!
//! With TLS their bytes are passed on like those of other protocols, because this node cannot read them.

use std::sync::Arc;
use std::time::Duration;

use cluster::{LEASE, Members, Node};
use config::Config;
use door_kafka::{Acceptor, Arrived, Follower, KnownServices, Leader, LeaderStream};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};

use super::pipes::{CLIENTS_MAX, MemberServices, Protocol};
use crate::gate::TokenGate;
use crate::kafka;
use crate::listeners::KafkaTaker;

/// Pause between two attempts to connect to a leader, and after an error of a listener.
const PAUSE: Duration = Duration::from_millis(50);

/// Interval of looks for another leader.
const LEADER_POLL: Duration = Duration::from_millis(20);

/// The Kafka clients of a member.
#[derive(Clone)]
pub(super) struct KafkaClients {
    shared: Arc<Shared>,
    room: Arc<Semaphore>,
    /// Ends the connections when its sender is dropped.
    end: watch::Receiver<()>,
}

/// The part that all connections share.
struct Shared {
    follower: Follower,
    node: Arc<Node>,
    services: Arc<MemberServices>,
    /// The leader of the cluster, by regular looks.
    leader: watch::Sender<Option<u64>>,
}

impl KafkaClients {
    /// Creates the clients of a member; there are none at first. They are disconnected when the sender of
    /// `end` is dropped.
    pub(super) fn new(
        config: &Config,
        gate: Arc<TokenGate>,
        node: &Arc<Node>,
        services: &Arc<MemberServices>,
        end: watch::Receiver<()>,
    ) -> Self {
        let members = Arc::new(Members::new(node.clone()));
        let shared = Arc::new(Shared {
            follower: Follower::new(members, gate, kafka::options(config)),
            node: node.clone(),
            services: services.clone(),
            leader: watch::Sender::new(None),
        });
        tokio::spawn(until(end.clone(), look_for_leaders(shared.clone())));
        let room = Arc::new(Semaphore::new(CLIENTS_MAX));
        Self { shared, room, end }
    }

    /// Returns a task that accepts clients. They stay when it is dropped.
    pub(super) fn accept(&self, listener: TcpListener) -> impl Future<Output = ()> + use<> {
        let clients = self.clone();
        async move {
            loop {
                let Ok((socket, _)) = listener.accept().await else {
                    sleep(PAUSE).await;
                    continue;
                };
                clients.serve(Box::new(move || {
                    let local = socket.local_addr()?;
                    let stream = net::split_tcp(socket)?;
                    Ok(Arrived { stream, local })
                }));
            }
        }
    }

    /// Serves a client in a task. A client above the limit is disconnected.
    fn serve(&self, accepted: Acceptor) {
        let Ok(permit) = self.room.clone().try_acquire_owned() else {
            return;
        };
        let shared = self.shared.clone();
        tokio::spawn(until(self.end.clone(), async move {
            match accepted() {
                Ok(arrived) => shared.follower.serve(arrived, &*shared).await,
                Err(error) => tracing::debug!(%error, "cannot set up an accepted connection"),
            }
            drop(permit);
        }));
    }

    /// Returns what takes over the clients of this node's services while it is not sure to lead. Another
    /// member may lead without its knowledge after a pause of its process, and the services would disconnect
    /// clients before their first answer.
    pub(super) fn taker(&self) -> KafkaTaker {
        let clients = self.clone();
        Arc::new(move |accepted| {
            if clients.shared.is_leading() {
                return Some(accepted);
            }
            clients.serve(accepted);
            None
        })
    }
}

/// Runs a task to its end, or until the sender is dropped.
async fn until(mut end: watch::Receiver<()>, task: impl Future<Output = ()>) {
    tokio::select! {
        () = task => {}
        _ = end.changed() => {}
    }
}

async fn look_for_leaders(shared: Arc<Shared>) {
    loop {
        let leader = shared.node.leader();
        let is_other = |known: &mut Option<u64>| std::mem::replace(known, leader) != leader;
        shared.leader.send_if_modified(is_other);
        sleep(LEADER_POLL).await;
    }
}

impl Shared {
    /// Returns whether this node is sure to lead.
    fn is_leading(&self) -> bool {
        let is_recent = |age| age < LEASE;
        let is_answered = self.node.quorum_age().is_none_or(is_recent);
        is_answered && self.node.leader() == Some(self.node.id())
    }

    /// Connects to the services of this node. They take a client over again while it is not sure to lead.
    async fn connect_to_own(&self) -> Option<LeaderStream> {
        if !self.is_leading() {
            return None;
        }
        let mut own = self.services.listeners.subscribe();
        let address = own.borrow_and_update().as_ref()?.kafka?;
        let stream = net::split_tcp(TcpStream::connect(address).await.ok()?).ok()?;
        let end = Box::pin(async move {
            // An error means that the member ends.
            let _ = own.wait_for(Option::is_none).await;
        });
        Some(LeaderStream { stream, end })
    }

    /// Connects to another member that leads.
    async fn connect_to_other(&self) -> Option<LeaderStream> {
        let mut leaders = self.leader.subscribe();
        let leader = *leaders.borrow_and_update();
        let other = leader.filter(|it| *it != self.node.id())?;
        let stream = self.node.open_pipe(other).await.ok()?;
        let protocol = [Protocol::Kafka as u8];
        net::write_all(&*stream.sink, &protocol).await.ok()?;
        let end = Box::pin(async move {
            // An error means that the member ends.
            let _ = leaders.wait_for(|it| *it != leader).await;
        });
        Some(LeaderStream { stream, end })
    }
}

impl Leader for Shared {
    async fn connect(&self, limit: Duration) -> Option<LeaderStream> {
        let connecting = async {
            loop {
                if let Some(stream) = self.connect_to_own().await {
                    return stream;
                }
                if let Some(stream) = self.connect_to_other().await {
                    return stream;
                }
                sleep(PAUSE).await;
            }
        };
        timeout(limit, connecting).await.ok()
    }

    fn known(&self) -> Option<KnownServices> {
        self.services.known.lock().clone()
    }
}
