//! Trust in a self-signed certificate: accepts a server that presents exactly a certificate that
//! the client trusts.
//!
//! `openssl req -x509` marks such a certificate as an authority (CA:TRUE), and an authority's
//! certificate is not accepted as a server's own ([RFC 5280 §4.2.1.9]). Programs that use OpenSSL
//! accept it if it is trusted itself, and so does this verifier. Name and validity period are
//! checked as usual.
//!
//! [RFC 5280 §4.2.1.9]: https://www.rfc-editor.org/rfc/rfc5280#section-4.2.1.9

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};

/// Verifies server certificates against authorities, and against the trusted certificates
/// themselves.
#[derive(Debug)]
pub(super) struct Verifier {
    authorities: Arc<WebPkiServerVerifier>,
    trusted: Vec<CertificateDer<'static>>,
}

impl Verifier {
    /// Creates a verifier. `trusted` are the certificates of `authorities`.
    pub(super) fn new(
        authorities: Arc<WebPkiServerVerifier>,
        trusted: Vec<CertificateDer<'static>>,
    ) -> Self {
        Self {
            authorities,
            trusted,
        }
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.authorities.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match verified {
            // The validity period has been checked before this error.
            Err(error)
                if is_authority(&error) && self.trusted.iter().any(|it| it == end_entity) =>
            {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
}

/// Returns true if the only error is that the certificate is an authority's.
fn is_authority(error: &Error) -> bool {
    let Error::InvalidCertificate(CertificateError::Other(other)) = error else {
        return false;
    };
    matches!(
        other.0.downcast_ref::<webpki::Error>(),
        Some(webpki::Error::CaUsedAsEndEntity)
    )
}
