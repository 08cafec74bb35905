//! A node in the simulated world, and connections to it.

use std::sync::Arc;

use client::{Builder, Client};
use door_native::{Door, Options};
use messaging::Limits;
use node::Parts;
use platform::Ports;

use crate::Network;
use crate::world::{SimClock, SimEntropy};

/// A node that runs on the current thread.
pub struct Node {
    /// The node itself.
    pub handle: node::Node,
    door: Door,
    network: Network,
}

impl Node {
    /// Starts a node whose random numbers follow from `seed`.
    pub fn start(seed: u64, network: &Network) -> Self {
        Self::start_within(Limits::default(), seed, network)
    }

    /// Starts a node with the given limits.
    pub fn start_within(limits: Limits, seed: u64, network: &Network) -> Self {
        let ports = Ports {
            clock: Arc::new(SimClock::start()),
            entropy: Arc::new(SimEntropy::new(seed)),
        };
        let handle = node::Node::open(Parts {
            limits,
            ..Parts::in_memory(ports)
        });
        let handle = handle.expect("a node without storage can be opened");
        let door = Door::new(handle.clone(), Arc::new(door::Open), Options::default());
        tokio::spawn(door::sweep(handle.clone()));
        Self {
            handle,
            door,
            network: network.clone(),
        }
    }

    /// Returns a client builder whose connections cross the simulated network, from host `host`.
    pub fn client(&self, host: &'static str, seed: u64) -> Builder {
        let (network, door) = (self.network.clone(), self.door.clone());
        Client::builder().seed(seed).connector(move |_| {
            let (near, far) = network.connect(host, "node");
            let door = door.clone();
            tokio::spawn(async move { door.serve(far).await });
            Box::pin(std::future::ready(Ok(near)))
        })
    }
}
