//! SCRAM users, stored in a stream of their own like topics in the catalogue.

mod changes;

use journal::{AppendError, Journal, Ticket};
use store::{Kind, Location, Store};
use topics::record::{USER, USER_GONE};
use topics::{User, Users};

use crate::error::OpenError;

pub use changes::Farewell;

/// The users and their stream.
pub(super) struct UserStore {
    at: Location,
    users: Users,
    /// Records since it was last rewritten.
    records: usize,
}

/// Minimum number of superseded records for the stream to be rewritten.
const DEAD_RECORDS_MIN: usize = 1_000;

impl UserStore {
    /// Loads the users.
    pub(super) fn open(store: &Store, now_ms: u64) -> Result<Self, OpenError> {
        let name = "users";
        let shard = store.shard_of(name);
        let at = store.find_or_create_in(Kind::Topics, name, shard, now_ms)?;
        let mut kept = Self {
            at,
            users: Users::default(),
            records: 0,
        };
        store.each_record::<OpenError>(at, |it| {
            kept.records += 1;
            match it.tag {
                USER => kept.users.put(User::decode(&it.payload)?),
                USER_GONE => {
                    let name = std::str::from_utf8(&it.payload).map_err(|_| MALFORMED)?;
                    kept.users.remove(name);
                }
                _ => return Err(MALFORMED.into()),
            }
            Ok(())
        })?;
        Ok(kept)
    }

    fn enter(
        &mut self,
        journal: &Journal,
        tag: u8,
        bytes: &[u8],
        now_ms: u64,
    ) -> Result<Ticket, AppendError> {
        let mut guard = journal.lock(self.at.shard, now_ms);
        let appended = guard.append(self.at.stream, None, tag, bytes)?;
        self.records += 1;
        Ok(appended.ticket)
    }

    /// Rewrites the stream if most of its records are superseded. The newest record of each user
    /// counts, so a crash midway is harmless.
    fn shorten(&mut self, journal: &Journal, now_ms: u64) -> Result<(), AppendError> {
        if self.records < 2 * self.users.iter().len() + DEAD_RECORDS_MIN {
            return Ok(());
        }
        let Location { shard, stream } = self.at;
        let start = journal.stream(shard, stream).map_or(0, |it| it.next);
        let users: Vec<_> = self.users.iter().cloned().collect();
        for user in &users {
            let mut bytes = Vec::new();
            user.encode(&mut bytes);
            self.enter(journal, USER, &bytes, now_ms)?;
        }
        journal.lock(shard, now_ms).trim(stream, start)?;
        self.records = users.len();
        Ok(())
    }
}

#[cfg(test)]
impl UserStore {
    /// Returns the state of its stream.
    pub(super) fn stream(&self, journal: &Journal) -> journal::StreamState {
        let state = journal.stream(self.at.shard, self.at.stream);
        state.expect("it was written to")
    }
}

/// The connections of clients that authenticated as users.
pub trait UserSessions: Send + Sync {
    /// Disconnects the clients for whose user `reason` returns a text, which is sent to them.
    fn dismiss(&self, reason: &dyn Fn(&User) -> Option<String>);
}

const MALFORMED: topics::record::Malformed = topics::record::Malformed {
    what: "record of the users of topics",
};
