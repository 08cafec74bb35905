//! A whole node in the simulated world, and the way to it.

use std::sync::Arc;
use std::time::Duration;

use client::{Builder, Client};
use edge::native::{Door, Options};
use node::{Handle, Limits, Ports};

use crate::Network;
use crate::world::{SimClock, SimEntropy};

/// How often deadlines are looked after, as in a real node.
const SWEEP_INTERVAL: Duration = Duration::from_millis(100);

/// A node that runs on the current thread.
pub struct Node {
    /// The node itself.
    pub handle: Handle,
    door: Door,
    network: Network,
}

impl Node {
    /// Starts a node whose dice follow from `seed`.
    pub fn start(seed: u64, network: &Network) -> Self {
        let ports = Ports {
            clock: Arc::new(SimClock::start()),
            entropy: Arc::new(SimEntropy::new(seed)),
        };
        let handle = Handle::new(Limits::default(), ports);
        let door = Door::new(handle.clone(), Arc::new(edge::Open), Options::default());
        let swept = handle.clone();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(SWEEP_INTERVAL).await;
                swept.sweep();
            }
        });
        Self {
            handle,
            door,
            network: network.clone(),
        }
    }

    /// Prepares a client whose connections cross the simulated network, as host `host`.
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
