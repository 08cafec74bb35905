//! Address of the database, and protection of the connection.
//!
//! `sslmode` is that of libpq (PostgreSQL documentation, *SSL Support*). Up to `require` the
//! server's certificate is not verified unless there is an `sslrootcert`; `verify-ca` verifies its
//! issuer, `verify-full` also its host name. `allow` is not supported.

use std::path::PathBuf;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::SslMode;

use super::tls::{Connector, Verification};

/// Parsed address of the database.
#[derive(Clone)]
pub(super) struct Address {
    pub(super) config: Config,
    pub(super) tls: Connector,
}

/// Time limit of a connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Error in `archive.url`.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// The URL is not valid.
    #[error("archive.url is not a valid PostgreSQL URL: {0}")]
    Malformed(String),
    /// The `sslmode` is unknown.
    #[error(
        "archive.url: `sslmode={0}` is unknown, use disable, prefer, require, verify-ca or verify-full"
    )]
    Mode(String),
    /// The `sslmode` needs root certificates.
    #[error(
        "archive.url: `sslmode={0}` requires `sslrootcert=FILE` with the trusted root certificates"
    )]
    NoRoots(String),
    /// The root certificates cannot be read.
    #[error("archive.url: sslrootcert: {0}")]
    Roots(String),
}

impl Address {
    /// Parses a URL; removes `sslmode` and `sslrootcert` from its query.
    pub(super) fn parse(url: &str) -> Result<Self, AddressError> {
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let (mut mode, mut roots, mut rest) = (None, None, Vec::new());
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("sslmode", value)) => mode = Some(value.to_owned()),
                Some(("sslrootcert", value)) => roots = Some(PathBuf::from(unescaped(value))),
                _ => rest.push(pair),
            }
        }
        let url = match rest.is_empty() {
            true => base.to_owned(),
            false => format!("{base}?{}", rest.join("&")),
        };
        let parsed = url.parse::<Config>();
        let mut config = parsed.map_err(|error| AddressError::Malformed(with_causes(&error)))?;
        if config.get_hosts().is_empty() {
            return Err(AddressError::Malformed("the host is missing".to_owned()));
        }
        let mode = mode.unwrap_or_else(|| "prefer".to_owned());
        let (ssl_mode, verification) = match (mode.as_str(), roots) {
            ("disable", _) => (SslMode::Disable, Verification::None),
            ("prefer", None) => (SslMode::Prefer, Verification::None),
            ("prefer", Some(roots)) => (SslMode::Prefer, Verification::Issuer(roots)),
            ("require", None) => (SslMode::Require, Verification::None),
            ("require" | "verify-ca", Some(roots)) => {
                (SslMode::Require, Verification::Issuer(roots))
            }
            ("verify-full", Some(roots)) => (SslMode::Require, Verification::Host(roots)),
            ("verify-ca" | "verify-full", None) => return Err(AddressError::NoRoots(mode)),
            _ => return Err(AddressError::Mode(mode)),
        };
        config
            .ssl_mode(ssl_mode)
            .application_name("telpher")
            .connect_timeout(CONNECT_TIMEOUT)
            .keepalives(true)
            .keepalives_idle(Duration::from_secs(30));
        let tls = Connector::new(&verification).map_err(AddressError::Roots)?;
        Ok(Self { config, tls })
    }
}

/// Formats an error with its causes.
pub(super) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

/// Decodes percent escapes (RFC 3986, section 2.1); keeps invalid escapes.
fn unescaped(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while at < bytes.len() {
        let digits = text.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(url: &str) -> Result<SslMode, String> {
        let parsed = Address::parse(url);
        parsed
            .map(|it| it.config.get_ssl_mode())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn each_sslmode_is_applied_or_refused_by_name() {
        assert_eq!(mode("postgres://u@h/d"), Ok(SslMode::Prefer));
        for (word, wanted) in [
            ("disable", SslMode::Disable),
            ("prefer", SslMode::Prefer),
            ("require", SslMode::Require),
        ] {
            assert_eq!(
                mode(&format!("postgres://u@h/d?sslmode={word}")),
                Ok(wanted)
            );
        }
        for word in ["verify-ca", "verify-full"] {
            let error = mode(&format!("postgres://h/d?sslmode={word}")).unwrap_err();
            assert!(error.contains("sslrootcert"), "{error}");
            let missing = format!("postgres://h/d?sslmode={word}&sslrootcert=%2Fno%2Fsuch");
            let error = mode(&missing).unwrap_err();
            assert!(error.contains("/no/such"), "{error}");
        }
        let error = mode("postgres://h/d?sslmode=allow").unwrap_err();
        assert!(error.contains("sslmode=allow"), "{error}");
    }

    #[test]
    fn invalid_urls_are_rejected_without_showing_the_password() {
        for url in ["postgres://u:s3@/d", "postgres://u:s3@h/d?nosuch=1"] {
            let error = mode(url).unwrap_err();
            assert!(error.starts_with("archive.url is not a valid"), "{error}");
            assert!(!error.contains("s3"), "{error}");
        }
    }
}
