//! A member: what it says of itself, what it waits for, and when it is gone.

use std::sync::Arc;

use super::terms::{Join, Protocol, Token};

/// What of a member outlives a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Its `group.instance.id`, if it is a static member.
    pub instance: Option<Box<str>>,
    /// What the client calls itself.
    pub client_id: Box<str>,
    /// Where it is.
    pub client_host: Box<str>,
    /// It is gone when nothing was heard of it for so long.
    pub session_timeout_ms: u32,
    /// How long a rebalance waits for it.
    pub rebalance_timeout_ms: u32,
    /// What it can do, what it likes best first.
    pub protocols: Vec<Protocol>,
    /// Topics that it is subscribed to, if it says so.
    pub topics: Option<Vec<Box<str>>>,
    /// What is assigned to it.
    pub assignment: Arc<[u8]>,
}

impl Profile {
    /// What somebody says of itself who joins.
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

    /// Bytes that it takes in a record, about.
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

    /// What it says in a protocol.
    pub(super) fn metadata(&self, protocol: &str) -> Arc<[u8]> {
        let found = self.protocols.iter().find(|it| *it.name == *protocol);
        found.map(|it| it.metadata.clone()).unwrap_or_default()
    }
}

/// A member while the process lives.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) profile: Profile,
    /// It has not been in a generation yet.
    pub(super) is_new: bool,
    /// The join that waits for an answer.
    pub(super) joining: Option<Token>,
    /// The sync that waits for an answer.
    pub(super) syncing: Option<Token>,
    /// It has asked for what this generation assigns.
    pub(super) has_synced: bool,
    /// When it is gone if nothing is heard of it.
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

    /// A member that was read back: it goes on where it was.
    pub(super) fn restored(profile: Profile) -> Self {
        Self {
            is_new: false,
            has_synced: true,
            ..Self::new(profile, 0)
        }
    }

    /// It lives. That does not bring the end of a new one nearer.
    pub(super) fn heard(&mut self, now_ms: u64) {
        let until_ms = after(now_ms, self.profile.session_timeout_ms);
        self.deadline_ms = match self.is_new {
            true => self.deadline_ms.max(until_ms),
            false => until_ms,
        };
    }

    /// When it is gone. Who waits for an answer sends no heartbeats; of a new member nothing else
    /// shows that it still waits.
    pub(super) fn expires_ms(&self) -> Option<u64> {
        let waits = self.joining.is_some() || self.syncing.is_some();
        (self.is_new || !waits).then_some(self.deadline_ms)
    }
}

/// A time that is not now.
pub(super) fn after(now_ms: u64, pause_ms: u32) -> u64 {
    now_ms.saturating_add(u64::from(pause_ms.max(1)))
}
