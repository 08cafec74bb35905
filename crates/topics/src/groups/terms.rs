//! Inputs and outputs of the consumer group engine.

use std::sync::Arc;

use super::record::Record;

/// The shell's id of a request that waits for its answer. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u64);

/// An assignment protocol that a member supports, with its metadata for the leader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protocol {
    /// The name, for example `range`.
    pub name: Box<str>,
    /// Opaque bytes for the leader.
    pub metadata: Arc<[u8]>,
}

/// A request of a member to be in the next generation (JoinGroup).
#[derive(Clone, Debug)]
pub struct Join<'a> {
    /// The group.
    pub group: &'a str,
    /// The member id; empty if it has none yet.
    pub member: &'a str,
    /// Its `group.instance.id`, if it is a static member.
    pub instance: Option<&'a str>,
    /// The client id.
    pub client_id: &'a str,
    /// The client's address, for descriptions.
    pub client_host: &'a str,
    /// The member is removed when it was silent for so long, in milliseconds.
    pub session_timeout_ms: u32,
    /// The time that a rebalance waits for it, in milliseconds.
    pub rebalance_timeout_ms: u32,
    /// The protocol type, for example `consumer`; the same for all members.
    pub protocol_type: &'a str,
    /// The protocols that it supports, in its order of preference.
    pub protocols: Vec<Protocol>,
    /// The topics that it is subscribed to, if its metadata states them.
    pub topics: Option<Vec<Box<str>>>,
    /// A random number from the shell, for the id of a new member.
    pub random: u128,
    /// A new member gets its id first and joins with it (JoinGroup 4 and later). A client that
    /// misses the answer and tries again is then not counted as two members.
    pub identity_first: bool,
    /// The client can lead without assigning (JoinGroup 9 and later, KIP-814).
    pub may_skip_assignment: bool,
}

/// The answer to a join: the member is in a generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined {
    /// The member id.
    pub member: Arc<str>,
    /// The generation, from 1.
    pub generation: i32,
    /// The protocol type of all members.
    pub protocol_type: Box<str>,
    /// The protocol that most members prefer among those that all support.
    pub protocol: Box<str>,
    /// The leader's member id.
    pub leader: Arc<str>,
    /// For the leader: all members and their metadata. For others empty.
    pub members: Vec<Candidate>,
    /// For the leader: the assignments stay as they are.
    pub skip_assignment: bool,
}

/// A member as the leader gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The member id.
    pub member: Arc<str>,
    /// Its `group.instance.id`.
    pub instance: Option<Box<str>>,
    /// Its metadata for the chosen protocol.
    pub metadata: Arc<[u8]>,
}

/// The sender of a request: group, member and generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller<'a> {
    /// The group.
    pub group: &'a str,
    /// The member id; empty for a client that is not a member.
    pub member: &'a str,
    /// Its `group.instance.id`.
    pub instance: Option<&'a str>,
    /// The generation; negative for a client that commits without being a member.
    pub generation: i32,
}

/// A request for the member's assignment (SyncGroup); the leader's contains all assignments.
#[derive(Clone, Copy, Debug)]
pub struct Synchronize<'a> {
    /// The sender.
    pub caller: Caller<'a>,
    /// The protocol type that it expects, from SyncGroup 5.
    pub protocol_type: Option<&'a str>,
    /// The protocol that it expects, from SyncGroup 5.
    pub protocol: Option<&'a str>,
    /// Assignments by member id, as opaque bytes; used only from the leader of a new generation.
    pub assignments: &'a [(&'a str, &'a [u8])],
}

/// The answer to a sync: the member's assignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Synced {
    /// The protocol type of all members.
    pub protocol_type: Box<str>,
    /// The chosen protocol.
    pub protocol: Box<str>,
    /// The assignment, as opaque bytes; empty if the leader gave none.
    pub assignment: Arc<[u8]>,
}

/// A member that is to leave: named by id, by instance, or by both, which are then compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaver<'a> {
    /// The member id; empty if the instance names the member.
    pub member: &'a str,
    /// Its `group.instance.id`.
    pub instance: Option<&'a str>,
}

/// A committed offset of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark<'a> {
    /// The topic.
    pub topic: &'a str,
    /// The index of the partition.
    pub partition: u32,
    /// The offset of the next record to read.
    pub offset: i64,
    /// The leader epoch of the last record that was read, -1 if unknown.
    pub leader_epoch: i32,
    /// The client's own text.
    pub metadata: &'a str,
}

/// An action for the shell, to be done in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Append this record. The records of one call are appended as a whole or not at all, and every
    /// answer and every read waits until earlier records are durable.
    Keep(Record),
    /// Answer a join.
    Joined {
        /// The request.
        token: Token,
        /// The result.
        answer: Result<Joined, Refused>,
    },
    /// Answer a sync.
    Synced {
        /// The request.
        token: Token,
        /// The result.
        answer: Result<Synced, Refused>,
    },
}

