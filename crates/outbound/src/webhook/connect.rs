//! Connections to agents over TCP or TLS.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::Uri;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::TlsConnector;
use tower_service::Service;

/// Time limit of a connection attempt, and of its TLS handshake.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

type Connecting = Pin<Box<dyn Future<Output = io::Result<TokioIo<Socket>>> + Send>>;

/// Opens connections.
#[derive(Clone)]
pub(crate) struct Connector {
    tcp: HttpConnector,
    tls: Arc<ClientConfig>,
}

impl Connector {
    pub(crate) fn new(tls: Arc<ClientConfig>) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        Self { tcp, tls }
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Socket>;
    type Error = io::Error;
    type Future = Connecting;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.tcp.poll_ready(cx).map_err(io::Error::other)
    }

    fn call(&mut self, uri: Uri) -> Connecting {
        let is_encrypted = uri.scheme_str() == Some("https");
        let host = uri.host().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let (host, tls) = (host.to_owned(), self.tls.clone());
        let connecting = self.tcp.call(uri);
        Box::pin(async move {
            let tcp = connecting.await.map_err(io::Error::other)?.into_inner();
            if !is_encrypted {
                return Ok(TokioIo::new(Socket(Box::pin(tcp))));
            }
            let name = ServerName::try_from(host).map_err(io::Error::other)?;
            let handshake = TlsConnector::from(tls).connect(name, tcp);
            let Ok(socket) = tokio::time::timeout(CONNECT_TIMEOUT, handshake).await else {
                return Err(io::ErrorKind::TimedOut.into());
            };
            Ok(TokioIo::new(Socket(Box::pin(socket?))))
        })
    }
}

trait Bytes: AsyncRead + AsyncWrite + Send {}

impl<T: AsyncRead + AsyncWrite + Send> Bytes for T {}

/// A TCP or TLS connection.
pub(crate) struct Socket(Pin<Box<dyn Bytes>>);

impl Connection for Socket {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.0.as_mut().poll_read(cx, buffer)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.as_mut().poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.as_mut().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.as_mut().poll_shutdown(cx)
    }
}
