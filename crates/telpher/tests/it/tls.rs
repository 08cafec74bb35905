//! TLS on the native and HTTP listeners, with the test's own certificate authority.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use rcgen::{CertificateParams, CertifiedIssuer, KeyPair, SanType};
use rustls::pki_types::ServerName;

use crate::support::{Node, Place};

/// Creates an authority, and a certificate for 127.0.0.1 that it signed.
pub(crate) fn write_certificates(place: &Place, authority_file: &str) {
    let authority = authority();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    let loopback = std::net::Ipv4Addr::LOCALHOST.into();
    params.subject_alt_names.push(SanType::IpAddress(loopback));
    let certificate = params.signed_by(&key, &authority).unwrap();
    place
        .write("chain.pem", &certificate.pem())
        .write("key.pem", &key.serialize_pem())
        .write(authority_file, &authority.pem());
}

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    // OpenSSL treats a certificate with the name of its issuer as self-signed.
    params
        .distinguished_name
        .push(rcgen::DnType::CommonName, "authority");
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn serve(place: &Place) -> Node {
    place.serve("--tls-certificate chain.pem --tls-key key.pem")
}

#[test]
fn native_clients_that_trust_the_authority_can_connect() {
    let home = Place::new();
    write_certificates(&home, "authority.pem");
    let node = serve(&home);
    let home = home.with_variable("TELPHER_URL", node.url("native"));
    let _echo = home.listen([
        "acme/demo/echo",
        "--echo",
        "--tls-authorities",
        "authority.pem",
    ]);
    let home = home.with_variable("TELPHER_TLS_AUTHORITIES", "authority.pem");
    let body = "x".repeat(100_000);
    let ended = home.run_with_input("request acme/demo/echo -", body.as_bytes());
    assert_eq!(ended.expect(0).stdout, body);
    node.stop().expect(0);
}

#[test]
fn an_authority_that_did_not_sign_is_refused() {
    let home = Place::new();
    write_certificates(&home, "authority.pem");
    let node = serve(&home);
    home.write("other.pem", &authority().pem());
    let url = node.url("native");
    home.run(&format!("agents --url {url} --tls-authorities other.pem"))
        .expect(6)
        .shows_error("certificate", "--tls-authorities");
    home.run(&format!("agents --url {url}"))
        .expect(6)
        .shows_error("certificate", "--tls-authorities");
    home.run(&format!(
        "agents --url {url} --tls-authorities authority.pem"
    ))
    .expect(0);
}

/// Creates a self-signed certificate like `openssl req -x509`: marked as an authority.
fn write_self_signed(place: &Place, days: std::ops::Range<i64>) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    let loopback = std::net::Ipv4Addr::LOCALHOST.into();
    params.subject_alt_names.push(SanType::IpAddress(loopback));
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let now = std::time::SystemTime::now();
    let day = |days: i64| {
        let seconds = std::time::Duration::from_secs(days.unsigned_abs() * 24 * 3600);
        match days < 0 {
            true => (now - seconds).into(),
            false => (now + seconds).into(),
        }
    };
    (params.not_before, params.not_after) = (day(days.start), day(days.end));
    let certificate = params.self_signed(&key).unwrap();
    place
        .write("chain.pem", &certificate.pem())
        .write("key.pem", &key.serialize_pem());
}

#[test]
fn a_given_self_signed_certificate_is_trusted() {
    let home = Place::new();
    write_self_signed(&home, -1..30);
    let node = serve(&home);
    let url = node.url("native");
    let own = format!("agents --url {url} --tls-authorities chain.pem");
    home.run(&own).expect(0);
    // Another self-signed certificate with the same name is not trusted.
    let other = Place::new();
    write_self_signed(&other, -1..30);
    let stranger = format!("agents --url {url} --tls-authorities chain.pem");
    other
        .run(&stranger)
        .expect(6)
        .shows_error("certificate", "--tls-authorities");
    node.stop().expect(0);
}

#[test]
fn an_expired_self_signed_certificate_is_refused() {
    let home = Place::new();
    write_self_signed(&home, -30..-1);
    let node = serve(&home);
    let url = node.url("native");
    home.run(&format!("agents --url {url} --tls-authorities chain.pem"))
        .expect(6)
        .shows_error("expired", "--tls-authorities");
    node.stop().expect(0);
}

#[test]
fn plain_text_on_a_tls_listener_fails_without_affecting_others() {
    let home = Place::new();
    write_certificates(&home, "authority.pem");
    let node = serve(&home);
    let url = format!("tcp://{}", node.address("native"));
    let ended = home.run(&format!("agents --url {url}"));
    assert_ne!(ended.code(), 0);
    let url = node.url("native");
    home.run(&format!(
        "agents --url {url} --tls-authorities authority.pem"
    ))
    .expect(0);
}

#[test]
fn the_http_listener_requires_tls_and_the_token() {
    let home = Place::new();
    write_certificates(&home, "authority.pem");
    let token = home
        .run("token add tester --for */*/*")
        .stdout
        .trim()
        .to_owned();
    let node = serve(&home);
    assert_eq!(get(&home, &node, "/livez", ""), 200);
    assert_eq!(get(&home, &node, "/metrics", ""), 401);
    assert_eq!(get(&home, &node, "/metrics", "tlp_wrong"), 401);
    assert_eq!(get(&home, &node, "/metrics", &token), 200);
}

/// Sends a request over TLS and returns the status.
fn get(place: &Place, node: &Node, path: &str, token: &str) -> u16 {
    let config = net::client_config(Some(&place.path("authority.pem"))).unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let connection = rustls::ClientConnection::new(Arc::clone(&config), name).unwrap();
    let socket = TcpStream::connect(node.address("http")).unwrap();
    let mut stream = rustls::StreamOwned::new(connection, socket);
    let token = match token {
        "" => String::new(),
        token => format!("Authorization: Bearer {token}\r\n"),
    };
    let head =
        format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{token}Connection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    std::str::from_utf8(&answer[9..]).unwrap().parse().unwrap()
}
