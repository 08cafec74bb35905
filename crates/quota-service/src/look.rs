//! Reading the state of a subject's limits.

use std::sync::Arc;

use quota::{Rules, Subject};

use super::desk::Desk;
use super::service::Quotas;
use super::waiting_take::WaitingTake;

impl Quotas<'_> {
    /// Looks up the state of all limits of a subject, without creating buckets; read the result
    /// from the desk. With a shared store, returns the request to the store: the desk has the
    /// result once that is done and the store was available.
    pub fn peek(self, desk: &mut Desk, subject: &Subject<'_>) -> Option<WaitingTake> {
        let now_ns = self.current_ns();
        let rules = self.state().rules.read();
        self.look_local(&rules, desk, subject, now_ns);
        self.state().shared.as_ref()?;
        let ask = self.look_shared(&rules, desk, subject)?;
        Some(self.waiting_look(subject, ask))
    }

    pub(super) fn look_local(
        self,
        rules: &Arc<Rules>,
        desk: &mut Desk,
        subject: &Subject<'_>,
        now_ns: u64,
    ) {
        desk.begin(rules, now_ns);
        rules.plan_look(&mut desk.plan, subject);
        let mut locked = self.lock(&desk.plan);
        quota::look(rules, &mut desk.plan, subject, &mut locked, now_ns);
    }
}
