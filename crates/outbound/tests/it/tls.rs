//! TLS connections, and servers with the wrong certificate.

use crate::node::{Home, Node, options};
use crate::postgres::{Postgres, eventually};

/// A server with a certificate for a host, and the certificate.
fn server(home: &Home, host: &str) -> (Postgres, String) {
    let made = rcgen::generate_simple_self_signed(vec![host.to_owned()]).unwrap();
    let mut postgres = Postgres::new();
    postgres.write("server.crt", &made.cert.pem());
    postgres.write("server.key", &made.signing_key.serialize_pem());
    postgres.set("ssl=on");
    postgres.start();
    let roots = home.path("roots.pem");
    std::fs::write(&roots, made.cert.pem()).unwrap();
    (postgres, roots.display().to_string())
}

fn node(home: &Home, port: u16, query: &str) -> Node {
    let url = format!("postgres://telpher@localhost:{port}/postgres?{query}");
    Node::start(home, options(url))
}

const ENCRYPTED: &str = "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
    WHERE application_name = 'telpher'";

#[test]
fn every_sslmode_connects_with_its_documented_encryption() {
    let home = Home::new();
    let (postgres, roots) = server(&home, "localhost");
    let mut count = 0;
    for (query, encrypted) in [
        ("sslmode=disable".to_owned(), "f"),
        ("sslmode=prefer".to_owned(), "t"),
        ("sslmode=require".to_owned(), "t"),
        (format!("sslmode=verify-ca&sslrootcert={roots}"), "t"),
        (format!("sslmode=verify-full&sslrootcert={roots}"), "t"),
    ] {
        let node = node(&home, postgres.port, &query);
        node.append_many("acme/chat/a", 1);
        node.settle(&postgres);
        count += 1;
        assert_eq!(postgres.sql(ENCRYPTED), encrypted, "{query}");
        let rows = postgres.sql("SELECT count(*) FROM telpher.messages");
        assert_eq!(rows, count.to_string());
    }
}

#[test]
fn verify_full_refuses_another_host_name_and_verify_ca_accepts_it() {
    let home = Home::new();
    let (postgres, roots) = server(&home, "elsewhere.example");
    let strict = format!("sslmode=verify-full&sslrootcert={roots}");
    let refused = node(&home, postgres.port, &strict);
    refused.append_many("acme/chat/a", 1);
    eventually("it is refused", || {
        let error = refused.archive().error.unwrap_or_default();
        error.contains("certificate")
    });
    assert_eq!(refused.archive().batches, 0);
    drop(refused);
    let issued = format!("sslmode=verify-ca&sslrootcert={roots}");
    node(&home, postgres.port, &issued).settle(&postgres);
}

#[test]
fn a_certificate_of_an_untrusted_authority_is_refused() {
    let home = Home::new();
    let (postgres, _) = server(&home, "localhost");
    let (_other, roots) = server(&home, "localhost");
    let issued = format!("sslmode=verify-ca&sslrootcert={roots}");
    let node = node(&home, postgres.port, &issued);
    node.append_many("acme/chat/a", 1);
    eventually("it is refused", || {
        let error = node.archive().error.unwrap_or_default();
        error.contains("certificate")
    });
    assert_eq!(node.archive().batches, 0);
}
