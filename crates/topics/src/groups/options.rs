//! Limits and timeouts of consumer groups.

/// Timeouts, in milliseconds, and limits of all groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The shortest session timeout that a member may set (Kafka's `group.min.session.timeout.ms`).
    pub session_timeout_ms_min: u32,
    /// The longest session timeout that a member may set (Kafka's `group.max.session.timeout.ms`).
    pub session_timeout_ms_max: u32,
    /// The time that the first rebalance of an empty group waits for more members, again after each
    /// that joins, up to the rebalance timeout. Kafka waits 3 s
    /// (`group.initial.rebalance.delay.ms`), also when a single consumer starts. Members of one
    /// deployment join within a fraction of that; a late member costs one more rebalance.
    pub initial_rebalance_delay_ms: u32,
    /// The longest time that the join of a new member waits. It has no member id yet, so it cannot
    /// send heartbeats, and nothing else shows that its client is gone. Kafka's constant is 5
    /// minutes.
    pub new_member_timeout_ms: u32,
    /// The time for which offsets of a group without members stay, in milliseconds (Kafka's
    /// `offsets.retention.minutes`).
    pub offsets_retention_ms: u64,
    /// The largest number of groups.
    pub groups_max: usize,
    /// The largest number of members of a group (Kafka's `group.max.size`), and of member ids that
    /// were given out and not used yet.
    pub members_max: usize,
    /// The largest number of protocols of a member.
    pub protocols_max: usize,
    /// The largest size of the data and assignments of all members of a group, in bytes: a group's
    /// record is not much larger.
    pub group_size_max: usize,
    /// The largest number of offsets of a group, including those of open transactions.
    pub offsets_max: usize,
    /// The largest metadata of an offset, in bytes (Kafka's `offset.metadata.max.bytes`).
    pub offset_metadata_size_max: usize,
    /// The largest size of a name, in bytes: of a group, a member, an instance, a client, a
    /// protocol, a topic.
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
