//! The native door over in-process streams, spoken to in bare frames.

#![expect(clippy::unwrap_used, reason = "what goes wrong in a test ends it")]

mod agent;
mod archive;
mod bad_input;
mod calls;
mod cold_conversations;
mod cold_mailboxes;
mod conversations;
mod dead_letters;
mod descriptions;
mod dropped_node;
mod durable_node;
mod idle_mailboxes;
mod mailboxes;
mod messages;
mod quotas;
mod storage;
mod streams;
mod topics;

use std::sync::Arc;

use messaging::Limits;
use node::{Node, Parts};
use platform::Ports;

pub(crate) use agent::Agent;
pub(crate) use door_testing::ManualClock;

fn ports(clock: &Arc<ManualClock>) -> Ports {
    door_testing::ports(clock.clone(), 0x0001_0000_0000_0000)
}

/// A node, its clock, and a door to it.
pub(crate) struct Bench {
    pub(crate) node: Node,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) door: door_native::Door,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with(Limits::default(), door_native::Options::default())
    }

    pub(crate) fn with(limits: Limits, options: door_native::Options) -> Self {
        let clock = Arc::new(ManualClock::default());
        let node = Node::open(Parts {
            limits,
            ..Parts::in_memory(ports(&clock))
        });
        Self::of(node.unwrap(), clock, options)
    }

    fn of(node: Node, clock: Arc<ManualClock>, options: door_native::Options) -> Self {
        let door = door_native::Door::new(node.clone(), Arc::new(door::Open), options);
        Self { node, clock, door }
    }

    /// A connection that has said nothing yet.
    pub(crate) fn connect(&self) -> Agent {
        let (near, far) = net::inproc::pair("test");
        let door = self.door.clone();
        tokio::spawn(async move { door.serve(far).await });
        Agent::new(near)
    }

    /// A connection that has introduced itself.
    pub(crate) async fn agent(&self, name: &str) -> Agent {
        let mut agent = self.connect();
        agent.hello(name).await;
        agent
    }

    /// An agent that is subscribed to `name`.
    pub(crate) async fn subscriber(&self, name: &str) -> Agent {
        let mut agent = self.agent("").await;
        agent.subscribe(name).await;
        agent
    }
}
