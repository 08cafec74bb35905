//! Log lines with data of clients.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use wire::{Hello, Window};

use crate::support::Place;

#[test]
fn refused_name_cannot_forge_a_log_line() {
    let place = Place::new();
    let node = place.serve("");
    let window = Window {
        frame_size_max: 1 << 20,
        calls_max: 8,
        credit_messages: 8,
        credit_bytes: 1 << 20,
        keepalive_ms: 0,
    };
    let hello = Hello {
        version_min: 1,
        version_max: 1,
        features: 0,
        window,
        token: "",
        name: "a/b\n2026-01-01T00:00:00Z ERROR forged: \u{1b}[2Jthe disk is on fire",
    };
    let mut bytes = Vec::new();
    hello.encode(&mut bytes);
    let mut socket = TcpStream::connect(node.address("native")).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    socket.write_all(&bytes).unwrap();
    // The client is refused, and logged before the connection ends.
    let _ = socket.read_to_end(&mut Vec::new());
    let log = node.stop().expect(0).stderr.clone();
    assert!(log.contains("connection refused"), "{log}");
    assert!(!log.contains('\u{1b}'), "{log}");
    assert!(
        !log.lines().any(|line| line.starts_with("2026-01-01")),
        "{log}"
    );
}
