//! The node's own agents: what it shows of itself, and the routes of the HTTP door, to whoever asks
//! under a name.
//!
//! They are ordinary agents on an ordinary connection, within the process: it is counted and listed
//! like every other, and can be told by its name. Names of `telpher/` belong to the node, so nobody
//! else can answer for it.

use std::sync::Arc;

use client::{Attached, Client, Connecting, Fault, ItemSender, Request, Server, SubscribeOptions};
use edge::Gate;
use edge::http::{Connections, Local, agents_json, connections_json};
use edge::native::Door;
use model::Name;
use node::Handle;

use super::{backup, kept, streams};
use crate::failure::{Exit, Failure};

/// Under which name the node answers for itself.
pub(crate) const SYSTEM_AGENT: &str = "telpher/system/node";

/// Under which name the node answers what is asked of its HTTP door.
pub(crate) const HTTP_AGENT: &str = "telpher/system/http";

/// Answers while it is held.
pub(super) struct SystemAgent {
    _attached: [Attached; 2],
    client: Client,
}

impl SystemAgent {
    /// Subscribes the agent.
    pub(super) async fn start(
        node: &Handle,
        door: &Door,
        source: backup::Source,
        connections: Arc<Connections>,
    ) -> Result<Self, Failure> {
        let client = connect(door, node).await.map_err(failed)?;
        let http = http_server(node, source.gate.clone(), connections);
        let own = attach(server(node, source), &client, SYSTEM_AGENT).await?;
        let http = attach(http, &client, HTTP_AGENT).await?;
        Ok(Self {
            _attached: [own, http],
            client,
        })
    }

    /// Its connection, for the node's own calls.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }
}

async fn attach(server: Server, client: &Client, name: &str) -> Result<Attached, Failure> {
    let name = Name::parse(name).map_err(failed)?;
    let options = SubscribeOptions::new().with_source();
    let attached = server.attach_with(client, &name, options).await;
    attached.map_err(failed)
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::new(Exit::Failed, format!("the node's own agent: {error}"))
        .hint("this is a defect: please report it")
}

/// Connects through a pipe, as nobody outside can. A node that goes down admits no connection, so the
/// client does not ask for one: that would be logged as a refused client.
async fn connect(door: &Door, node: &Handle) -> Result<Client, client::ConnectError> {
    let (door, node) = (door.clone(), node.clone());
    let connector = move |_: &net::Address| -> Connecting {
        if node.is_draining() {
            let ending = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
            return Box::pin(std::future::ready(Err(ending)));
        }
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
        .handle("agents", move |_: Request| {
            let node = agents.clone();
            off_thread(move || agents_json(&node).to_string())
        })
        .handle("connections", move |_: Request| {
            let node = connections.clone();
            off_thread(move || connections_json(&node).to_string())
        });
    let server = streams::methods(kept::methods(server, node), node);
    backup::method(server, node, source)
}

/// Makes a list of any length where no connection waits for it.
async fn off_thread(list: impl FnOnce() -> String + Send + 'static) -> Result<String, Fault> {
    let made = tokio::task::spawn_blocking(list).await;
    made.map_err(|error| Fault::new(format!("the list ended early: {error}")))
}

/// Hands a request to the routes: the head of the answer is the first item, the pieces of its body
/// are the others.
fn http_server(node: &Handle, gate: Arc<dyn Gate>, connections: Arc<Connections>) -> Server {
    let local = Local::new(node.clone(), gate, connections);
    Server::new().handle_stream("request", move |request: Request, items: ItemSender| {
        let local = local.clone();
        async move {
            let source = request.context().source();
            let mut answer = local.ask(source, &request.body).await;
            items.send(answer.head()).await?;
            while let Some(piece) = answer.next().await {
                items.send(piece.map_err(Fault::new)?).await?;
            }
            Ok(())
        }
    })
}
