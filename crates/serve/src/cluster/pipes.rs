//! The services of a member for the others: calls, the clients that they pass on, and newcomers.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use cluster::{Addresses, Node, Services};
use door_kafka::{KnownServices, KnownTopic};
use futures_util::future::BoxFuture;
use journal::Index;
use net::Stream;
use parking_lot::Mutex;
use platform::{CALL_SIZE_MAX, Ports};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::image::DirectoryImage;
use crate::listeners::Addresses as Listeners;

/// Clients of a member at most that are passed to the leader: those of Kafka, and all others.
pub(super) const CLIENTS_MAX: usize = 10_000;

/// Bytes per read.
const BUFFER_SIZE: usize = 64 << 10;

/// Time limit for the first byte, which names the protocol.
const FIRST_BYTE_MAX: Duration = Duration::from_secs(5);

/// Time for which a client that is passed on waits until the services of this node are open.
const OPEN_MAX: Duration = Duration::from_secs(3);

/// Interval of looks for open services.
const OPEN_POLL: Duration = Duration::from_millis(10);

/// The protocol of a client that is passed on: the first byte of the pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Native = 1,
    Http = 2,
    Kafka = 3,
}

impl Protocol {
    /// Returns the address of the listener for a protocol, by its number.
    fn listener(number: u8, listeners: &Listeners) -> Option<SocketAddr> {
        match number {
            it if it == Protocol::Native as u8 => listeners.native,
            it if it == Protocol::Http as u8 => listeners.http,
            it if it == Protocol::Kafka as u8 => listeners.kafka,
            _ => None,
        }
    }
}

/// A call of a member.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Call {
    /// The addresses of the member, for the leader.
    Addresses {
        name: String,
        link: String,
        kafka: Option<String>,
        http: Option<String>,
        native: Option<String>,
    },
    /// The last block of each shard that all members have.
    Purge { last: Vec<u64> },
    /// Whether the leader has users, as whom Kafka clients have to authenticate, and a hash of its topics.
    /// A member that knows others answers `topics`.
    Kafka { has_users: bool, topics: u64 },
    /// The topics of the leader: name, id and number of partitions.
    Topics(Vec<(String, [u8; 16], u32)>),
}

/// The answer of a member that does not know the topics of the leader.
const TOPICS: &[u8] = b"topics";

/// Tells a member the services of Kafka.
pub(super) async fn tell_services(node: &Node, to: u64, services: &KnownServices, limit: Duration) {
    let topics = services.topics.as_deref().unwrap_or_default();
    let call = Call::Kafka {
        has_users: services.has_users,
        topics: hash(topics),
    };
    let answer = node.call(to, call.encode(), limit).await;
    if answer.is_ok_and(|it| it == TOPICS) {
        let topic = |it: &KnownTopic| (it.name.clone(), it.id, it.partitions);
        let call = Call::Topics(topics.iter().map(topic).collect()).encode();
        if call.len() <= CALL_SIZE_MAX {
            // A member that does not answer is told again.
            let _ = node.call(to, call, limit).await;
        }
    }
}

fn hash(topics: &[KnownTopic]) -> u64 {
    let mut hasher = DefaultHasher::new();
    topics.hash(&mut hasher);
    hasher.finish()
}

impl Call {
    pub(super) fn encode(&self) -> Bytes {
        // The encoding of strings and numbers cannot fail.
        serde_json::to_vec(self).unwrap_or_default().into()
    }
}

/// The services of this node.
pub(super) struct MemberServices {
    pub(super) data: PathBuf,
    pub(super) ports: Ports,
    /// Bytes of log to hold for members that are behind.
    pub(super) hold_size: u64,
    pub(super) segment_size: u64,
    /// The runtime of everything that is not consensus.
    pub(super) runtime: Handle,
    pub(super) node: OnceLock<Arc<Node>>,
    /// The listeners of the services while this node leads.
    pub(super) listeners: watch::Sender<Option<Listeners>>,
    /// Returns the services of Kafka, while this node leads.
    pub(super) own: Mutex<Option<ReadServices>>,
    /// The last knowledge of the leader's services.
    pub(super) known: Arc<Mutex<Option<KnownServices>>>,
}

/// Returns the present services of Kafka.
pub(super) type ReadServices = Box<dyn Fn() -> KnownServices + Send>;

impl MemberServices {
    /// Reads the services of this node, if it leads.
    pub(super) fn read_own(&self) -> Option<KnownServices> {
        let own = self.own.lock().as_ref().map(|read| read())?;
        *self.known.lock() = Some(own.clone());
        Some(own)
    }
}

