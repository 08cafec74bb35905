//! Users of the Kafka listener.

use std::sync::Arc;

use topic_service::Topics;
use topics::User;

/// The present users.
pub trait Users: Send + Sync {
    /// Returns whether there are users: then every client has to authenticate.
    fn is_any(&self) -> bool;

    /// Returns the user of this name.
    fn find(&self, name: &str) -> Option<Arc<User>>;
}

/// The users that the node stores.
impl Users for Topics {
    fn is_any(&self) -> bool {
        self.has_users()
    }

    fn find(&self, name: &str) -> Option<Arc<User>> {
        self.user(name)
    }
}

/// A source without users, for nodes on which clients need no login.
#[derive(Clone, Copy, Debug)]
pub struct NoUsers;

impl Users for NoUsers {
    fn is_any(&self) -> bool {
        false
    }

    fn find(&self, _: &str) -> Option<Arc<User>> {
        None
    }
}
