//! Role processes: dispatch, and their side of the line protocol with the suite.

use std::io::{self, BufRead, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

use super::child::{Actor, ChildError, Pin};
use super::{agent, journal, kafka, quota, rpc, store};

/// A role and its parameters, passed as JSON on the command line.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "role")]
pub(super) enum Spec {
    /// Sends messages to agents.
    AgentSender(agent::SenderSpec),
    /// Plays the receiving agents.
    AgentReceiver(agent::ReceiverSpec),
    /// Sends over SLIM's data plane, without its sessions.
    SlimSender(agent::RawSpec),
    /// Receives over SLIM's data plane, without its sessions.
    SlimReceiver(agent::RawSpec),
    /// Holds subscriptions to SLIM names.
    SlimHolder(agent::HolderSpec),
    /// Makes calls.
    RpcLoad(rpc::LoadSpec),
    /// Answers calls.
    RpcServer(rpc::ServerSpec),
    /// Appends to a journal in its own process.
    JournalWriters(journal::WritersSpec),
    /// Appends through a node.
    JournalDoor(journal::DoorSpec),
    /// Writes many streams to a journal, or opens a journal that has them.
    JournalStreams(journal::StreamsSpec),
    /// Appends to conversations, or to a rival's equivalent.
    StoreLoad(store::LoadSpec),
    /// Sends takes to a rate limiter.
    QuotaLoad(quota::LoadSpec),
    /// Produces to topics, or consumes from them.
    KafkaLoad(kafka::LoadSpec),
}

/// Error that ends a role.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Plays the role until its standard input closes.
///
/// # Errors
/// When it cannot connect, or receives a line that is not part of the protocol.
pub fn play(spec: &str) -> Result<(), Failure> {
    match serde_json::from_str(spec)? {
        Spec::AgentSender(spec) => agent::send(&spec),
        Spec::AgentReceiver(spec) => agent::receive(&spec),
        Spec::SlimSender(spec) => agent::send_raw(&spec),
        Spec::SlimReceiver(spec) => agent::receive_raw(&spec),
        Spec::SlimHolder(spec) => agent::hold(&spec),
        Spec::RpcLoad(spec) => rpc::load(&spec),
        Spec::RpcServer(spec) => rpc::serve(&spec),
        Spec::JournalWriters(spec) => journal::write(&spec),
        Spec::JournalDoor(spec) => journal::append(&spec),
        Spec::JournalStreams(spec) => journal::play_streams(&spec),
        Spec::StoreLoad(spec) => store::play(&spec),
        Spec::QuotaLoad(spec) => quota::play(&spec),
        Spec::KafkaLoad(spec) => kafka::play(&spec),
    }
}

/// Starts our own executable in a role.
pub(super) fn start(executable: &Path, spec: &Spec, pin: Pin) -> Result<Actor, ChildError> {
    let spec = serde_json::to_string(spec).unwrap_or_default();
    Actor::start(executable, ["bench-role", &spec], pin)
}

/// Writes one line of JSON to the suite.
pub(super) fn write_line(value: &impl Serialize) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", serde_json::to_string(value)?)?;
    out.flush()?;
    Ok(())
}

/// Returns the suite's next line, or `None` when the suite has ended.
pub(super) fn read_line() -> Result<Option<String>, Failure> {
    let mut line = String::new();
    let size = io::stdin().lock().read_line(&mut line)?;
    Ok((size > 0).then(|| line.trim().to_owned()))
}

/// Answers each of the suite's lines, on a thread of its own because reading blocks. The returned
/// receiver yields the result when the suite has ended.
pub(super) fn answer_lines(
    mut answer: impl FnMut() -> Result<(), Failure> + Send + 'static,
) -> oneshot::Receiver<Result<(), Failure>> {
    let (ended, end) = oneshot::channel();
    std::thread::spawn(move || {
        let outcome = loop {
            match read_line() {
                Ok(None) => break Ok(()),
                Ok(Some(_)) => {
                    if let Err(failure) = answer() {
                        break Err(failure);
                    }
                }
                Err(failure) => break Err(failure),
            }
        };
        // The receiver is gone if the role has failed meanwhile.
        let _ = ended.send(outcome);
    });
    end
}

/// Forwards the suite's lines from a thread of its own, so that the runtime can serve connections
/// meanwhile. The channel closes when the suite ends.
pub(super) fn lines() -> mpsc::Receiver<()> {
    let (heard, lines) = mpsc::channel(1);
    std::thread::spawn(move || {
        while let Ok(Some(_)) = read_line() {
            if heard.blocking_send(()).is_err() {
                return;
            }
        }
    });
    lines
}

/// First line of a role.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Ready {
    /// Address of the role, if it listens.
    pub(super) address: Option<String>,
    /// Duration of the set-up.
    pub(super) setup_ns: u64,
}

/// Makes a single-threaded runtime: the role's own cost is part of the measurement.
pub(super) fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}
