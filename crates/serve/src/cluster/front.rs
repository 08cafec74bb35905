//! The listeners while another member leads: the bytes of each client are passed to the leader. Kafka
//! clients without TLS are served by [`KafkaClients`].
//!
//! Requests for the health and the metrics of this node are answered here: `/livez`, `/readyz` and
//! `/metrics`. With TLS they are passed on like all others.

use std::sync::Arc;
use std::time::Duration;

use cluster::{Members, Node};
use console::Failure;
use door_http::{MemberPages, PageServed};
use net::Stream;
use store::StorageView;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::kafka::KafkaClients;
use super::member::Start;
use super::pipes::{CLIENTS_MAX, Protocol, splice};
use crate::listeners::{MemberSockets, TcpListeners};

/// Time to wait for a leader.
const LEADER_MAX: Duration = Duration::from_secs(3);

/// Pause between two looks for a leader, and after an error of a listener.
const PAUSE: Duration = Duration::from_millis(50);

/// Time limit for the first bytes of an HTTP request.
const REQUEST_MAX: Duration = Duration::from_secs(10);

/// Bytes of the request line that are looked at.
const LINE_SIZE: usize = 64;

/// Pause until more bytes of an incomplete request line are looked for.
const POLL: Duration = Duration::from_millis(5);

/// Reason of a member that is not ready.
const NO_LEADER: &str = "no member leads the cluster now; wait a moment and repeat the request";

/// The listeners. When this is dropped, they accept no more, and their clients are disconnected but for
/// those of Kafka.
pub(super) struct Front {
    tasks: JoinSet<()>,
    /// The task that accepts Kafka clients.
    kafka: JoinSet<()>,
}

impl Front {
    /// Accepts clients and passes them to the leader.
    pub(super) fn start(
        start: &Start<'_>,
        node: &Arc<Node>,
        sockets: &MemberSockets,
        clients: &KafkaClients,
    ) -> Result<Front, Failure> {
        let TcpListeners {
            native,
            http,
            kafka,
        } = sockets.listeners()?;
        let is_plain = start.config.tls.files().is_none();
        let (plain, encrypted) = match is_plain {
            true => (kafka, None),
            false => (None, kafka),
        };
        let passed = [
            (native, Protocol::Native),
            (http, Protocol::Http),
            (encrypted, Protocol::Kafka),
        ];
        let pages = is_plain.then(|| pages(start, node));
        let room = Arc::new(Semaphore::new(CLIENTS_MAX));
        let mut front = Front {
            tasks: JoinSet::new(),
            kafka: JoinSet::new(),
        };
        for (listener, protocol) in passed {
            if let Some(listener) = listener {
                let (node, room) = (node.clone(), room.clone());
                let accepting = accept(listener, protocol, pages.clone(), node, room);
                front.tasks.spawn(accepting);
            }
        }
        if let Some(listener) = plain {
            front.kafka.spawn(clients.accept(listener));
        }
        Ok(front)
    }

    /// Accepts Kafka clients only, and disconnects the clients that are passed on.
    pub(super) async fn close_passed(&mut self) {
        self.tasks.shutdown().await;
    }
}

/// Returns the pages that this node answers itself.
fn pages(start: &Start<'_>, node: &Arc<Node>) -> MemberPages {
    let (journal, sync_times) = (start.journal.clone(), start.sync_times.clone());
    let own = node.clone();
    let has_leader = move || own.other_leader().is_some();
    MemberPages {
        membership: Some(Arc::new(Members::new(node.clone()))),
        storage: Some(Arc::new(move || {
            StorageView::of(&journal, Some(&sync_times))
        })),
        gate: start.gate.clone(),
        unready: Arc::new(move || (!has_leader()).then(|| NO_LEADER.to_owned())),
    }
}

async fn accept(
    listener: TcpListener,
    protocol: Protocol,
    pages: Option<MemberPages>,
    node: Arc<Node>,
    room: Arc<Semaphore>,
) {
    // Clients end with the listener.
    let mut clients = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = clients.join_next() => continue,
        };
        let Ok((socket, _)) = accepted else {
            sleep(PAUSE).await;
            continue;
        };
        // A client above the limit is disconnected.
        if let Ok(permit) = room.clone().try_acquire_owned() {
            let (node, pages) = (node.clone(), pages.clone());
            clients.spawn(async move {
                serve(socket, protocol, pages.as_ref(), &node).await;
                drop(permit);
            });
        }
    }
}

async fn serve(socket: TcpStream, protocol: Protocol, pages: Option<&MemberPages>, node: &Node) {
    let pages = pages.filter(|_| protocol == Protocol::Http);
    if let Some(pages) = pages {
        match timeout(REQUEST_MAX, is_for_pages(&socket)).await {
            Ok(Ok(true)) => return pages.serve(socket).await,
            Ok(Ok(false)) => {}
            Ok(Err(_)) | Err(_) => return,
        }
    }
    match (pipe(node, protocol).await, pages) {
        (Some(stream), _) => splice(stream, socket).await,
        (None, Some(pages)) => pages.serve(socket).await,
        (None, None) => {}
    }
}

/// Returns whether the first request of a connection is for this node itself.
async fn is_for_pages(socket: &TcpStream) -> std::io::Result<bool> {
    let mut line = [0; LINE_SIZE];
    loop {
        let size = socket.peek(&mut line).await?;
        match MemberPages::serves(&line[..size]) {
            PageServed::Yes => return Ok(true),
            PageServed::No => return Ok(false),
            PageServed::Unknown if size == 0 => {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            PageServed::Unknown => sleep(POLL).await,
        }
    }
}

/// Connects to the leader, if there is one within some seconds.
async fn pipe(node: &Node, protocol: Protocol) -> Option<Stream> {
    let deadline = Instant::now() + LEADER_MAX;
    while Instant::now() < deadline {
        if let Some(leader) = node.other_leader()
            && let Ok(stream) = node.open_pipe(leader).await
            && net::write_all(&*stream.sink, &[protocol as u8])
                .await
                .is_ok()
        {
            return Some(stream);
        }
        sleep(PAUSE).await;
    }
    None
}
