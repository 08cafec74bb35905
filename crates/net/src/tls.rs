//! TLS by `rustls`, with the same readiness interface as a plain socket.
//!
//! Both halves share one `rustls` connection behind a lock. A write encrypts its bytes immediately.
//! Records that the socket does not take stay in `rustls`, whose buffer is bounded, and block the
//! sink until they are written.

mod identity;
mod self_signed;
mod shared_seed;

use std::io::{self, Read, Write};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

pub use identity::ServerIdentity;
use parking_lot::Mutex;
use rustls::client::{WantsClientCert, WebPkiServerVerifier};
use rustls::{ClientConfig, ConfigBuilder, Connection, RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
pub use shared_seed::SharedSeedTls;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use crate::stream::{Sink, Source, Stream};
use crate::tcp::acknowledge;

/// Limit on plain and encrypted bytes that `rustls` buffers for a peer that does not read.
const BUFFER_SIZE_MAX: usize = 256 << 10;

/// Errors of a TLS configuration.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read or is not PEM.
    #[error("cannot read {path}: {cause}")]
    File {
        /// Path of the file.
        path: String,
        /// The error.
        cause: String,
    },
    /// Certificate and key do not match, or `rustls` rejects them.
    #[error("invalid TLS configuration: {0}")]
    Config(#[from] rustls::Error),
}

/// Builds a server configuration from PEM files: a certificate chain and its private key.
pub fn load_server_config(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, TlsError> {
    server_config(certificate, key, None)
}

/// Builds a server configuration that requires client certificates of an authority in the PEM file.
pub fn load_mutual_server_config(
    certificate: &Path,
    key: &Path,
    authorities: &Path,
) -> Result<Arc<ServerConfig>, TlsError> {
    server_config(certificate, key, Some(authorities))
}

fn server_config(
    certificate: &Path,
    key: &Path,
    authorities: Option<&Path>,
) -> Result<Arc<ServerConfig>, TlsError> {
    ServerIdentity::load(certificate, key)?.server_config(authorities)
}

/// Builds a client configuration that trusts the certificates of the PEM file. Without a file it
/// trusts none, and every handshake fails; verification cannot be skipped.
pub fn client_config(authorities: Option<&Path>) -> Result<Arc<ClientConfig>, TlsError> {
    Ok(Arc::new(client_builder(authorities)?.with_no_client_auth()))
}

/// Builds a client configuration that also presents a client certificate.
pub fn load_mutual_client_config(
    authorities: Option<&Path>,
    certificate: &Path,
    key: &Path,
) -> Result<Arc<ClientConfig>, TlsError> {
    let builder = client_builder(authorities)?;
    let (chain, private) = read_identity(certificate, key)?;
    Ok(Arc::new(builder.with_client_auth_cert(chain, private)?))
}

fn client_builder(
    authorities: Option<&Path>,
) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, TlsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone());
    let builder = builder.with_safe_default_protocol_versions()?;
    let Some(path) = authorities else {
        return Ok(builder.with_root_certificates(RootCertStore::empty()));
    };
    let roots = Arc::new(read_authorities(path)?);
    let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider).build();
    let verifier = verifier.map_err(|cause| file_error(path, cause))?;
    let verifier = self_signed::Verifier::new(verifier, read_certificates(path)?);
    let builder = builder.dangerous();
    Ok(builder.with_custom_certificate_verifier(Arc::new(verifier)))
}

type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn read_identity(certificate: &Path, key: &Path) -> Result<Identity, TlsError> {
    let chain = read_certificates(certificate)?;
    let private = PrivateKeyDer::from_pem_file(key).map_err(|cause| file_error(key, cause))?;
    Ok((chain, private))
}

fn read_authorities(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in read_certificates(path)? {
        roots.add(certificate)?;
    }
    Ok(roots)
}

fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Vec<_> = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|cause| file_error(path, cause))?;
    if found.is_empty() {
        Err(file_error(path, "no certificate in it"))
    } else {
        Ok(found)
    }
}

fn file_error(path: &Path, cause: impl std::fmt::Display) -> TlsError {
    TlsError::File {
        path: path.display().to_string(),
        cause: cause.to_string(),
    }
}

/// Splits an accepted socket. The handshake runs with the first reads.
pub fn split_tls_accepted(socket: TcpStream, config: Arc<ServerConfig>) -> io::Result<Stream> {
    let connection = rustls::ServerConnection::new(config).map_err(io::Error::other)?;
    split(socket, Connection::Server(connection))
}

/// Runs the handshake on a connected socket and splits it. An untrusted certificate is an error of
/// this call.
pub async fn split_tls_connected(
    socket: TcpStream,
    host: &str,
    config: Arc<ClientConfig>,
) -> io::Result<Stream> {
    let name = ServerName::try_from(host.to_owned())
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    let connection = rustls::ClientConnection::new(config, name).map_err(io::Error::other)?;
    let mut stream = split(socket, Connection::Client(connection))?;
    std::future::poll_fn(|cx| poll_handshake(&mut stream, cx)).await?;
    Ok(stream)
}

