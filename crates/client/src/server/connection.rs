//! One accepted connection of a server, from its first frame to its end.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use net::Stream;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::{Handlers, Options, Resolver, Responder};
use crate::engine::{Engine, Event};
use crate::handshake::{Accepted, Host, accept};
use crate::port::Port;

/// What the connections of a listening server share.
pub(crate) struct Service {
    pub(crate) handlers: Arc<Handlers>,
    pub(crate) options: Options,
    /// Set when callers are sent away: how long they have.
    pub(crate) drain: watch::Sender<Option<Duration>>,
    /// Counts connections, and numbers them.
    connections: AtomicU64,
    /// Ways to those that are open.
    ports: Mutex<HashMap<u64, Arc<Port>>>,
}

impl Service {
    pub(crate) fn new(handlers: Handlers, options: Options) -> Arc<Self> {
        Arc::new(Self {
            handlers: Arc::new(handlers),
            options,
            drain: watch::Sender::new(None),
            connections: AtomicU64::new(0),
            ports: Mutex::default(),
        })
    }

    /// Serves one connection to its end.
    pub(crate) async fn serve(self: Arc<Self>, stream: Stream) {
        let Options {
            window,
            requests_size_max,
            handshake_timeout,
            admit,
            ..
        } = &self.options;
        let number = self.connections.fetch_add(1, Ordering::Relaxed) + 1;
        let host = Host {
            window: *window,
            connection: number,
            admit: admit.as_deref(),
            timeout: *handshake_timeout,
        };
        let Some(accepted) = accept(host, stream).await else {
            return;
        };
        let Accepted {
            source,
            writer,
            window: peer,
        } = accepted;
        let port = Arc::new(Port::new(window));
        let _registered = Registered::new(&self, number, port.clone());
        let responder = Responder::new(
            Resolver::Methods(self.handlers.clone()),
            port,
            *window,
            *requests_size_max,
            peer.frame_size_max,
        );
        let (limit, keepalive_ms) = (window.frame_size_max, window.keepalive_ms);
        let mut engine = Engine::new(source, writer, responder, None, limit, keepalive_ms);
        let end = loop {
            match engine.run().await {
                Event::End(end) => break end,
                // A caller that goes away says so by hanging up.
                Event::Goaway(_) => {}
            }
        };
        if let Some((code, message)) = end.verdict {
            engine.say_goodbye(code, &message).await;
        }
    }

    /// Sends every caller away, now and from now on.
    pub(crate) fn send_away(&self, time: Duration) {
        self.drain.send_replace(Some(time));
        for port in self.ports.lock().values() {
            port.send_away(time);
        }
    }
}

/// An open connection's place among the ports.
struct Registered<'a> {
    service: &'a Service,
    number: u64,
}

impl<'a> Registered<'a> {
    fn new(service: &'a Service, number: u64, port: Arc<Port>) -> Self {
        service.ports.lock().insert(number, port.clone());
        if let Some(time) = *service.drain.borrow() {
            port.send_away(time);
        }
        Self { service, number }
    }
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.service.ports.lock().remove(&self.number);
    }
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let connections = self.connections.load(Ordering::Relaxed);
        write!(f, "Service({connections} connections so far)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_task_of_a_connection_is_small() {
        let service = Service::new(Handlers::default(), crate::Server::new().options);
        let (near, _far) = net::inproc::pair("small");
        let task = service.serve(near);
        // Ten thousand of them rest in most processes.
        assert!(size_of_val(&task) <= 4096, "{} bytes", size_of_val(&task));
    }
}
