//! A node with its doors open, in this process.

use std::sync::Arc;
use std::time::Duration;

use ::journal::{Journal, SyncTimes};
use edge::chunks::{Assembler, Sizes};
use edge::{Gate, http, native};
use node::Handle;
use node::config::Config;
use tokio::task::JoinSet;

use super::doors::{Addresses, Doors, Open, Protocols};
use super::limiter::CompatLimiter;
use super::readers::Readers;
use super::signals::{self, Signals};
use super::system::SystemAgent;
use super::workers::{Native, Slim, Workers};
use super::{agents, archive, backup, clock, journal, kafka, shared_quotas, slim, views};
use crate::commands::config::tls_failure;
use crate::failure::{Exit, Failure};

/// A node that serves while this is held.
pub(crate) struct Running {
    node: Handle,
    addresses: Addresses,
    system: SystemAgent,
    http: Arc<http::Connections>,
    /// Whoever accepts clients, and whoever looks after deadlines and revocations.
    tasks: JoinSet<()>,
    slim: edge::slim::Listeners,
}

/// What a node is given beside its configuration.
pub(super) struct Means {
    pub(super) gate: Arc<dyn Gate>,
    pub(super) ports: node::Ports,
    /// What clients are shown where there is TLS.
    pub(super) identity: Option<Arc<net::ServerIdentity>>,
    pub(super) limiter: Option<CompatLimiter>,
    /// Where it keeps what it is told to keep.
    pub(super) journal: Kept,
}

/// A journal, and how long it waits for the disk.
pub(super) struct Kept {
    pub(super) journal: Arc<Journal>,
    pub(super) sync_times: Arc<SyncTimes>,
}

impl Running {
    /// Starts a node on the current runtime, and threads for its connections.
    pub(super) async fn start(config: &Config, means: Means) -> Result<Self, Failure> {
        let Means {
            gate,
            ports,
            identity,
            limiter,
            journal,
        } = means;
        let tls = identity
            .as_ref()
            .map(|it| it.server_config(None))
            .transpose();
        let tls = tls.map_err(tls_failure)?;
        let doors = Doors::bind(config, limiter, tls.is_some()).await?;
        let addresses = doors.addresses.clone();
        let limits = node_limits(config);
        let Kept {
            journal,
            sync_times,
        } = journal;
        let source = backup::Source {
            journal: journal.clone(),
            data: config.data.dir.clone(),
            gate: gate.clone(),
        };
        let options = journal::store_options(config);
        let node = Handle::with_journal(limits, ports, journal, options);
        let node = node.map_err(|error| Failure::new(Exit::Failed, error))?;
        node.show_sync_times(sync_times);
        shared_quotas::use_store(&node, config)?;
        let quotas = node
            .quotas()
            .open(config.quota.to_node(), config.limits.clone());
        quotas.map_err(|error| Failure::new(Exit::Failed, error))?;
        finish_drafts(&node)?;
        let readers = Readers::start().map_err(threads_failure)?;
        node.offload_to(Arc::new(readers));
        node.keep_views(views::options(config));
        let archive = archive::start(&node, config)?;
        let door = native::Door::new(node.clone(), gate.clone(), native_options(config));
        let workers = Workers::start(config.runtime.workers);
        let workers = Arc::new(workers.map_err(threads_failure)?);
        let protocols = Protocols {
            native: Arc::new(Native {
                workers: workers.clone(),
                door: door.clone(),
            }),
            kafka: kafka::open(&node, gate.clone(), config)?,
            slim: Arc::new(Slim {
                workers: workers.clone(),
                door: slim::open(&node, gate.clone(), config)?,
            }),
            slim_tls: slim::tls(config, identity.as_ref())?,
            http: http_options(config, identity),
        };
        let http = protocols.http.connections.clone();
        let system = SystemAgent::start(&node, &door, source, http.clone()).await?;
        let agents = agents::start(&node, system.client(), config)?;
        let Open { mut tasks, slim } = doors.open(tls, protocols, workers, node.clone(), gate);
        tasks.spawn(agents);
        tasks.spawn(edge::sweep(node.clone()));
        tasks.spawn(shared_quotas::tend(node.clone()));
        tasks.spawn(clock::follow(node.clone()));
        tasks.spawn(views::tend(node.clone(), config.views.interval));
        if let Some(archive) = archive {
            tasks.spawn(archive);
        }
        Ok(Self {
            node,
            addresses,
            system,
            http,
            tasks,
            slim,
        })
    }

    /// The node itself.
    pub(super) fn node(&self) -> Handle {
        self.node.clone()
    }

