//! The sending process: a thread, a runtime and a connection for each client.
//!
//! A paced client sleeps on its own thread until the next message is due and costs nothing meanwhile.
//! The kernel is asked to wake it without slack; how late it still leaves is recorded as lag.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::Barrier;
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

use client::{CallError, Caller, Cast, Client, ErrorCode, Name};
use futures_util::future::join_all;
use tokio::runtime::Runtime;

use super::receiver::WARM_UP;
use super::{AgentMode, SenderSpec, Sent, destination};
use crate::clock::now_ns;
use crate::pacing::Schedule;
use crate::tally::{Departure, Tally};
use crate::workload::role::{Failure, Ready, hear, runtime, say};

/// Messages between two looks at the clock when a client sends as fast as it can.
const BURST: u32 = 64;

/// Nobody listens here: a write to it is acknowledged when everything sent before has been taken.
const NOBODY: &str = "bench/agent/nobody";

/// Plays the sender.
///
/// # Errors
/// When the node cannot be reached or the warm-up exchange fails.
pub(crate) fn send(spec: &SenderSpec) -> Result<(), Failure> {
    let opened_ns = now_ns();
    let (connected, connections) = mpsc::channel();
    let go = Arc::new(Barrier::new(spec.clients as usize + 1));
    let threads: Vec<_> = (0..spec.clients)
        .map(|index| {
            let (spec, connected, go) = (spec.clone(), connected.clone(), go.clone());
            std::thread::spawn(move || run_client(&spec, index, &connected, &go))
        })
        .collect();
    drop(connected);
    for _ in &threads {
        // Who fails ends the process, and with it the others who wait.
        connections.recv()??;
    }
    say(&Ready {
        address: None,
        setup_ns: now_ns() - opened_ns,
    })?;
    if hear()?.is_none() {
        return Ok(());
    }
    let start_ns = now_ns();
    go.wait();
    let mut tally = Tally::new();
    for thread in threads {
        tally.merge(thread.join().map_err(|_| "a client's thread panicked")??);
    }
    let scheduled_ns = if spec.rate > 0 { spec.window_ns } else { 0 };
    let window_ns = (now_ns() - start_ns).max(scheduled_ns);
    say(&Sent { tally, window_ns })?;
    // The suite reads our memory before it lets us go.
    hear()?;
    Ok(())
}

fn run_client(
    spec: &SenderSpec,
    index: u32,
    connected: &Sender<Result<(), Failure>>,
    go: &Barrier,
) -> Result<Tally, Failure> {
    let runtime = runtime()?;
    let outcome = runtime.block_on(Agent::connect(spec, index));
    let agent = match outcome {
        Ok(agent) => agent,
        Err(failure) => {
            connected.send(Err(failure))?;
            return Ok(Tally::new());
        }
    };
    connected.send(Ok(()))?;
    go.wait();
    let mut tally = match Schedule::new(spec.rate, spec.clients, index) {
        Some(schedule) => agent.paced(&runtime, schedule),
        None if agent.is_one_way() => runtime.block_on(agent.flood()),
        None => runtime.block_on(agent.closed()),
    };
    if agent.is_one_way()
        && let Err(error) = runtime.block_on(agent.flush())
    {
        tally.failed(error.code.as_str());
    }
    Ok(tally)
}

/// One client: a connection and a destination.
struct Agent<'a> {
    spec: &'a SenderSpec,
    caller: Caller,
    name: Name,
    nobody: Name,
    body: Vec<u8>,
}

impl<'a> Agent<'a> {
    async fn connect(spec: &'a SenderSpec, index: u32) -> Result<Self, Failure> {
        let client = Client::connect(&spec.node).await?;
        let name = destination(index);
        let agent = Self {
            spec,
            caller: client.caller(&name)?,
            name: Name::parse(&name)?,
            nobody: Name::parse(NOBODY)?,
            body: vec![0; spec.size],
        };
        match spec.mode {
            // The node is there.
            AgentMode::Write => agent.flush().await?,
            // So are the receivers.
            _ => drop(agent.caller.call(WARM_UP, &agent.body).await?),
        }
        Ok(agent)
    }

