//! What bounds a group, and how long it waits.

/// Times and limits of all groups. Times are in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Shortest session timeout that a member may ask for (Kafka's `group.min.session.timeout.ms`).
    pub session_timeout_ms_min: u32,
    /// Longest session timeout that a member may ask for (Kafka's `group.max.session.timeout.ms`).
    pub session_timeout_ms_max: u32,
    /// How long the first rebalance of an empty group waits for more members, again after each that
    /// comes, up to the rebalance timeout. Kafka waits 3 s
    /// (`group.initial.rebalance.delay.ms`), which every start of a lone consumer pays; members of
    /// one deployment come within a fraction of that, and whoever is late costs one more rebalance.
    pub initial_rebalance_delay_ms: u32,
    /// How long a join of a new member waits at most: it has no identity yet under which it could
    /// send heartbeats, so nothing else shows that it is gone. Kafka's constant is 5 minutes.
    pub new_member_timeout_ms: u32,
    /// How long offsets of a group without members are kept (Kafka's `offsets.retention.minutes`).
    pub offsets_retention_ms: u64,
    /// Most groups.
    pub groups_max: usize,
    /// Most members of a group (Kafka's `group.max.size`), and most that were given an identity and
    /// have not joined with it.
    pub members_max: usize,
    /// Most protocols that a member may offer.
    pub protocols_max: usize,
    /// Most bytes of all that the members of a group say of themselves, and of what was assigned to
    /// them: a group's record is not much longer.
    pub group_size_max: usize,
    /// Most committed offsets of a group, those of open transactions among them.
    pub offsets_max: usize,
    /// Longest text beside an offset (Kafka's `offset.metadata.max.bytes`).
    pub offset_metadata_size_max: usize,
    /// Longest name: of a group, a member, an instance, a client, a protocol, a topic.
    pub name_size_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            session_timeout_ms_min: 6_000,
            session_timeout_ms_max: 30 * 60 * 1_000,
            initial_rebalance_delay_ms: 100,
            new_member_timeout_ms: 5 * 60 * 1_000,
            offsets_retention_ms: 7 * 24 * 60 * 60 * 1_000,
            groups_max: 100_000,
            members_max: 1_000,
            protocols_max: 32,
            group_size_max: 4 << 20,
            offsets_max: 100_000,
            offset_metadata_size_max: 4_096,
            name_size_max: 1_024,
        }
    }
}
