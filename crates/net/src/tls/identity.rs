//! A server's certificate and key, replaceable while it runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::RwLock;
use rustls::ServerConfig;
use rustls::client::verify_server_name;
use rustls::crypto::ring::default_provider;
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls_pki_types::ServerName;

use super::{TlsError, file_error, read_authorities, read_identity};

/// A server's certificate chain and private key, from two PEM files. Each handshake presents the
/// ones that were read last.
#[derive(Debug)]
pub struct ServerIdentity {
    certificate: PathBuf,
    key: PathBuf,
    current: RwLock<Arc<CertifiedKey>>,
}

impl ServerIdentity {
    /// Reads both files.
    pub fn load(certificate: &Path, key: &Path) -> Result<Arc<Self>, TlsError> {
        let current = read(certificate, key)?;
        Ok(Arc::new(Self {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            current: RwLock::new(Arc::new(current)),
        }))
    }

    /// Reads both files again. If they are invalid, the current certificate and key stay in use.
    pub fn reload(&self) -> Result<(), TlsError> {
        let current = read(&self.certificate, &self.key)?;
        *self.current.write() = Arc::new(current);
        Ok(())
    }

    /// Returns true if the certificate is valid for this host name or IP address.
    pub fn is_valid_for(&self, host: &str) -> bool {
        let current = self.current.read().clone();
        let Some(certificate) = current.cert.first() else {
            return false;
        };
        let Ok(certificate) = ParsedCertificate::try_from(certificate) else {
            return false;
        };
        ServerName::try_from(host).is_ok_and(|name| verify_server_name(&certificate, &name).is_ok())
    }

    /// Builds the configuration of a server with this identity. With `authorities`, a PEM file,
    /// clients must present a certificate of one of them.
    pub fn server_config(
        self: &Arc<Self>,
        authorities: Option<&Path>,
    ) -> Result<Arc<ServerConfig>, TlsError> {
        let provider = Arc::new(default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()?;
        let builder = match authorities {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let roots = Arc::new(read_authorities(path)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider).build();
                let verifier = verifier.map_err(|cause| file_error(path, cause))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        Ok(Arc::new(builder.with_cert_resolver(self.clone())))
    }
}

impl ResolvesServerCert for ServerIdentity {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current.read().clone())
    }
}

fn read(certificate: &Path, key: &Path) -> Result<CertifiedKey, TlsError> {
    let (chain, private) = read_identity(certificate, key)?;
    Ok(CertifiedKey::from_der(chain, private, &default_provider())?)
}
