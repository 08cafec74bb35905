//! Options of TLS.

use std::path::PathBuf;

options! {
    /// TLS for all TCP listeners; set both files or neither.
    tls, "TLS";

    /// PEM file with the certificate chain, the node's certificate first.
    "tls.certificate" => certificate: Option<PathBuf> = None;

    /// PEM file with the certificate's private key.
    "tls.key" => key: Option<PathBuf> = None;
}

impl Options {
    /// The certificate file and the key file, if TLS is on.
    pub fn files(&self) -> Option<(&PathBuf, &PathBuf)> {
        self.certificate.as_ref().zip(self.key.as_ref())
    }
}
