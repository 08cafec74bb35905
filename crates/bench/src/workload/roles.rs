//! Dispatch of role processes: from the JSON on the command line to the code of the role.

use serde::Deserialize;

pub use super::role::Failure;
use super::{agent, journal, kafka, quota, rpc, store};

/// A role and its parameters, passed as JSON on the command line.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "role")]
enum Spec {
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
