//! Connections of clients that authenticated as users of topics.

use std::sync::Arc;

use messaging::{Facts, Messaging};
use model::ErrorCode;
use topic_service::UserSessions;
use topics::User;

/// The connected clients, for [`topic_service::Topics`], which disconnects those whose credential
/// is no longer valid.
pub(crate) struct ConnectedUsers(pub(crate) Arc<Messaging>);

impl UserSessions for ConnectedUsers {
    fn dismiss(&self, reason: &dyn Fn(&User) -> Option<String>) {
        let of_user = |client: &Facts| reason(client.user.as_ref()?);
        self.0.dismiss(ErrorCode::Unauthenticated, of_user);
    }
}
