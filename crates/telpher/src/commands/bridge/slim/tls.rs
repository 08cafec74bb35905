//! Whom a bridge trusts behind `https://`, and what it shows there.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};

use crate::failure::{Exit, Failure};

/// PEM files of the SLIM node's TLS.
#[derive(Debug, clap::Args)]
pub(crate) struct Tls {
    /// Certificates (PEM) to trust behind https://
    #[arg(long = "slim-authorities", value_name = "FILE")]
    authorities: Option<PathBuf>,

    /// Our certificate (PEM), when the SLIM node asks for one
    #[arg(
        long = "slim-certificate",
        value_name = "FILE",
        requires = "slim_key",
        id = "slim_certificate"
    )]
    certificate: Option<PathBuf>,

    /// The private key (PEM) of our certificate
    #[arg(
        long = "slim-key",
        value_name = "FILE",
        requires = "slim_certificate",
        id = "slim_key"
    )]
    key: Option<PathBuf>,
}

impl Tls {
    /// As gRPC wants it.
    pub(super) fn client_config(&self) -> Result<Arc<ClientConfig>, Failure> {
        let authorities = self.authorities.as_deref();
        let config = net::client_config(authorities).map_err(|error| unusable(&error))?;
        let mut config = ClientConfig::clone(&config);
        config.alpn_protocols = vec![b"h2".to_vec()];
        if let (Some(certificate), Some(key)) = (&self.certificate, &self.key) {
            let shown = SingleCertAndKey::from(load(certificate, key)?);
            config.client_auth_cert_resolver = Arc::new(shown);
        }
        Ok(Arc::new(config))
    }
}

fn load(certificate: &Path, key: &Path) -> Result<CertifiedKey, Failure> {
    let of = |path: &Path, error: &dyn Display| unusable(&format!("{}: {error}", path.display()));
    let chain: Vec<_> = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect)
        .map_err(|error| of(certificate, &error))?;
    if chain.is_empty() {
        return Err(of(certificate, &"no certificate in it"));
    }
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| of(key, &error))?;
    let loaded = CertifiedKey::from_der(chain, private, &default_provider());
    loaded.map_err(|error| of(key, &error))
}

fn unusable(problem: &dyn Display) -> Failure {
    Failure::new(Exit::Usage, problem)
        .hint("--slim-authorities, --slim-certificate and --slim-key are files with PEM")
}
