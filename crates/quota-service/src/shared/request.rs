//! Asks the shared store about a take.
//!
//! Cells that several takes compete for are leased first, by one take for all. Leased credit is
//! spent locally; the store decides the remaining cells as a whole, and if it denies them, the
//! local spending is undone. If the caller disconnects meanwhile, credit already debited in the
//! store is lost, never granted twice.

use std::sync::Arc;

use quota::{Rules, StoreAnswer};

use super::SharedCells;
use super::cell_request::Wanted;
use super::lease::lease;
use super::leases::{Denied, Spent};
use crate::quota_store::{
    RemoteCell, RemoteDecision, RemoteStanding, RemoteTake, StoreUnavailable, Verb, org_of_key,
};
use crate::service::{QuotaService, Quotas};

/// Maximum number of lease attempts before the store is asked for the take itself.
const LEASES_MAX: usize = 4;

/// A question to the store.
pub(crate) struct Ask {
    pub(super) rules: Arc<Rules>,
    /// The shard of the entries of its cells.
    pub(super) shard: u16,
    pub(super) wanted: Vec<Wanted>,
    pub(super) verb: Verb,
}

/// The store's answer.
pub(crate) struct Answer {
    /// The rules at the time of the question.
    pub(crate) rules: Arc<Rules>,
    /// The standing of cells by step of the plan, as far as known.
    pub(crate) told: Vec<(usize, StoreAnswer)>,
    pub(crate) verdict: Verdict,
}

/// The decision.
pub(crate) enum Verdict {
    Passed,
    /// Denied by the cell of this step.
    Denied(usize, Denied),
    StoreUnavailable(StoreUnavailable),
}

/// Asks until there is a decision.
pub(super) async fn ask(service: Arc<QuotaService>, ask: Ask) -> Answer {
    let quotas = service.quotas();
    let (told, verdict) = match &quotas.state().elsewhere {
        None => (Vec::new(), Verdict::Passed),
        Some(elsewhere) => {
            let mut asking = Asking {
                quotas,
                elsewhere,
                ask: &ask,
                told: Vec::new(),
            };
            let verdict = match ask.verb {
                Verb::Look => asking.look().await,
                _ => asking.take().await,
            };
            (asking.told, verdict)
        }
    };
    let rules = ask.rules;
    Answer {
        rules,
        told,
        verdict,
    }
}

struct Asking<'a> {
    quotas: Quotas<'a>,
    elsewhere: &'a SharedCells,
    ask: &'a Ask,
    told: Vec<(usize, StoreAnswer)>,
}