/// Drives the handshake by an empty read, which consumes no data.
fn poll_handshake(stream: &mut Stream, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
    match stream.source.poll_read(cx, &mut []) {
        Poll::Ready(outcome) => Poll::Ready(outcome.map(|_| ())),
        Poll::Pending => {
            if let Err(error) = stream.sink.try_flush()
                && error.kind() == io::ErrorKind::WouldBlock
            {
                let _: Poll<io::Result<()>> = stream.sink.poll_writable(cx);
            }
            Poll::Pending
        }
    }
}

fn split(socket: TcpStream, mut connection: Connection) -> io::Result<Stream> {
    socket.set_nodelay(true)?;
    connection.set_buffer_limit(Some(BUFFER_SIZE_MAX));
    let peer = socket.peer_addr()?.to_string();
    let (read, write) = socket.into_split();
    let shared = Arc::new(Shared {
        session: Mutex::new(connection),
        write,
        reader: Mutex::default(),
    });
    Ok(Stream {
        source: Box::new(TlsSource {
            shared: shared.clone(),
            read,
        }),
        sink: Arc::new(TlsSink(shared)),
        peer,
    })
}

struct Shared {
    session: Mutex<Connection>,
    write: OwnedWriteHalf,
    /// The reader's waker, woken when the sink is closed.
    reader: Mutex<Option<Waker>>,
}

impl Shared {
    /// Writes encrypted records to the socket; `WouldBlock` if some remain.
    fn flush(&self, session: &mut Connection) -> io::Result<()> {
        while session.wants_write() {
            session.write_tls(&mut SocketWriter(&self.write))?;
        }
        Ok(())
    }
}

struct SocketWriter<'a>(&'a OwnedWriteHalf);

impl Write for SocketWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct TlsSource {
    shared: Arc<Shared>,
    read: OwnedReadHalf,
}

impl Source for TlsSource {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let shared = self.shared.clone();
        loop {
            let mut session = shared.session.lock();
            if buffer.is_empty() && !session.is_handshaking() {
                return Poll::Ready(Ok(0));
            }
            if !buffer.is_empty() {
                match session.reader().read(buffer) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                        return Poll::Ready(Ok(0));
                    }
                    outcome => return Poll::Ready(outcome),
                }
            }
            *shared.reader.lock() = Some(cx.waker().clone());
            let mut reader = SocketReader {
                read: &mut self.read,
                cx,
            };
            match session.read_tls(&mut reader) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
                Err(error) => return Poll::Ready(Err(error)),
                Ok(0) if buffer.is_empty() => {
                    return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
                }
                Ok(_) => {}
            }
            let processed = session.process_new_packets();
            // Handshake answers and alerts are sent even if the records were invalid.
            if let Err(error) = shared.flush(&mut session)
                && error.kind() != io::ErrorKind::WouldBlock
            {
                return Poll::Ready(Err(error));
            }
            if let Err(error) = processed {
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, error)));
            }
        }
    }
}

/// Adapts a poll-based socket to the `Read` interface of `rustls`.
struct SocketReader<'a, 'c> {
    read: &'a mut OwnedReadHalf,
    cx: &'a mut Context<'c>,
}

impl Read for SocketReader<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut buffer = ReadBuf::new(buffer);
        match Pin::new(&mut *self.read).poll_read(self.cx, &mut buffer) {
            Poll::Ready(outcome) => outcome.map(|()| buffer.filled().len()),
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

struct TlsSink(Arc<Shared>);

impl Sink for TlsSink {
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut session = self.0.session.lock();
        self.0.flush(&mut session)?;
        let count = session.writer().write(bytes)?;
        match self.0.flush(&mut session) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ if count == 0 && !bytes.is_empty() => Err(io::ErrorKind::WouldBlock.into()),
            _ => Ok(count),
        }
    }

    fn try_flush(&self) -> io::Result<()> {
        self.0.flush(&mut self.0.session.lock())
    }

    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.0.write.as_ref().poll_write_ready(cx))?;
        Poll::Ready(Ok(()))
    }

    fn acknowledge(&self) {
        acknowledge(self.0.write.as_ref());
    }

    fn finish(&self) {
        let mut session = self.0.session.lock();
        session.send_close_notify();
        // The peer may have disconnected already; then the alert cannot be sent.
        let _ = self.0.flush(&mut session);
        let _ = socket2::SockRef::from(self.0.write.as_ref()).shutdown(std::net::Shutdown::Write);
    }

    fn close(&self) {
        self.finish();
        let _ = socket2::SockRef::from(self.0.write.as_ref()).shutdown(std::net::Shutdown::Both);
        if let Some(reader) = self.0.reader.lock().take() {
            reader.wake();
        }
    }
}

#[cfg(test)]
mod tests;
