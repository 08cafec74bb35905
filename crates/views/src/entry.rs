//! The entry of a conversation in the views, and its index keys.

use std::collections::{BTreeMap, BTreeSet};

use conversations::{Retracted, SeqRange};

use super::scope::{SCOPE_SIZE, Scope};

/// Size of a key of the order table, in bytes.
pub(super) const KEY_SIZE: usize = SCOPE_SIZE + 1 + 8 + 8;

/// `scope
/// archived u8
/// activity_ms u64
/// conversation u64`, big-endian. Within a scope, and separately for archived ones, conversations
/// are ordered by their activity.
pub(super) type OrderKey = [u8; KEY_SIZE];

/// A position in the order of activity; newer ones are larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ActivityPosition {
    /// The time of the newest message, in milliseconds since 1970-01-01 UTC.
    pub(super) activity_ms: u64,
    /// The number of the conversation.
    pub(super) number: u64,
}

/// The part of a scope: open or archived conversations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArchiveState {
    Open,
    Archived,
}

/// The entry of a conversation in the views.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) row: Row,
    /// The participants, by scope. See [`super::scope`].
    pub(super) participants: BTreeMap<Scope, Participant>,
}

/// The stored data of a conversation except its participants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// Number of records in the stream of messages before message 1.
    pub(super) base: u64,
    /// The newest message that was processed.
    pub(super) head: u64,
    /// See [`ActivityPosition`]; never decreases.
    pub(super) activity_ms: u64,
    /// Time after the last activity until the conversation is erased, in milliseconds; 0 for never.
    pub(super) ttl_ms: u64,
    pub(super) is_archived: bool,
    /// The webhook that answers the conversation: its scopes as a participant, and for due work.
    pub(super) agent: Option<[Scope; 2]>,
    pub(super) namespace: Scope,
    /// The scopes of its labels.
    pub(super) labels: Vec<Scope>,
    /// The numbers whose messages were retracted.
    pub(super) retracted: Retracted,
}

/// The read position of a participant, and its own messages after that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Participant {
    /// The last message read.
    pub(super) read: u64,
    /// Number of the participant's own messages after `read` that were not retracted: these are not
    /// unread.
    pub(super) own: u64,
    /// True if the participant is the author of a message.
    pub(super) is_writer: bool,
}

impl Participant {
    /// Returns the number of unread messages of others, given the first retained message.
    pub(super) fn unread(&self, start: u64, row: &Row) -> u64 {
        let kept = row.message_count(start.max(1));
        row.message_count(self.read + 1)
            .saturating_sub(self.own)
            .min(kept)
    }
}

impl Row {
    /// Returns the number of messages from a number on, up to the newest one that was processed.
    fn message_count(&self, first: u64) -> u64 {
        let numbers = (self.head + 1).saturating_sub(first);
        numbers.saturating_sub(self.retracted.count(first, self.head))
    }

    /// Returns when the conversation expires, if ever.
    pub(super) fn expires_ms(&self) -> Option<u64> {
        (self.ttl_ms > 0).then(|| self.activity_ms.saturating_add(self.ttl_ms))
    }

    fn archive_state(&self) -> ArchiveState {
        match self.is_archived {
            true => ArchiveState::Archived,
            false => ArchiveState::Open,
        }
    }

    /// `base | head | activity_ms | ttl_ms | flags u8 (1 archived, 2 has an agent, 4 has retracted
    /// messages) | retracted: ranges u16 × (first u64 | last u64) | agent | namespace | labels`.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(33 + SCOPE_SIZE * (self.labels.len() + 3));
        for number in [self.base, self.head, self.activity_ms, self.ttl_ms] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        let ranges = self.retracted.ranges();
        bytes.push(
            u8::from(self.is_archived)
                | u8::from(self.agent.is_some()) << 1
                | u8::from(!ranges.is_empty()) << 2,
        );
        if !ranges.is_empty() {
            bytes.extend_from_slice(&(ranges.len() as u16).to_le_bytes());
        }
        for number in ranges.iter().flat_map(|it| [it.first, it.last]) {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        let agent = self.agent.iter().flatten();
        let scopes = agent.chain([&self.namespace]).chain(&self.labels);
        bytes.extend(scopes.flat_map(|scope| scope.0));
        bytes
    }

    /// Decodes a row; `None` if the bytes are invalid.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (numbers, rest) = bytes.split_first_chunk::<32>()?;
        let number = |index: usize| {
            let mut number = [0; 8];
            number.copy_from_slice(&numbers[8 * index..][..8]);
            u64::from_le_bytes(number)
        };
        let (flags, rest) = rest.split_first()?;
        let (retracted, rest) = match flags & 4 {
            0 => (Retracted::default(), rest),
            _ => retracted(rest)?,
        };
        let (scopes, []) = rest.as_chunks::<SCOPE_SIZE>() else {
            return None;
        };
        let mut scopes = scopes.iter().copied().map(Scope);
        let agent = match flags & 2 {
            0 => None,
            _ => Some([scopes.next()?, scopes.next()?]),
        };
        Some(Self {
            base: number(0),
            head: number(1),
            activity_ms: number(2),
            ttl_ms: number(3),
            is_archived: flags & 1 != 0,
            agent,
            namespace: scopes.next()?,
            labels: scopes.collect(),
            retracted,
        })
    }
}

