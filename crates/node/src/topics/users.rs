//! SCRAM users, stored in a stream of their own like topics in the catalogue.

use std::sync::Arc;

use ::topics::record::{USER, USER_GONE};
use ::topics::{User, UserChange, Users};
use journal::{AppendError, Journal, Ticket};
use model::ErrorCode;
use platform::{Counter, Pending};
use store::{Kind, Location, Store};

use super::Topics;
use super::error::{Storage, UserChangeError};
use super::state::OpenError;
use crate::Node;

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

/// Disconnects, when dropped, the clients that authenticated with a credential that is no longer
/// valid.
#[must_use = "the clients are disconnected when this is dropped"]
pub struct Farewell {
    topics: Topics,
    name: Box<str>,
}

impl Drop for Farewell {
    fn drop(&mut self) {
        self.topics.send_away(&self.name);
    }
}

const MALFORMED: ::topics::record::Malformed = ::topics::record::Malformed {
    what: "record of the users of topics",
};

impl Topics {
    /// Returns all users, by name.
    pub fn users(&self) -> Vec<Arc<User>> {
        self.state.users.lock().users.iter().cloned().collect()
    }

    /// Returns a user by name.
    pub fn user(&self, name: &str) -> Option<Arc<User>> {
        self.state.users.lock().users.find(name).cloned()
    }

    /// Returns whether there are users: then clients must authenticate.
    pub fn has_users(&self) -> bool {
        !self.state.users.lock().users.is_empty()
    }

    /// Changes a user: all changes or none. The change takes effect at once and is answered when it
    /// is durable. Clients that authenticated with a credential that is no longer valid are
    /// disconnected.
    pub fn change_user(
        &self,
        name: &str,
        changes: &[UserChange],
    ) -> Pending<Result<(), UserChangeError>> {
        self.change_user_from_within(name, changes).0
    }

    /// Like [`Topics::change_user`], for a caller that may itself be disconnected by the change: no
    /// client is disconnected before the farewell is dropped, which the caller holds until the
    /// answer is sent.
    pub fn change_user_from_within(
        &self,
        name: &str,
        changes: &[UserChange],
    ) -> (Pending<Result<(), UserChangeError>>, Option<Farewell>) {
        match self.enter_user(name, changes) {
            Ok(ticket) => {
                let farewell = Farewell {
                    topics: self.clone(),
                    name: name.into(),
                };
                let durable = self.state.durable(Some(ticket));
                (Pending::after(durable, Ok(())), Some(farewell))
            }
            Err(error) => (Pending::now(Err(error)), None),
        }
    }

    fn send_away(&self, name: &str) {
        let node = Node {
            inner: self.inner.clone(),
        };
        let now = self.user(name);
        node.dismiss(ErrorCode::Unauthenticated, |client| {
            let was = client.user.as_ref().filter(|was| was.name == name)?;
            if was.is_still(now.as_deref()) {
                return None;
            }
            node.counters().count(Counter::Unauthenticated);
            Some(format!(
                "the user `{name}` does not come in like that any more"
            ))
        });
    }

    fn enter_user(&self, name: &str, changes: &[UserChange]) -> Result<Ticket, UserChangeError> {
        let (journal, now_ms) = (&self.state.journal, self.now_ms());
        let refused = |error| Storage::append(journal, error);
        let mut kept = self.state.users.lock();
        let ticket = match kept.users.decide(name, changes)? {
            Some(user) => {
                let mut bytes = Vec::new();
                user.encode(&mut bytes);
                let ticket = kept.enter(journal, USER, &bytes, now_ms).map_err(refused)?;
                kept.users.put(user);
                ticket
            }
            None => {
                let bytes = name.as_bytes();
                let entered = kept.enter(journal, USER_GONE, bytes, now_ms);
                let ticket = entered.map_err(refused)?;
                kept.users.remove(name);
                ticket
            }
        };
        // A stream that cannot be rewritten now is rewritten after the next change.
        let _ = kept.shorten(journal, now_ms);
        Ok(ticket)
    }
}
