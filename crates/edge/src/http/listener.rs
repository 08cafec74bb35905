//! Accepts HTTP connections, in plain text or inside TLS.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// What the HTTP door accepts.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How long a client may take for the head of a request, and for a TLS handshake.
    pub head_timeout: Duration,
    /// Connections at the same time; further ones wait to be accepted.
    pub connections_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            head_timeout: Duration::from_secs(10),
            connections_max: 1024,
        }
    }
}

/// After an accept failed (out of descriptors, say), how long to wait before the next one.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves `routes` for ever.
pub async fn serve(
    listener: TcpListener,
    tls: Option<Arc<rustls::ServerConfig>>,
    routes: Router,
    options: Options,
) {
    let places = Arc::new(Semaphore::new(options.connections_max));
    let acceptor = tls.map(tokio_rustls::TlsAcceptor::from);
    loop {
        let Ok(place) = places.clone().acquire_owned().await else {
            return;
        };
        let socket = match listener.accept().await {
            Ok((socket, _)) => socket,
            Err(error) => {
                tracing::warn!(%error, "cannot accept an HTTP connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let (routes, acceptor) = (routes.clone(), acceptor.clone());
        tokio::spawn(async move {
            serve_connection(socket, acceptor, routes, options).await;
            drop(place);
        });
    }
}

async fn serve_connection(
    socket: TcpStream,
    acceptor: Option<tokio_rustls::TlsAcceptor>,
    routes: Router,
    options: Options,
) {
    // A socket that has gone already fails at its first read.
    let _ = socket.set_nodelay(true);
    match acceptor {
        None => serve_http(socket, routes, options).await,
        Some(acceptor) => {
            match tokio::time::timeout(options.head_timeout, acceptor.accept(socket)).await {
                Ok(Ok(stream)) => serve_http(stream, routes, options).await,
                Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
                Err(_) => tracing::debug!("TLS handshake took too long"),
            }
        }
    }
}

async fn serve_http<I>(io: I, routes: Router, options: Options)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let serving = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(options.head_timeout)
        .serve_connection(TokioIo::new(io), TowerToHyperService::new(routes))
        .with_upgrades();
    if let Err(error) = serving.await {
        tracing::debug!(%error, "HTTP connection ended");
    }
}