/// Splits off the ranges of retracted messages; `None` if the bytes are invalid.
fn retracted(bytes: &[u8]) -> Option<(Retracted, &[u8])> {
    let (count, rest) = bytes.split_first_chunk::<2>()?;
    let size = 16 * usize::from(u16::from_le_bytes(*count));
    let (ranges, rest) = rest.split_at_checked(size)?;
    let (numbers, _) = ranges.as_chunks::<8>();
    let ranges = numbers.chunks_exact(2).map(|pair| SeqRange {
        first: u64::from_le_bytes(pair[0]),
        last: u64::from_le_bytes(pair[1]),
    });
    Some((Retracted::from_ranges(ranges.collect())?, rest))
}

impl Entry {
    /// Returns the index keys of the entry.
    pub(super) fn keys(&self, number: u64) -> BTreeSet<OrderKey> {
        let place = ActivityPosition {
            activity_ms: self.row.activity_ms,
            number,
        };
        let archive_state = self.row.archive_state();
        let own = [&self.row.namespace].into_iter().chain(&self.row.labels);
        let scopes = own.chain(self.participants.keys());
        let mut keys: BTreeSet<_> = scopes
            .map(|scope| key(*scope, archive_state, place))
            .collect();
        if let Some(due) = self.due() {
            // Webhooks answer archived conversations, too.
            keys.insert(key(due, ArchiveState::Open, place));
        }
        keys
    }

    /// Returns the scope of due work for the webhook, if it has any.
    fn due(&self) -> Option<Scope> {
        let [agent, due] = self.row.agent?;
        let participant = self.participants.get(&agent).copied().unwrap_or_default();
        (participant.unread(1, &self.row) > 0).then_some(due)
    }
}

/// Returns a key of the order table.
pub(super) fn key(scope: Scope, archive_state: ArchiveState, place: ActivityPosition) -> OrderKey {
    let mut key = [0; KEY_SIZE];
    key[..SCOPE_SIZE].copy_from_slice(&scope.0);
    key[SCOPE_SIZE] = archive_state as u8;
    key[SCOPE_SIZE + 1..][..8].copy_from_slice(&place.activity_ms.to_be_bytes());
    key[SCOPE_SIZE + 9..].copy_from_slice(&place.number.to_be_bytes());
    key
}

/// Returns the position in a key.
pub(super) fn place(key: &OrderKey) -> ActivityPosition {
    let number = |at: usize| {
        let mut number = [0; 8];
        number.copy_from_slice(&key[at..][..8]);
        u64::from_be_bytes(number)
    };
    ActivityPosition {
        activity_ms: number(SCOPE_SIZE + 1),
        number: number(SCOPE_SIZE + 9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row {
        Row {
            base: 1,
            head: 2,
            activity_ms: 3,
            ttl_ms: 4,
            is_archived: true,
            agent: None,
            namespace: Scope::namespace("a/b"),
            labels: vec![Scope::namespace("a/b").label("k", "v")],
            retracted: Retracted::default(),
        }
    }

    #[test]
    fn view_row_decodes_back_and_damaged_ones_are_refused() {
        let namespace = Scope::namespace("a/b");
        let agent = [namespace.participant("x"), namespace.due("x")];
        let range = |first, last| SeqRange { first, last };
        let retracted = Retracted::from_ranges(vec![range(2, 3), range(7, 7)]).unwrap();
        for (agent, retracted) in [(None, Retracted::default()), (Some(agent), retracted)] {
            let row = Row {
                agent,
                retracted,
                ..row()
            };
            let bytes = row.encode();
            assert_eq!(Row::decode(&bytes), Some(row));
            assert_eq!(Row::decode(&bytes[..bytes.len() - 1]), None);
            assert_eq!(Row::decode(&bytes[..33]), None);
        }
        assert_eq!(Row::decode(&[0; 32]), None);
    }

    #[test]
    fn view_keys_sort_by_activity() {
        let scope = Scope::namespace("a/b");
        let at = |activity_ms, number| ActivityPosition {
            activity_ms,
            number,
        };
        let places = [at(1, 300), at(2, 1), at(2, 256), at(300, 0)];
        let keys = places.map(|it| key(scope, ArchiveState::Open, it));
        assert!(keys.is_sorted());
        assert_eq!(keys.map(|it| place(&it)), places);
        assert!(keys[3] < key(scope, ArchiveState::Archived, at(0, 0)));
    }

    #[test]
    fn own_and_trimmed_messages_are_not_unread() {
        let participant = Participant {
            read: 2,
            own: 3,
            is_writer: true,
        };
        let row = |head| Row { head, ..row() };
        assert_eq!(participant.unread(1, &row(10)), 5);
        assert_eq!(participant.unread(8, &row(10)), 3);
        assert_eq!(participant.unread(11, &row(10)), 0);
        assert_eq!(participant.unread(1, &row(1)), 0);
        let range = |first, last| SeqRange { first, last };
        let retracted = Retracted::from_ranges(vec![range(2, 3), range(9, 10)]).unwrap();
        let row = Row {
            retracted,
            ..row(10)
        };
        assert_eq!(participant.unread(1, &row), 2);
        assert_eq!(participant.unread(8, &row), 1);
    }
}
