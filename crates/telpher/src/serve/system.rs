//! The node's own agent: what it shows of itself, to whoever asks under a name.
//!
//! It is an ordinary agent on an ordinary connection, within the process: it is counted and listed
//! like every other, and can be told by its name. Names of `telpher/` belong to the node, so nobody
//! else can answer for it.

use client::{Attached, Client, Connecting, Request, Server};
use edge::http::{agents_json, connections_json};
use edge::native::Door;
use model::Name;
use node::Handle;

use super::{backup, kept};
use crate::failure::{Exit, Failure};

/// Under which name the node answers for itself.
pub(crate) const SYSTEM_AGENT: &str = "telpher/system/node";

/// Answers while it is held.
pub(super) struct SystemAgent {
    _attached: Attached,
}

impl SystemAgent {
    /// Subscribes the agent.
    pub(super) async fn start(
        node: &Handle,
        door: &Door,
        source: backup::Source,
    ) -> Result<Self, Failure> {
        let name = Name::parse(SYSTEM_AGENT).map_err(failed)?;
        let client = connect(door).await.map_err(failed)?;
        let attached = server(node, source)
            .attach(&client, &name)
            .await
            .map_err(failed)?;
        Ok(Self {
            _attached: attached,
        })
    }
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::new(Exit::Failed, format!("the node's own agent: {error}"))
        .hint("this is a defect: please report it")
}

/// Connects through a pipe, as nobody outside can.
async fn connect(door: &Door) -> Result<Client, client::ConnectError> {
    let door = door.clone();
    let connector = move |_: &net::Address| -> Connecting {
        let (near, far) = net::inproc::pair("node");
        let door = door.clone();
        tokio::spawn(async move { door.serve_system(far).await });
        Box::pin(std::future::ready(Ok(near)))
    };
    Client::builder()
        .name(SYSTEM_AGENT)?
        .connector(connector)
        .connect("inproc://node")
        .await
}

fn server(node: &Handle, source: backup::Source) -> Server {
    let (agents, connections) = (node.clone(), node.clone());
    let server = Server::new()
        .handle_sync("agents", move |_: Request| {
            Ok(agents_json(&agents).to_string())
        })
        .handle_sync("connections", move |_: Request| {
            Ok(connections_json(&connections).to_string())
        });
    backup::method(kept::methods(server, node), source)
}
