//! Takes that wait until they pass.
//!
//! A take that a cell denies waits in the cell's queue, which is fair ([`quota::Queue`]); only the
//! first in a queue tries again. There is no timer here: each poll returns the time of the next
//! one, and the listener has the clock. Invariant: *a waiting take leaves its queue exactly once:
//! admitted, at its deadline, or dropped*; the next one in the queue is then woken.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;
use std::time::Duration;

use quota::{Cost, Denied, Plan, Queue, QueuePosition, Rules, Subject, SubjectError, When};

use super::desk::Desk;
use super::outcome::{DecidedTake, Outcome, Take, Turn};
use super::queues::Cell;
use super::shared::RunningQuery;
use crate::service::{QuotaService, Quotas};

/// A waiting take. Dropping it ends the wait.
///
/// A [`platform::Pending`] would not do: polling needs the caller's [`Desk`] and returns the time of
/// the next attempt, because the listener has the timer; and a waiting take owns a place in a queue.
pub struct WaitingTake {
    pub(super) service: Arc<QuotaService>,
    name: Box<str>,
    run: Box<str>,
    costs: Vec<Cost>,
    hold: Option<Duration>,
    id: Option<Box<str>>,
    principal: Option<Box<str>>,
    priority: u8,
    deadline_ns: u64,
    place: Option<(Cell, QueuePosition)>,
    /// True for a look, which takes nothing.
    pub(super) is_look: bool,
    /// The request to the store in progress.
    pub(super) running: Option<RunningQuery>,
}

/// An owned copy of a take.
pub(super) struct OwnedTake {
    name: Box<str>,
    run: Box<str>,
    costs: Vec<Cost>,
    hold: Option<Duration>,
    id: Option<Box<str>>,
    principal: Option<Box<str>>,
}

impl OwnedTake {
    pub(super) fn take(&self) -> Result<Take<'_>, SubjectError> {
        Ok(Take {
            subject: Subject::new(&self.name, &self.run)?,
            costs: &self.costs,
            hold: self.hold,
            id: self.id.as_deref(),
            principal: self.principal.as_deref(),
        })
    }
}

/// The state of a take after it was begun.
#[derive(Debug)]
#[must_use = "it is decided when it was looked at"]
pub enum TakeProgress {
    /// The take is decided.
    Done(DecidedTake),
    /// The shared store must be asked: poll the take until it is decided.
    Asks(WaitingTake),
}

/// The result of polling a waiting take.
#[derive(Debug)]
pub enum Attempt {
    /// The take is decided.
    Done(DecidedTake),
    /// The take waits: poll again after this time, or when the waker is woken.
    Wait(Duration),
}

impl Quotas<'_> {
    /// Starts a take that waits for up to `wait` if it does not pass at once; [poll](WaitingTake::poll)
    /// it for the decision. Higher priorities go first.
    pub fn take_waiting(self, take: &Take<'_>, wait: Duration, priority: u8) -> WaitingTake {
        let wait_ns = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
        WaitingTake {
            service: self.service.clone(),
            name: take.subject.name().into(),
            run: take.subject.run().into(),
            costs: take.costs.to_vec(),
            hold: take.hold,
            id: take.id.map(Into::into),
            principal: take.principal.map(Into::into),
            priority,
            deadline_ns: self.now_ns().saturating_add(wait_ns),
            place: None,
            is_look: false,
            running: None,
        }
    }

    /// Returns the denial of a take that must wait its turn because others wait for one of its
    /// cells. The first take of a queue is not behind anyone there.
    pub(super) fn behind_others(
        self,
        rules: &Rules,
        plan: &mut Plan,
        subject: &Subject<'_>,
        own: Option<&(Cell, QueuePosition)>,
        now_ns: u64,
    ) -> Option<(Denied, Cell)> {
        let (step, cell, ahead) = self.others_first(rules, plan, subject, own)?;
        let mut locked = self.lock(plan);
        quota::look(rules, plan, subject, &mut locked, now_ns);
        let denied = plan.behind(rules, step, ahead, now_ns)?;
        Some((denied, cell))
    }

    /// Returns the step and the cell that others wait for, and the amount they need.
    fn others_first(
        self,
        rules: &Rules,
        plan: &Plan,
        subject: &Subject<'_>,
        own: Option<&(Cell, QueuePosition)>,
    ) -> Option<(usize, Cell, u64)> {
        if self.state().waiting.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let queues = self.state().queues.lock();
        let mut keys = plan.keys(rules, subject).enumerate();
        keys.find_map(|(step, key)| {
            let cell: Cell = (key.limit, key.prefix.to_string().into());
            let queue = queues.by_cell.get(&cell)?;
            let (first, _) = queue.first()?;
            let is_own = own.is_some_and(|(own, place)| *own == cell && *place == first);
            (!is_own).then(|| (step, cell, queue.cost()))
        })
    }

    /// Wakes the first take of each queue, after credit was returned or the rules changed.
    pub(super) fn wake_waiting(self) {
        if self.state().waiting.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut queues = self.state().queues.lock();
        let firsts: Vec<Waker> = queues
            .by_cell
            .values_mut()
            .filter_map(first_waker)
            .collect();
        drop(queues);
        firsts.into_iter().for_each(Waker::wake);
    }
}

