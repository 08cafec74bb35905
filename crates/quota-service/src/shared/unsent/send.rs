//! Sends unsent changes to the store.

use std::sync::Arc;

use quota::{Hold, Kind, Rules, Settled, Subject};

use crate::admission::COUNTED;
use crate::desk::Desk;
use crate::outcome::Take;
use crate::quota_store::{RemoteCell, RemoteTake, StoreUnavailable, Verb};
use crate::service::Quotas;
use crate::shared::{SharedCells, cell_request, start};

impl SharedCells {
    /// Sends unsent changes while the store answers.
    pub(crate) async fn send_unsent(&self) -> Result<(), StoreUnavailable> {
        self.send_unsent_of("").await
    }

    /// Sends unsent changes of cells whose keys begin with `prefix`.
    pub(crate) async fn send_unsent_of(&self, prefix: &str) -> Result<(), StoreUnavailable> {
        loop {
            let cells = self.unsent.lock().next(prefix);
            if cells.is_empty() {
                return Ok(());
            }
            let mut sending = SendInProgress {
                shared: self,
                cells,
            };
            let takes = sending.cells.iter().map(|cell| RemoteTake {
                verb: Verb::Force,
                cells: vec![cell.clone()],
            });
            match self.store.decide(takes.collect()).await {
                Ok(_) => sending.cells.clear(),
                Err(error) => {
                    let cells = std::mem::take(&mut sending.cells);
                    self.unsent.lock().put_back(cells, &error);
                    return Err(error);
                }
            }
        }
    }
}

/// Changes being sent; if the request is aborted, debits are put back.
struct SendInProgress<'a> {
    shared: &'a SharedCells,
    cells: Vec<RemoteCell>,
}

impl Drop for SendInProgress<'_> {
    fn drop(&mut self) {
        if !self.cells.is_empty() {
            let error = StoreUnavailable {
                may_be_done: true,
                reason: String::new(),
            };
            let cells = std::mem::take(&mut self.cells);
            self.shared.unsent.lock().put_back(cells, &error);
        }
    }
}

impl Quotas<'_> {
    /// Plans the settlement of a hold, and queues the part that is in the store; the plan keeps the
    /// local part.
    pub(crate) fn queue_settlement(
        self,
        rules: &Rules,
        desk: &mut Desk,
        subject: &Subject<'_>,
        hold: &Hold,
        now_ns: u64,
    ) {
        let Some(shared) = &self.state().shared else {
            return;
        };
        let mut unsent = shared.unsent.lock();
        for part in desk.plan.parts(rules, subject, now_ns) {
            if !start::is_in_store(rules, part.index) {
                continue;
            }
            let charge = hold.charges.iter().find(|it| it.limit == part.key.limit);
            let is_marked = part.count < 0 && !matches!(part.kind, Kind::Bucket(_));
            let mark = charge.filter(|_| is_marked).map(|charge| charge.period);
            unsent.add(RemoteCell {
                mark,
                ..cell_request::cell(&part, rules, 0)
            });
        }
        drop(unsent);
        self.retain_local_cells(rules, desk);
    }

    /// Removes the cells in the store from a plan.
    pub(crate) fn retain_local_cells(self, rules: &Rules, desk: &mut Desk) {
        if self.state().shared.is_some() {
            desk.plan
                .retain(rules, |limit| COUNTED.contains(&limit.unit));
        }
    }

    /// Queues the return of a take that could not be stored.
    pub(crate) fn queue_return(
        self,
        rules: &Arc<Rules>,
        desk: &mut Desk,
        take: &Take<'_>,
        now_ns: u64,
    ) {
        let hold = Hold {
            subject: take.subject.to_string().into(),
            principal: Box::default(),
            charges: desk.plan.charges(rules),
            deadline_ns: now_ns,
        };
        rules.plan_settle(&mut desk.plan, &take.subject, &hold, Settled::Cancelled);
        self.queue_settlement(rules, desk, &take.subject, &hold, now_ns);
    }
}
