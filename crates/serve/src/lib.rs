//! Runs a node in this process: listeners, threads, reload and shutdown.
//!
//! The crate composes the libraries from a configuration, and keeps the node's own agents for
//! administration. It knows every part of a node and decides nothing about messages; it does not
//! know the command line. Invariant: *one process at a time uses a data directory.*

pub mod address;
mod agents;
mod archive;
mod backup;
mod clock;
mod cluster;
pub mod data_lock;
mod descriptors;
pub mod doctor;
mod embedded;
mod failures;
mod gate;
mod high_descriptors;
mod history;
mod journal;
mod kafka;
mod limiter;
mod listeners;
mod logs;
mod mailboxes;
mod memory;
mod memory_limit;
mod notify;
mod operations;
mod parts;
mod ports;
mod readers;
mod ready;
mod reload;
mod revocation;
mod running;
mod shared_quotas;
mod slim;
mod streams;
mod system;
mod telemetry;
mod views;
mod watch;
mod workers;

use std::sync::Arc;

use ::cluster::InitState;
use access::tokens::TokenStore;
use config::{Config, Loaded};
use platform::{Disk, Lock, LockError, RealDisk, check_owner};

pub use backup::Backup;
pub use cluster::{Departure, Initialized, KEY_FILE, init as init_cluster, leave as leave_cluster};
use console::{Exit, Failure, SignalAction, Signals};
pub use descriptors::{
    granted as descriptors_granted, is_asked_for as are_connections_asked_for,
    raise as raise_descriptors,
};
pub use embedded::Embedded;
pub use failures::{config_failure, store_failure, tls_failure};
use gate::TokenGate;
pub use limiter::CompatLimiter;
use listeners::Addresses;
pub use mailboxes::{Acknowledge, ListMessages, ListNames, Purge, RetryDeadLetters};
pub use ready::Audience;
use reload::Reload;
use running::{Dependencies, NodeJournal, Running, threads_failure};
pub use slim::check as check_slim;
pub use streams::Trim;
pub use system::{HTTP_AGENT, SYSTEM_AGENT};

/// The events that end a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndsWith {
    /// A signal.
    Signal,
    /// A signal, or the end of the standard input.
    SignalOrInput,
}

impl EndsWith {
    /// Listens for what ends the node.
    fn signals(self) -> Result<Signals, Failure> {
        let signals = Signals::listen()?;
        Ok(match self {
            Self::Signal => signals,
            Self::SignalOrInput => signals.and_end_of_input(),
        })
    }
}

/// Runs a node until a signal ends it. `read` loads the configuration again. `join` is the address of
/// a member of the cluster that the node joins, unless it is a member already.
pub fn run(
    loaded: &Loaded,
    join: Option<&str>,
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
    config::check_exposure(loaded, tokens.list().len()).map_err(config_failure)?;
    warn_of_unbound(&tokens);
    let identity = match config.tls.files() {
        Some((certificate, key)) => {
            Some(net::ServerIdentity::load(certificate, key).map_err(tls_failure)?)
        }
        None => None,
    };
    let (mut config, grant) = descriptors::fit(loaded);
    memory_limit::fit(&mut config, loaded);
    if let Some(limiter) = &limiter {
        limiter.add_limit(&mut config.limits)?;
    }
    let config = &config;

    let ports = ports::real();
    let gate = Arc::new(TokenGate::new(tokens));
    gate.follow().map_err(threads_failure)?;
    if let Some(contact) = join {
        cluster::join(config, contact)?;
    }
    let member = cluster::identity(&config.data.dir)?;
    let mut of_member = config.clone();
    // A cluster serves topics and streams only.
    of_member.slim.listen = None;
    of_member.slim.socket = None;
    let config = match member {
        Some(_) => &of_member,
        None => config,
    };
    let (journal, sync_times) = match &member {
        None => journal::open(config, &ports)?,
        Some(member) => {
            if limiter.is_some() {
                let message = "a cluster does not apply limits yet: --compat-limiter";
                return Err(Failure::new(Exit::Usage, message).hint("use a node that is alone"));
            }
            check_member(config, member)?;
            let opened = check_journal(config, member);
            match opened.and_then(|()| journal::open_member(config, &ports)) {
                Ok(opened) => opened,
                Err(damage) => {
                    let runtime = workers::runtime().map_err(threads_failure)?;
                    return runtime.block_on(async {
                        let mut signals = ends_with.signals()?;
                        Err(cluster::run_damaged(config, gate, damage, &mut signals).await)
                    });
                }
            }
        }
    };
    let is_begun = |state| state != InitState::NotBegun;
    if member.is_none() && ::cluster::init_state(&journal).map_or(true, is_begun) {
        let dir = config.data.dir.display();
        let message = format!("`telpher cluster init` was interrupted in {dir}");
        return Err(Failure::new(Exit::Failed, message)
            .hint(format!("complete it: telpher cluster init --data {dir}")));
    }
    let origins = Arc::new(loaded.clone());
    let dependencies = |journal, member| Dependencies {
        loaded: Some(origins.clone()),
        gate: gate.clone(),
        ports: ports.clone(),
        identity: identity.clone(),
        limiter: limiter.clone(),
        grant,
        journal,
        member,
    };
    let reload = |node| Reload {
        node,
        gate: gate.clone(),
        identity: identity.clone(),
        limiter: limiter.clone(),
        loaded,
        read,
    };
    let announce = |addresses: &Addresses| {
        ready::announce(addresses, config, audience)?;
        notify::ready();
        Ok(())
    };
    let runtime = workers::runtime().map_err(threads_failure)?;
    let served = runtime.block_on(async {
        let mut signals = ends_with.signals()?.and_hangup()?;
        let failed = match member {
            None => {
                let journal = NodeJournal {
                    journal: journal.clone(),
                    sync_times,
                };
                let mut running = Running::start(config, dependencies(journal, None)).await?;
                running.spawn(revocation::enforce(gate.clone(), running.node()));
                announce(running.addresses())?;
                let reload = reload(running.node());
                let failed = loop {
                    let action = tokio::select! {
                        action = signals.next_or_hangup() => action,
                        reason = running.journal_failure(config.journal.exit_on_failure) => {
                            break Some(reason);
                        }
                    };
                    match action {
                        SignalAction::Reload => reload.run(),
                        SignalAction::End => break None,
                    }
                };
                if failed.is_some() {
                    tokio::select! {
                        () = tokio::time::sleep(config.journal.exit_delay) => {}
                        () = signals.next() => {}
                    }
                }
                running.shut_down(config, &mut signals).await;
                failed.map(|reason| journal::failure(config, &reason))
            }
            Some(identity) => {
                let start = cluster::Start {
                    config,
                    identity,
                    journal: journal.clone(),
                    sync_times,
                    dependencies: &dependencies,
                    reload: &reload,
                    announcement: cluster::Announcement::new(&announce),
                    gate: gate.clone(),
                };
                cluster::run(start, &mut signals).await?
            }
        };
        match failed {
            None => Ok(()),
            Some(failure) => Err(failure),
        }
    });
    runtime.shutdown_background();
    journal::flush(&journal);
    served
}

