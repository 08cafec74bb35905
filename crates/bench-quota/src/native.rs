//! Native load role: our own client over the native protocol, one thread, a configured number of
//! connections.
//!
//! Each connection has as many requests in flight as the pace allows. Each of them runs in a task
//! that sends the next request when the last one is answered. The client's CPU is part of the
//! generator's reported cost.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use client::quota::{Outcome, Quota, Take};
use client::{CallError, Client};
use tokio::task::LocalSet;

use super::agents::DIGITS;
use super::answer::Decisions;
use super::counts::{Counts, LatencyStart};
use super::pace::{NextAction, NextRequest, Pacer};
use super::{LoadCounts, LoadSpec, STEADY, TOKENS, TakeCost};
use bench::tally::Departure;
use bench::workload::role::{Failure, Ready, read_line, runtime, write_line};
use meter::clock::now_ns;

/// Name of the only endpoint.
const ENDPOINT: &str = "take";

/// Plays the role.
///
/// # Errors
/// When the server cannot be reached.
pub(super) fn play(spec: &LoadSpec, batch: u32, costs: TakeCost) -> Result<(), Failure> {
    let local = LocalSet::new();
    local.block_on(&runtime()?, play_on_runtime(spec, batch, costs))?;
    // The suite reads this process's memory before it ends.
    read_line()?;
    Ok(())
}

async fn play_on_runtime(spec: &LoadSpec, batch: u32, costs: TakeCost) -> Result<(), Failure> {
    let opened_ns = now_ns();
    let mut quotas = Vec::new();
    for address in spec.addresses.iter().cycle().take(spec.pace.callers()) {
        quotas.push(Client::connect(address).await?.quota());
    }
    write_line(&Ready {
        address: None,
        setup_ns: now_ns() - opened_ns,
    })?;
    if read_line()?.is_some() {
        let asked = ask(spec, quotas, batch, costs, || write_line(&STEADY)).await?;
        write_line(&asked)?;
    }
    Ok(())
}

/// State shared by all requests: pacer and counts.
struct SharedState {
    pacer: Pacer,
    counts: Counts,
    timed: LatencyStart,
    /// Prefix of the subjects.
    prefix: String,
    batch: u32,
    costs: TakeCost,
}

/// Sends all requests. `open` is called once, when the window opens.
async fn ask(
    spec: &LoadSpec,
    quotas: Vec<Quota>,
    batch: u32,
    costs: TakeCost,
    open: impl FnOnce() -> Result<(), Failure>,
) -> Result<LoadCounts, Failure> {
    let pacer = Pacer::new(&spec.pace, &spec.agents, now_ns()).ok_or("a schedule needs a rate")?;
    let open_ns = pacer.open_ns();
    let shared = Rc::new(RefCell::new(SharedState {
        pacer,
        counts: Counts::of([ENDPOINT]),
        timed: spec.pace.timed(),
        prefix: format!("default/default/{}", spec.agents.prefix),
        batch,
        costs,
    }));
    let mut tasks = Vec::new();
    for (caller, quota) in quotas.iter().enumerate() {
        for _ in 0..spec.pace.depth() {
            let busy = keep_busy(caller, quota.clone(), shared.clone());
            tasks.push(tokio::task::spawn_local(busy));
        }
    }
    sleep_until(open_ns).await;
    open()?;
    for task in tasks {
        task.await?;
    }
    let window_ns = now_ns().saturating_sub(open_ns).max(1);
    let counts = std::mem::replace(&mut shared.borrow_mut().counts, Counts::of([ENDPOINT]));
    Ok(LoadCounts {
        tally: counts.tally,
        answered: counts.answered,
        window_ns,
    })
}

/// Sends one request after the other, as the pacer decides.
async fn keep_busy(caller: usize, quota: Quota, shared: Rc<RefCell<SharedState>>) {
    let mut free_ns = now_ns();
    loop {
        let at_ns = now_ns();
        let next = shared.borrow_mut().pacer.next(caller, at_ns);
        match next {
            NextAction::Send(going) => {
                let departure = Departure {
                    intended_ns: going.intended_ns.unwrap_or(at_ns),
                    ready_ns: free_ns,
                    sent_ns: at_ns,
                };
                let takes = shared.borrow_mut().begin(going, departure);
                let outcomes = take(&quota, &takes).await;
                free_ns = now_ns();
                let is_failed = !outcomes.failed.is_empty();
                shared.borrow_mut().end(going, departure, outcomes, free_ns);
                if is_failed {
                    tokio::time::sleep(PAUSE).await;
                }
            }
            NextAction::Sleep(until_ns) => sleep_until(until_ns).await,
            NextAction::Idle => {
                let due_ns = shared.borrow().pacer.due_ns();
                sleep_until(due_ns).await;
            }
            NextAction::Done => return,
        }
    }
}

/// Outcomes of the takes in a request.
#[derive(Default)]
struct Outcomes {
    decided: Decisions,
    /// Failures of the other takes, each a stable word.
    failed: Vec<String>,
}

async fn take(quota: &Quota, takes: &[Take]) -> Outcomes {
    let mut outcomes = Outcomes::default();
    match takes {
        [take] => outcomes.add(quota.take(take).await),
        _ => match quota.take_batch(takes).await {
            Ok(each) => each.into_iter().for_each(|one| outcomes.add(one)),
            Err(error) => takes.iter().for_each(|_| outcomes.add(Err(error.clone()))),
        },
    }
    outcomes
}

impl Outcomes {
    fn add(&mut self, outcome: Result<Outcome, CallError>) {
        match outcome {
            Ok(Outcome::Admitted(_)) => self.decided.allowed += 1,
            Ok(Outcome::Denied(denied)) if !denied.is_exhausted => self.decided.limited += 1,
            Ok(Outcome::Denied(_)) => self.failed.push("exhausted".to_owned()),
            Err(error) => self.failed.push(error.code.as_str().to_owned()),
        }
    }
}

impl SharedState {
    /// Returns the takes of the next request, and counts it as sent.
    fn begin(&mut self, going: NextRequest, departure: Departure) -> Vec<Take> {
        if going.is_counted {
            self.counts.sent(self.batch, departure, self.timed);
        }
        let one = |_| {
            let agent = self.pacer.agent();
            let take = Take::of(format!("{}{agent:0DIGITS$}", self.prefix)).cost("requests", 1);
            match self.costs {
                TakeCost::Request => take,
                TakeCost::RequestAndTokens => take.cost("tokens", TOKENS),
            }
        };
        (0..self.batch).map(one).collect()
    }

    /// Counts a finished request. A failure counts even outside the window: a run with a failure is
    /// not clean.
    fn end(&mut self, going: NextRequest, departure: Departure, outcomes: Outcomes, done_ns: u64) {
        let counts = &mut self.counts;
        if going.is_counted {
            counts.answered(0, outcomes.decided, departure, self.timed, done_ns);
        }
        for kind in &outcomes.failed {
            if !going.is_counted {
                counts.sent(1, departure, self.timed);
            }
            counts.failed(1, kind);
        }
    }
}

/// Pause after a failure, so that a server that rejects every request is not flooded.
const PAUSE: Duration = Duration::from_millis(10);

async fn sleep_until(at_ns: u64) {
    tokio::time::sleep(Duration::from_nanos(at_ns.saturating_sub(now_ns()))).await;
}
