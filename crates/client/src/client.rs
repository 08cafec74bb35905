//! A connection to a node or a server that mends itself.

use std::sync::Arc;

use model::{Name, NameError};
use net::Address;
use wire::Role;

use crate::core::Core;
use crate::events::{ConnectionState, Events};
use crate::options::{Builder, Options};
use crate::{Caller, ConnectError, driver};

/// A connection to a node, or directly to a server. Cheap to clone; it ends with its last clone,
/// after what is under way is finished.
///
/// It runs as a task of the runtime it is made on (any `tokio` runtime with its time and I/O
/// enabled); it has no threads of its own. When the connection is lost it is made again, with
/// growing pauses, and so are the subscriptions.
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
    /// Connects with the usual settings.
    pub async fn connect(address: &str) -> Result<Self, ConnectError> {
        Self::builder().connect(address).await
    }

    /// Connects with others.
    pub fn builder() -> Builder {
        Builder::default()
    }

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

    /// Calls the agent of that name, wherever it is.
    pub fn caller(&self, name: &str) -> Result<Caller, NameError> {
        let name = Name::parse(name)?;
        Ok(Caller::new(self.clone(), name.as_str()))
    }

    /// Calls the server at the other end of the connection.
    pub fn direct(&self) -> Caller {
        Caller::new(self.clone(), "")
    }

    /// Whether a node is at the other end, and not a server.
    pub fn is_node(&self) -> bool {
        self.role == Role::Node
    }

    /// What the connection is doing.
    pub fn state(&self) -> ConnectionState {
        self.core.events.borrow().clone()
    }

    /// Watches what the connection is doing.
    pub fn events(&self) -> Events {
        Events::new(self.core.events.subscribe())
    }

    /// Calls that are under way, or were given up and not yet answered.
    pub fn in_flight(&self) -> usize {
        let state = self.core.state.lock();
        let link = state.link.as_ref();
        link.map_or(0, |link| link.pending.occupied())
    }

    /// Finishes what is under way and ends the connection, for every clone. New calls fail with
    /// `unavailable`.
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
