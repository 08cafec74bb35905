//! What a role process does: the other end of the suite's lines.

use std::io::{self, BufRead, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

use super::child::{Actor, ChildError, Pin};
use super::{agent, journal, kafka, quota, rpc, store};

/// A role and everything it needs to know, as JSON on the command line.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "role")]
pub(super) enum Spec {
    /// Sends to agents.
    AgentSender(agent::SenderSpec),
    /// Is the agents.
    AgentReceiver(agent::ReceiverSpec),
    /// Sends over SLIM's data plane, without its sessions.
    SlimSender(agent::RawSpec),
    /// Receives the same.
    SlimReceiver(agent::RawSpec),
    /// Is subscribed to names of SLIM's.
    SlimHolder(agent::HolderSpec),
    /// Calls.
    RpcLoad(rpc::LoadSpec),
    /// Is called.
    RpcServer(rpc::ServerSpec),
    /// Appends to a journal of its own.
    JournalWriters(journal::WritersSpec),
    /// Appends through a node.
    JournalDoor(journal::DoorSpec),
    /// Writes many streams, or starts with them.
    JournalStreams(journal::StreamsSpec),
    /// Appends to conversations, or to what others have for them.
    StoreLoad(store::LoadSpec),
    /// Takes from a limiter.
    QuotaLoad(quota::LoadSpec),
    /// Produces to topics, or consumes.
    KafkaLoad(kafka::LoadSpec),
}

/// Why a role could not play its part.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Plays the role until the standard input ends.
///
/// # Errors
/// When it cannot connect, or a line that is not the protocol arrives.
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

/// Says one line of JSON to the suite.
pub(super) fn say(value: &impl Serialize) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", serde_json::to_string(value)?)?;
    out.flush()?;
    Ok(())
}

/// The suite's next line; `None` when the suite has ended.
pub(super) fn hear() -> Result<Option<String>, Failure> {
    let mut line = String::new();
    let size = io::stdin().lock().read_line(&mut line)?;
    Ok((size > 0).then(|| line.trim().to_owned()))
}

/// Hears the suite's lines on a thread of its own, because that blocks, and answers each. The result
/// comes when the suite has ended.
pub(super) fn answer_lines(
    mut answer: impl FnMut() -> Result<(), Failure> + Send + 'static,
) -> oneshot::Receiver<Result<(), Failure>> {
    let (ended, end) = oneshot::channel();
    std::thread::spawn(move || {
        let outcome = loop {
            match hear() {
                Ok(None) => break Ok(()),
                Ok(Some(_)) => {
                    if let Err(failure) = answer() {
                        break Err(failure);
                    }
                }
                Err(failure) => break Err(failure),
            }
        };
        // Nobody listens when the role has failed meanwhile.
        let _ = ended.send(outcome);
    });
    end
}

/// The suite's lines, heard on a thread of its own, so that a runtime looks after connections
/// meanwhile. It ends with the suite.
pub(super) fn lines() -> mpsc::Receiver<()> {
    let (heard, lines) = mpsc::channel(1);
    std::thread::spawn(move || {
        while let Ok(Some(_)) = hear() {
            if heard.blocking_send(()).is_err() {
                return;
            }
        }
    });
    lines
}

/// The first thing a role says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Ready {
    /// Where it can be reached, when it listens.
    pub(super) address: Option<String>,
    /// What getting ready took.
    pub(super) setup_ns: u64,
}

/// One thread, one runtime: a role's own cost is part of what is measured.
pub(super) fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}