impl WaitingTake {
    /// Tries to take if it is its turn; returns the decision or the time of the next poll.
    pub fn poll(&mut self, desk: &mut Desk, waker: &Waker) -> Attempt {
        let service = self.service.clone();
        let quotas = service.quotas();
        let own = self.owned_take();
        let take = match own.take() {
            Ok(take) => take,
            Err(error) => return Attempt::Done(DecidedTake::unavailable(&error.to_string())),
        };
        if let Some(shared) = &service.shared
            && let Some(attempt) = self.poll_shared(shared, desk, &take, waker)
        {
            return attempt;
        }
        let (now_ns, subject) = (quotas.current_ns(), take.subject);
        let rules = quotas.state().rules.read();
        if rules.plan(&mut desk.plan, &subject, take.costs).is_ok()
            && let Some((denied, cell)) = {
                let own = self.place.as_ref();
                quotas.behind_others(&rules, &mut desk.plan, &subject, own, now_ns)
            }
        {
            desk.begin(&rules, now_ns);
            if now_ns >= self.deadline_ns {
                self.leave(quotas, WaitEnd::GaveUp);
                let taken = quotas.denied(&rules, &take, &denied, now_ns);
                quotas.count(desk, &taken);
                return Attempt::Done(taken);
            }
            let weight = rules.limit(denied.index).weight;
            return self.wait_for(quotas, cell, (denied.need, weight), waker, now_ns, u64::MAX);
        }
        let taken = quotas.take_by(&rules, desk, &take, Turn::Mine, now_ns);
        let Outcome::Denied(denial) = &taken.outcome else {
            self.leave(quotas, WaitEnd::Admitted);
            return Attempt::Done(taken);
        };
        let again_ns = match denial.when {
            When::At(at_ns) | When::Period(at_ns) => at_ns,
            // An expiring hold wakes no one, so poll when it expires.
            When::Release => quotas.next_due_ns().min(self.deadline_ns),
            When::Never => u64::MAX,
        };
        let index = rules.policies().find(&denial.limit.name);
        let cell = index.and_then(|index| cell_of(&rules, index, &subject, desk));
        match cell.filter(|_| now_ns < self.deadline_ns && again_ns <= self.deadline_ns) {
            None => {
                self.leave(quotas, WaitEnd::GaveUp);
                quotas.count(desk, &taken);
                Attempt::Done(taken)
            }
            Some(cell) => {
                let share = (denial.need, denial.limit.weight);
                self.wait_for(quotas, cell, share, waker, now_ns, again_ns)
            }
        }
    }

    /// Returns a copy of the take.
    fn owned_take(&self) -> OwnedTake {
        OwnedTake {
            name: self.name.clone(),
            run: self.run.clone(),
            costs: self.costs.clone(),
            hold: self.hold,
            id: self.id.clone(),
            principal: self.principal.clone(),
        }
    }

    /// Joins the queue of a cell that others wait for, if its deadline allows waiting.
    pub(super) fn stand_in_line(
        &mut self,
        quotas: Quotas<'_>,
        desk: &mut Desk,
        take: &Take<'_>,
        waker: &Waker,
    ) -> Option<Attempt> {
        let now_ns = quotas.now_ns();
        let rules = quotas.state().rules.read();
        if now_ns >= self.deadline_ns {
            return None;
        }
        rules.plan(&mut desk.plan, &take.subject, take.costs).ok()?;
        let own = self.place.as_ref();
        let (step, cell, _) = quotas.others_first(&rules, &desk.plan, &take.subject, own)?;
        let part = desk.plan.parts(&rules, &take.subject, now_ns).nth(step)?;
        let need = u64::try_from(part.count).unwrap_or(0);
        let share = (need, rules.limit(part.index).weight);
        Some(self.wait_for(quotas, cell, share, waker, now_ns, u64::MAX))
    }

