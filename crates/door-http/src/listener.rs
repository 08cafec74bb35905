//! Accepts HTTP connections, in plain text or inside TLS.

mod answer;
mod deadline;
mod heads;

use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse;
use door::{Accepting, WhenFull};
use http_api::Problem;
use http_api::{Connection, Connections, Handle, Refusal, Room, Shortage};
use http_api::{FastPath, Peer, Routes};
use hyper::body::Incoming;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use model::ErrorCode;
use net::{Permitted, SocketBudget};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

use self::answer::Answer;
use self::deadline::Deadline;
use self::heads::{Findings, Heads};
use super::access::Access;
use super::front::{self, Handoff};

/// Options of an HTTP listener.
#[derive(Clone, Debug)]
pub struct Options {
    /// Names of the node, and origins whose pages may use it.
    pub access: Arc<Access>,
    /// Longest time for a request's head, and for a TLS handshake.
    pub head_timeout: Duration,
    /// Connections and their limits; several listeners may share them.
    pub connections: Arc<Connections>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            access: Arc::default(),
            head_timeout: Duration::from_secs(10),
            connections: Arc::default(),
        }
    }
}

/// The future that serves a connection.
pub type Serving = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Runs the future of a connection on one of several runtimes, where the connection stays. Returns
/// the handle that ends it; `None` if it does not run.
pub type Spawn = Arc<dyn Fn(Serving) -> Option<AbortHandle> + Send + Sync>;

/// Returns the function that runs connections on the runtime of the listener.
pub fn spawn_here() -> Spawn {
    Arc::new(|serving| Some(tokio::spawn(serving).abort_handle()))
}

/// Longest time for a request's head on a connection beyond the limit.
const OVERFLOW_HEAD_TIMEOUT: Duration = Duration::from_secs(2);

const NO_SOCKET: &str = "the node has no file descriptor left for another connection";

/// Serves `routes` with the sockets that `budget` grants, until `connections` is closed. `spawn` runs
/// the connections.
pub async fn serve(
    listener: TcpListener,
    tls: Option<Arc<rustls::ServerConfig>>,
    budget: SocketBudget,
    routes: Routes,
    options: Options,
    spawn: Spawn,
) {
    // Before the TLS handshake, the client could not read a refusal.
    let refusal = match tls {
        None => no_socket_response(),
        Some(_) => Vec::new(),
    };
    let budget = budget.with_reserve();
    let mut accepting = Accepting::new(listener, budget, WhenFull::Refuse(refusal));
    let acceptor = tls.map(tokio_rustls::TlsAcceptor::from);
    let mut closing = pin!(options.connections.closing());
    loop {
        let (socket, permit) = tokio::select! {
            accepted = accepting.next() => accepted,
            () = &mut closing => return,
        };
        let Ok(peer) = socket.peer_addr() else {
            // The client has disconnected already.
            continue;
        };
        // A disconnected socket fails at its first read.
        let _ = socket.set_nodelay(true);
        let room = Room::of(&permit);
        let Some(connection) = options.connections.enter(room) else {
            continue;
        };
        // The socket moves from this runtime to that of its connection.
        let socket = match socket.into_std() {
            Ok(socket) => socket,
            Err(error) => {
                tracing::debug!(%error, "cannot set up an accepted connection");
                continue;
            }
        };
        let connection = Arc::new(connection);
        let (acceptor, routes, options) = (acceptor.clone(), routes.clone(), options.clone());
        let served = connection.clone();
        let serving = Box::pin(async move {
            match TcpStream::from_std(socket) {
                Ok(socket) => {
                    let socket = Permitted::new(socket, permit);
                    serve_connection(socket, peer.ip(), acceptor, routes, options, served).await;
                }
                Err(error) => tracing::debug!(%error, "cannot set up an accepted connection"),
            }
        });
        if let Some(task) = spawn(serving) {
            connection.served_by(task);
        }
    }
}

/// Serves `routes` on one connection that is no accepted socket, to its end.
pub async fn serve_stream<I>(io: I, peer: IpAddr, routes: Routes, options: Options)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    if let Some(connection) = options.connections.enter(Room::Shared) {
        serve_http(io, peer, routes, options, &connection).await;
    }
}

