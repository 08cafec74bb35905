//! The types that openraft is used with.

use openraft::impls::leader_id_std;
use openraft::type_config::alias;
use openraft_rt::deterministic_rng::DeterministicRng;
use openraft_rt_tokio::TokioRuntime;

use super::{Block, Entry};
use crate::member::Addresses;

openraft::declare_raft_types!(
    /// Blocks as entries, nodes with their addresses, and log ids of a term and an index.
    pub(crate) Types:
        D = Block,
        R = (),
        Node = Addresses,
        Entry = Entry,
        LeaderId = leader_id_std::LeaderId<Self::Term, Self::NodeId>,
        AsyncRuntime = Runtime,
);

/// The runtime, with random numbers from a seed: of election timeouts, which a simulation decides.
pub(crate) type Runtime = DeterministicRng<TokioRuntime>;

pub(crate) type LogId = alias::LogIdOf<Types>;
pub(crate) type Vote = alias::VoteOf<Types>;
pub(crate) type Term = alias::CommittedLeaderIdOf<Types>;
pub(crate) type Membership = openraft::Membership<u64, Addresses>;
pub(crate) type StoredMembership = alias::StoredMembershipOf<Types>;
pub(crate) type AppendRequest = openraft::raft::AppendEntriesRequest<Types>;
pub(crate) type AppendResponse = openraft::raft::AppendEntriesResponse<Types>;
pub(crate) type RpcError = openraft::errors::RPCError<Types>;

/// Creates a log id.
pub(crate) fn log_id(term: u64, index: u64) -> LogId {
    LogId::new(Term::from(term), index)
}
