//! One accepted connection of a server, from its first frame to its end.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::{Either, select};
use net::Stream;
use tokio::sync::watch;

use super::{Handlers, Options, Resolver, Responder};
use crate::engine::{Engine, Event};
use crate::handshake::{Accepted, Host, accept};
use crate::port::Port;

/// What the connections of a listening server share.
pub(crate) struct Service {
    pub(crate) handlers: Arc<Handlers>,
    pub(crate) options: Options,
    /// Set when callers are to be sent away: how long they have.
    pub(crate) drain: watch::Sender<Option<Duration>>,
    connections: AtomicU64,
}

impl Service {
    pub(crate) fn new(handlers: Handlers, options: Options) -> Arc<Self> {
        Arc::new(Self {
            handlers: Arc::new(handlers),
            options,
            drain: watch::Sender::new(None),
            connections: AtomicU64::new(0),
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
        let host = Host {
            window: *window,
            connection: self.connections.fetch_add(1, Ordering::Relaxed) + 1,
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
        let responder = Responder::new(
            Resolver::Methods(self.handlers.clone()),
            Arc::new(Port::new(window)),
            *window,
            *requests_size_max,
            peer.frame_size_max,
        );
        let (limit, keepalive_ms) = (window.frame_size_max, window.keepalive_ms);
        let mut engine = Engine::new(source, writer, responder, None, limit, keepalive_ms);
        let mut drain = self.drain.subscribe();
        let sent_away = async move {
            match drain.wait_for(Option::is_some).await {
                Ok(time) => *time,
                Err(_) => None,
            }
        };
        if let Some((code, message)) = run(&mut engine, sent_away).await {
            engine.say_goodbye(code, &message).await;
        }
    }
}

/// Runs the engine; returns what the peer is to be told at the end.
async fn run(
    engine: &mut Engine,
    sent_away: impl Future<Output = Option<Duration>>,
) -> Option<(model::ErrorCode, String)> {
    let time = {
        let running = pin!(run_to_end(engine));
        match select(running, pin!(sent_away)).await {
            Either::Left((verdict, _)) => return verdict,
            Either::Right((time, _)) => time.unwrap_or_default(),
        }
    };
    engine.send_away(time, "the server is shutting down");
    run_to_end(engine).await
}

async fn run_to_end(engine: &mut Engine) -> Option<(model::ErrorCode, String)> {
    loop {
        match engine.run().await {
            Event::End(end) => return end.verdict,
            // A caller that goes away says so by hanging up.
            Event::Goaway(_) => {}
        }
    }
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let connections = self.connections.load(Ordering::Relaxed);
        write!(f, "Service({connections} connections so far)")
    }
}
