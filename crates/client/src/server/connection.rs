//! `Service`: serves the accepted connections of a server.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use net::Stream;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::{Handlers, Options, Resolver, Responder};
use crate::connection::engine::{Engine, Event};
use crate::connection::handshake::{AcceptOptions, AcceptedConnection, accept};
use crate::connection::port::Port;

/// State shared by the connections of a listening server.
pub(crate) struct Service {
    pub(crate) handlers: Arc<Handlers>,
    pub(crate) options: Options,
    /// Drain time; set when the server shuts down.
    pub(crate) drain: watch::Sender<Option<Duration>>,
    /// Number of connections so far; numbers the connections.
    connections: AtomicU64,
    /// Outputs of the open connections.
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

    /// Serves one connection until it ends.
    pub(crate) async fn serve(self: Arc<Self>, stream: Stream) {
        let Options {
            window,
            requests_size_max,
            handshake_timeout,
            admit,
            ..
        } = &self.options;
        let number = self.connections.fetch_add(1, Ordering::Relaxed) + 1;
        let host = AcceptOptions {
            window: *window,
            connection: number,
            admit: admit.as_deref(),
            timeout: *handshake_timeout,
        };
        let Some(accepted) = accept(host, stream).await else {
            return;
        };
        let AcceptedConnection {
            source,
            writer,
            window: peer,
        } = accepted;
        let port = Arc::new(Port::new(window));
        let _registered = PortRegistration::new(&self, number, port.clone());
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
                // A client that sends GOAWAY closes the connection itself.
                Event::Goaway(_) => {}
            }
        };
        if let Some((code, message)) = end.violation {
            engine.close_with_error(code, &message).await;
        }
    }

    /// Sends GOAWAY on every present and future connection.
    pub(crate) fn send_goaway(&self, time: Duration) {
        self.drain.send_replace(Some(time));
        for port in self.ports.lock().values() {
            port.send_goaway(time);
        }
    }
}

/// Entry of an open connection in the table of ports.
struct PortRegistration<'a> {
    service: &'a Service,
    number: u64,
}

impl<'a> PortRegistration<'a> {
    fn new(service: &'a Service, number: u64, port: Arc<Port>) -> Self {
        service.ports.lock().insert(number, port.clone());
        if let Some(time) = *service.drain.borrow() {
            port.send_goaway(time);
        }
        Self { service, number }
    }
}

impl Drop for PortRegistration<'_> {
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
    fn server_connection_task_fits_in_4_kib() {
        let service = Service::new(Handlers::default(), crate::Server::new().options);
        let (near, _far) = net::inproc::pair("small");
        let task = service.serve(near);
        // A process may have ten thousand idle connections.
        assert!(size_of_val(&task) <= 4096, "{} bytes", size_of_val(&task));
    }
}
