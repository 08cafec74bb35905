//! What goes into the engine of groups and what comes out.

use std::sync::Arc;

use super::record::Record;

/// What the shell calls a request that waits for its answer. Never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u64);

/// One way of assigning that a member knows, and what it says to whoever assigns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protocol {
    /// For example `range`.
    pub name: Box<str>,
    /// Opaque bytes for the leader.
    pub metadata: Arc<[u8]>,
}

/// A member wants to be in the next generation.
#[derive(Clone, Debug)]
pub struct Join<'a> {
    /// Which group.
    pub group: &'a str,
    /// Who it is; empty if it was not told yet.
    pub member: &'a str,
    /// Its `group.instance.id`, if it is a static member.
    pub instance: Option<&'a str>,
    /// What the client calls itself.
    pub client_id: &'a str,
    /// Where it is, for people.
    pub client_host: &'a str,
    /// It is gone when nothing was heard of it for so long.
    pub session_timeout_ms: u32,
    /// How long a rebalance waits for it.
    pub rebalance_timeout_ms: u32,
    /// For example `consumer`; the same for all members.
    pub protocol_type: &'a str,
    /// What it can do, what it likes best first.
    pub protocols: Vec<Protocol>,
    /// Topics that it is subscribed to, if its metadata says so.
    pub topics: Option<Vec<Box<str>>>,
    /// A random number of the shell's, for the identity of a new member.
    pub random: u128,
    /// A new member is told its identity first and joins with it (JoinGroup 4 and later): one that
    /// does not hear the answer and tries again is not two members.
    pub identity_first: bool,
    /// It knows how to be leader without assigning (JoinGroup 9 and later, KIP-814).
    pub may_skip_assignment: bool,
}

/// A member is in a generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined {
    /// Who it is.
    pub member: Arc<str>,
    /// Which generation, from 1.
    pub generation: i32,
    /// What all members agree on.
    pub protocol_type: Box<str>,
    /// The one that most members like best of those that all of them know.
    pub protocol: Box<str>,
    /// Who assigns.
    pub leader: Arc<str>,
    /// For the leader: everybody, and what they say. For others nothing.
    pub members: Vec<Candidate>,
    /// For the leader: what is assigned stays.
    pub skip_assignment: bool,
}

/// A member as the leader sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Who it is.
    pub member: Arc<str>,
    /// Its `group.instance.id`.
    pub instance: Option<Box<str>>,
    /// What it says in the protocol that was chosen.
    pub metadata: Arc<[u8]>,
}

/// Who asks, and of which generation it believes to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller<'a> {
    /// Which group.
    pub group: &'a str,
    /// Who it is; empty for nobody.
    pub member: &'a str,
    /// Its `group.instance.id`.
    pub instance: Option<&'a str>,
    /// Negative for none: who commits without being a member.
    pub generation: i32,
}

/// A member wants to know what is assigned to it; the leader says what is assigned to whom.
#[derive(Clone, Copy, Debug)]
pub struct Synchronize<'a> {
    /// Who asks.
    pub caller: Caller<'a>,
    /// What it believes the type to be, from SyncGroup 5.
    pub protocol_type: Option<&'a str>,
    /// What it believes the protocol to be, from SyncGroup 5.
    pub protocol: Option<&'a str>,
    /// Members and opaque bytes; looked at only if the leader of a new generation asks.
    pub assignments: &'a [(&'a str, &'a [u8])],
}

/// What is assigned to a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Synced {
    /// What all members agree on.
    pub protocol_type: Box<str>,
    /// What was chosen.
    pub protocol: Box<str>,
    /// Opaque bytes, empty if the leader said nothing.
    pub assignment: Arc<[u8]>,
}

/// Who is to leave: by member, by instance, or a member that is checked to be that instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaver<'a> {
    /// Who it is; empty for whoever is that instance.
    pub member: &'a str,
    /// Its `group.instance.id`.
    pub instance: Option<&'a str>,
}

/// How far a group has read in a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark<'a> {
    /// Which topic.
    pub topic: &'a str,
    /// Which partition of it.
    pub partition: u32,
    /// The next record to read.
    pub offset: i64,
    /// The leader epoch of the last record that was read, -1 if it is not known.
    pub leader_epoch: i32,
    /// The client's own.
    pub metadata: &'a str,
}

