//! Connections to the listener for members that are none of a member's.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::{Cluster, Writer};

/// Connections that stay open and silent.
const SILENT: usize = 64;

/// Size of a hello, the first bytes of a connection.
const HELLO_SIZE: usize = 76;

/// Sends bytes to the listener for members, and waits until it closes the connection. Returns its
/// answer.
#[track_caller]
fn refused(cluster: &Cluster, node: usize, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(cluster.address(node, "link")).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    stream.write_all(bytes).unwrap();
    let mut answer = Vec::new();
    // A connection that is closed with bytes unread ends by a reset.
    let _ = stream.read_to_end(&mut answer);
    answer
}

/// Returns a hello with a right checksum.
fn hello(format: u16, channel: u8, cluster: u64, from: u64, to: u64) -> Vec<u8> {
    let mut bytes = vec![0; HELLO_SIZE];
    bytes[..4].copy_from_slice(b"TLPL");
    bytes[4..6].copy_from_slice(&format.to_le_bytes());
    bytes[6] = channel;
    bytes[8..16].copy_from_slice(&cluster.to_le_bytes());
    bytes[16..24].copy_from_slice(&from.to_le_bytes());
    bytes[24..32].copy_from_slice(&to.to_le_bytes());
    let crc = crc32c::crc32c(&bytes[..72]);
    bytes[72..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

#[test]
fn foreign_bytes_on_the_link_are_refused_and_do_no_harm() {
    let cluster = Cluster::start();
    let writer = Writer::start(&cluster, &[0, 1, 2]);
    let status = cluster.status(0).unwrap();
    let id = u64::from_str_radix(status["cluster"].as_str().unwrap(), 16).unwrap();
    let mut dice = fastrand::Rng::with_seed(7);
    for node in 0..3 {
        let own = cluster.id(node);
        let other = cluster.id((node + 1) % 3);
        // Silent peers, and one that sends half of a hello: they hold a connection and nothing else.
        let address = cluster.address(node, "link");
        let connect = |_| TcpStream::connect(address).unwrap();
        let mut silent: Vec<_> = (0..SILENT).map(connect).collect();
        silent[0]
            .write_all(&hello(1, 1, id, other, own)[..40])
            .unwrap();

        let random: Vec<u8> = std::iter::repeat_with(|| dice.u8(..)).take(4096).collect();
        refused(&cluster, node, &random);
        refused(&cluster, node, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
        // The status is the number of the refusal, which docs/replication.md and the log name.
        let status = |bytes: &[u8]| refused(&cluster, node, bytes).first().copied();
        assert_eq!(status(&hello(1, 1, id ^ 1, other, own)), Some(1), "cluster");
        assert_eq!(status(&hello(1, 1, id, other, 99)), Some(2), "id");
        assert_eq!(status(&hello(1, 1, id, own, own)), Some(3), "same id");
        assert_eq!(status(&hello(99, 1, id, other, own)), Some(5), "format");
        assert_eq!(status(&hello(1, 200, id, other, own)), Some(6), "channel");
        let mut damaged = hello(1, 1, id, other, own);
        damaged[20] ^= 1;
        assert_eq!(status(&damaged), Some(6), "checksum");
        // A peer that knows a member's id, and not the key.
        let mut unproven = hello(1, 1, id, other.min(own), own);
        unproven.extend_from_slice(&[0; 64]);
        refused(&cluster, node, &unproven);
        writer.wait_for_progress();
    }
    writer.check(&cluster, 0);
}