/// Refuses a member whose journal is missing.
fn check_journal(config: &Config, member: &cluster::Identity) -> Result<(), Failure> {
    let dir = config.data.dir.join(journal::DIRECTORY);
    if !dir.join(::journal::manifest::PATH).exists() {
        let message = format!(
            "node {} of the cluster has lost its journal: {} is missing",
            member.id,
            dir.display()
        );
        return Err(cluster::removal(member.id, message));
    }
    Ok(())
}

/// Refuses a member that is leaving its cluster, or whose configuration asks for what a cluster does
/// not serve.
fn check_member(config: &Config, member: &cluster::Identity) -> Result<(), Failure> {
    if member.is_leaving {
        let dir = config.data.dir.display();
        let message = format!("`telpher cluster leave` was interrupted in {dir}");
        return Err(Failure::new(Exit::Failed, message)
            .hint(format!("complete it: telpher cluster leave --data {dir}")));
    }
    if config.journal.accept_loss {
        let message = "a member does not accept losses: `journal.accept_loss` is set";
        return Err(Failure::new(Exit::Usage, message)
            .hint("remove the member and join with an empty data directory"));
    }
    if let Some(limit) = config.limits.first() {
        let message = format!(
            "a cluster does not apply limits yet, and `{}` is configured",
            limit.name
        );
        return Err(Failure::new(Exit::Usage, message).hint("remove the [[limit]] tables"));
    }
    Ok(())
}

/// Logs a warning about tokens of an earlier version, which are not bound to names.
fn warn_of_unbound(tokens: &TokenStore) {
    let unbound = tokens.list().iter().filter(|token| token.names.is_none());
    let names: Vec<_> = unbound.map(|token| token.name.as_str()).collect();
    if !names.is_empty() {
        tracing::warn!(
            tokens = names.join(", "),
            "tokens of an earlier version may use every name until the next version; bind each \
             with `telpher token bind NAME --for PATTERN`"
        );
    }
}

/// Locks the data directory, which only one node at a time may use.
fn lock_data(config: &Config) -> Result<Box<dyn Lock>, Failure> {
    let dir = &config.data.dir;
    let refused = |error: LockError| match error {
        LockError::Held { pid, .. } => {
            let holder = data_lock::holder(pid);
            let message = format!("the data directory {} is in use by {holder}", dir.display());
            Failure::new(Exit::Unavailable, message)
                .hint("stop that node, or choose another directory for this one: --data PATH")
        }
        LockError::Disk(error) => data_failure(error),
    };
    if dir.exists() && !dir.is_dir() {
        let message = format!("`data`: {} is not a directory", dir.display());
        return Err(Failure::new(Exit::Usage, message).hint("choose a directory: --data PATH"));
    }
    RealDisk.create_dir(dir).map_err(data_failure)?;
    check_owner(dir).map_err(|foreign| {
        Failure::new(Exit::Failed, foreign)
            .hint("run as its owner, or choose a directory that this user owns: --data PATH")
    })?;
    RealDisk.lock(&dir.join(data_lock::NAME)).map_err(refused)
}

fn data_failure(error: platform::DiskError) -> Failure {
    Failure::new(Exit::Failed, error)
        .hint("choose a directory that is writable for this user: --data PATH")
}
