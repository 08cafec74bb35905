//! The node's own agents: administration, and the routes of the HTTP listener, under native names.
//!
//! They are ordinary agents on a connection within the process, which is counted and listed like
//! every other. Names that begin with `telpher/` belong to the node, so no client can answer for
//! it.

use std::sync::Arc;

use client::{
    Attachment, Bytes, Client, Connecting, Fault, ItemSender, Request, Server, SubscribeOptions,
};
use console::{Exit, Failure};
use door_http::{
    Local, agents_json, backlog_json, connections_json, description_json, groups_json, topics_json,
};
use door_native::Door;
use http_api::{Connections, Operations};
use model::{ErrorCode, Name};
use node::Node;
use serde_json::Value;

use super::cluster::Cluster;
use super::listeners::METRICS;
use super::{backup, cluster, mailboxes, streams};

/// The name of the agent for administration.
pub const SYSTEM_AGENT: &str = "telpher/system/node";

/// The name of the agent that serves the routes of the HTTP listener.
pub const HTTP_AGENT: &str = "telpher/system/http";

/// The node's own agents, which answer until this is dropped.
pub(super) struct SystemAgent {
    _attached: [Attachment; 2],
    client: Client,
}

/// The services of the node's own agents.
pub(super) struct OwnAgents {
    pub(super) source: backup::Source,
    pub(super) connections: Arc<Connections>,
    pub(super) cluster: Option<Cluster>,
    pub(super) operations: Option<Arc<dyn Operations>>,
}

impl SystemAgent {
    /// Connects and subscribes the agents.
    pub(super) async fn start(node: &Node, door: &Door, own: OwnAgents) -> Result<Self, Failure> {
        let OwnAgents {
            source,
            connections,
            cluster,
            operations,
        } = own;
        let client = connect(door, node).await.map_err(failed)?;
        let local = Local::new(
            node.clone(),
            source.gate.clone(),
            connections,
            &METRICS,
            operations,
        );
        let http = http_server(local);
        let own = attach(server(node, source, cluster), &client, SYSTEM_AGENT).await?;
        let http = attach(http, &client, HTTP_AGENT).await?;
        Ok(Self {
            _attached: [own, http],
            client,
        })
    }

    /// Returns the client of the agents' connection, for the node's own calls.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }
}

async fn attach(server: Server, client: &Client, name: &str) -> Result<Attachment, Failure> {
    let name = Name::parse(name).map_err(failed)?;
    let options = SubscribeOptions::new().with_source();
    let attached = server.attach_with(client, &name, options).await;
    attached.map_err(failed)
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::new(
        Exit::Failed,
        format!("cannot start the node's own agent: {error}"),
    )
    .hint("this is a defect: please report it")
}

/// Connects through a pipe within the process. A draining node admits no connections, so the client
/// does not try: the attempt would be logged as a refused client.
async fn connect(door: &Door, node: &Node) -> Result<Client, client::ConnectError> {
    let (door, node) = (door.clone(), node.clone());
    let connector = move |_: &net::Address| -> Connecting {
        if node.messaging().is_draining() {
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

/// A function that lists something of a node.
type List = fn(&Node) -> Value;

fn server(node: &Node, source: backup::Source, cluster: Option<Cluster>) -> Server {
    let agent = node.clone();
    let lists: [(&str, List); 5] = [
        ("agents", agents_json),
        ("connections", connections_json),
        ("backlog", backlog_json),
        ("topics", topics_json),
        ("groups", groups_json),
    ];
    let list = |server: Server, (name, list): (&str, List)| {
        let node = node.clone();
        server.handle(name, move |_: Request| {
            let node = node.clone();
            off_thread(move || list(&node).to_string())
        })
    };
    let server = lists.into_iter().fold(Server::new(), list);
    let server = server.handle_sync("agent", move |request: Request| describe(&agent, &request));
    let server = streams::methods(mailboxes::methods(server, node), node);
    let server = backup::method(server, node, source);
    match cluster {
        Some(cluster) => cluster::methods(server, node, cluster),
        None => server,
    }
}

/// Returns the description of the agent that the body names.
fn describe(node: &Node, request: &Request) -> Result<String, Fault> {
    let invalid = |error: &dyn std::fmt::Display| {
        Fault::with_code(ErrorCode::InvalidArgument, error.to_string())
    };
    let name = std::str::from_utf8(&request.body).map_err(|error| invalid(&error))?;
    let name = Name::parse(name).map_err(|error| invalid(&error))?;
    let described = description_json(node, &name);
    described.map_err(|problem| Fault::with_code(problem.code, problem.detail))
}

/// Runs the making of a list of any length on a thread that serves no connection.
async fn off_thread(list: impl FnOnce() -> String + Send + 'static) -> Result<String, Fault> {
    let made = tokio::task::spawn_blocking(list).await;
    made.map_err(|error| Fault::new(format!("the list ended early: {error}")))
}

/// A server that passes requests to the HTTP routes. The head of the answer is the first item, the
/// pieces of its body are the following ones. The method `upload` adds a piece to the body of a
/// request that is being executed.
fn http_server(local: Local) -> Server {
    let uploads = local.clone();
    let server = Server::new().handle("upload", move |request: Request| {
        let local = uploads.clone();
        async move {
            let source = request.context().source();
            match local.upload(source, &request.body).await {
                Ok(()) => Ok(Bytes::new()),
                Err(problem) => Err(Fault::with_code(problem.code, problem.detail)),
            }
        }
    });
    server.handle_stream("request", move |request: Request, items: ItemSender| {
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
