//! A whole node in this process: the doors, the threads behind them, and how it goes down.
//!
//! Composes what the libraries offer; nothing here looks at a message.

mod descriptors;
mod doors;
mod gate;
mod logs;
mod ports;
mod ready;
mod signals;
mod workers;

use std::sync::Arc;
use std::time::Duration;

use edge::native;
use node::Handle;
use node::config::{self, Config, Loaded};
use node::ports::{Disk, Lock, LockError, RealDisk};
use node::tokens::TokenStore;
use tokio::time::MissedTickBehavior;

use crate::commands::config::tls_failure;
use crate::commands::token::store_failure;
use crate::failure::{Exit, Failure};
use doors::Doors;
use gate::TokenGate;
pub(crate) use ready::Audience;
use signals::Signals;
use workers::Workers;

/// Runs a node until a signal ends it.
pub(crate) fn run(loaded: &Loaded, audience: Audience, no_color: bool) -> Result<(), Failure> {
    let config = &loaded.config;
    logs::start(&config.log, no_color)?;
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    let _lock = lock_data(config)?;
    let tokens = TokenStore::open(Arc::new(RealDisk), &config.data.dir).map_err(store_failure)?;
    config::check_exposure(loaded, tokens.list().len())?;
    let tls = match config.tls.files() {
        Some((certificate, key)) => {
            Some(net::load_server_config(certificate, key).map_err(tls_failure)?)
        }
        None => None,
    };
    descriptors::raise(config.native.connections_max);

    let ports = ports::real();
    let gate = Arc::new(TokenGate::new(tokens, ports.clock.clone()));
    let node = Handle::new(node_limits(config), ports);
    let door = native::Door::new(node.clone(), gate.clone(), native_options(config));
    let workers = Arc::new(Workers::start(config.runtime.workers, door).map_err(threads_failure)?);
    let runtime = workers::runtime().map_err(threads_failure)?;
    let served = runtime.block_on(async {
        let mut signals = Signals::listen()?;
        let doors = Doors::bind(config, tls.is_some()).await?;
        ready::tell(&doors.addresses, config, audience)?;
        let socket = doors.addresses.socket.clone();
        doors.open(tls, workers, node.clone(), gate);
        tokio::spawn(sweep(node.clone()));
        signals.next().await;
        shut_down(&node, config, &mut signals).await;
        if let Some(path) = socket {
            // Whoever starts next replaces a socket that nobody answers.
            let _ = std::fs::remove_file(path);
        }
        Ok(())
    });
    runtime.shutdown_background();
    served
}

/// One node at a time uses a data directory.
fn lock_data(config: &Config) -> Result<Box<dyn Lock>, Failure> {
    let dir = &config.data.dir;
    let refused = |error: LockError| match error {
        LockError::Held { pid, .. } => {
            let holder = pid.map_or("another process".to_owned(), |pid| format!("process {pid}"));
            let message = format!("the data directory {} is in use by {holder}", dir.display());
            Failure::new(Exit::Unavailable, message)
                .hint("stop that node, or give this one a directory of its own: --data PATH")
        }
        LockError::Disk(error) => data_failure(error),
    };
    RealDisk.create_dir(dir).map_err(data_failure)?;
    RealDisk.lock(&dir.join("node.lock")).map_err(refused)
}

fn data_failure(error: node::ports::DiskError) -> Failure {
    Failure::new(Exit::Failed, error)
        .hint("choose a directory that this user may write to: --data PATH")
}

fn threads_failure(error: std::io::Error) -> Failure {
    Failure::new(Exit::Failed, format!("cannot start a thread: {error}"))
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
        calls_max: native.calls_max,
        credit_messages: native.credit_messages,
        credit_bytes: native.credit_bytes.as_u64(),
        keepalive: native.keepalive,
        handshake_timeout: native.handshake_timeout,
        queue_size_max: native.queue_size_max.as_usize(),
    }
}

/// How often deadlines are looked after.
const SWEEP_INTERVAL: Duration = Duration::from_millis(100);

async fn sweep(node: Handle) {
    let mut interval = tokio::time::interval(SWEEP_INTERVAL);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        node.sweep();
    }
}

/// What a client has sent before it hears that the node goes down may take this long to arrive.
const ARRIVAL: Duration = Duration::from_millis(100);

/// How often the end of the drain is looked for.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Tells the clients, lets them finish, closes what is left. A second signal skips the waiting.
async fn shut_down(node: &Handle, config: &Config, signals: &mut Signals) {
    let shutdown = &config.shutdown;
    signals::end_process_after(shutdown.limit);
    let drain_ms = u32::try_from(shutdown.drain.as_millis()).unwrap_or(u32::MAX);
    tracing::info!(connections = node.connection_count(), drain_ms, "draining");
    node.drain(drain_ms);
    let drained = async {
        tokio::time::sleep(ARRIVAL).await;
        poll_until(|| node.pending_call_count() == 0).await;
    };
    let left = async { poll_until(|| node.connection_count() == 0).await };
    tokio::select! {
        () = drained => {}
        () = left => {}
        () = tokio::time::sleep(shutdown.drain) => {
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
