//! Webhooks over TLS, with certificates of the test's own authority.

use std::io::{BufReader, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

use crate::support::{Place, eventually};
use crate::tls::write_certificates;
use crate::webhooks::{PATIENCE, append_text, expect, messages, read_request, text};

const ANSWER: &str = r#"{"content": "in private"}"#;

/// Starts an agent behind TLS that answers each call; returns its URL and the received calls.
fn start(place: &Place) -> (String, Receiver<Value>) {
    let chain = CertificateDer::pem_file_iter(place.path("chain.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(place.path("key.pem")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain.map(Result::unwrap).collect(), key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/hook", listener.local_addr().unwrap());
    let (sender, asked) = channel();
    thread::spawn(move || {
        for socket in listener.incoming() {
            let connection = ServerConnection::new(config.clone()).unwrap();
            let mut reader = BufReader::new(StreamOwned::new(connection, socket.unwrap()));
            // A node that does not trust the certificate closes the connection.
            let Some((_, body)) = read_request(&mut reader) else {
                continue;
            };
            let mut stream = reader.into_inner();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\
                 content-length: {}\r\n\r\n",
                ANSWER.len()
            );
            let answered = stream.write_all((head + ANSWER).as_bytes());
            stream.conn.send_close_notify();
            let _ = answered.and_then(|()| stream.flush());
            let _ = sender.send(body);
        }
    });
    (url, asked)
}

#[test]
fn an_untrusted_webhook_certificate_is_the_reason_of_a_dead_letter() {
    let place = Place::new();
    write_certificates(&place, "another.pem");
    // The certificate of the agent is issued by the last authority.
    write_certificates(&place, "authority.pem");
    let (url, asked) = start(&place);
    let node = place.serve("--webhook-authorities another.pem");
    let settings = json!({"url": url, "debounce_ms": 1, "attempts_max": 2, "pause_ms": 1});
    expect(&node, "PUT", "/v1/agents/bot", &settings, 201);
    let named = json!({"agent": "bot"});
    expect(&node, "PUT", "/v1/conversations/c", &named, 201);
    append_text(&node, "hello");
    let dead = || expect(&node, "GET", "/v1/agents/bot/dead", &Value::Null, 200);
    eventually("there is a dead letter", || {
        dead()["dead"].as_array().unwrap().len() == 1
    });
    let letter = &dead()["dead"][0];
    assert_eq!(
        (&letter["status"], &letter["attempts"]),
        (&json!(0), &json!(2))
    );
    let reason = letter["reason"].as_str().unwrap();
    assert!(reason.contains("certificate"), "{reason}");
    assert!(asked.try_recv().is_err(), "it was told what was said");
    assert_eq!(messages(&node).len(), 1);
    node.stop().expect(0);
}

#[test]
fn an_agent_behind_tls_is_called_if_its_authority_is_trusted() {
    let place = Place::new();
    write_certificates(&place, "authority.pem");
    let (url, asked) = start(&place);
    let node = place.serve("--webhook-authorities authority.pem");
    let settings = json!({"url": url, "debounce_ms": 1});
    expect(&node, "PUT", "/v1/agents/bot", &settings, 201);
    let named = json!({"agent": "bot"});
    expect(&node, "PUT", "/v1/conversations/c", &named, 201);
    append_text(&node, "hello");
    let call = asked.recv_timeout(PATIENCE).unwrap();
    assert_eq!(call["to_seq"], 1);
    eventually("the answer is a message", || {
        messages(&node).iter().any(|it| text(it) == "in private")
    });
    node.stop().expect(0);
}
