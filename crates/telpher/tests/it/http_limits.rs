//! Limits of the HTTP listener, and its shutdown and reload.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Node, Place, eventually};

/// Time limit of every wait in these tests.
const PATIENCE: Duration = Duration::from_secs(60);

fn connect(node: &Node) -> TcpStream {
    let stream = TcpStream::connect(node.address("http")).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Sends a request and returns the connection.
fn begin(node: &Node, line: &str, fields: &str, body: &str) -> BufReader<TcpStream> {
    let mut stream = connect(node);
    let size = body.len();
    write!(
        stream,
        "{line} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{fields}\
         Content-Length: {size}\r\n\r\n{body}"
    )
    .unwrap();
    BufReader::new(stream)
}

/// Reads the status of an answer; 0 if the connection ended without one.
fn status(reader: &mut BufReader<TcpStream>) -> u16 {
    let mut line = String::new();
    let _ = reader.read_line(&mut line);
    line.split(' ')
        .nth(1)
        .map_or(0, |status| status.parse().unwrap())
}

/// Reads lines until one is as expected; false if the connection ends before.
fn reads_expected_line(reader: &mut BufReader<TcpStream>, expected: impl Fn(&str) -> bool) -> bool {
    loop {
        let mut line = String::new();
        if !reader.read_line(&mut line).is_ok_and(|size| size > 0) {
            return false;
        }
        if expected(line.trim_end()) {
            return true;
        }
    }
}

const TAKE: &str = r#"{"subject":"a/b/c","cost":{"requests":1}}"#;

/// Creates the conversation that is followed.
fn create_conversation(node: &Node, text: &str) {
    let message = format!(r#"{{"messages":[{{"role":"user","content":"{text}"}}]}}"#);
    let path = "POST /v1/conversations/c/messages";
    let mut append = begin(node, path, "Connection: close\r\n", &message);
    assert_eq!(status(&mut append), 201);
}

fn follow(node: &Node) -> BufReader<TcpStream> {
    let path = "GET /v1/conversations/c/messages";
    begin(node, path, "Accept: text/event-stream\r\n", "")
}

#[test]
fn idle_connections_are_closed_for_new_requests() {
    let place = Place::new();
    let node = place.serve("--http-connections-max 8");
    let silent: Vec<_> = (0..40).map(|_| connect(&node)).collect();
    for _ in 0..20 {
        let mut take = begin(&node, "POST /v1/take", "Connection: close\r\n", TAKE);
        assert_eq!(status(&mut take), 200);
    }
    for path in ["/livez", "/readyz", "/metrics"] {
        assert_eq!(node.get(path, None).0, 200, "{path}");
    }
    drop(silent);
}

#[test]
fn at_the_connection_limit_only_health_and_metrics_are_served() {
    let place = Place::new();
    let node = place.serve("--http-connections-max 4");
    // Uploads without their bodies are open requests. The node sends 100 Continue once they are
    // open.
    let held: Vec<_> = (0..4)
        .map(|_| {
            let mut stream = connect(&node);
            write!(
                stream,
                "POST /v1/conversations/c/messages HTTP/1.1\r\nHost: localhost\r\n\
                 Content-Type: application/json\r\nExpect: 100-continue\r\n\
                 Content-Length: 100\r\n\r\n"
            )
            .unwrap();
            let mut reader = BufReader::new(stream);
            assert_eq!(status(&mut reader), 100);
            reader
        })
        .collect();
    let mut take = begin(&node, "POST /v1/take", "Connection: close\r\n", TAKE);
    assert_eq!(status(&mut take), 503);
    for path in ["/livez", "/readyz", "/metrics"] {
        assert_eq!(node.get(path, None).0, 200, "{path}");
    }
    let (refused, body) = node.get("/v1/conversations", None);
    assert_eq!(refused, 503);
    assert!(body.contains("http.connections_max"), "{body}");
    assert!(node.metric("telpher_http_refused_total{reason=\"connections\"}") > 0);
    drop(held);
    eventually("there is room again", || {
        node.get("/v1/conversations", None).0 == 200
    });
}

#[test]
fn event_streams_have_a_limit_of_their_own() {
    let place = Place::new();
    let node = place.serve("--http-connections-max 2 --http-streams-max 3");
    create_conversation(&node, "hello");
    let follow = || {
        let mut stream = follow(&node);
        let status = status(&mut stream);
        (stream, status)
    };
    let mut streams: Vec<_> = (0..3).map(|_| follow()).collect();
    assert!(streams.iter().all(|(_, status)| *status == 200));
    assert_eq!(node.metric("telpher_http_streams"), 3);
    let (mut refused, status_of_refused) = follow();
    assert_eq!(status_of_refused, 503);
    assert!(reads_expected_line(&mut refused, |line| line.contains("http.streams_max")));
    for _ in 0..5 {
        let mut take = begin(&node, "POST /v1/take", "Connection: close\r\n", TAKE);
        assert_eq!(status(&mut take), 200);
    }
    streams.pop();
    eventually("one more has room", || follow().1 == 200);
}

#[test]
fn a_client_that_does_not_read_is_closed() {
    let place = Place::new();
    let node = place.serve("--http-write-timeout 200ms");
    let text = "x".repeat(200 << 10);
    for _ in 0..80 {
        create_conversation(&node, &text);
    }
    let _stuck = follow(&node);
    eventually("it is connected", || {
        node.metric("telpher_http_streams") == 1
    });
    eventually("it is given up", || {
        node.metric("telpher_http_streams") == 0
    });
}

#[test]
fn shutdown_answers_requests_already_read() {
    let place = Place::new();
    let node = place.serve("--shutdown-notice 0s --shutdown-drain 30s --shutdown-limit 1m");
    let limits = r#"{"reason":"a test","limits":[{"name":"l","match":"a/b/*","unit":"requests","capacity":1,"refill":"1/3s"}]}"#;
    let mut put = begin(&node, "PUT /v1/policies", "", limits);
    assert_eq!(status(&mut put), 200);
    let mut first = begin(&node, "POST /v1/take", "", TAKE);
    assert_eq!(status(&mut first), 200);
    let mut waiting = begin(
        &node,
        "POST /v1/take",
        "",
        r#"{"subject":"a/b/c","cost":{"requests":1},"wait":"20s"}"#,
    );
    eventually("it waits", || node.metric("telpher_quota_waiting") == 1);
    node.signal(Signal::TERM);
    assert_eq!(status(&mut waiting), 200);
    node.end().expect(0);
}

#[test]
fn event_streams_and_websockets_are_notified_of_the_shutdown() {
    let place = Place::new();
    let node = place.serve("");
    create_conversation(&node, "hello");
    let mut events = follow(&node);
    assert_eq!(status(&mut events), 200);
    let mut watch = begin(&node, "GET /v1/watch", "", "");
    assert_eq!(status(&mut watch), 200);
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                   Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let mut socket = begin(&node, "GET /v1/ws", upgrade, "");
    assert_eq!(status(&mut socket), 101);
    assert!(reads_expected_line(&mut socket, str::is_empty));
    node.signal(Signal::TERM);
    for stream in [&mut events, &mut watch] {
        assert!(reads_expected_line(stream, |line| line == "event: error"));
        assert!(reads_expected_line(stream, |line| line.contains("the node is shutting down")));
    }
    let mut rest = Vec::new();
    socket.read_to_end(&mut rest).unwrap();
    // A close frame, its size, and 1001 (RFC 6455, 5.5.1).
    assert_eq!(
        (rest[0], &rest[2..4]),
        (0x88, &1001u16.to_be_bytes()[..]),
        "{rest:?}"
    );
    node.end().expect(0);
}

#[test]
fn readiness_ends_before_the_port_closes() {
    let place = Place::new();
    let node = place.serve("--shutdown-notice 1h --shutdown-drain 1h --shutdown-limit 1h");
    node.signal(Signal::TERM);
    eventually("it is not ready", || node.get("/readyz", None).0 == 503);
    assert_eq!(node.get("/livez", None).0, 200);
    node.signal(Signal::TERM);
    node.end().expect(0);
}

#[test]
fn sighup_reloads_certificates_tokens_and_limits() {
    let place = Place::new();
    let write_certificate = |name: &str| {
        let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
        place.write("c.pem", &made.cert.pem());
        place.write("k.pem", &made.signing_key.serialize_pem());
    };
    write_certificate("before.example.com");
    place.write("node.toml", "");
    let mut node = place.serve("--config node.toml --tls-certificate c.pem --tls-key k.pem");
    let (_, port) = node.address("http").rsplit_once(':').unwrap();
    let port = port.to_owned();
    let ask = |name: &str, path: &str| {
        let asked = place.shell(&format!(
            "curl -s --cacert c.pem --resolve {name}:{port}:127.0.0.1 https://{name}:{port}{path}"
        ));
        (asked.code(), asked.stdout)
    };
    assert_eq!(ask("before.example.com", "/livez").1, "ok\n");
    write_certificate("after.example.com");
    place.write(
        "node.toml",
        "[http]\nhosts = 'other'\n\
         [[limit]]\nname = 'l'\nmatch = 'a/b/*'\nunit = 'requests'\ncapacity = 7\nrefill = '1/1s'\n",
    );
    node.signal(Signal::HUP);
    node.wait_for_log("changed options need a restart: http.hosts");
    let (code, policies) = ask("after.example.com", "/v1/policies");
    assert_eq!(code, 0);
    let policies: Value = serde_json::from_str(&policies).unwrap();
    assert_eq!(policies["limits"][0]["capacity"], 7, "{policies}");
    // An invalid file changes nothing.
    place
        .write("node.toml", "[http]\nlisten = 7\n")
        .write("c.pem", "no certificate");
    node.signal(Signal::HUP);
    node.wait_for_log("the old one stays");
    node.stop().expect(0);
}
