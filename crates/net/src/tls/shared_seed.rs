//! TLS between processes that share a secret, without certificates.
//!
//! Both sides derive the same Ed25519 key from the secret and present its public key as it is (raw
//! public keys, [RFC 7250]). Each accepts that key and no other, so a side that does not know the
//! secret cannot complete the handshake. TLS 1.3 only, which alone signs with the key in both
//! directions and agrees on new keys for each connection.
//!
//! [RFC 7250]: https://www.rfc-editor.org/rfc/rfc7250

use std::sync::Arc;

use rustls::client::AlwaysResolvesClientRawPublicKeys;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{
    CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer,
    UnixTime,
};
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error, ServerConfig,
    SignatureScheme,
};

use super::TlsError;

/// The beginning of an Ed25519 private key in PKCS #8 ([RFC 8410] §7); the seed follows.
///
/// [RFC 8410]: https://www.rfc-editor.org/rfc/rfc8410
const PKCS8_PREFIX: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

/// TLS configurations of both sides of connections between processes that share a secret.
#[derive(Clone, Debug)]
pub struct SharedSeedTls {
    /// The configuration of the side that accepts.
    pub server: Arc<ServerConfig>,
    /// The configuration of the side that connects. It ignores the name of the server.
    pub client: Arc<ClientConfig>,
}

impl SharedSeedTls {
    /// Derives the configurations from a secret seed. All processes with the seed accept each other.
    pub fn new(seed: &[u8; 32]) -> Result<Self, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let pkcs8 = [&PKCS8_PREFIX[..], &seed[..]].concat();
        let private = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(pkcs8));
        let signing = provider.key_provider.load_private_key(private)?;
        let public = signing
            .public_key()
            .ok_or_else(|| Error::General("an Ed25519 key without a public key".to_owned()))?
            .into_owned();
        let own = Arc::new(CertifiedKey::new(
            vec![CertificateDer::from(public.to_vec())],
            signing,
        ));
        let verifier = Arc::new(Verifier {
            public,
            provider: provider.clone(),
        });
        let server = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&TLS13])?
            .with_client_cert_verifier(verifier.clone())
            .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(
                own.clone(),
            )));
        let client = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(own)));
        Ok(Self {
            server: Arc::new(server),
            client: Arc::new(client),
        })
    }
}

/// Accepts one public key.
#[derive(Debug)]
struct Verifier {
    public: SubjectPublicKeyInfoDer<'static>,
    provider: Arc<CryptoProvider>,
}

impl Verifier {
    fn check(&self, presented: &CertificateDer<'_>) -> Result<(), Error> {
        match presented.as_ref() == self.public.as_ref() {
            true => Ok(()),
            false => Err(CertificateError::ApplicationVerificationFailure.into()),
        }
    }

    fn verify_signature(
        &self,
        message: &[u8],
        presented: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let key = SubjectPublicKeyInfoDer::from(presented.as_ref());
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature_with_raw_key(message, &key, signed, algorithms)
    }
}

/// The error of a handshake in TLS 1.2, which the configurations do not offer.
fn no_tls12() -> Error {
    Error::General("TLS 1.2 was not offered".to_owned())
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(end_entity)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(no_tls12())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for Verifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(end_entity)?;
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(no_tls12())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
