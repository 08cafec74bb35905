//! Administrative operations on cells in the shared store.
//!
//! Resets and grants are done in the store. Halts, factors and overrides belong to each node. One
//! that lowers a limit applies at the node that receives it, like different limits would: the cells
//! stay unchanged, and admitting less never creates credit. One that raises a limit would let one
//! node admit credit that the others hold back, so it is refused.

use quota::{AdminError, Factor, Part, Prefix, Subject, Tier};

use super::SharedCells;
use super::cell_request;
use super::start;
use crate::admin::ChangeError;
use crate::desk::Desk;
use crate::quota_store::{RemoteCell, RemoteTake, StoreUnavailable, Verb};
use crate::service::Quotas;
use quota::Override;

impl Quotas<'_> {
    /// Refuses a factor that raises a limit at this node only.
    pub(crate) fn check_factor(self, limit: &str, factor: Factor) -> Result<(), ChangeError> {
        let policies = self.policies();
        match policies.find(limit) {
            Some(index) if self.state().shared.is_some() => {
                let is_less = factor.is_at_most(policies.limits()[index].1.factor);
                let what = "a factor";
                is_less.then_some(()).ok_or(ChangeError::Apart { what })
            }
            _ => Ok(()),
        }
    }

    /// Refuses an override that raises a limit at this node only.
    pub(crate) fn check_override(self, limit: &str, change: &Override) -> Result<(), ChangeError> {
        let what = "an override";
        match &self.state().shared {
            Some(_) if !self.rules().tightens(limit, change)? => Err(ChangeError::Apart { what }),
            _ => Ok(()),
        }
    }

    /// Returns whether an override is only a grant, which is given in the store.
    pub(crate) fn is_grant(self, change: &Override) -> bool {
        let is_plain = change.capacity.is_none() && change.refill.is_none();
        is_plain && change.grant > 0 && self.state().shared.is_some()
    }

    /// Resets the subject's own buckets in the store to unused. Does nothing without a store.
    pub async fn reset_in_store(self, subject: &Subject<'_>) -> Result<(), StoreUnavailable> {
        let Some(shared) = &self.state().shared else {
            return Ok(());
        };
        let (rules, now_ns, mut desk) = (self.rules(), self.now_ns(), Desk::new());
        rules.plan_look(&mut desk.plan, subject);
        desk.plan
            .retain(&rules, |limit| limit.pattern.tier() == Tier::Agent);
        let parts = desk.plan.parts(&rules, subject, now_ns);
        let in_store = parts.filter(|part| start::is_in_store(&rules, part.index));
        let cells = in_store
            .map(|part| cell_request::cell(&part, &rules, 0))
            .collect();
        shared.apply(Verb::Reset, cells).await
    }

    /// Resets one bucket of any tier in the store to unused. Does nothing without a store.
    pub async fn reset_bucket_in_store(
        self,
        limit: &str,
        prefix: Prefix<'_>,
    ) -> Result<(), ChangeError> {
        let Some(shared) = &self.state().shared else {
            return Ok(());
        };
        let cell = self.cell_in_store(limit, prefix, 0)?;
        Ok(shared
            .apply(Verb::Reset, cell.into_iter().collect())
            .await?)
    }

    /// Adds a grant's credit in the store, if the override is a grant. Does nothing without a
    /// store.
    pub async fn grant_in_store(
        self,
        limit: &str,
        prefix: Prefix<'_>,
        change: &Override,
    ) -> Result<(), ChangeError> {
        let Some(shared) = &self.state().shared else {
            return Ok(());
        };
        if !self.is_grant(change) {
            return self.check_override(limit, change);
        }
        let rules = self.rules();
        rules.with_override(limit, prefix, change.clone(), self.now_ns())?;
        let cell = self.cell_in_store(limit, prefix, change.grant)?;
        Ok(shared
            .apply(Verb::Grant, cell.into_iter().collect())
            .await?)
    }

    /// Returns the cell, if it is in the store.
    fn cell_in_store(
        self,
        limit: &str,
        prefix: Prefix<'_>,
        count: u64,
    ) -> Result<Option<RemoteCell>, AdminError> {
        let (rules, now_ns) = (self.rules(), self.now_ns());
        let (key, _) = rules.key(limit, prefix)?;
        let part = rules.part(key, i128::from(count), now_ns);
        let in_store = part.filter(|part: &Part<'_>| start::is_in_store(&rules, part.index));
        Ok(in_store.map(|part| cell_request::cell(&part, &rules, 0)))
    }
}

impl SharedCells {
    async fn apply(&self, verb: Verb, cells: Vec<RemoteCell>) -> Result<(), StoreUnavailable> {
        if cells.is_empty() {
            return Ok(());
        }
        self.store.decide(vec![RemoteTake { verb, cells }]).await?;
        self.leases.forget_denied();
        Ok(())
    }
}
