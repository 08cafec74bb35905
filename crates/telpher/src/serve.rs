//! A whole node in this process: the doors, the threads behind them, and how it goes down.
//!
//! Composes what the libraries offer; nothing here looks at a message.

mod agents;
mod archive;
mod backup;
mod clock;
mod descriptors;
mod doors;
mod embedded;
mod gate;
mod journal;
mod kafka;
mod kept;
mod lifted;
mod limiter;
mod logs;
mod memory;
mod ports;
mod readers;
mod ready;
mod reload;
mod revocation;
mod running;
mod shared_quotas;
mod signals;
mod slim;
mod system;
mod views;
mod workers;

use std::sync::Arc;

use node::config::{self, Config, Loaded};
use node::ports::{Disk, Lock, LockError, RealDisk, check_owner};
use node::tokens::TokenStore;

use crate::commands::config::tls_failure;
use crate::commands::token::store_failure;
use crate::failure::{Exit, Failure};
pub(crate) use backup::Backup;
pub(crate) use descriptors::{
    granted as descriptors_granted, is_asked_for as are_connections_asked_for,
    raise as raise_descriptors,
};
pub(crate) use embedded::Embedded;
use gate::TokenGate;
pub(crate) use kept::{Message, Messages, Names, Purge, Retry};
pub(crate) use limiter::CompatLimiter;
pub(crate) use ready::Audience;
use reload::Reload;
use running::{Kept, Means, Running, threads_failure};
pub(crate) use signals::Signals;
use signals::Wanted;
pub(crate) use slim::check as check_slim;
pub(crate) use system::{HTTP_AGENT, SYSTEM_AGENT};

/// What ends a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndsWith {
    /// A signal.
    Signal,
    /// A signal, or the end of the standard input.
    SignalOrInput,
}

/// Runs a node until it is told to end. `read` reads the configuration again.
pub(crate) fn run(
    loaded: &Loaded,
    limiter: Option<CompatLimiter>,
    audience: Audience,
    ends_with: EndsWith,
    no_color: bool,
    read: &dyn Fn() -> Result<Loaded, Failure>,
) -> Result<(), Failure> {
    let config = &loaded.config;
    logs::start(&config.log, no_color)?;
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    let _lock = lock_data(config)?;
    let tokens = TokenStore::open(Arc::new(RealDisk), &config.data.dir).map_err(store_failure)?;
    config::check_exposure(loaded, tokens.list().len())?;
    warn_of_unbound(&tokens);
    let identity = match config.tls.files() {
        Some((certificate, key)) => {
            Some(net::ServerIdentity::load(certificate, key).map_err(tls_failure)?)
        }
        None => None,
    };
    let mut config = descriptors::fit(loaded);
    if let Some(limiter) = &limiter {
        limiter.add_limit(&mut config.limits)?;
    }
    let config = &config;

    let ports = ports::real();
    let gate = Arc::new(TokenGate::new(tokens));
    gate.follow().map_err(threads_failure)?;
    let (journal, sync_times) = journal::open(config, &ports)?;
    let means = Means {
        gate: gate.clone(),
        ports,
        identity: identity.clone(),
        limiter: limiter.clone(),
        journal: Kept {
            journal: journal.clone(),
            sync_times,
        },
    };
    let runtime = workers::runtime().map_err(threads_failure)?;
    let served = runtime.block_on(async {
        let mut signals = match ends_with {
            EndsWith::Signal => Signals::listen()?,
            EndsWith::SignalOrInput => Signals::listen()?.and_end_of_input(),
        }
        .and_hangup()?;
        let mut running = Running::start(config, means).await?;
        running.have_done(revocation::enforce(gate.clone(), running.node()));
        ready::tell(running.addresses(), config, audience)?;
        let reload = Reload {
            node: running.node(),
            gate,
            identity,
            limiter,
            loaded,
            read,
        };
        while signals.next_or_hangup().await == Wanted::Reload {
            reload.run();
        }
        running.shut_down(config, &mut signals).await;
        Ok(())
    });
    runtime.shutdown_background();
    journal::flush(&journal);
    served
}

/// Tokens that an earlier version made have no names yet.
fn warn_of_unbound(tokens: &TokenStore) {
    let unbound = tokens.list().iter().filter(|token| token.names.is_none());
    let names: Vec<_> = unbound.map(|token| token.name.as_str()).collect();
    if !names.is_empty() {
        tracing::warn!(
            tokens = names.join(", "),
            "tokens of an earlier version may use every name until the next version: bind each \
             with `telpher token bind NAME --for PATTERN`"
        );
    }
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
    check_owner(dir).map_err(|foreign| {
        Failure::new(Exit::Failed, foreign)
            .hint("run as its owner, or choose a directory of this user: --data PATH")
    })?;
    RealDisk.lock(&dir.join("node.lock")).map_err(refused)
}

fn data_failure(error: node::ports::DiskError) -> Failure {
    Failure::new(Exit::Failed, error)
        .hint("choose a directory that this user may write to: --data PATH")
}
