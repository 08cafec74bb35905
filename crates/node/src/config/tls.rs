//! Encryption of all doors.

use std::path::PathBuf;

options! {
    /// Encryption of all doors; both files or neither.
    tls, "TLS";

    /// File with the certificate chain, as PEM.
    "tls.certificate" => certificate: Option<PathBuf> = None;

    /// File with the certificate's private key, as PEM.
    "tls.key" => key: Option<PathBuf> = None;
}

impl Options {
    /// The certificate's file and the key's file, when TLS is on.
    pub fn files(&self) -> Option<(&PathBuf, &PathBuf)> {
        self.certificate.as_ref().zip(self.key.as_ref())
    }
}
