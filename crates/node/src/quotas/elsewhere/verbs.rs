//! What administrators do to cells that lie elsewhere.
//!
//! A reset and a grant are done there. What changes a limit for a time, an override, a factor or a
//! halt, is each node's own, and would stand at one of several: it is refused.

use quota::{AdminError, Part, Prefix, Subject, Tier};

use super::Elsewhere;
use super::begin;
use super::wanted;
use crate::ports::quota_store::{Away, RemoteCell, RemoteTake, Verb};
use crate::quotas::admin::ChangeError;
use crate::quotas::{Desk, Override, Quotas};

impl Quotas<'_> {
    /// Refuses what would stand at this node alone.
    pub(in crate::quotas) fn check_stands_everywhere(
        self,
        what: &'static str,
    ) -> Result<(), ChangeError> {
        match self.state().elsewhere.get() {
            None => Ok(()),
            Some(_) => Err(ChangeError::Apart { what }),
        }
    }

    /// Whether an override is a grant and nothing else, which is given there.
    pub(in crate::quotas) fn is_grant(self, change: &Override) -> bool {
        let is_plain = change.capacity.is_none() && change.refill.is_none();
        is_plain && change.grant > 0 && self.state().elsewhere.get().is_some()
    }

    /// Makes the buckets there that are the subject's own as if it had taken nothing. Without a store
    /// nothing is to be done.
    pub async fn reset_there(self, subject: &Subject<'_>) -> Result<(), Away> {
        let Some(elsewhere) = self.state().elsewhere.get() else {
            return Ok(());
        };
        let (rules, now_ns, mut desk) = (self.rules(), self.now_ns(), Desk::new());
        rules.plan_look(&mut desk.plan, subject);
        desk.plan
            .retain(&rules, |limit| limit.pattern.tier() == Tier::Agent);
        let parts = desk.plan.parts(&rules, subject, now_ns);
        let there = parts.filter(|part| begin::is_there(&rules, part.index));
        let cells = there.map(|part| wanted::cell(&part, &rules, 0)).collect();
        elsewhere.apply(Verb::Reset, cells).await
    }

    /// The same for one bucket, of whatever tier.
    pub async fn reset_bucket_there(
        self,
        limit: &str,
        prefix: Prefix<'_>,
    ) -> Result<(), ChangeError> {
        let Some(elsewhere) = self.state().elsewhere.get() else {
            return Ok(());
        };
        let cell = self.cell_there(limit, prefix, 0)?;
        Ok(elsewhere
            .apply(Verb::Reset, cell.into_iter().collect())
            .await?)
    }

    /// Gives a grant there, if it is one. Without a store nothing is to be done.
    pub async fn grant_there(
        self,
        limit: &str,
        prefix: Prefix<'_>,
        change: &Override,
    ) -> Result<(), ChangeError> {
        let Some(elsewhere) = self.state().elsewhere.get() else {
            return Ok(());
        };
        if !self.is_grant(change) {
            return self.check_stands_everywhere("an override");
        }
        let rules = self.rules();
        rules.with_override(limit, prefix, change.clone(), self.now_ns())?;
        let cell = self.cell_there(limit, prefix, change.grant)?;
        Ok(elsewhere
            .apply(Verb::Grant, cell.into_iter().collect())
            .await?)
    }

    /// One cell, if it lies there.
    fn cell_there(
        self,
        limit: &str,
        prefix: Prefix<'_>,
        count: u64,
    ) -> Result<Option<RemoteCell>, AdminError> {
        let (rules, now_ns) = (self.rules(), self.now_ns());
        let (key, _) = rules.key(limit, prefix)?;
        let part = rules.part(key, i128::from(count), now_ns);
        let there = part.filter(|part: &Part<'_>| begin::is_there(&rules, part.index));
        Ok(there.map(|part| wanted::cell(&part, &rules, 0)))
    }
}

impl Elsewhere {
    async fn apply(&self, verb: Verb, cells: Vec<RemoteCell>) -> Result<(), Away> {
        if cells.is_empty() {
            return Ok(());
        }
        self.store.decide(vec![RemoteTake { verb, cells }]).await?;
        self.leases.forget_denied();
        Ok(())
    }
}
