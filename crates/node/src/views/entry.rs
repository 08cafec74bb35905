//! What the views know of one conversation, and under which keys it is found.

use std::collections::{BTreeMap, BTreeSet};

use super::scope::{SCOPE_SIZE, Scope};

/// Bytes of a key of the table of order.
pub(super) const KEY_SIZE: usize = SCOPE_SIZE + 1 + 8 + 8;

/// `scope | archived u8 | activity_ms u64 | conversation u64`, big-endian: within a scope, and
/// apart for archived ones, conversations stand in the order of their activity.
pub(super) type OrderKey = [u8; KEY_SIZE];

/// A place in the order of activity; newer ones are larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// When something was said last, in milliseconds since 1970-01-01 UTC.
    pub(super) activity_ms: u64,
    /// The number of the conversation.
    pub(super) number: u64,
}

/// Which conversations by whether they are archived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shelf {
    Open,
    Archived,
}

/// A conversation as the views know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) row: Row,
    /// By their scope. See [`super::scope`].
    pub(super) participants: BTreeMap<Scope, Participant>,
}

/// What is kept of a conversation but its participants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// Records in the stream of messages before message 1.
    pub(super) base: u64,
    /// The newest message that was looked at.
    pub(super) head: u64,
    /// See [`Place`]; never becomes less.
    pub(super) activity_ms: u64,
    /// It is erased that long after its activity; 0 for never.
    pub(super) ttl_ms: u64,
    pub(super) is_archived: bool,
    /// The webhook that answers it, as a participant and as what is due to it.
    pub(super) agent: Option<[Scope; 2]>,
    pub(super) namespace: Scope,
    /// Of its metadata.
    pub(super) labels: Vec<Scope>,
}

/// How far somebody has read, and what he wrote behind that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Participant {
    /// The last message that he has read.
    pub(super) read: u64,
    /// His own messages behind that: they are not unread.
    pub(super) own: u64,
    /// Whether one of the messages is his.
    pub(super) is_writer: bool,
}

impl Participant {
    /// Messages of others that he has not read, of `head` messages of which the first is `start`.
    pub(super) fn unread(&self, start: u64, head: u64) -> u64 {
        let kept = (head + 1).saturating_sub(start.max(1));
        head.saturating_sub(self.read)
            .saturating_sub(self.own)
            .min(kept)
    }
}

impl Row {
    /// When it is over, if it ends by itself.
    pub(super) fn expires_ms(&self) -> Option<u64> {
        (self.ttl_ms > 0).then(|| self.activity_ms.saturating_add(self.ttl_ms))
    }

    fn shelf(&self) -> Shelf {
        match self.is_archived {
            true => Shelf::Archived,
            false => Shelf::Open,
        }
    }

    /// `base | head | activity_ms | ttl_ms | flags u8 (1 archived, 2 has an agent) | agent
    /// | namespace | labels`.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(33 + SCOPE_SIZE * (self.labels.len() + 3));
        for number in [self.base, self.head, self.activity_ms, self.ttl_ms] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.push(u8::from(self.is_archived) | u8::from(self.agent.is_some()) << 1);
        let agent = self.agent.iter().flatten();
        let scopes = agent.chain([&self.namespace]).chain(&self.labels);
        bytes.extend(scopes.flat_map(|scope| scope.0));
        bytes
    }

    /// `None` for what no row is.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (numbers, rest) = bytes.split_first_chunk::<32>()?;
        let number = |index: usize| {
            let mut number = [0; 8];
            number.copy_from_slice(&numbers[8 * index..][..8]);
            u64::from_le_bytes(number)
        };
        let (flags, rest) = rest.split_first()?;
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
        })
    }
}

impl Entry {
    /// The keys under which it is found.
    pub(super) fn keys(&self, number: u64) -> BTreeSet<OrderKey> {
        let place = Place {
            activity_ms: self.row.activity_ms,
            number,
        };
        let shelf = self.row.shelf();
        let own = [&self.row.namespace].into_iter().chain(&self.row.labels);
        let scopes = own.chain(self.participants.keys());
        let mut keys: BTreeSet<_> = scopes.map(|scope| key(*scope, shelf, place)).collect();
        if let Some(due) = self.due() {
            // Whoever answers takes what is archived and what is not.
            keys.insert(key(due, Shelf::Open, place));
        }
        keys
    }

    /// The scope of what is due to its webhook, if anything is.
    fn due(&self) -> Option<Scope> {
        let [agent, due] = self.row.agent?;
        let participant = self.participants.get(&agent).copied().unwrap_or_default();
        (participant.unread(1, self.row.head) > 0).then_some(due)
    }
}

/// A key of the table of order.
pub(super) fn key(scope: Scope, shelf: Shelf, place: Place) -> OrderKey {
    let mut key = [0; KEY_SIZE];
    key[..SCOPE_SIZE].copy_from_slice(&scope.0);
    key[SCOPE_SIZE] = shelf as u8;
    key[SCOPE_SIZE + 1..][..8].copy_from_slice(&place.activity_ms.to_be_bytes());
    key[SCOPE_SIZE + 9..].copy_from_slice(&place.number.to_be_bytes());
    key
}

/// The place that a key says.
pub(super) fn place(key: &OrderKey) -> Place {
    let number = |at: usize| {
        let mut number = [0; 8];
        number.copy_from_slice(&key[at..][..8]);
        u64::from_be_bytes(number)
    };
    Place {
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
        }
    }

    #[test]
    fn a_row_reads_back_and_nonsense_does_not() {
        let namespace = Scope::namespace("a/b");
        let agent = [namespace.participant("x"), namespace.due("x")];
        for agent in [None, Some(agent)] {
            let row = Row { agent, ..row() };
            let bytes = row.encode();
            assert_eq!(Row::decode(&bytes), Some(row));
            assert_eq!(Row::decode(&bytes[..bytes.len() - 1]), None);
            assert_eq!(Row::decode(&bytes[..33]), None);
        }
        assert_eq!(Row::decode(&[0; 32]), None);
    }

    #[test]
    fn keys_stand_in_the_order_of_activity() {
        let scope = Scope::namespace("a/b");
        let at = |activity_ms, number| Place {
            activity_ms,
            number,
        };
        let places = [at(1, 300), at(2, 1), at(2, 256), at(300, 0)];
        let keys = places.map(|it| key(scope, Shelf::Open, it));
        assert!(keys.is_sorted());
        assert_eq!(keys.map(|it| place(&it)), places);
        assert!(keys[3] < key(scope, Shelf::Archived, at(0, 0)));
    }

    #[test]
    fn own_and_forgotten_messages_are_not_unread() {
        let participant = Participant {
            read: 2,
            own: 3,
            is_writer: true,
        };
        assert_eq!(participant.unread(1, 10), 5);
        assert_eq!(participant.unread(8, 10), 3);
        assert_eq!(participant.unread(11, 10), 0);
        assert_eq!(participant.unread(1, 1), 0);
    }
}
