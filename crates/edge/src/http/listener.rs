//! Accepts HTTP connections, in plain text or inside TLS.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::access::Access;
use super::front::{self, Left};
use super::quotas::Surface;
use super::{Peer, Routes};

/// What the HTTP door accepts.
#[derive(Clone, Debug)]
pub struct Options {
    /// The names of the node and the origins whose pages may use it.
    pub access: Arc<Access>,
    /// How long a client may take for the head of a request, and for a TLS handshake.
    pub head_timeout: Duration,
    /// Connections at the same time; further ones wait to be accepted.
    pub connections_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            access: Arc::default(),
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
    routes: Routes,
    options: Options,
) {
    let places = Arc::new(Semaphore::new(options.connections_max));
    let acceptor = tls.map(tokio_rustls::TlsAcceptor::from);
    loop {
        let Ok(place) = places.clone().acquire_owned().await else {
            return;
        };
        let (socket, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "cannot accept an HTTP connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let (routes, acceptor, options) = (routes.clone(), acceptor.clone(), options.clone());
        tokio::spawn(async move {
            serve_connection(socket, peer.ip(), acceptor, routes, options).await;
            drop(place);
        });
    }
}

async fn serve_connection(
    socket: TcpStream,
    peer: IpAddr,
    acceptor: Option<tokio_rustls::TlsAcceptor>,
    routes: Routes,
    options: Options,
) {
    // A socket that has gone already fails at its first read.
    let _ = socket.set_nodelay(true);
    match acceptor {
        None => serve_http(socket, peer, routes, options).await,
        Some(acceptor) => {
            match tokio::time::timeout(options.head_timeout, acceptor.accept(socket)).await {
                Ok(Ok(stream)) => serve_http(stream, peer, routes, options).await,
                Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
                Err(_) => tracing::debug!("TLS handshake took too long"),
            }
        }
    }
}

async fn serve_http<I>(io: I, peer: IpAddr, routes: Routes, options: Options)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Routes { router, surface } = routes;
    let io = match front::serve(io, &surface, &options.access, peer, options.head_timeout).await {
        Ok(Left::Other(io)) => io,
        Ok(Left::Ended) => return,
        Err(error) => return tracing::debug!(%error, "HTTP connection ended"),
    };
    let router = TowerToHyperService::new(router);
    let access = options.access;
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(Peer(peer));
        let (router, surface, access) = (router.clone(), surface.clone(), access.clone());
        async move { Ok::<_, Infallible>(answer(&router, &surface, &access, request).await) }
    });
    let serving = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(options.head_timeout)
        .serve_connection(TokioIo::new(io), service)
        .with_upgrades();
    if let Err(error) = serving.await {
        tracing::debug!(%error, "HTTP connection ended");
    }
}

/// Answers a request that [`Access`] admits.
async fn answer(
    router: &TowerToHyperService<Router>,
    surface: &Surface,
    access: &Access,
    request: Request<Incoming>,
) -> Response {
    let (head, body) = request.into_parts();
    let admission = match access.judge(&head, || surface.is_open()) {
        Ok(admission) => admission,
        Err(problem) => return problem.into_response(),
    };
    if let Some(preflight) = admission.preflight(&head) {
        return preflight;
    }
    let mut response = match router.call(Request::from_parts(head, body)).await {
        Ok(response) => response,
        Err(never) => match never {},
    };
    admission.mark(&mut response);
    response
}
