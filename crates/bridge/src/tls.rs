//! The TLS settings of a bridge for `https://`.

use std::path::PathBuf;
use std::sync::Arc;

use console::{Exit, Failure};
use rustls::ClientConfig;

/// PEM files of the SLIM node's TLS.
#[derive(Clone, Debug, Default)]
pub struct TlsFiles {
    /// Certificates to trust; `None` trusts those of this machine.
    pub authorities: Option<PathBuf>,
    /// The client certificate, if the SLIM node requires one.
    pub certificate: Option<PathBuf>,
    /// The private key of the client certificate.
    pub key: Option<PathBuf>,
}

impl TlsFiles {
    /// Returns the TLS configuration for gRPC (HTTP/2).
    pub(super) fn client_config(&self) -> Result<Arc<ClientConfig>, Failure> {
        let authorities = self.authorities.as_deref();
        let config = match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => {
                net::load_mutual_client_config(authorities, certificate, key)
            }
            _ => net::client_config(authorities),
        };
        let mut config = ClientConfig::clone(&*config.map_err(|error| unusable(&error))?);
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Arc::new(config))
    }
}

fn unusable(problem: &net::TlsError) -> Failure {
    Failure::new(Exit::Usage, problem)
        .hint("--slim-authorities, --slim-certificate and --slim-key are PEM files")
}
