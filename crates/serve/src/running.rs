//! A running node with its listeners.

use std::sync::Arc;
use std::time::Duration;

use ::journal::{Journal, SyncTimes};
use config::{Config, Loaded};
use console::{Exit, Failure, Signals};
use door::Gate;
use messaging::Messaging;
use net::SocketBudget;
use node::{Node, Parts, StorageParts};
use outbound::archive::Archive;
use platform::Membership;
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, JoinSet};

use super::agents::Webhooks;
use super::backup::Backups;
use super::cluster::Cluster;
use super::descriptors::Grant;
use super::limiter::CompatLimiter;
use super::listeners::{
    Addresses, BoundListeners, KafkaTaker, MemberSockets, OpenListeners, Protocols,
};
use super::operations::Operations;
use super::readers::Readers;
use super::system::{OwnAgents, SystemAgent};
use super::telemetry::Telemetry;
use super::workers::{Native, Slim, Workers};
use super::{
    archive, backup, clock, history, kafka, notify, parts, shared_quotas, slim, streams, views,
    watch,
};
use crate::failures::tls_failure;

/// A node that serves until it is dropped or shut down.
pub(super) struct Running {
    node: Node,
    addresses: Addresses,
    system: SystemAgent,
    /// Receives the reason of a failure of the journal.
    journal_failed: Option<oneshot::Receiver<String>>,
    http: Arc<http_api::Connections>,
    /// The tasks that accept clients, and those for deadlines, revocations and the like.
    tasks: JoinSet<()>,
    /// The task that accepts Kafka clients.
    kafka: Option<AbortHandle>,
    slim: door_slim::Listeners,
    /// The threads of connections, which end after the last request is answered.
    _workers: Arc<Workers>,
}

/// The dependencies of a node in addition to its configuration.
pub(super) struct Dependencies {
    /// The configuration as it was loaded, if there is one.
    pub(super) loaded: Option<Arc<Loaded>>,
    pub(super) gate: Arc<dyn Gate>,
    pub(super) ports: platform::Ports,
    /// The TLS certificate, if TLS is on.
    pub(super) identity: Option<Arc<net::ServerIdentity>>,
    pub(super) limiter: Option<CompatLimiter>,
    /// The limit of file descriptors of the process.
    pub(super) grant: Grant,
    /// The node's journal.
    pub(super) journal: NodeJournal,
    /// The cluster of which the node is a member.
    pub(super) member: Option<Member>,
}

/// A node's part in a cluster.
pub(super) struct Member {
    pub(super) membership: Arc<dyn Membership>,
    pub(super) cluster: Cluster,
    pub(super) sockets: Arc<MemberSockets>,
    /// Takes Kafka clients over while the node is not sure to lead.
    pub(super) kafka_taker: Option<KafkaTaker>,
}

/// A journal with the durations of its syncs.
pub(super) struct NodeJournal {
    pub(super) journal: Arc<Journal>,
    pub(super) sync_times: Arc<SyncTimes>,
}