impl Asking<'_> {
    async fn take(&mut self) -> Verdict {
        let (leases, shard) = (&self.elsewhere.leases, self.ask.shard);
        let wanted = &self.ask.wanted;
        if let Err(away) = self.end_outage().await {
            return Verdict::StoreUnavailable(away);
        }
        leases.note(shard, wanted, self.quotas.now_ns());
        let mut leases_left = LEASES_MAX;
        loop {
            let now_ns = self.quotas.now_ns();
            let to_lease = leases.to_lease(shard, wanted, now_ns);
            if let Some(index) = to_lease.filter(|_| leases_left > 0) {
                leases_left -= 1;
                match lease(self.quotas, self.elsewhere, shard, &wanted[index]).await {
                    Ok(()) => continue,
                    Err(away) => return Verdict::StoreUnavailable(away),
                }
            }
            let spent = match leases.spend_some(shard, wanted, now_ns) {
                Ok(spent) => spent,
                Err((index, denied)) => return Verdict::Denied(wanted[index].step, denied),
            };
            match self.ask_for_rest(&spent).await {
                Ok(None) => {
                    let spent = wanted.iter().zip(spent);
                    let told = spent.filter_map(|(it, spent)| Some((it.step, spent?.1)));
                    self.told.extend(told);
                    return Verdict::Passed;
                }
                denied => {
                    let spent: Vec<Spent> =
                        spent.iter().flatten().map(|(spent, _)| *spent).collect();
                    leases.unspend(shard, &spent);
                    match denied {
                        Err(away) => return Verdict::StoreUnavailable(away),
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
        let (elsewhere, shard) = (self.elsewhere, self.ask.shard);
        if elsewhere.shares.is_open(shard)
            && let Some(wanted) = self.ask.wanted.first()
        {
            elsewhere.pay_of(org_of_key(&wanted.cell.key)).await?;
        }
        Ok(())
    }

    /// Asks the store for the cells that were not spent from leases; returns the cell that denies,
    /// if any.
    async fn ask_for_rest(
        &mut self,
        spent: &[Option<(Spent, StoreAnswer)>],
    ) -> Result<Option<(usize, Denied)>, StoreUnavailable> {
        let wanted = &self.ask.wanted;
        let rest = spent
            .iter()
            .enumerate()
            .filter(|(_, spent)| spent.is_none());
        let rest: Vec<usize> = rest.map(|(index, _)| index).collect();
        self.told.clear();
        if rest.is_empty() {
            return Ok(None);
        }
        let cells = rest.iter().map(|index| wanted[*index].cell.clone());
        let decision = self.decide(cells.collect()).await?;
        for (index, standing) in rest.iter().zip(&decision.cells) {
            let wanted = &wanted[*index];
            self.elsewhere
                .leases
                .note_standing(self.ask.shard, wanted, standing.have);
            let is_shadowed = standing.is_short && !wanted.cell.is_enforced;
            self.told.push((wanted.step, told(standing, is_shadowed)));
        }
        let Some(place) = decision.denied_by else {
            return Ok(None);
        };
        let (index, have) = match (rest.get(place), decision.cells.get(place)) {
            (Some(index), Some(standing)) => (*index, standing.have),
            _ => return Err(senseless()),
        };
        let now_ns = self.quotas.now_ns();
        let after_ns = decision.retry_after_ns;
        let denied = Denied {
            have,
            need: wanted[index].count(),
            at_ns: after_ns.map(|after_ns| now_ns.saturating_add(after_ns)),
        };
        Ok(Some((index, denied)))
    }

    async fn decide(&self, cells: Vec<RemoteCell>) -> Result<RemoteDecision, StoreUnavailable> {
        let count = cells.len();
        let take = RemoteTake {
            verb: self.ask.verb,
            cells,
        };
        let decided = self.elsewhere.store.decide(vec![take]).await?;
        self.elsewhere.shares.end(self.ask.shard);
        let decision = decided.into_iter().next();
        decision
            .filter(|decision| decision.cells.len() == count)
            .ok_or_else(senseless)
    }

    /// Returns the leased credit of the take's cells to the store; true if there was any.
    async fn give_back(&self) -> bool {
        let mut was_any = false;
        for wanted in &self.ask.wanted {
            if let Some(returned) = self.elsewhere.leases.give_back(self.ask.shard, wanted) {
                was_any |= returned.lease.granted > returned.spent;
                let cell = wanted.cell.clone();
                // Credit that could not be returned counts as spent.
                let _ = self.elsewhere.store.lease(cell, 0, Some(returned)).await;
            }
        }
        was_any
    }

    async fn look(&mut self) -> Verdict {
        let (wanted, now_ns) = (&self.ask.wanted, self.quotas.now_ns());
        let cells = wanted.iter().map(|wanted| wanted.cell.clone());
        let decision = match self.decide(cells.collect()).await {
            Ok(decision) => decision,
            Err(away) => return Verdict::StoreUnavailable(away),
        };
        for (wanted, standing) in wanted.iter().zip(&decision.cells) {
            let mut shard = self.elsewhere.leases.shard(self.ask.shard);
            let leased = shard.of(wanted).map_or(0, |entry| entry.remaining(now_ns));
            let told = told(standing, false);
            let have = told.have + i128::from(leased);
            self.told.push((wanted.step, StoreAnswer { have, ..told }));
        }
        Verdict::Passed
    }
}

fn told(standing: &RemoteStanding, is_shadowed: bool) -> StoreAnswer {
    StoreAnswer {
        have: i128::from(standing.have),
        mark: Some(standing.mark),
        touched_ns: standing.touched_ns,
        is_shadowed,
    }
}

fn senseless() -> StoreUnavailable {
    StoreUnavailable {
        may_be_done: true,
        reason: "the store answers something else than was asked".to_owned(),
    }
}
