//! The quorum floor as processes: a leader and the two followers that it starts.

#![expect(
    clippy::unwrap_used,
    reason = "a cluster that cannot be started fails the test"
)]

mod cluster;

use std::fs;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use contract::monotonic_ns;

use cluster::{Cluster, PATIENCE_NS, kill_leader, wait_until_gone};

const FLOORS: &str = env!("CARGO_BIN_EXE_floors");

fn start(name: &str, flags: &[&str]) -> Cluster {
    let mut command = Command::new(FLOORS);
    command.args(["quorum", "serve"]).args(flags);
    Cluster::start(&format!("floors-quorum-{name}"), command)
}

fn load(cluster: &Cluster, flags: &[&str]) -> Output {
    let mut command = Command::new(FLOORS);
    command.args(["quorum", "load", "--connect", &cluster.address]);
    command.args([
        "--mode",
        "concurrent",
        "--size",
        "256",
        "--warmup-seconds",
        "0",
    ]);
    command.args(flags).output().unwrap()
}

fn kill(pid: u32) {
    let status = Command::new("kill").args(["-9", &pid.to_string()]).status();
    assert!(status.unwrap().success());
}

#[test]
fn every_message_is_echoed_and_all_three_end_with_stdin() {
    for threads in ["1", "2"] {
        let cluster = start(&format!("load-{threads}"), &["--follower-threads", threads]);
        let followers = cluster.followers();
        assert_eq!(followers.len(), 2);
        for flags in [
            &["--in-flight", "128", "--requests", "5000"][..],
            &["--connections", "50", "--requests", "5000"],
            &[
                "--in-flight",
                "1000",
                "--connections",
                "3",
                "--requests",
                "20000",
            ],
        ] {
            let output = load(&cluster, flags);
            let printed = String::from_utf8(output.stdout).unwrap();
            assert_eq!(output.status.code(), Some(0), "{flags:?}");
            let completed = format!("\"completed\":{}", flags[flags.len() - 1]);
            assert!(printed.contains(&completed), "{printed}");
            assert!(
                printed.starts_with(r#"{"program":"quorum-floor""#),
                "{printed}"
            );
        }
        assert_eq!(cluster.wait().status.code(), Some(0));
        wait_until_gone(&followers);
    }
}

#[test]
fn all_nodes_count_their_syncs_of_the_same_bytes() {
    let counts = std::env::temp_dir().join(format!("floors-quorum-{}.counts", std::process::id()));
    let cluster = start("counts", &["--counts", counts.to_str().unwrap()]);
    let output = load(&cluster, &["--in-flight", "10", "--requests", "1000"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(cluster.wait().status.code(), Some(0));
    let lines = fs::read_to_string(&counts).unwrap();
    fs::remove_file(&counts).unwrap();
    assert_eq!(lines.matches("\"node\":\"follower\"").count(), 2, "{lines}");
    assert_eq!(lines.matches("\"node\":\"leader\"").count(), 1, "{lines}");
    // One follower of the two may have been stopped before it synced the last of them.
    let bytes = lines.matches(&format!("\"bytes\":{}", 1000 * 272)).count();
    assert!(bytes >= 2, "{lines}");
}

#[test]
fn one_stopped_follower_delays_nothing() {
    let cluster = start("stopped", &[]);
    let stopped = cluster.followers()[0].to_string();
    let signal = |name: &str| {
        Command::new("kill")
            .args([name, &stopped])
            .status()
            .unwrap()
    };
    assert!(signal("-STOP").success());
    let output = load(&cluster, &["--in-flight", "8", "--requests", "1000"]);
    assert!(signal("-CONT").success());
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(cluster.wait().status.code(), Some(0));
}

#[test]
fn a_follower_that_dies_ends_the_floor_with_an_error() {
    let cluster = start("dead", &[]);
    let followers = cluster.followers();
    kill(followers[0]);
    let output = {
        let end_ns = monotonic_ns() + PATIENCE_NS;
        let mut cluster = cluster;
        while cluster.leader.try_wait().unwrap().is_none() {
            assert!(monotonic_ns() < end_ns, "the leader goes on alone");
            thread::sleep(Duration::from_millis(5));
        }
        // The killed process has left its file.
        for entry in fs::read_dir(&cluster.dir).unwrap() {
            let path = entry.unwrap().path();
            assert!(
                path.to_string_lossy().contains(&followers[0].to_string()),
                "{path:?}"
            );
            fs::remove_file(path).unwrap();
        }
        cluster.wait()
    };
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("a follower closed") && said.contains("hint:"),
        "{said}"
    );
    wait_until_gone(&followers);
}

#[test]
fn followers_end_with_a_leader_that_is_killed() {
    kill_leader(start("killed", &[]));
}

#[test]
fn a_leader_without_a_directory_says_so() {
    let mut command = Command::new(FLOORS);
    command.args([
        "quorum",
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--dir",
        "/nowhere",
    ]);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("cannot fill /nowhere/") && said.contains("hint:"),
        "{said}"
    );
    assert!(output.stdout.is_empty());
}
