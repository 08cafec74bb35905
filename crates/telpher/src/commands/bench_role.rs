//! `telpher bench-role`, hidden in help: a process that a benchmark or a check starts.

use bench::workload::role;
use bench_messaging::agent::slim;
use bench_messaging::{agent, rpc};
use bench_storage::{journal, store};
use checks::journal::restart;
use serde::Deserialize;

use console::{Exit, Failure};

/// Run a role of a benchmark
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The role, as JSON
    spec: String,
}

/// A role and its parameters.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "role")]
enum Spec {
    /// Sends messages to agents.
    AgentSender(agent::SenderSpec),
    /// Plays the receiving agents.
    AgentReceiver(agent::ReceiverSpec),
    /// Sends over SLIM's data plane, without its sessions.
    SlimSender(slim::RawSpec),
    /// Receives over SLIM's data plane, without its sessions.
    SlimReceiver(slim::RawSpec),
    /// Holds subscriptions to SLIM names.
    SlimHolder(checks::slim::HolderSpec),
    /// Makes calls.
    RpcLoad(rpc::LoadSpec),
    /// Answers calls.
    RpcServer(rpc::ServerSpec),
    /// Appends to a journal in its own process.
    JournalWriters(journal::WritersSpec),
    /// Appends through a node.
    JournalDoor(journal::DoorSpec),
    /// Writes many streams to a journal, or opens a journal that has them.
    JournalStreams(restart::StreamsSpec),
    /// Appends to conversations, or to a rival's equivalent.
    StoreLoad(store::LoadSpec),
    /// Sends takes to a rate limiter.
    QuotaLoad(bench_quota::LoadSpec),
    /// Produces to topics, or consumes from them.
    KafkaLoad(bench_kafka::LoadSpec),
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    play(&args.spec).map_err(|failure| Failure::new(Exit::Failed, failure))
}

/// Plays the role until its standard input closes.
fn play(spec: &str) -> Result<(), role::Failure> {
    match serde_json::from_str(spec)? {
        Spec::AgentSender(spec) => agent::send(&spec),
        Spec::AgentReceiver(spec) => agent::receive(&spec),
        Spec::SlimSender(spec) => slim::send_raw(&spec),
        Spec::SlimReceiver(spec) => slim::receive_raw(&spec),
        Spec::SlimHolder(spec) => checks::slim::hold(&spec),
        Spec::RpcLoad(spec) => rpc::load(&spec),
        Spec::RpcServer(spec) => rpc::serve(&spec),
        Spec::JournalWriters(spec) => journal::write(&spec),
        Spec::JournalDoor(spec) => journal::append(&spec),
        Spec::JournalStreams(spec) => restart::play(&spec),
        Spec::StoreLoad(spec) => store::play(&spec),
        Spec::QuotaLoad(spec) => bench_quota::play(&spec),
        Spec::KafkaLoad(spec) => bench_kafka::play(&spec),
    }
}
