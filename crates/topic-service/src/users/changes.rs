//! Reading and changing users.

use std::sync::Arc;

use journal::Ticket;
use platform::{Counter, Pending};
use topics::record::{USER, USER_GONE};
use topics::{User, UserChange};

use crate::error::{Storage, UserChangeError};
use crate::service::Topics;

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
    pub fn change_user(&self, name: &str, changes: &[UserChange]) -> Pending<(), UserChangeError> {
        self.change_user_from_within(name, changes).0
    }

    /// Like [`Topics::change_user`], for a caller that may itself be disconnected by the change: no
    /// client is disconnected before the farewell is dropped, which the caller holds until the
    /// answer is sent.
    pub fn change_user_from_within(
        &self,
        name: &str,
        changes: &[UserChange],
    ) -> (Pending<(), UserChangeError>, Option<Farewell>) {
        match self.enter_user(name, changes) {
            Ok(ticket) => {
                let farewell = Farewell {
                    topics: self.clone(),
                    name: name.into(),
                };
                let durable = self.state.durable(Some(ticket));
                (Pending::after(durable, ()), Some(farewell))
            }
            Err(error) => (Pending::known(Err(error)), None),
        }
    }

    fn send_away(&self, name: &str) {
        let now = self.user(name);
        let counters = &self.state.platform.counters;
        self.state.sessions.dismiss(&|was| {
            if was.name != name || was.is_still(now.as_deref()) {
                return None;
            }
            counters.count(Counter::Unauthenticated);
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