impl Running {
    /// Starts a node on the current runtime, and threads for its connections.
    pub(super) async fn start(
        config: &Config,
        dependencies: Dependencies,
    ) -> Result<Self, Failure> {
        let Dependencies {
            loaded,
            gate,
            ports,
            identity,
            limiter,
            grant,
            journal,
            member,
        } = dependencies;
        let sockets = member.as_ref().map(|it| it.sockets.clone());
        let kafka_taker = member.as_ref().and_then(|it| it.kafka_taker.clone());
        let (membership, cluster) = member.map(|it| (it.membership, it.cluster)).unzip();
        let tls = identity
            .as_ref()
            .map(|it| it.server_config(None))
            .transpose();
        let tls = tls.map_err(tls_failure)?;
        let budget = SocketBudget::new(grant.sockets(0));
        let listeners = BoundListeners::bind(config, sockets.as_deref(), limiter, tls.is_some());
        let listeners = listeners.await?;
        let addresses = listeners.addresses.clone();
        let NodeJournal {
            journal,
            sync_times,
        } = journal;
        let source = backup::Source {
            journal: journal.clone(),
            data: config.data.dir.clone(),
            gate: gate.clone(),
            is_member: cluster.is_some(),
            backups: Backups::default(),
        };
        let operations = loaded.map(|loaded| -> Arc<dyn http_api::Operations> {
            Arc::new(Operations {
                loaded,
                config: config.clone(),
                sync_times: sync_times.clone(),
                backups: source.backups.clone(),
            })
        });
        let archive = archive::create(config)?;
        let webhooks = Webhooks::new(config)?;
        let exchange = Arc::new(door_slim::Exchange::default());
        let readers = Readers::start().map_err(threads_failure)?;
        let shared_quotas = shared_quotas::store(config)?;
        let storage = StorageParts {
            sync_times: Some(sync_times),
            archive: archive.as_ref().map(Archive::reader),
            webhooks: Some(webhooks.parts()),
            membership,
            ..parts::storage(config, journal)
        };
        let telemetry = Telemetry::new(config, &ports)?;
        let node = Node::open(Parts {
            tracer: telemetry.as_ref().map(Telemetry::tracer),
            limits: parts::limits(config),
            quotas: parts::quotas(config, shared_quotas),
            offload: Arc::new(readers),
            names: Some(exchange.clone()),
            sockets: Some(parts::sockets(budget.clone())),
            ..Parts::with_storage(ports, storage)
        });
        let node = node.map_err(|error| Failure::new(Exit::Failed, error))?;
        report_upgrade(&node);
        report_recovered_drafts(&node);
        let door = door_native::Door::new(node.clone(), gate.clone(), native_options(config));
        let workers = Workers::start(config.runtime.workers);
        let workers = Arc::new(workers.map_err(threads_failure)?);
        let protocols = Protocols {
            native: Arc::new(Native {
                workers: workers.clone(),
                door: door.clone(),
            }),
            kafka: kafka::open(&node, gate.clone(), config),
            kafka_taker,
            slim: Arc::new(Slim {
                workers: workers.clone(),
                door: slim::open(&node, gate.clone(), exchange, config)?,
            }),
            slim_tls: slim::tls(config, identity.as_ref())?,
            http: http_options(config, identity),
            operations: operations.clone(),
        };
        let http = protocols.http.connections.clone();
        let own = OwnAgents {
            source,
            connections: http.clone(),
            cluster,
            operations,
        };
        let system = SystemAgent::start(&node, &door, own).await?;
        let OpenListeners {
            mut tasks,
            kafka,
            slim,
        } = listeners.open(tls, protocols, workers.clone(), node.clone(), gate, &budget);
        let (failed, journal_failed) = oneshot::channel();
        tasks.spawn(watch::watch(node.clone(), budget, grant, failed));
        tasks.spawn(webhooks.call(node.clone(), system.client().clone()));
        if let Some(telemetry) = telemetry {
            tasks.spawn(telemetry.run());
        }
        tasks.spawn(door::sweep(node.clone()));
        tasks.spawn(streams::tend(node.clone(), config.stream.clone()));
        tasks.spawn(shared_quotas::tend(node.clone()));
        tasks.spawn(clock::follow(node.clone()));
        tasks.spawn(history::record(node.clone()));
        tasks.spawn(views::tend(node.clone(), config.views.interval));
        if let Some(archive) = archive {
            tasks.spawn(archive.run(node.clone()));
        }
        Ok(Self {
            node,
            addresses,
            system,
            journal_failed: Some(journal_failed),
            http,
            tasks,
            kafka,
            slim,
            _workers: workers,
        })
    }

    /// Returns the node.
    pub(super) fn node(&self) -> Node {
        self.node.clone()
    }

    /// Waits until the journal has failed and returns the reason. Never returns if `is_awaited` is
    /// false.
    pub(super) async fn journal_failure(&mut self, is_awaited: bool) -> String {
        let failed = match &mut self.journal_failed {
            Some(failed) => failed.await.ok(),
            None => None,
        };
        // A receiver must not be polled again after it has completed.
        self.journal_failed = None;
        match failed {
            Some(reason) if is_awaited => reason,
            _ => std::future::pending().await,
        }
    }

    /// Runs a task until the node ends.
    pub(super) fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// Returns the addresses of the node.
    pub(super) fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// Ends the node as suddenly as a crash, without a notice to clients.
    pub(super) async fn crash(self) {
        let Self {
            node,
            system,
            mut tasks,
            slim,
            ..
        } = self;
        drop(slim);
        // The system agent would reconnect.
        drop(system);
        tasks.shutdown().await;
        node.messaging().close_all();
    }