    /// Whether a message is done when it is handed over.
    fn is_one_way(&self) -> bool {
        matches!(
            self.spec.mode,
            AgentMode::FireAndForget | AgentMode::Publish
        )
    }

    /// One message, to its end.
    async fn one(&self) -> Result<(), CallError> {
        let client = self.caller.client();
        match self.spec.mode {
            AgentMode::RequestReply => {
                let reply = self.caller.call("", &self.body).await?;
                match reply.len() == self.body.len() {
                    true => Ok(()),
                    false => Err(CallError::new(
                        ErrorCode::Internal,
                        "a reply of another size",
                    )),
                }
            }
            AgentMode::FireAndForget => client.send(&self.name, Cast::Any, &self.body).await,
            AgentMode::Publish => client.send(&self.name, Cast::All, &self.body).await,
            AgentMode::Write => {
                let written = client.write_to_memory(&self.name, &self.body);
                written.await.map(|_| ())
            }
        }
    }

    /// Waits until the node has taken everything that was sent.
    async fn flush(&self) -> Result<(), CallError> {
        let client = self.caller.client();
        let written = client.write_to_memory(&self.nobody, "");
        written.await.map(|_| ())
    }

    /// On a schedule.
    fn paced(&self, runtime: &Runtime, schedule: Schedule) -> Tally {
        // Where this is refused, the lag shows it.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let mut tally = Tally::new();
        let start_ns = now_ns();
        let mut ready_ns = start_ns;
        for index in 0..schedule.count_within(self.spec.window_ns) {
            let intended_ns = start_ns + schedule.intended_ns(index);
            let wait_ns = intended_ns.saturating_sub(now_ns());
            if wait_ns > 0 {
                std::thread::sleep(Duration::from_nanos(wait_ns));
            }
            let departure = Departure {
                intended_ns,
                ready_ns,
                sent_ns: now_ns(),
            };
            tally.sent_paced(departure);
            let outcome = runtime.block_on(async {
                let outcome = self.one().await;
                if self.is_one_way() {
                    // The connection's task writes when we let it.
                    tokio::task::yield_now().await;
                }
                outcome
            });
            ready_ns = now_ns();
            match outcome {
                Ok(()) if self.is_one_way() => tally.completed(ready_ns),
                Ok(()) => tally.answered_paced(departure, ready_ns),
                Err(error) => tally.failed(error.code.as_str()),
            }
        }
        tally
    }

    /// As fast as the answers come back, with so many in flight.
    async fn closed(&self) -> Tally {
        let end_ns = now_ns() + self.spec.window_ns;
        let worker = async || {
            let mut tally = Tally::new();
            let mut sent_ns = now_ns();
            while sent_ns < end_ns {
                tally.sent();
                let outcome = self.one().await;
                let done_ns = now_ns();
                match outcome {
                    Ok(()) => tally.answered(sent_ns, done_ns),
                    Err(error) => tally.failed(error.code.as_str()),
                }
                sent_ns = done_ns;
            }
            tally
        };
        let workers = (0..self.spec.in_flight.max(1)).map(|_| worker());
        let mut total = Tally::new();
        for tally in join_all(workers).await {
            total.merge(tally);
        }
        total
    }

    /// One way, as fast as the connection takes it.
    async fn flood(&self) -> Tally {
        let mut tally = Tally::new();
        let mut at_ns = now_ns();
        let end_ns = at_ns + self.spec.window_ns;
        while at_ns < end_ns {
            for _ in 0..BURST {
                tally.sent();
                match self.one().await {
                    Ok(()) => tally.completed(at_ns),
                    Err(error) => tally.failed(error.code.as_str()),
                }
            }
            tokio::task::yield_now().await;
            at_ns = now_ns();
        }
        tally
    }
}
