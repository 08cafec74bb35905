//! `Caller`: calls one server that is connected directly, or one agent behind a node.

use std::sync::Arc;

use model::{Name, NameError};

use crate::options::Options;
use crate::state::core::Core;
use crate::state::link::to_method;
use crate::state::routes::Target;
use crate::{Client, ConnectError};

/// Calls the methods of one callee. Cheap to clone.
///
/// The address alone decides whether the calls go through a node:
///
/// ```no_run
/// # async fn example() -> Result<(), telpher_client::ConnectError> {
/// use telpher_client::Caller;
///
/// let direct = Caller::connect("tcp://127.0.0.1:7410").await?;
/// let through_a_node = Caller::connect("tcp://127.0.0.1:7400#acme/demo/echo").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Caller {
    client: Client,
    /// Agent name; empty when the callee is at the other end of the connection.
    name: Arc<str>,
}

impl Caller {
    pub(crate) async fn connect_with(options: Options, text: &str) -> Result<Self, ConnectError> {
        let (address, name) = split_name(text)?;
        let client = Client::connect_with(options, address.parse()?).await?;
        let address = || address.to_owned();
        match (client.is_node(), &name) {
            (true, None) => Err(ConnectError::NameMissing { address: address() }),
            (false, Some(_)) => Err(ConnectError::NameUnused { address: address() }),
            _ => Ok(Self::new(client, name.as_ref().map_or("", Name::as_str))),
        }
    }

    pub(crate) fn new(client: Client, name: &str) -> Self {
        Self {
            client,
            name: name.into(),
        }
    }

    /// Returns the connection that this caller uses.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the agent's name; empty for a server at the other end of the connection.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn target<'a>(&'a self, method: &'a str) -> Target<'a> {
        to_method(&self.name, method)
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        self.client.core()
    }
}

impl Client {
    /// Returns a caller for the agent `name`, on whichever node instance it is connected.
    pub fn caller(&self, name: &str) -> Result<Caller, NameError> {
        let name = Name::parse(name)?;
        Ok(Caller::new(self.clone(), name.as_str()))
    }

    /// Returns a caller for the server at the other end of the connection.
    pub fn direct(&self) -> Caller {
        Caller::new(self.clone(), "")
    }
}

/// Splits an address into the part before `#` and the agent's name after it.
pub(crate) fn split_name(text: &str) -> Result<(&str, Option<Name>), ConnectError> {
    match text.split_once('#') {
        None => Ok((text, None)),
        Some((address, name)) => Ok((address, Some(Name::parse(name)?))),
    }
}
