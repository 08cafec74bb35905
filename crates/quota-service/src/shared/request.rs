//! Asks the shared store about a take.
//!
//! Cells that several takes compete for are leased first, by one take for all. Leased credit is
//! spent locally; the store decides the remaining cells as a whole, and if it denies them, the
//! local spending is undone. If the caller disconnects meanwhile, credit already debited in the
//! store is lost, never granted twice.

use std::sync::Arc;

use quota::{Rules, StoreAnswer};

use super::SharedCells;
use super::cell_request::CellRequest;
use super::lease::lease;
use super::leases::{CellDenial, LeaseDebit};
use crate::quota_store::{
    RemoteCell, RemoteCellState, RemoteDecision, RemoteTake, StoreUnavailable, Verb, org_of_key,
};
use crate::service::{QuotaService, Quotas};

/// Maximum number of lease attempts before the store is asked for the take itself.
const LEASES_MAX: usize = 4;

/// A question to the store.
pub(crate) struct StoreQuery {
    pub(super) rules: Arc<Rules>,
    /// The shard of the entries of its cells.
    pub(super) shard: u16,
    pub(super) wanted: Vec<CellRequest>,
    pub(super) verb: Verb,
}

/// The store's answer.
pub(crate) struct Answer {
    /// The rules at the time of the question.
    pub(crate) rules: Arc<Rules>,
    /// The state of cells by step of the plan, as far as known.
    pub(crate) cells: Vec<(usize, StoreAnswer)>,
    pub(crate) verdict: Verdict,
}

/// The decision.
pub(crate) enum Verdict {
    Passed,
    /// Denied by the cell of this step.
    Denied(usize, CellDenial),
    StoreUnavailable(StoreUnavailable),
}

/// Asks until there is a decision.
pub(super) async fn ask(service: Arc<QuotaService>, query: StoreQuery) -> Answer {
    let quotas = service.quotas();
    let (answers, verdict) = match &quotas.state().shared {
        None => (Vec::new(), Verdict::Passed),
        Some(shared) => {
            let mut run = StoreQueryRun {
                quotas,
                shared,
                query: &query,
                answers: Vec::new(),
            };
            let verdict = match query.verb {
                Verb::Look => run.look().await,
                _ => run.take().await,
            };
            (run.answers, verdict)
        }
    };
    Answer {
        rules: query.rules,
        cells: answers,
        verdict,
    }
}

/// A query in progress, with the answers so far.
struct StoreQueryRun<'a> {
    quotas: Quotas<'a>,
    shared: &'a SharedCells,
    query: &'a StoreQuery,
    answers: Vec<(usize, StoreAnswer)>,
}

