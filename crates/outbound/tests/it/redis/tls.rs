//! TLS connections, and servers with the wrong certificate.

use outbound::redis::{AddressError, Options, Redis};
use quota_service::quota_store::QuotaStore;
use tempfile::TempDir;

use super::server::{Server, free_port, options, runtime};

struct Encrypted {
    _server: Server,
    port: u16,
    certificate: String,
}

/// A server with a certificate for a host.
fn encrypted(host: &str) -> Encrypted {
    let made = rcgen::generate_simple_self_signed(vec![host.to_owned()]).unwrap();
    let mut server = Server::new();
    let certificate = server.write("server.crt", &made.cert.pem());
    let key = server.write("server.key", &made.signing_key.serialize_pem());
    let port = free_port();
    server.set(&[
        "--tls-port",
        &port.to_string(),
        "--tls-cert-file",
        &certificate,
    ]);
    server.set(&["--tls-key-file", &key, "--tls-auth-clients", "no"]);
    server.start();
    Encrypted {
        _server: server,
        port,
        certificate,
    }
}

fn probe(options: Options) -> Result<String, String> {
    let store = Redis::new(options).unwrap();
    let probed = runtime().block_on(store.probe());
    probed.map_err(|away| away.reason)
}

#[test]
fn a_redis_certificate_must_be_trusted_and_match_the_host() {
    for (host, is_trusted) in [("localhost", true), ("elsewhere.example", false)] {
        let server = encrypted(host);
        let url = format!("rediss://localhost:{}", server.port);
        let named = Options {
            certificate: Some(server.certificate.clone().into()),
            ..options(vec![url.clone()], 1)
        };
        let probed = probe(named);
        assert_eq!(probed.is_ok(), is_trusted, "{probed:?}");
        // No authority that this machine trusts issued the certificate.
        let probed = probe(options(vec![url], 1));
        assert!(probed.is_err(), "{probed:?}");
    }
}

#[test]
fn an_unreadable_certificate_error_names_its_path() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("nobody.pem");
    let options = Options {
        certificate: Some(path.clone()),
        ..options(vec!["rediss://localhost".to_owned()], 1)
    };
    let error = Redis::new(options).err().unwrap();
    assert!(matches!(&error, AddressError::Certificate { path: told, .. } if *told == path));
}