    pub(super) fn wait_for(
        &mut self,
        quotas: Quotas<'_>,
        cell: Cell,
        share: (u64, u32),
        waker: &Waker,
        now_ns: u64,
        again_ns: u64,
    ) -> Attempt {
        if !self.enter(quotas, cell, share, waker) {
            return Attempt::Done(DecidedTake::unavailable("as many takes wait as may"));
        }
        // Wait at least one nanosecond, so that it cannot poll repeatedly at the same time.
        let wait_ns = again_ns.min(self.deadline_ns).saturating_sub(now_ns).max(1);
        Attempt::Wait(Duration::from_nanos(wait_ns))
    }

    /// Returns the deadline, in nanoseconds of [`Quotas::now_ns`].
    pub fn deadline_ns(&self) -> u64 {
        self.deadline_ns
    }

    /// Joins a cell's queue unless it is in it; false if too many takes wait.
    fn enter(
        &mut self,
        quotas: Quotas<'_>,
        cell: Cell,
        (need, weight): (u64, u32),
        waker: &Waker,
    ) -> bool {
        let state = quotas.state();
        if let Some((known, place)) = &self.place
            && *known == cell
        {
            let mut queues = state.queues.lock();
            let own = queues
                .by_cell
                .get_mut(known)
                .and_then(|queue| queue.at(*place));
            if let Some(own) = own {
                *own = Some(waker.clone());
            }
            return true;
        }
        self.leave(quotas, WaitEnd::GaveUp);
        let waiting_max = state.options.waiting_max;
        let mut queues = state.queues.lock();
        if state.waiting.load(Ordering::Relaxed) >= waiting_max {
            return false;
        }
        state.waiting.fetch_add(1, Ordering::Relaxed);
        let queue = queues.by_cell.entry(cell.clone()).or_default();
        let place = queue.push(&self.name, self.priority, need, weight, Some(waker.clone()));
        self.place = Some((cell, place));
        true
    }

    pub(super) fn leave(&mut self, quotas: Quotas<'_>, left: WaitEnd) {
        let Some((cell, place)) = self.place.take() else {
            return;
        };
        let state = quotas.state();
        let mut queues = state.queues.lock();
        let Some(queue) = queues.by_cell.get_mut(&cell) else {
            return;
        };
        let is_first = queue.first().is_some_and(|(first, _)| first == place);
        let removed = match left {
            WaitEnd::Admitted if is_first => queue.admit(),
            WaitEnd::Admitted | WaitEnd::GaveUp => queue.remove(place),
        };
        if removed.is_some() {
            state.waiting.fetch_sub(1, Ordering::Relaxed);
        }
        let next = if is_first { first_waker(queue) } else { None };
        if queue.is_empty() {
            queues.by_cell.remove(&cell);
        }
        drop(queues);
        if let Some(next) = next {
            next.wake();
        }
    }
}

pub(super) fn cell_of(
    rules: &Rules,
    index: usize,
    subject: &Subject<'_>,
    desk: &Desk,
) -> Option<Cell> {
    let limit = rules.policies().limits()[index].0;
    let mut keys = desk.plan.keys(rules, subject);
    let key = keys.find(|key| key.limit == limit)?;
    Some((key.limit, key.prefix.to_string().into()))
}

/// The reason why a wait ended.
#[derive(Clone, Copy)]
pub(super) enum WaitEnd {
    Admitted,
    GaveUp,
}

fn first_waker(queue: &mut Queue<Option<Waker>>) -> Option<Waker> {
    let (place, _) = queue.first()?;
    queue.at(place)?.clone()
}

impl Drop for WaitingTake {
    fn drop(&mut self) {
        let service = self.service.clone();
        self.leave(service.quotas(), WaitEnd::GaveUp);
    }
}

impl std::fmt::Debug for WaitingTake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "WaitingTake({}, {:?})", self.name, self.place)
    }
}
