//! Sender process: a thread, a runtime and a connection for each client.

use std::sync::Arc;
use std::sync::Barrier;
use std::sync::mpsc::{self, Sender};

use client::{CallError, Caller, Cast, Client, ErrorCode, Name};

use super::drive::{Exchange, SendLoop};
use super::receiver::WARM_UP;
use super::{AgentMode, SenderCounts, SenderSpec, destination};
use bench::pacing::Schedule;
use bench::tally::Tally;
use bench::workload::role::{Failure, Ready, read_line, runtime, write_line};
use meter::clock::now_ns;

/// Name without a listener: a write to it is acknowledged when the node has accepted everything
/// sent before.
const UNUSED_NAME: &str = "bench/agent/nobody";

/// Plays the sender.
///
/// # Errors
/// When the node cannot be reached or the warm-up exchange fails.
pub fn send(spec: &SenderSpec) -> Result<(), Failure> {
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
        // A client that fails ends the process, and with it the waiting ones.
        connections.recv()??;
    }
    write_line(&Ready {
        address: None,
        setup_ns: now_ns() - opened_ns,
    })?;
    if read_line()?.is_none() {
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
    write_line(&SenderCounts { tally, window_ns })?;
    // The suite reads this process's memory before it ends.
    read_line()?;
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
    let drive = SendLoop {
        schedule: Schedule::new(spec.rate, spec.clients, index),
        window_ns: spec.window_ns,
        in_flight: spec.in_flight,
    };
    let mut tally = drive.run(&agent, &runtime);
    if agent.is_one_way()
        && let Err(error) = runtime.block_on(agent.flush())
    {
        tally.failed(error.code.as_str());
    }
    Ok(tally)
}

/// A client: a connection and a destination.
struct Agent<'a> {
    spec: &'a SenderSpec,
    caller: Caller,
    name: Name,
    unused_name: Name,
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
            unused_name: Name::parse(UNUSED_NAME)?,
            body: vec![0; spec.size],
        };
        match spec.mode {
            // The node is reachable.
            AgentMode::Write => agent.flush().await?,
            // The receivers are reachable.
            _ => drop(agent.caller.call(WARM_UP, &agent.body).await?),
        }
        Ok(agent)
    }

    /// Exchanges one message to its end.
    async fn exchange(&self) -> Result<(), CallError> {
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

    /// Waits until the node has accepted everything that was sent.
    async fn flush(&self) -> Result<(), CallError> {
        let client = self.caller.client();
        let written = client.write_to_memory(&self.unused_name, "");
        written.await.map(|_| ())
    }
}

impl Exchange for Agent<'_> {
    async fn send_one(&self) -> Result<(), &'static str> {
        self.exchange().await.map_err(|error| error.code.as_str())
    }

    fn is_one_way(&self) -> bool {
        matches!(
            self.spec.mode,
            AgentMode::FireAndForget | AgentMode::Publish
        )
    }
}
