//! The TLS settings of a bridge for `https://`.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::ClientConfig;

use crate::failure::{Exit, Failure};

/// PEM files of the SLIM node's TLS.
#[derive(Debug, clap::Args)]
pub(crate) struct Tls {
    /// Certificates (PEM) to trust for https://
    #[arg(long = "slim-authorities", value_name = "FILE")]
    authorities: Option<PathBuf>,

    /// Client certificate (PEM), if the SLIM node requires one
    #[arg(
        long = "slim-certificate",
        value_name = "FILE",
        requires = "slim_key",
        id = "slim_certificate"
    )]
    certificate: Option<PathBuf>,

    /// Private key (PEM) of the client certificate
    #[arg(
        long = "slim-key",
        value_name = "FILE",
        requires = "slim_certificate",
        id = "slim_key"
    )]
    key: Option<PathBuf>,
}

impl Tls {
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
