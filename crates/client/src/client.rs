//! `Client`: a connection to a node or a server that reconnects by itself.

use std::sync::Arc;

use net::Address;
use wire::Role;

use crate::ConnectError;
use crate::connection::driver;
use crate::events::{ConnectionState, Events};
use crate::options::Options;
use crate::state::core::Core;

/// A connection to a node, or directly to a server. Cheap to clone. Dropping the last clone closes
/// the connection after the calls in flight have finished.
///
/// The connection runs as a task of the `tokio` runtime on which it was made; that runtime needs
/// time and I/O enabled. After a lost connection the client reconnects with growing pauses and
/// subscribes again to the same names.
#[derive(Clone)]
pub struct Client {
    core: Arc<Core>,
    role: Role,
    _handle: Arc<Handle>,
}

/// Closes the client when its last clone is gone.
struct Handle(Arc<Core>);

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.begin_close();
    }
}

impl Client {
    pub(crate) async fn connect_with(
        options: Options,
        address: Address,
    ) -> Result<Self, ConnectError> {
        let core = Core::new(options);
        let role = driver::start(core.clone(), address).await?;
        Ok(Self {
            _handle: Arc::new(Handle(core.clone())),
            core,
            role,
        })
    }

    /// True if the peer is a node, false if it is an RPC server.
    pub fn is_node(&self) -> bool {
        self.role == Role::Node
    }

    /// Returns the current state of the connection.
    pub fn state(&self) -> ConnectionState {
        self.core.events.borrow().clone()
    }

    /// Subscribes to changes of the connection state.
    pub fn events(&self) -> Events {
        Events::new(self.core.events.subscribe())
    }

    /// Returns the number of calls in flight, including cancelled calls that the peer has not
    /// answered yet.
    pub fn in_flight(&self) -> usize {
        let state = self.core.state.lock();
        let link = state.link.as_ref();
        link.map_or(0, |link| link.pending.occupied())
    }

    /// Waits for the calls in flight, then closes the connection for every clone. New calls fail
    /// with `unavailable`.
    pub async fn close(&self) {
        let mut events = self.events();
        self.core.begin_close();
        events
            .wait_for(|state| *state == ConnectionState::Closed)
            .await;
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Client({:?})", self.state())
    }
}
