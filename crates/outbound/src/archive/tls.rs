//! TLS connections to the database, with the verification that its URL asks for.

use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::SignatureScheme;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;

/// Required verification of the server's certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verification {
    /// No verification: protects only against passive listeners.
    None,
    /// Certificate issued by one of these roots.
    Issuer(PathBuf),
    /// Certificate issued by one of these roots for the host.
    Host(PathBuf),
}

/// Creates TLS connections.
#[derive(Clone)]
pub(super) struct Connector(TlsConnector);

impl Connector {
    pub(super) fn new(verification: &Verification) -> Result<Self, String> {
        let config = client_config(verification)?;
        Ok(Self(TlsConnector::from(Arc::new(config))))
    }
}

/// Creates TLS connections to one host.
pub(super) struct HostConnector {
    connector: TlsConnector,
    host: String,
}

impl<S: Duplex> MakeTlsConnect<S> for Connector {
    type Stream = TlsConnection<S>;
    type TlsConnect = HostConnector;
    type Error = std::convert::Infallible;

    fn make_tls_connect(&mut self, host: &str) -> Result<HostConnector, Self::Error> {
        Ok(HostConnector {
            connector: self.0.clone(),
            host: host.to_owned(),
        })
    }
}

impl<S: Duplex> TlsConnect<S> for HostConnector {
    type Stream = TlsConnection<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<TlsConnection<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let host = ServerName::try_from(self.host).map_err(io::Error::other)?;
            let stream = self.connector.connect(host, stream).await?;
            Ok(TlsConnection(stream))
        })
    }
}

/// A byte stream for TLS.
pub(super) trait Duplex: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Duplex for S {}

/// A TLS connection.
pub(super) struct TlsConnection<S>(tokio_rustls::client::TlsStream<S>);

impl<S: Duplex> TlsStream for TlsConnection<S> {
    /// No channel binding; `verify-full` authenticates the server.
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: Duplex> AsyncRead for TlsConnection<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl<S: Duplex> AsyncWrite for TlsConnection<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buffer)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

fn client_config(verification: &Verification) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let verifier: Arc<dyn ServerCertVerifier> = match verification {
        Verification::None => Arc::new(LenientVerifier {
            inner: None,
            provider: provider.clone(),
        }),
        Verification::Issuer(path) => Arc::new(LenientVerifier {
            inner: Some(verifier(path, &provider)?),
            provider: provider.clone(),
        }),
        Verification::Host(path) => verifier(path, &provider)?,
    };
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| error.to_string())?;
    let builder = builder.dangerous();
    Ok(builder
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth())
}

fn verifier(
    path: &Path,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<WebPkiServerVerifier>, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let mut roots = RootCertStore::empty();
    let certificates = CertificateDer::pem_file_iter(path).map_err(|error| failed(&error))?;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| failed(&error))?;
        roots.add(certificate).map_err(|error| failed(&error))?;
    }
    let builder = WebPkiServerVerifier::builder_with_provider(roots.into(), provider.clone());
    builder.build().map_err(|error| failed(&error))
}

/// Certificate verifier that checks less than usual: only the issuer, or nothing.
#[derive(Debug)]
struct LenientVerifier {
    inner: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for LenientVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(inner) = &self.inner else {
            return Ok(ServerCertVerified::assertion());
        };
        let verified =
            inner.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verified {
            // The name is checked last, so the rest of the certificate is valid.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}
