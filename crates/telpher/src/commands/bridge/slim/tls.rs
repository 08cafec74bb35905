//! TLS arguments of `telpher bridge slim` for `https://`.

use std::path::PathBuf;

use bridge::TlsFiles;

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
    /// Returns the files.
    pub(super) fn files(&self) -> TlsFiles {
        TlsFiles {
            authorities: self.authorities.clone(),
            certificate: self.certificate.clone(),
            key: self.key.clone(),
        }
    }
}
