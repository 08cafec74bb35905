//! Who plays: agents that are tasks of this process, each on a connection of its own.

use std::time::Duration;

use client::{
    Attached, Client, Context, Fault, Request, Server, SubscribeOptions, Subscription, service,
};

use super::{broken, desk};
use crate::failure::Failure;
use crate::serve::Embedded;

/// Everybody but the one who is killed.
pub(super) struct Crew {
    /// Who does all the asking.
    pub(super) planner: Client,
    /// Who is subscribed to the news.
    pub(super) readers: Vec<(&'static str, Subscription)>,
    /// Who keeps what is written.
    pub(super) archive: Subscription,
    _serving: Vec<Attached>,
}

impl Crew {
    /// Connects all of them; every other one by the Unix socket.
    pub(super) async fn start(node: &Embedded) -> Result<Self, Failure> {
        let (tcp, unix) = (node.tcp.as_str(), node.unix.as_str());
        let mut readers = Vec::new();
        for (name, url) in [("eve", tcp), ("mallory", unix), ("otto", tcp)] {
            readers.push((name, subscribe(url, &format!("news/{name}")).await?));
        }
        Ok(Self {
            planner: connect(tcp, "planner").await?,
            readers,
            archive: subscribe(unix, "archive").await?,
            _serving: vec![
                serve(tcp, "researcher/ada", researcher("ada")).await?,
                serve(unix, "researcher/bob", researcher("bob")).await?,
                serve(tcp, "calculator", Abacus.register(Server::new())).await?,
                serve(unix, "writer", writer()).await?,
            ],
        })
    }
}

async fn connect(url: &str, agent: &str) -> Result<Client, Failure> {
    let builder = Client::builder().name(desk(agent)?.as_str());
    let connecting = builder.map_err(broken)?.connect(url);
    connecting.await.map_err(broken)
}

async fn serve(url: &str, agent: &str, server: Server) -> Result<Attached, Failure> {
    let client = connect(url, agent).await?;
    let attached = server.attach(&client, &desk(agent)?).await;
    attached.map_err(broken)
}

/// An agent that takes what it is sent and what is written to it.
pub(super) async fn subscribe(url: &str, agent: &str) -> Result<Subscription, Failure> {
    let client = connect(url, agent).await?;
    let options = SubscribeOptions::new().with_source();
    let subscription = client.subscribe_with(&desk(agent)?, options).await;
    subscription.map_err(broken)
}

/// Thinking takes a moment.
const THOUGHT: Duration = Duration::from_millis(25);

/// Looks things up; and echoes, to be measured.
fn researcher(name: &'static str) -> Server {
    Server::new()
        .handle("look_up", move |request: Request| async move {
            tokio::time::sleep(THOUGHT).await;
            let topic = std::str::from_utf8(&request.body)?;
            let found = FACTS.iter().find(|(known, _)| *known == topic);
            let (_, fact) =
                found.ok_or_else(|| Fault::new(format!("{topic}: never heard of it")))?;
            Ok(format!("{name}: {fact}"))
        })
        .handle_sync("echo", |request: Request| Ok(request.body))
}

/// What researchers know.
pub(super) const FACTS: [(&str, &str); 4] = [
    ("tides", "twice a day, by the moon"),
    ("telphers", "carry loads along a line, by themselves"),
    ("tapirs", "swim well and sleep late"),
    ("tea", "three minutes, not boiling"),
];

service! {
    /// Sums and quotients.
    pub(super) trait Calculator, client CalculatorClient {
        /// `a` and `b` together.
        async fn add(a: i64, b: i64) -> i64;
        /// How often `b` is in `a`.
        async fn divide(a: i64, b: i64) -> i64;
    }
}

struct Abacus;

impl Calculator for Abacus {
    async fn add(&self, _: Context, a: i64, b: i64) -> Result<i64, Fault> {
        Ok(a + b)
    }

    async fn divide(&self, _: Context, a: i64, b: i64) -> Result<i64, Fault> {
        a.checked_div(b)
            .ok_or_else(|| Fault::new("division by zero"))
    }
}

const VERSE: [&str; 3] = [
    "a line in the air",
    "loads go over the valley",
    "nobody carries",
];

/// Answers with one line after the other.
fn writer() -> Server {
    Server::new().handle_stream("haiku", |_, lines| async move {
        for line in VERSE {
            lines.send(line).await?;
            tokio::time::sleep(THOUGHT).await;
        }
        Ok(())
    })
}