impl Services for MemberServices {
    fn answer(&self, from: u64, request: Bytes) -> BoxFuture<'static, Bytes> {
        let node = self.node.get().cloned();
        let (hold_size, segment_size) = (self.hold_size, self.segment_size);
        let known = self.known.clone();
        Box::pin(async move {
            let (Ok(call), Some(node)) = (serde_json::from_slice(&request), node) else {
                return Bytes::from_static(b"malformed");
            };
            match call {
                Call::Addresses {
                    name,
                    link,
                    kafka,
                    http,
                    native,
                } => {
                    let addresses = Addresses {
                        name,
                        link,
                        kafka,
                        http,
                        native,
                    };
                    match node.set_addresses(from, addresses).await {
                        Ok(()) => Bytes::from_static(b"ok"),
                        Err(error) => Bytes::from(error.to_string()),
                    }
                }
                Call::Purge { last } => {
                    let last: Vec<_> = last.into_iter().map(Index).collect();
                    node.purge_segments(&last, hold_size, segment_size).await;
                    Bytes::from_static(b"ok")
                }
                Call::Kafka { has_users, topics } => {
                    let mut known = known.lock();
                    let old = known.take().and_then(|it| it.topics);
                    let is_known = old.as_deref().is_some_and(|it| hash(it) == topics);
                    *known = Some(KnownServices {
                        has_users,
                        topics: old,
                    });
                    match is_known {
                        true => Bytes::from_static(b"ok"),
                        false => Bytes::from_static(TOPICS),
                    }
                }
                Call::Topics(topics) => {
                    let topic = |(name, id, partitions)| KnownTopic {
                        name,
                        id,
                        partitions,
                    };
                    if let Some(known) = &mut *known.lock() {
                        known.topics = Some(topics.into_iter().map(topic).collect());
                    }
                    Bytes::from_static(b"ok")
                }
            }
        })
    }

    fn pipe(&self, _: u64, mut stream: Stream) -> BoxFuture<'static, ()> {
        let (node, opened) = (self.node.get().cloned(), self.listeners.subscribe());
        let task = self.runtime.spawn(async move {
            let mut protocol = [0];
            let first = net::read_exact(&mut *stream.source, &mut protocol);
            let is_named = matches!(timeout(FIRST_BYTE_MAX, first).await, Ok(Ok(())));
            // The other member may know of this leader before its services are open.
            let listeners = timeout(OPEN_MAX, open_listeners(node, opened)).await;
            let listener = listeners.ok().flatten();
            let listener = listener.and_then(|it| Protocol::listener(protocol[0], &it));
            if let Some(address) = listener.filter(|_| is_named)
                && let Ok(socket) = TcpStream::connect(address).await
            {
                splice(stream, socket).await;
            } else {
                stream.sink.close();
            }
        });
        Box::pin(async move { drop(task.await) })
    }

    fn join(&self, stream: Stream) -> BoxFuture<'static, ()> {
        let Some(node) = self.node.get().cloned() else {
            stream.sink.close();
            return Box::pin(std::future::ready(()));
        };
        let (data, now_ms) = (self.data.clone(), self.ports.clock.unix_ms());
        let task = self.runtime.spawn(async move {
            let admitted = node.admit(stream, now_ms, move || DirectoryImage::make(&data));
            if let Err(error) = admitted.await {
                tracing::warn!(%error, "a node could not join");
            }
        });
        Box::pin(async move { drop(task.await) })
    }
}

/// Waits until the services are open. Returns `None` if this node does not lead.
async fn open_listeners(
    node: Option<Arc<Node>>,
    opened: watch::Receiver<Option<Listeners>>,
) -> Option<Listeners> {
    let node = node?;
    loop {
        let listeners = opened.borrow().clone();
        if listeners.is_some() || node.leader() != Some(node.id()) {
            return listeners;
        }
        sleep(OPEN_POLL).await;
    }
}

/// Passes bytes in both directions until both have ended or one has failed.
pub(super) async fn splice(stream: Stream, mut socket: TcpStream) {
    // It is a matter of speed only.
    let _ = socket.set_nodelay(true);
    let Stream {
        mut source, sink, ..
    } = stream;
    let (mut reader, mut writer) = socket.split();
    let inward = async {
        let mut buffer = vec![0; BUFFER_SIZE];
        loop {
            match net::read(&mut *source, &mut buffer).await? {
                0 => return writer.shutdown().await,
                size => writer.write_all(&buffer[..size]).await?,
            }
        }
    };
    let outward = async {
        let mut buffer = vec![0; BUFFER_SIZE];
        loop {
            match reader.read(&mut buffer).await? {
                0 => {
                    sink.finish();
                    return Ok(());
                }
                size => net::write_all(&*sink, &buffer[..size]).await?,
            }
        }
    };
    // A client that disconnects is no event.
    let _: io::Result<((), ())> = tokio::try_join!(inward, outward);
    sink.close();
}