    /// Notifies the clients, waits until they have finished, and closes the remaining connections.
    /// A second signal skips the waiting.
    pub(super) async fn shut_down(self, config: &Config, signals: &mut Signals) {
        let Self {
            node,
            addresses,
            system,
            http,
            tasks: _tasks,
            kafka,
            slim,
            ..
        } = self;
        end_process_after(config.shutdown.limit);
        notify::stopping();
        // A Kafka client tries another broker at once if it cannot connect, and may give up if its
        // connection ends without an answer.
        if let Some(accepting) = kafka {
            accepting.abort();
        }
        // A SLIM application reconnects at once when its connection ends, so no listener may accept
        // it.
        slim.close().await;
        // The drain must not wait for the node's own connection.
        drop(system);
        drain(node.messaging(), &http, config, signals).await;
        shared_quotas::leave(&node).await;
        // Changes of quotas must be queued before the journal is flushed.
        node.quotas().flush_all();
        for path in [addresses.socket, addresses.slim_socket]
            .into_iter()
            .flatten()
        {
            // If this fails, the next start replaces the socket.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Ends the process after `limit` in any case.
fn end_process_after(limit: Duration) {
    std::thread::spawn(move || {
        std::thread::sleep(limit);
        tracing::error!("the shutdown exceeds `shutdown.limit`; the process ends now");
        std::process::exit(Exit::Timeout as i32);
    });
}

fn report_upgrade(node: &Node) {
    if let Some(records) = node.upgraded_names() {
        tracing::info!(records, "the directory of streams is upgraded to format 2");
    }
}

fn report_recovered_drafts(node: &Node) {
    let count = node.conversations().map_or(0, |it| it.drafts_recovered());
    if count > 0 {
        tracing::info!(count, "interrupted answers were stored as messages");
    }
}

pub(super) fn threads_failure(error: std::io::Error) -> Failure {
    Failure::new(Exit::Failed, format!("cannot start a thread: {error}"))
        .hint("reduce the number of threads: --runtime-workers COUNT")
}

fn http_options(config: &Config, identity: Option<Arc<net::ServerIdentity>>) -> door_http::Options {
    let options = &config.http;
    let access = door_http::Access::new(options.hosts.clone(), options.origins.clone(), identity);
    door_http::Options {
        access: Arc::new(access),
        connections: Arc::new(http_api::Connections::new(http_api::Limits {
            connections_max: options.connections_max as usize,
            streams_max: options.streams_max as usize,
            write_timeout: options.write_timeout,
        })),
        ..door_http::Options::default()
    }
}

fn native_options(config: &Config) -> door_native::Options {
    let native = &config.native;
    door_native::Options {
        // The configuration limits it to 1 GiB.
        frame_size_max: u32::try_from(native.frame_size_max.as_u64()).unwrap_or(u32::MAX),
        keepalive: native.keepalive,
        handshake_timeout: native.handshake_timeout,
        queue_size_max: native.queue_size_max.as_usize(),
    }
}

/// Time for data to arrive that clients sent before they received the shutdown notice.
const ARRIVAL: Duration = Duration::from_millis(100);

/// Time between two checks for the end of the drain.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

async fn drain(
    messaging: &Messaging,
    http: &http_api::Connections,
    config: &Config,
    signals: &mut Signals,
) {
    let limit = config.shutdown.drain;
    let notice = match config.http.listen {
        Some(_) => config.shutdown.notice,
        None => Duration::ZERO,
    };
    let drain_ms = u32::try_from(limit.as_millis()).unwrap_or(u32::MAX);
    let connections = messaging.connection_count();
    tracing::info!(connections, drain_ms, "draining");
    messaging.drain(drain_ms);
    http.drain();
    let drained = async {
        tokio::time::sleep(ARRIVAL).await;
        poll_until(|| messaging.pending_call_count() == 0).await;
    };
    let left = async { poll_until(|| messaging.connection_count() == 0).await };
    let native = async {
        tokio::select! {
            () = drained => {}
            () = left => {}
        }
    };
    let all = async {
        tokio::join!(native, tokio::time::sleep(notice));
        // Requests that were read are answered, including those that wait for a sync.
        http.close();
        poll_until(|| http.is_idle()).await;
    };
    tokio::select! {
        () = all => {}
        () = tokio::time::sleep(limit) => {
            let calls = messaging.pending_call_count();
            tracing::warn!(calls, "shutdown.drain is over; calls are cut off");
        }
        () = signals.next() => {
            tracing::warn!("second signal: the node ends at once");
            return;
        }
    }
    messaging.close_all();
    tokio::select! {
        () = poll_until(|| messaging.connection_count() == 0) => {}
        () = tokio::time::sleep(ARRIVAL) => {}
        () = signals.next() => {}
    }
    tracing::info!("ended");
}

async fn poll_until(mut condition: impl FnMut() -> bool) {
    while !condition() {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
