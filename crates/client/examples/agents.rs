//! Agents that call each other by name through a node.
//!
//! ```text
//! cargo run -p telpher-client --example agents                           # a node of its own
//! cargo run -p telpher-client --example agents -- tcp://127.0.0.1:7400   # one that is there
//! ```

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use door::{Acceptor, Spawn};
use door_native::{Door, Options};
use node::{Node, Parts};
use platform::{Clock, Entropy, Ports};
use telpher_client::{Cast, Client, Name, Server, SubscribeOptions};
use tokio::time::Instant;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = match std::env::args().nth(1) {
        Some(address) => address,
        None => start_node().await?,
    };
    let planner = Client::builder()
        .name("acme/demo/planner")?
        .connect(&address)
        .await?;
    let news = Name::parse("acme/demo/news")?;
    let workers = Name::parse("acme/demo/worker")?;

    // Two workers under one name: calls alternate between them.
    let mut attached = Vec::new();
    let mut listeners = Vec::new();
    for worker in ["ada", "bob"] {
        let client = Client::connect(&address).await?;
        let server = Server::new().handle(
            "summarize",
            move |request: telpher_client::Request| async move {
                let text = String::from_utf8_lossy(&request.body);
                let words = text.split_whitespace().count();
                let source = request.source().unwrap_or("somebody");
                Ok(format!("{worker} read {words} words for {source}"))
            },
        );
        let name = workers.with_instance(worker)?;
        let options = SubscribeOptions::new().with_source();
        attached.push(server.attach_with(&client, &name, options).await?);
        listeners.push((worker, client.subscribe(&news).await?));
    }
    println!("workers: {attached:?}");

    let worker = planner.caller(workers.as_str())?;
    for text in ["a short one", "quite a bit longer than that"] {
        println!("{:?}", worker.call("summarize", text).await?);
    }

    let receipt = planner
        .send_reported(&news, Cast::All, "lunch is ready")
        .await?;
    println!("sent to all: {receipt:?}");
    let copies = planner.write_to_memory(&news, "and dinner, too").await?;
    println!("written to memory for {copies}");
    for (worker, listener) in &mut listeners {
        let envelope = listener.next().await.ok_or("the subscription ended")?;
        println!("{worker} heard {:?}", envelope.body);
    }

    drop(attached);
    match worker.call("summarize", "x").await {
        Ok(reply) => println!("one worker had not left yet: {reply:?}"),
        Err(error) => println!("when the workers have left: {error}"),
    }
    Ok(())
}

/// A node in this process. In production it is a process of its own: `telpher serve`.
async fn start_node() -> Result<String, Box<dyn std::error::Error>> {
    let ports = Ports {
        clock: Arc::new(SystemClock(Instant::now())),
        entropy: Arc::new(Counter(AtomicU64::new(1))),
    };
    let node = Node::open(Parts::in_memory(ports))?;
    let door = Door::new(node.clone(), Arc::new(door::Open), Options::default());
    let listener = net::listen_tcp("127.0.0.1:0").await?;
    let address = format!("tcp://{}", listener.local_addr()?);
    tokio::spawn(door_native::accept_tcp(
        listener,
        None,
        net::SocketBudget::unlimited(),
        Arc::new(TaskSpawner(door)),
    ));
    tokio::spawn(door::sweep(node));
    println!("a node listens at {address}");
    Ok(address)
}

/// Serves every connection on this runtime.
struct TaskSpawner(Door);

impl Spawn for TaskSpawner {
    fn spawn(&self, accepted: Acceptor) {
        let door = self.0.clone();
        tokio::spawn(async move {
            if let Ok(stream) = accepted() {
                door.serve(stream).await;
            }
        });
    }
}

struct SystemClock(Instant);

impl Clock for SystemClock {
    fn now_ns(&self) -> u64 {
        self.0.elapsed().as_nanos() as u64
    }

    fn unix_ms(&self) -> u64 {
        self.0.elapsed().as_millis() as u64
    }
}

struct Counter(AtomicU64);

impl Entropy for Counter {
    fn next_u64(&self) -> u64 {
        // The node uses the upper bits for the names of instances.
        self.0.fetch_add(1, Ordering::Relaxed) << 16
    }
}