impl StoreQueryRun<'_> {
    async fn take(&mut self) -> Verdict {
        let (leases, shard) = (&self.shared.leases, self.query.shard);
        let wanted = &self.query.wanted;
        if let Err(error) = self.end_outage().await {
            return Verdict::StoreUnavailable(error);
        }
        leases.note(shard, wanted, self.quotas.now_ns());
        let mut leases_left = LEASES_MAX;
        loop {
            let now_ns = self.quotas.now_ns();
            let to_lease = leases.to_lease(shard, wanted, now_ns);
            if let Some(index) = to_lease.filter(|_| leases_left > 0) {
                leases_left -= 1;
                match lease(self.quotas, self.shared, shard, &wanted[index]).await {
                    Ok(()) => continue,
                    Err(error) => return Verdict::StoreUnavailable(error),
                }
            }
            let spent = match leases.spend_some(shard, wanted, now_ns) {
                Ok(spent) => spent,
                Err((index, denied)) => return Verdict::Denied(wanted[index].step, denied),
            };
            match self.decide_rest(&spent).await {
                Ok(None) => {
                    let spent = wanted.iter().zip(spent);
                    let answers = spent.filter_map(|(it, spent)| Some((it.step, spent?.1)));
                    self.answers.extend(answers);
                    return Verdict::Passed;
                }
                denied => {
                    let spent: Vec<LeaseDebit> =
                        spent.iter().flatten().map(|(spent, _)| *spent).collect();
                    leases.unspend(shard, &spent);
                    match denied {
                        Err(error) => return Verdict::StoreUnavailable(error),
                        Ok(Some((index, denied))) => {
                            // The credit that the store lacks may be leased to this node.
                            if leases_left > 0 && self.give_back().await {
                                leases_left = 0;
                                continue;
                            }
                            let now_ns = self.quotas.now_ns();
                            leases.note_denied(shard, &wanted[index], denied, now_ns);
                            return Verdict::Denied(wanted[index].step, denied);
                        }
                        Ok(None) => return Verdict::Passed,
                    }
                }
            }
        }
    }

    /// After an outage, debits what was granted meanwhile before anything is asked.
    async fn end_outage(&self) -> Result<(), StoreUnavailable> {
        let (shared, shard) = (self.shared, self.query.shard);
        if shared.shares.is_open(shard)
            && let Some(wanted) = self.query.wanted.first()
        {
            shared.send_unsent_of(org_of_key(&wanted.cell.key)).await?;
        }
        Ok(())
    }

    /// Asks the store for the cells that were not spent from leases; returns the cell that denies,
    /// if any.
    async fn decide_rest(
        &mut self,
        spent: &[Option<(LeaseDebit, StoreAnswer)>],
    ) -> Result<Option<(usize, CellDenial)>, StoreUnavailable> {
        let wanted = &self.query.wanted;
        let rest = spent
            .iter()
            .enumerate()
            .filter(|(_, spent)| spent.is_none());
        let rest: Vec<usize> = rest.map(|(index, _)| index).collect();
        self.answers.clear();
        if rest.is_empty() {
            return Ok(None);
        }
        let cells = rest.iter().map(|index| wanted[*index].cell.clone());
        let decision = self.decide(cells.collect()).await?;
        for (index, state) in rest.iter().zip(&decision.cells) {
            let wanted = &wanted[*index];
            self.shared
                .leases
                .note_balance(self.query.shard, wanted, state.have);
            let is_shadowed = state.is_short && !wanted.cell.is_enforced;
            self.answers
                .push((wanted.step, store_answer(state, is_shadowed)));
        }
        let Some(place) = decision.denied_by else {
            return Ok(None);
        };
        let (index, have) = match (rest.get(place), decision.cells.get(place)) {
            (Some(index), Some(state)) => (*index, state.have),
            _ => return Err(senseless()),
        };
        let now_ns = self.quotas.now_ns();
        let after_ns = decision.retry_after_ns;
        let denied = CellDenial {
            have,
            need: wanted[index].count(),
            at_ns: after_ns.map(|after_ns| now_ns.saturating_add(after_ns)),
        };
        Ok(Some((index, denied)))
    }

    async fn decide(&self, cells: Vec<RemoteCell>) -> Result<RemoteDecision, StoreUnavailable> {
        let count = cells.len();
        let take = RemoteTake {
            verb: self.query.verb,
            cells,
        };
        let decided = self.shared.store.decide(vec![take]).await?;
        self.shared.shares.end(self.query.shard);
        let decision = decided.into_iter().next();
        decision
            .filter(|decision| decision.cells.len() == count)
            .ok_or_else(senseless)
    }

    /// Returns the leased credit of the take's cells to the store; true if there was any.
    async fn give_back(&self) -> bool {
        let mut was_any = false;
        for wanted in &self.query.wanted {
            if let Some(returned) = self.shared.leases.give_back(self.query.shard, wanted) {
                was_any |= returned.lease.granted > returned.spent;
                let cell = wanted.cell.clone();
                // Credit that could not be returned counts as spent.
                let _ = self.shared.store.lease(cell, 0, Some(returned)).await;
            }
        }
        was_any
    }

    async fn look(&mut self) -> Verdict {
        let (wanted, now_ns) = (&self.query.wanted, self.quotas.now_ns());
        let cells = wanted.iter().map(|wanted| wanted.cell.clone());
        let decision = match self.decide(cells.collect()).await {
            Ok(decision) => decision,
            Err(error) => return Verdict::StoreUnavailable(error),
        };
        for (wanted, state) in wanted.iter().zip(&decision.cells) {
            let mut shard = self.shared.leases.shard(self.query.shard);
            let leased = shard.of(wanted).map_or(0, |entry| entry.remaining(now_ns));
            let answer = store_answer(state, false);
            let have = answer.have + i128::from(leased);
            self.answers
                .push((wanted.step, StoreAnswer { have, ..answer }));
        }
        Verdict::Passed
    }
}

fn store_answer(state: &RemoteCellState, is_shadowed: bool) -> StoreAnswer {
    StoreAnswer {
        have: i128::from(state.have),
        mark: Some(state.mark),
        touched_ns: state.touched_ns,
        is_shadowed,
    }
}

fn senseless() -> StoreUnavailable {
    StoreUnavailable {
        may_be_done: true,
        reason: "the store answers something else than was asked".to_owned(),
    }
}