/// The state of a group. A *Dead* group does not exist any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The group has no members, but may have offsets.
    Empty,
    /// The group waits for all members to join the next generation.
    PreparingRebalance,
    /// The group waits for the leader's assignments.
    CompletingRebalance,
    /// All assignments are known.
    Stable,
}

impl State {
    /// Returns the name that Kafka's tools print.
    pub fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::PreparingRebalance => "PreparingRebalance",
            Self::CompletingRebalance => "CompletingRebalance",
            Self::Stable => "Stable",
        }
    }
}

/// A group in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overview<'a> {
    /// The name of the group.
    pub group: &'a str,
    /// The protocol type; empty if it never had members.
    pub protocol_type: &'a str,
    /// The state.
    pub state: State,
}

/// The description of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The state.
    pub state: State,
    /// The protocol type; empty if it never had members.
    pub protocol_type: Box<str>,
    /// The chosen protocol; empty unless the group is stable.
    pub protocol: Box<str>,
    /// The members.
    pub members: Vec<Described>,
}

/// The description of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// The member id.
    pub member: Arc<str>,
    /// Its `group.instance.id`.
    pub instance: Option<Box<str>>,
    /// The client id.
    pub client_id: Box<str>,
    /// The client's address.
    pub client_host: Box<str>,
    /// Its metadata for the chosen protocol; empty unless the group is stable.
    pub metadata: Arc<[u8]>,
    /// Its assignment; empty unless the group is stable.
    pub assignment: Arc<[u8]>,
}

/// The reason why a request is refused. Each variant is one Kafka error, whose number is given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// `INVALID_GROUP_ID` (24).
    #[error("a group name needs 1 to {max} bytes")]
    InvalidGroupId {
        /// The longest name, in bytes.
        max: usize,
    },
    /// `INVALID_SESSION_TIMEOUT` (26).
    #[error("a session timeout of {asked} ms is not between {min} and {max}")]
    InvalidSessionTimeout {
        /// The requested timeout.
        asked: u32,
        /// The shortest timeout.
        min: u32,
        /// The longest timeout.
        max: u32,
    },
    /// `INCONSISTENT_GROUP_PROTOCOL` (23).
    #[error("the group has no protocol that all members know")]
    InconsistentProtocol,
    /// `MEMBER_ID_REQUIRED` (79): join again with this id.
    #[error("join as {member}")]
    MemberIdRequired {
        /// The new member id.
        member: Arc<str>,
    },
    /// `UNKNOWN_MEMBER_ID` (25): join again without a member id.
    #[error("the group does not know that member")]
    UnknownMember,
    /// `FENCED_INSTANCE_ID` (82): another member has this instance id.
    #[error("another member uses this group.instance.id")]
    FencedInstance,
    /// `ILLEGAL_GENERATION` (22).
    #[error("the group is not in generation {generation}")]
    IllegalGeneration {
        /// The requested generation.
        generation: i32,
    },
    /// `REBALANCE_IN_PROGRESS` (27): join again.
    #[error("the group rebalances")]
    RebalanceInProgress,
    /// `GROUP_MAX_SIZE_REACHED` (81).
    #[error("too many members in the group (limit {max})")]
    MembersMax {
        /// The limit.
        max: usize,
    },
    /// `POLICY_VIOLATION` (44).
    #[error("too many consumer groups (limit {max})")]
    GroupsMax {
        /// The limit.
        max: usize,
    },
    /// `INVALID_REQUEST` (42): the data or assignments of members are too large.
    #[error("{what} has size {size} (limit {max})")]
    TooLarge {
        /// The part that is too long, or too many.
        what: &'static str,
        /// Its size.
        size: usize,
        /// The limit.
        max: usize,
    },
    /// `OFFSET_METADATA_TOO_LARGE` (12), of one partition.
    #[error("the metadata has {size} bytes (limit {max})")]
    MetadataTooLarge {
        /// The size of the metadata.
        size: usize,
        /// The limit.
        max: usize,
    },
    /// `INVALID_COMMIT_OFFSET_SIZE` (28), of one partition.
    #[error("too many committed offsets in the group (limit {max})")]
    OffsetsMax {
        /// The limit.
        max: usize,
    },
    /// `GROUP_ID_NOT_FOUND` (69).
    #[error("there is no such group")]
    GroupNotFound,
    /// `NON_EMPTY_GROUP` (68).
    #[error("the group has members")]
    NonEmpty,
    /// `GROUP_SUBSCRIBED_TO_TOPIC` (86), of one partition.
    #[error("the group is subscribed to that topic")]
    Subscribed,
}
