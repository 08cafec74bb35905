//! The agents of the demo: tasks of this process, each with a connection of its own.

use std::time::Duration;

use client::{
    Attachment, Client, Context, Description, Fault, Method, Request, Server, SubscribeOptions,
    Subscription, service,
};
use console::Failure;
use serve::Embedded;

use super::stage::{broken, demo_name};

/// The agents of the demo, except the one that is killed.
pub(super) struct Crew {
    /// The agent that makes all calls.
    pub(super) planner: Client,
    /// The subscribers of the news.
    pub(super) readers: Vec<(&'static str, Subscription)>,
    /// The agent that receives writes.
    pub(super) archive: Subscription,
    _serving: Vec<Attachment>,
}

impl Crew {
    /// Connects all agents, some by TCP and some by the Unix socket.
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
    let builder = Client::builder().name(demo_name(agent)?.as_str());
    let connecting = builder.map_err(broken)?.connect(url);
    connecting.await.map_err(broken)
}

async fn serve(url: &str, agent: &str, server: Server) -> Result<Attachment, Failure> {
    let client = connect(url, agent).await?;
    let options = SubscribeOptions::new().describe(description(agent));
    let name = demo_name(agent)?;
    let attached = server.attach_with(&client, &name, options).await;
    attached.map_err(broken)
}

/// Returns what an agent says about itself.
fn description(agent: &str) -> Description {
    let about = |text: &str| Description::new().version("1.0").text(text);
    let method = |name: &str, text: &str| Method::new(name).text(text);
    match agent.split('/').next() {
        Some("researcher") => about("Looks facts up.")
            .method(method(
                "look_up",
                "The body is a topic: tides, telphers, tapirs or tea.",
            ))
            .method(method("echo", "Answers with the body of the request.")),
        Some("calculator") => about("Adds and divides, called from Rust by its types.")
            .method(method("add", "The sum of two numbers."))
            .method(method("divide", "The quotient of two numbers.")),
        Some("writer") => about("Writes poems.")
            .method(method("haiku", "The lines of a poem, one after the other.").streamed()),
        _ => Description::new(),
    }
}

/// Subscribes an agent that receives messages and writes.
pub(super) async fn subscribe(url: &str, agent: &str) -> Result<Subscription, Failure> {
    let client = connect(url, agent).await?;
    let options = SubscribeOptions::new().with_source();
    let subscription = client.subscribe_with(&demo_name(agent)?, options).await;
    subscription.map_err(broken)
}

/// Simulated working time of an agent.
const THOUGHT: Duration = Duration::from_millis(25);

/// A server that looks facts up, and echoes for the latency measurement.
fn researcher(name: &'static str) -> Server {
    Server::new()
        .handle("look_up", move |request: Request| async move {
            tokio::time::sleep(THOUGHT).await;
            let topic = std::str::from_utf8(&request.body)?;
            let found = FACTS.iter().find(|(known, _)| *known == topic);
            let (_, fact) = found.ok_or_else(|| Fault::new(format!("no fact about {topic}")))?;
            Ok(format!("{name}: {fact}"))
        })
        .handle_sync("echo", |request: Request| Ok(request.body))
}

/// The facts of the researchers.
pub(super) const FACTS: [(&str, &str); 4] = [
    ("tides", "twice a day, by the moon"),
    ("telphers", "carry loads along a line, by themselves"),
    ("tapirs", "swim well and sleep late"),
    ("tea", "three minutes, not boiling"),
];

service! {
    /// Sums and quotients.
    pub(super) trait Calculator, client CalculatorClient {
        /// Returns the sum of `a` and `b`.
        async fn add(a: i64, b: i64) -> i64;
        /// Returns the quotient of `a` and `b`.
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

/// A server that streams the lines of a poem.
fn writer() -> Server {
    Server::new().handle_stream("haiku", |_, lines| async move {
        for line in VERSE {
            lines.send(line).await?;
            tokio::time::sleep(THOUGHT).await;
        }
        Ok(())
    })
}
