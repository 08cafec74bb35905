//! Reload on SIGHUP: certificates, tokens and the limits of quotas.
//!
//! The rest of the configuration is read too; each changed option is logged as one that needs a
//! restart. An invalid file changes nothing.

use std::sync::Arc;

use config::{Loaded, specs};
use console::Failure;
use net::ServerIdentity;
use node::Node;

use super::gate::TokenGate;
use super::limiter::CompatLimiter;
use super::notify;

/// The parts of a node that a reload updates.
pub(super) struct Reload<'a> {
    pub(super) node: Node,
    pub(super) gate: Arc<TokenGate>,
    pub(super) identity: Option<Arc<ServerIdentity>>,
    pub(super) limiter: Option<CompatLimiter>,
    /// The configuration that the node was started with.
    pub(super) loaded: &'a Loaded,
    pub(super) read: &'a dyn Fn() -> Result<Loaded, Failure>,
}

impl Reload<'_> {
    /// Reloads everything and logs the outcome.
    pub(super) fn run(&self) {
        notify::reloading();
        self.read_again();
        notify::ready();
    }

    fn read_again(&self) {
        tracing::info!("SIGHUP: reloading certificates, tokens and limits");
        self.gate.reload();
        if let Some(identity) = &self.identity {
            match identity.reload() {
                Ok(()) => tracing::info!("the TLS certificate was reloaded"),
                Err(error) => {
                    tracing::error!(%error, "cannot reload the TLS certificate; the old one stays");
                }
            }
        }
        match (self.read)() {
            Ok(loaded) => self.follow(&loaded),
            Err(failure) => {
                tracing::error!(%failure, "cannot reload the configuration; the old one stays");
            }
        }
    }

    fn follow(&self, loaded: &Loaded) {
        let mut limits = loaded.config.limits.clone();
        let added = self
            .limiter
            .as_ref()
            .map(|limiter| limiter.add_limit(&mut limits));
        if let Err(failure) = added.transpose() {
            return tracing::error!(%failure, "cannot reload the limits; the old ones stay");
        }
        match self.node.quotas().follow_configuration(limits) {
            Ok(true) => tracing::info!("the limits of the configuration have changed"),
            Ok(false) => {}
            Err(error) => tracing::error!(%error, "cannot reload the limits; the old ones stay"),
        }
        let (before, now) = (&self.loaded.config, &loaded.config);
        let changed = specs().filter(|spec| spec.text(before) != spec.text(now));
        let changed: Vec<_> = changed.map(|spec| spec.key).collect();
        if !changed.is_empty() {
            let options = changed.join(", ");
            tracing::warn!("changed options need a restart: {options}");
        }
    }
}