    /// Has something done for as long as it serves.
    pub(super) fn have_done(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// Where it can be reached.
    pub(super) fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// Ends it as suddenly as a crash would: nobody is told anything.
    pub(super) async fn crash(self) {
        let Self {
            node,
            system,
            mut tasks,
            slim,
            ..
        } = self;
        drop(slim);
        // It would come back on a connection of its own.
        drop(system);
        tasks.shutdown().await;
        node.close_all();
    }

    /// Tells the clients, lets them finish, closes what is left. A second signal skips the waiting.
    pub(super) async fn shut_down(self, config: &Config, signals: &mut Signals) {
        let Self {
            node,
            addresses,
            system,
            http,
            tasks: _tasks,
            slim,
        } = self;
        signals::end_process_after(config.shutdown.limit);
        // An application that is told to go comes back at once, and for good only if nobody accepts it.
        slim.close().await;
        // The node's own connection is nobody to wait for.
        drop(system);
        drain(&node, &http, config, signals).await;
        shared_quotas::leave(&node).await;
        // The journal is flushed when everything that was taken is on its way there.
        node.quotas().flush_all();
        for path in [addresses.socket, addresses.slim_socket]
            .into_iter()
            .flatten()
        {
            // Whoever starts next replaces a socket that nobody answers.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// What was being streamed when the node went down becomes messages, as far as it had come.
fn finish_drafts(node: &Handle) -> Result<(), Failure> {
    let Some(conversations) = node.conversations() else {
        return Ok(());
    };
    let sizes = Sizes::of(&conversations.options().limits);
    let finished = node.assemble_with(Arc::new(Assembler { sizes }));
    let count = finished.map_err(|refusal| Failure::new(Exit::Failed, refusal.message))?;
    if count > 0 {
        tracing::info!(count, "interrupted answers are messages now");
    }
    Ok(())
}

pub(super) fn threads_failure(error: std::io::Error) -> Failure {
    Failure::new(Exit::Failed, format!("cannot start a thread: {error}"))
        .hint("fewer of them: --runtime-workers COUNT")
}

fn http_options(config: &Config, identity: Option<Arc<net::ServerIdentity>>) -> http::Options {
    let options = &config.http;
    let access = http::Access::new(options.hosts.clone(), options.origins.clone(), identity);
    http::Options {
        access: Arc::new(access),
        connections: Arc::new(http::Connections::new(http::Limits {
            connections_max: options.connections_max as usize,
            streams_max: options.streams_max as usize,
            write_timeout: options.write_timeout,
        })),
        ..http::Options::default()
    }
}

fn node_limits(config: &Config) -> node::Limits {
    let native = &config.native;
    node::Limits {
        connections_max: native.connections_max as usize,
        calls_max: native.calls_max,
        subscriptions_per_connection_max: native.subscriptions_per_connection_max as usize,
        credit_messages: native.credit_messages,
        credit_bytes: native.credit_bytes.as_u64(),
    }
}

fn native_options(config: &Config) -> native::Options {
    let native = &config.native;
    native::Options {
        // The configuration keeps it below 4 GiB.
        frame_size_max: u32::try_from(native.frame_size_max.as_u64()).unwrap_or(u32::MAX),
        keepalive: native.keepalive,
        handshake_timeout: native.handshake_timeout,
        queue_size_max: native.queue_size_max.as_usize(),
    }
}

/// What a client has sent before it hears that the node goes down may take this long to arrive.
const ARRIVAL: Duration = Duration::from_millis(100);

/// How often the end of the drain is looked for.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

async fn drain(node: &Handle, http: &http::Connections, config: &Config, signals: &mut Signals) {
    let limit = config.shutdown.drain;
    let notice = match config.http.listen {
        Some(_) => config.shutdown.notice,
        None => Duration::ZERO,
    };
    let drain_ms = u32::try_from(limit.as_millis()).unwrap_or(u32::MAX);
    tracing::info!(connections = node.connection_count(), drain_ms, "draining");
    node.drain(drain_ms);
    http.drain();
    let drained = async {
        tokio::time::sleep(ARRIVAL).await;
        poll_until(|| node.pending_call_count() == 0).await;
    };
    let left = async { poll_until(|| node.connection_count() == 0).await };
    let native = async {
        tokio::select! {
            () = drained => {}
            () = left => {}
        }
    };
    let all = async {
        tokio::join!(native, tokio::time::sleep(notice));
        // Requests that were read are answered, also those that wait for a sync.
        http.close();
        poll_until(|| http.is_idle()).await;
    };
    tokio::select! {
        () = all => {}
        () = tokio::time::sleep(limit) => {
            tracing::warn!(calls = node.pending_call_count(), "calls are cut off");
        }
        () = signals.next() => {
            tracing::warn!("second signal: ending at once");
            return;
        }
    }
    node.close_all();
    tokio::select! {
        () = poll_until(|| node.connection_count() == 0) => {}
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