/// Returns the response to a client for which there is no socket left.
fn no_socket_response() -> Vec<u8> {
    let body = Problem::of(ErrorCode::Unavailable, NO_SOCKET).document();
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
    mut options: Options,
    connection: Arc<Connection>,
) {
    if connection.shortage().is_some() {
        options.head_timeout = options.head_timeout.min(OVERFLOW_HEAD_TIMEOUT);
    }
    let limit = options.connections.limits().write_timeout;
    let socket = Deadline::new(socket, connection.handle(), limit);
    match acceptor {
        None => serve_http(socket, peer, routes, options, &connection).await,
        Some(acceptor) => {
            match tokio::time::timeout(options.head_timeout, acceptor.accept(socket)).await {
                Ok(Ok(stream)) => serve_http(stream, peer, routes, options, &connection).await,
                Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
                Err(_) => tracing::debug!("TLS handshake took too long"),
            }
        }
    }
}

async fn serve_http<I>(
    io: I,
    peer: IpAddr,
    routes: Routes,
    options: Options,
    connection: &Connection,
) where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Routes { router, fast_path } = routes;
    let handle = connection.handle();
    let shortage = connection.shortage();
    let front = front::Front {
        fast_path: &*fast_path,
        access: &options.access,
        connection: &handle,
        peer,
        limit: options.head_timeout,
    };
    let io = match front::serve(io, front, shortage.is_some()).await {
        Ok(Handoff::Other(io)) => io,
        Ok(Handoff::Ended) => return,
        Err(error) => return tracing::debug!(%error, "HTTP connection ended"),
    };
    let (io, findings) = Heads::new(io);
    let served = Arc::new(Served {
        router: TowerToHyperService::new(router),
        fast_path,
        access: options.access,
        connection: handle,
        shortage,
        findings,
    });
    let service = service_fn(move |mut request: Request<Incoming>| {
        let served = served.clone();
        served.connection.begin();
        request.extensions_mut().insert(Peer(peer));
        async move {
            let response = served.answer(request).await;
            Ok::<Response<Answer>, Infallible>(answer::answer(response, &served.connection))
        }
    });
    let serving = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(options.head_timeout)
        .serve_connection(TokioIo::new(io), service)
        .with_upgrades();
    let mut serving = pin!(serving);
    let mut closing = pin!(options.connections.closing());
    let served = tokio::select! {
        served = serving.as_mut() => served,
        () = &mut closing => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = served {
        tracing::debug!(%error, "HTTP connection ended");
    }
}

/// Answers a request whose body length is ambiguous, and closes the connection.
fn refuse_ambiguous() -> Response<Body> {
    let detail = "the end of the request is ambiguous: it has both `Content-Length` and \
                  `Transfer-Encoding`, or one that cannot be read";
    let mut response = Problem::invalid(detail).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// A connection that hyper serves.
struct Served {
    router: TowerToHyperService<Router>,
    fast_path: Arc<dyn FastPath>,
    access: Arc<Access>,
    connection: Handle,
    /// Present if the connection is beyond a limit.
    shortage: Option<Shortage>,
    findings: Findings,
}

impl Served {
    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        if self.findings.is_next_refused() {
            return refuse_ambiguous();
        }
        let (head, body) = request.into_parts();
        let admission = match self.access.judge(&head, || self.fast_path.is_open()) {
            Ok(admission) => admission,
            Err(problem) => {
                match problem.status {
                    StatusCode::MISDIRECTED_REQUEST => self.count(Refusal::Host),
                    StatusCode::FORBIDDEN => self.count(Refusal::Origin),
                    _ => {}
                }
                return problem.into_response();
            }
        };
        if let Some(preflight) = admission.preflight(&head) {
            return preflight;
        }
        let is_probe = matches!(
            head.uri.path(),
            "/livez" | "/readyz" | "/metrics" | "/health"
        );
        let mut response = match self.shortage {
            Some(shortage) if !is_probe => self.refusal(shortage).into_response(),
            _ => match self.router.call(Request::from_parts(head, body)).await {
                Ok(response) => response,
                Err(never) => match never {},
            },
        };
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            self.findings.upgrade();
        }
        admission.mark(&mut response);
        if self.shortage.is_some() {
            let headers = response.headers_mut();
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }

    fn refusal(&self, shortage: Shortage) -> Problem {
        match shortage {
            Shortage::Sockets => {
                Problem::of(ErrorCode::Unavailable, NO_SOCKET).with("retry_ms", 1_000)
            }
            Shortage::Connections => {
                let max = self.connection.all().limits().connections_max;
                let detail =
                    format!("too many HTTP connections (limit {max}, http.connections_max)");
                Problem::of(ErrorCode::Busy, detail)
            }
        }
    }

    fn count(&self, refusal: Refusal) {
        self.connection.all().count(refusal);
    }
}
