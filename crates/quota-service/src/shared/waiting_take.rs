//! Takes that wait for the shared store, and for credit there.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use quota::{Subject, When};

use super::SharedCells;
use super::request::{Answer, StoreQuery, ask};
use super::start::Begin;
use crate::desk::Desk;
use crate::outcome::id_of;
use crate::outcome::{DecidedTake, Outcome, Take};
use crate::service::{QuotaService, Quotas};
use crate::waiting_take::TakeProgress;
use crate::waiting_take::{Attempt, WaitEnd, WaitingTake, cell_of};

/// Interval after which a take that waits for the store is polled again in any case.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// Interval after which slots are asked for again, in nanoseconds.
const RELEASED_NS: u64 = 50_000_000;

/// A request in progress.
pub(crate) struct RunningQuery {
    answer: Pin<Box<dyn Future<Output = Answer> + Send>>,
    /// Excludes other takes with the same id meanwhile.
    _id: Option<ReservedId>,
}

/// The id of a take that the store is asked about, reserved until this is dropped.
struct ReservedId {
    service: Arc<QuotaService>,
    id: String,
}

impl ReservedId {
    /// Reserves an id; `None` if a take with it is in progress.
    fn new(service: &Arc<QuotaService>, id: String) -> Option<Self> {
        let service = service.clone();
        let ids = &service.shared.as_ref()?.ids;
        let is_new = ids.lock().insert(id.clone());
        is_new.then_some(Self { service, id })
    }
}

impl Drop for ReservedId {
    fn drop(&mut self) {
        if let Some(shared) = &self.service.shared {
            let ids: &mut BTreeSet<String> = &mut shared.ids.lock();
            ids.remove(&self.id);
        }
    }
}

impl<'a> Quotas<'a> {
    /// Decides a take at once, or begins to ask the store.
    pub(crate) fn take_shared(
        self,
        shared: &SharedCells,
        desk: &mut Desk,
        take: &Take<'_>,
    ) -> TakeProgress {
        let now_ns = self.current_ns();
        let rules = self.state().rules.read();
        match self.begin_shared(shared, &rules, desk, take, now_ns) {
            Begin::Done(taken) => {
                self.count(desk, &taken);
                TakeProgress::Done(taken)
            }
            Begin::Local => TakeProgress::Done(self.take_local(&rules, desk, take, now_ns)),
            Begin::Ask(query) => match self.start_query(query, take) {
                Ok(running) => {
                    let mut parked = self.take_waiting(take, Duration::ZERO, 0);
                    parked.running = Some(running);
                    TakeProgress::Asks(parked)
                }
                Err(reason) => {
                    let taken = DecidedTake::unavailable(reason);
                    self.count(desk, &taken);
                    TakeProgress::Done(taken)
                }
            },
        }
    }

    /// Starts a look that asks the store.
    pub(crate) fn waiting_look(self, subject: &Subject<'_>, query: StoreQuery) -> WaitingTake {
        let take = Take {
            subject: *subject,
            costs: &[],
            hold: None,
            id: None,
            principal: None,
        };
        let mut parked = self.take_waiting(&take, Duration::ZERO, 0);
        parked.is_look = true;
        parked.running = Some(RunningQuery {
            answer: Box::pin(ask(self.service.clone(), query)),
            _id: None,
        });
        parked
    }

    /// Starts a request; fails with the reason if that is not possible.
    fn start_query(self, query: StoreQuery, take: &Take<'_>) -> Result<RunningQuery, &'static str> {
        let id = match take.id {
            None => None,
            Some(id) => match ReservedId::new(self.service, id_of(&take.subject, id)) {
                Some(id) => Some(id),
                None => return Err("a take with this id is being decided"),
            },
        };
        Ok(RunningQuery {
            answer: Box::pin(ask(self.service.clone(), query)),
            _id: id,
        })
    }
}

impl WaitingTake {
    /// Polls the request, and waits for its turn and for credit; `None` if the store is not
    /// involved.
    pub(crate) fn poll_shared(
        &mut self,
        shared: &SharedCells,
        desk: &mut Desk,
        take: &Take<'_>,
        waker: &Waker,
    ) -> Option<Attempt> {
        let service = self.service.clone();
        let quotas = service.quotas();
        let known = match self.running.take() {
            Some(running) => Ok(running),
            None => {
                if let Some(attempt) = self.stand_in_line(quotas, desk, take, waker) {
                    return Some(attempt);
                }
                let rules = quotas.state().rules.read();
                match quotas.begin_shared(shared, &rules, desk, take, quotas.now_ns()) {
                    Begin::Local => return None,
                    Begin::Done(taken) => Err(taken),
                    Begin::Ask(query) => quotas
                        .start_query(query, take)
                        .map_err(DecidedTake::unavailable),
                }
            }
        };
        let taken = match known {
            Err(taken) => taken,
            Ok(running) => match self.go_on(running, quotas, desk, take, waker) {
                None => return Some(Attempt::Wait(LOOK_AGAIN)),
                Some(taken) => taken,
            },
        };
        Some(self.decided(quotas, desk, take, taken, waker))
    }

    fn go_on(
        &mut self,
        mut running: RunningQuery,
        quotas: Quotas<'_>,
        desk: &mut Desk,
        take: &Take<'_>,
        waker: &Waker,
    ) -> Option<DecidedTake> {
        let mut context = Context::from_waker(waker);
        match running.answer.as_mut().poll(&mut context) {
            Poll::Pending => {
                self.running = Some(running);
                None
            }
            Poll::Ready(answer) if self.is_look => Some(quotas.finish_look(desk, take, answer)),
            Poll::Ready(answer) => Some(quotas.finish_shared(desk, take, answer)),
        }
    }

    /// Returns the decision, unless the take was denied and may wait until it passes.
    fn decided(
        &mut self,
        quotas: Quotas<'_>,
        desk: &mut Desk,
        take: &Take<'_>,
        taken: DecidedTake,
        waker: &Waker,
    ) -> Attempt {
        let now_ns = quotas.now_ns();
        if let Outcome::Denied(denial) = &taken.outcome
            && let Some(rules) = desk.rules.clone()
        {
            let again_ns = match denial.when {
                When::At(at_ns) | When::Period(at_ns) => at_ns,
                // Another node may return slots at any time.
                When::Release => {
                    let again_ns = now_ns.saturating_add(RELEASED_NS);
                    again_ns.min(self.deadline_ns())
                }
                When::Never => u64::MAX,
            };
            let index = rules.policies().find(&denial.limit.name);
            let cell = index.and_then(|index| cell_of(&rules, index, &take.subject, desk));
            let is_in_time = now_ns < self.deadline_ns() && again_ns <= self.deadline_ns();
            if let Some(cell) = cell.filter(|_| is_in_time) {
                let share = (denial.need, denial.limit.weight);
                return self.wait_for(quotas, cell, share, waker, now_ns, again_ns);
            }
        }
        let left = match taken.outcome {
            Outcome::Denied(_) => WaitEnd::GaveUp,
            _ => WaitEnd::Admitted,
        };
        self.leave(quotas, left);
        if !self.is_look {
            quotas.count(desk, &taken);
        }
        Attempt::Done(taken)
    }
}
