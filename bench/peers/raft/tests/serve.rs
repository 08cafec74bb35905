//! raft-floor as processes: a leader and the two followers that it starts.

#![expect(
    clippy::unwrap_used,
    reason = "a cluster that cannot be started fails the test"
)]

#[path = "../../../floors/tests/cluster/mod.rs"]
mod cluster;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::thread;
use std::time::Duration;

use contract::Header;

use cluster::{Cluster, kill_leader, wait_until_gone};

fn start(name: &str, flags: &[&str]) -> Cluster {
    let mut command = Command::new(env!("CARGO_BIN_EXE_raft-floor"));
    command.arg("serve").args(flags);
    Cluster::start(&format!("raft-floor-{name}"), command)
}

/// Sends `count` frames of many sizes, `in_flight` at a time, and checks every echo.
fn load(address: &str, count: u64, in_flight: u64) {
    let mut socket = TcpStream::connect(address).unwrap();
    let patience = Some(Duration::from_secs(20));
    socket.set_read_timeout(patience).unwrap();
    let frame = |id: u64| {
        let payload_size = (id * 37 % 3000) as usize;
        let mut bytes = Header { payload_size, id }.encode().to_vec();
        bytes.resize(bytes.len() + payload_size, id as u8);
        bytes
    };
    let (mut sent, mut received) = (0, 0);
    while received < count {
        while sent < count && sent - received < in_flight {
            socket.write_all(&frame(sent)).unwrap();
            sent += 1;
        }
        let expected = frame(received);
        let mut reply = vec![0; expected.len()];
        socket.read_exact(&mut reply).unwrap();
        assert!(reply == expected, "reply {received} differs");
        received += 1;
    }
}

#[test]
fn every_message_is_echoed_in_order_over_one_group_and_four() {
    for groups in ["1", "4"] {
        let cluster = start(&format!("load-{groups}"), &["--groups", groups]);
        let followers = cluster.followers();
        assert_eq!(followers.len(), 2);
        thread::scope(|scope| {
            for in_flight in [1, 7, 64, 500] {
                let address = &cluster.address;
                scope.spawn(move || load(address, 600, in_flight));
            }
        });
        let output = cluster.wait();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{said}");
        wait_until_gone(&followers);
    }
}

#[test]
fn a_stopped_follower_delays_nothing_and_catches_up() {
    let counts = std::env::temp_dir().join(format!("raft-floor-counts-{}", std::process::id()));
    let cluster = start("stopped", &["--counts", counts.to_str().unwrap()]);
    let stopped = cluster.followers()[0].to_string();
    let signal = |name: &str| Command::new("kill").args([name, &stopped]).status();
    assert!(signal("-STOP").unwrap().success());
    load(&cluster.address, 300, 8);
    assert!(signal("-CONT").unwrap().success());
    load(&cluster.address, 300, 8);
    thread::sleep(Duration::from_millis(500));
    assert_eq!(cluster.wait().status.code(), Some(0));
    let lines = fs::read_to_string(&counts).unwrap();
    fs::remove_file(&counts).unwrap();
    let bytes: Vec<u64> = lines
        .lines()
        .map(|line| {
            let (_, rest) = line.split_once("\"bytes\":").unwrap();
            rest.split_once(',').unwrap().0.parse().unwrap()
        })
        .collect();
    assert_eq!(bytes.len(), 3, "{lines}");
    let payload: u64 = (0..300).map(|id| 16 + id * 37 % 3000).sum();
    assert!(bytes.iter().all(|bytes| *bytes > 2 * payload), "{lines}");
}

#[test]
fn followers_end_with_a_leader_that_is_killed() {
    kill_leader(start("killed", &[]));
}
