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
use model::ErrorCode;
use net::{Permitted, SocketBudget};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::access::Access;
use super::front::{self, Left};
use super::problem::Problem;
use super::quotas::Surface;
use super::{Peer, Routes};
use crate::accept::Accepting;

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

/// Serves `routes` for ever, with the sockets that `budget` grants.
pub async fn serve(
    listener: TcpListener,
    tls: Option<Arc<rustls::ServerConfig>>,
    budget: SocketBudget,
    routes: Routes,
    options: Options,
) {
    // Inside TLS the client would not understand it.
    let refusal = match tls {
        None => no_socket_response(),
        Some(_) => Vec::new(),
    };
    let mut accepting = Accepting::new(listener, budget, refusal);
    let places = Arc::new(Semaphore::new(options.connections_max));
    let acceptor = tls.map(tokio_rustls::TlsAcceptor::from);
    loop {
        let Ok(place) = places.clone().acquire_owned().await else {
            return;
        };
        let (socket, permit) = accepting.next().await;
        let Ok(peer) = socket.peer_addr() else {
            // It has gone already.
            continue;
        };
        // A socket that has gone already fails at its first read.
        let _ = socket.set_nodelay(true);
        let (routes, acceptor, options) = (routes.clone(), acceptor.clone(), options.clone());
        tokio::spawn(async move {
            serve_connection(
                Permitted::new(socket, permit),
                peer.ip(),
                acceptor,
                routes,
                options,
            )
            .await;
            drop(place);
        });
    }
}

/// Answers a client for which the budget of sockets has none left.
fn no_socket_response() -> Vec<u8> {
    let detail = "the node has no file descriptor left for another connection";
    let body = Problem::of(ErrorCode::Unavailable, detail).document();
    let body = body.to_string();
    let head = [
        "HTTP/1.1 503 Service Unavailable",
        "Content-Type: application/problem+json",
        "Retry-After: 1",
        "Connection: close",
    ];
    let length = body.len();
    format!(
        "{}\r\nContent-Length: {length}\r\n\r\n{body}",
        head.join("\r\n")
    )
    .into_bytes()
}

async fn serve_connection(
    socket: Permitted<TcpStream>,
    peer: IpAddr,
    acceptor: Option<tokio_rustls::TlsAcceptor>,
    routes: Routes,
    options: Options,
) {
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
