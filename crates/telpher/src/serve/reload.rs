//! What SIGHUP does: certificates, tokens and the limits of quotas are read again.
//!
//! The rest of the configuration is read too, and each option that changed is logged as one that needs
//! a restart. A file that cannot be used changes nothing.

use std::sync::Arc;

use net::ServerIdentity;
use node::Handle;
use node::config::{Loaded, specs};

use super::gate::TokenGate;
use super::limiter::CompatLimiter;
use crate::failure::Failure;

/// What is read again, and who is told.
pub(super) struct Reload<'a> {
    pub(super) node: Handle,
    pub(super) gate: Arc<TokenGate>,
    pub(super) identity: Option<Arc<ServerIdentity>>,
    pub(super) limiter: Option<CompatLimiter>,
    /// The configuration that the node was started with.
    pub(super) loaded: &'a Loaded,
    pub(super) read: &'a dyn Fn() -> Result<Loaded, Failure>,
}

impl Reload<'_> {
    /// Reads everything again and logs what came of it.
    pub(super) fn run(&self) {
        tracing::info!("SIGHUP: reading certificates, tokens and limits again");
        self.gate.reload();
        if let Some(identity) = &self.identity {
            match identity.reload() {
                Ok(()) => tracing::info!("the TLS certificate was read again"),
                Err(error) => tracing::error!(%error, "the TLS certificate of before stays"),
            }
        }
        match (self.read)() {
            Ok(loaded) => self.follow(&loaded),
            Err(failure) => {
                tracing::error!(%failure, "the configuration of before stays");
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
            return tracing::error!(%failure, "the limits of before stay");
        }
        match self.node.quotas().follow_configuration(limits) {
            Ok(true) => tracing::info!("the limits of the configuration have changed"),
            Ok(false) => {}
            Err(error) => tracing::error!(%error, "the limits of before stay"),
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
