//! The links between nodes over a simulated network.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use cluster::{Acceptor, Dialer};
use futures_util::future::BoxFuture;
use net::Stream;
use net::simulated::Network;
use parking_lot::Mutex;
use tokio::task::AbortHandle;

/// Place of the channel in the first bytes of a connection, and its numbers.
const CHANNEL: usize = 6;
const LOG: u8 = 2;

/// The nodes that accept connections, by host. A clone is the same.
#[derive(Clone)]
pub(crate) struct Links {
    pub(crate) network: Network,
    listeners: Arc<Mutex<BTreeMap<String, Listener>>>,
}

struct Listener {
    acceptor: Acceptor,
    serving: Vec<AbortHandle>,
}

/// Returns the host of a node.
pub(crate) fn host(node: u64) -> String {
    format!("node-{node}")
}

/// Returns the address of a node.
pub(crate) fn address(node: u64) -> String {
    format!("{}:7402", host(node))
}

impl Links {
    pub(crate) fn new(network: Network) -> Links {
        Links {
            network,
            listeners: Arc::default(),
        }
    }

    /// Lets a node accept connections at a host.
    pub(crate) fn listen(&self, host: String, acceptor: Acceptor) {
        let serving = Vec::new();
        let listener = Listener { acceptor, serving };
        self.listeners.lock().insert(host, listener);
    }

    /// Ends all connections of a host, which accepts no more.
    pub(crate) fn remove(&self, host: &str) {
        if let Some(listener) = self.listeners.lock().remove(host) {
            listener.serving.iter().for_each(AbortHandle::abort);
        }
        self.network.cut_host(host);
    }

    /// Blocks one direction between two nodes.
    pub(crate) fn block(&self, from: u64, to: u64) {
        self.network.block(&host(from), &host(to));
    }

    /// Blocks both directions between two nodes.
    pub(crate) fn block_both(&self, one: u64, other: u64) {
        self.block(one, other);
        self.block(other, one);
    }

    /// Blocks both directions of the log connection between two nodes. The pulse goes on.
    pub(crate) fn block_log(&self, one: u64, other: u64) {
        for (from, to) in [(one, other), (other, one)] {
            self.network
                .block_greeted(&host(from), &host(to), (CHANNEL, LOG));
        }
    }

    /// Returns the dialer of a host.
    pub(crate) fn dialer(&self, host: String) -> Box<dyn Dialer> {
        let links = self.clone();
        Box::new(HostDialer { host, links })
    }

    async fn dial(self, from: String, to: String) -> io::Result<Stream> {
        let (near, far) = self.network.dial(&from, &to).await?;
        let mut listeners = self.listeners.lock();
        let Some(listener) = listeners.get_mut(&to) else {
            near.sink.close();
            return Err(io::ErrorKind::ConnectionRefused.into());
        };
        let acceptor = listener.acceptor.clone();
        let serving = tokio::spawn(async move { drop(acceptor.accept(far).await) });
        listener.serving.retain(|it| !it.is_finished());
        listener.serving.push(serving.abort_handle());
        Ok(near)
    }
}

struct HostDialer {
    host: String,
    links: Links,
}

impl Dialer for HostDialer {
    fn dial(&self, to: &str) -> BoxFuture<'static, io::Result<Stream>> {
        let to = to.trim_end_matches(":7402").to_owned();
        Box::pin(self.links.clone().dial(self.host.clone(), to))
    }
}
