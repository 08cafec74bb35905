//! A member of a group: its profile, its waiting requests and its deadline.

use std::sync::Arc;

use super::terms::{Join, Protocol, Token};

/// The part of a member that survives a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Its `group.instance.id`, if it is a static member.
    pub instance: Option<Box<str>>,
    /// The client id.
    pub client_id: Box<str>,
    /// The client's address.
    pub client_host: Box<str>,
    /// The member is removed when it was silent for so long, in milliseconds.
    pub session_timeout_ms: u32,
    /// The time that a rebalance waits for it, in milliseconds.
    pub rebalance_timeout_ms: u32,
    /// The protocols that it supports, in its order of preference.
    pub protocols: Vec<Protocol>,
    /// The topics that it is subscribed to, if it states them.
    pub topics: Option<Vec<Box<str>>>,
    /// Its assignment.
    pub assignment: Arc<[u8]>,
}

impl Profile {
    /// Returns the profile of a joining member.
    pub(super) fn of(join: Join<'_>) -> Self {
        Self {
            instance: join.instance.map(Box::from),
            client_id: join.client_id.into(),
            client_host: join.client_host.into(),
            session_timeout_ms: join.session_timeout_ms,
            rebalance_timeout_ms: join.rebalance_timeout_ms,
            protocols: join.protocols,
            topics: join.topics,
            assignment: Arc::default(),
        }
    }

    /// The approximate size in a record, in bytes.
    pub(super) fn size(&self) -> usize {
        let instance = self.instance.as_deref().map_or(0, str::len);
        let protocols = self.protocols.iter();
        let protocols: usize = protocols.map(|it| it.name.len() + it.metadata.len()).sum();
        let topics = self.topics.iter().flatten();
        let topics: usize = topics.map(|it| it.len() + size_of::<u16>()).sum();
        instance
            + self.client_id.len()
            + self.client_host.len()
            + protocols
            + topics
            + self.assignment.len()
    }

    pub(super) fn knows(&self, protocol: &str) -> bool {
        self.protocols.iter().any(|it| *it.name == *protocol)
    }

    /// The member's metadata for a protocol.
    pub(super) fn metadata(&self, protocol: &str) -> Arc<[u8]> {
        let found = self.protocols.iter().find(|it| *it.name == *protocol);
        found.map(|it| it.metadata.clone()).unwrap_or_default()
    }
}

/// A member, with the state that does not survive a restart.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) profile: Profile,
    /// True while it has not been in a generation.
    pub(super) is_new: bool,
    /// The join that waits for an answer.
    pub(super) joining: Option<Token>,
    /// The sync that waits for an answer.
    pub(super) syncing: Option<Token>,
    /// True once it has synced in this generation.
    pub(super) has_synced: bool,
    /// When it is removed unless it is heard of.
    pub(super) deadline_ms: u64,
}

impl Member {
    pub(super) fn new(profile: Profile, deadline_ms: u64) -> Self {
        Self {
            profile,
            is_new: true,
            joining: None,
            syncing: None,
            has_synced: false,
            deadline_ms,
        }
    }

    /// Returns a member as it was recorded.
    pub(super) fn restored(profile: Profile) -> Self {
        Self {
            is_new: false,
            has_synced: true,
            ..Self::new(profile, 0)
        }
    }

    /// Extends the deadline after a sign of life. It never shortens the deadline of a new member.
    pub(super) fn heard(&mut self, now_ms: u64) {
        let until_ms = after(now_ms, self.profile.session_timeout_ms);
        self.deadline_ms = match self.is_new {
            true => self.deadline_ms.max(until_ms),
            false => until_ms,
        };
    }

    /// Returns when it is removed. A waiting member sends no heartbeats, so it has no deadline; a
    /// new one has, because nothing else shows that its client is still there.
    pub(super) fn expires_ms(&self) -> Option<u64> {
        let waits = self.joining.is_some() || self.syncing.is_some();
        (self.is_new || !waits).then_some(self.deadline_ms)
    }
}

/// Returns a time that is later than now.
pub(super) fn after(now_ms: u64, pause_ms: u32) -> u64 {
    now_ms.saturating_add(u64::from(pause_ms.max(1)))
}