/// What the shell has to do, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Append this. What is kept by one call is appended as a whole or not at all, and every answer
    /// and every read waits until what was kept before it is durable.
    Keep(Record),
    /// A join is answered.
    Joined {
        /// Which request.
        token: Token,
        /// How.
        answer: Result<Joined, Refused>,
    },
    /// A sync is answered.
    Synced {
        /// Which request.
        token: Token,
        /// How.
        answer: Result<Synced, Refused>,
    },
}

/// Where a group stands. One that is *Dead* is not there any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It has no members; perhaps offsets.
    Empty,
    /// It waits for everybody to join the next generation.
    PreparingRebalance,
    /// It waits for the leader to assign.
    CompletingRebalance,
    /// Everybody has, or can ask for, what is assigned to it.
    Stable,
}

impl State {
    /// As Kafka's tools print it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::PreparingRebalance => "PreparingRebalance",
            Self::CompletingRebalance => "CompletingRebalance",
            Self::Stable => "Stable",
        }
    }
}

/// A group, for a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overview<'a> {
    /// What it is called.
    pub group: &'a str,
    /// What its members agree on; empty if it never had members.
    pub protocol_type: &'a str,
    /// Where it stands.
    pub state: State,
}

/// A group, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Where it stands.
    pub state: State,
    /// What its members agree on; empty if it never had members.
    pub protocol_type: Box<str>,
    /// What was chosen; empty unless it is stable.
    pub protocol: Box<str>,
    /// Everybody.
    pub members: Vec<Described>,
}

/// A member, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// Who it is.
    pub member: Arc<str>,
    /// Its `group.instance.id`.
    pub instance: Option<Box<str>>,
    /// What the client calls itself.
    pub client_id: Box<str>,
    /// Where it is.
    pub client_host: Box<str>,
    /// What it says in the protocol that was chosen; empty unless the group is stable.
    pub metadata: Arc<[u8]>,
    /// What is assigned to it; empty unless the group is stable.
    pub assignment: Arc<[u8]>,
}

/// Why something is not done. Each stands for one error of Kafka's, whose number is given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// `INVALID_GROUP_ID` (24).
    #[error("a group has a name of 1 to {max} bytes")]
    InvalidGroupId {
        /// Longest name.
        max: usize,
    },
    /// `INVALID_SESSION_TIMEOUT` (26).
    #[error("a session timeout of {asked} ms is not between {min} and {max}")]
    InvalidSessionTimeout {
        /// What was asked for.
        asked: u32,
        /// Shortest.
        min: u32,
        /// Longest.
        max: u32,
    },
    /// `INCONSISTENT_GROUP_PROTOCOL` (23).
    #[error("the group has no protocol that all members know")]
    InconsistentProtocol,
    /// `MEMBER_ID_REQUIRED` (79): join again with this.
    #[error("join as {member}")]
    MemberIdRequired {
        /// Who it is from now on.
        member: Arc<str>,
    },
    /// `UNKNOWN_MEMBER_ID` (25): join again as nobody.
    #[error("the group does not know that member")]
    UnknownMember,
    /// `FENCED_INSTANCE_ID` (82): another has taken its place.
    #[error("another member is that instance now")]
    FencedInstance,
    /// `ILLEGAL_GENERATION` (22).
    #[error("the group is not in generation {generation}")]
    IllegalGeneration {
        /// What was asked for.
        generation: i32,
    },
    /// `REBALANCE_IN_PROGRESS` (27): join again.
    #[error("the group rebalances")]
    RebalanceInProgress,
    /// `GROUP_MAX_SIZE_REACHED` (81).
    #[error("the group has {max} members, the limit")]
    MembersMax {
        /// The limit.
        max: usize,
    },
    /// `POLICY_VIOLATION` (44).
    #[error("there are {max} groups, the limit")]
    GroupsMax {
        /// The limit.
        max: usize,
    },
    /// `INVALID_REQUEST` (42): what members say or are assigned.
    #[error("{what} has {size}, the limit is {max}")]
    TooLarge {
        /// What is too long, or too many.
        what: &'static str,
        /// How long.
        size: usize,
        /// The limit.
        max: usize,
    },
    /// `OFFSET_METADATA_TOO_LARGE` (12), of one partition.
    #[error("{size} bytes of metadata, the limit is {max}")]
    MetadataTooLarge {
        /// How long.
        size: usize,
        /// The limit.
        max: usize,
    },
    /// `INVALID_COMMIT_OFFSET_SIZE` (28), of one partition.
    #[error("the group has {max} committed offsets, the limit")]
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
