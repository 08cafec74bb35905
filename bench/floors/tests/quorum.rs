//! The quorum floor as processes: a leader and the two followers that it starts.

#![expect(
    clippy::unwrap_used,
    reason = "a cluster that cannot be started fails the test"
)]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use contract::monotonic_ns;

/// How long something may take that should take no time.
const PATIENCE_NS: u64 = 10_000_000_000;
const FLOORS: &str = env!("CARGO_BIN_EXE_floors");

/// A leader with a directory of its own.
struct Cluster {
    leader: Child,
    address: String,
    dir: PathBuf,
}

impl Cluster {
    fn start(name: &str, flags: &[&str]) -> Cluster {
        let dir = std::env::temp_dir().join(format!("floors-quorum-{name}-{}", std::process::id()));
        fs::create_dir(&dir).unwrap();
        let mut command = Command::new(FLOORS);
        command.args(["quorum", "serve", "--listen", "127.0.0.1:0"]);
        command
            .args(["--file-mib", "1", "--dir"])
            .arg(&dir)
            .args(flags);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut leader = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(leader.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let address = line.trim().strip_prefix("READY ").unwrap().to_owned();
        Cluster {
            leader,
            address,
            dir,
        }
    }

    fn load(&self, flags: &[&str]) -> Output {
        let mut command = Command::new(FLOORS);
        command.args(["quorum", "load", "--connect", &self.address]);
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

    /// Process ids of the followers.
    fn followers(&self) -> Vec<u32> {
        let pid = self.leader.id();
        let mut followers = Vec::new();
        for task in fs::read_dir(format!("/proc/{pid}/task")).unwrap() {
            let children = fs::read_to_string(task.unwrap().path().join("children")).unwrap();
            followers.extend(
                children
                    .split_whitespace()
                    .map(|pid| pid.parse::<u32>().unwrap()),
            );
        }
        followers
    }

    /// Waits for the leader and removes the directory, which has to be empty.
    fn wait(mut self) -> Output {
        drop(self.leader.stdin.take());
        let output = self.leader.wait_with_output().unwrap();
        let left = fs::read_dir(&self.dir).unwrap().count();
        fs::remove_dir_all(&self.dir).unwrap();
        assert_eq!(left, 0, "files were left");
        output
    }
}

fn wait_until_gone(pids: &[u32]) {
    let end_ns = monotonic_ns() + PATIENCE_NS;
    while pids
        .iter()
        .any(|pid| Path::new(&format!("/proc/{pid}")).exists())
    {
        assert!(monotonic_ns() < end_ns, "a follower outlives its leader");
        thread::sleep(Duration::from_millis(5));
    }
}

fn kill(pid: u32) {
    let status = Command::new("kill").args(["-9", &pid.to_string()]).status();
    assert!(status.unwrap().success());
}

#[test]
fn every_message_is_echoed_and_all_three_end_with_stdin() {
    for threads in ["1", "2"] {
        let cluster = Cluster::start(&format!("load-{threads}"), &["--follower-threads", threads]);
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
            let output = cluster.load(flags);
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
    let cluster = Cluster::start("counts", &["--counts", counts.to_str().unwrap()]);
    let output = cluster.load(&["--in-flight", "10", "--requests", "1000"]);
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
    let cluster = Cluster::start("stopped", &[]);
    let stopped = cluster.followers()[0].to_string();
    let signal = |name: &str| {
        Command::new("kill")
            .args([name, &stopped])
            .status()
            .unwrap()
    };
    assert!(signal("-STOP").success());
    let output = cluster.load(&["--in-flight", "8", "--requests", "1000"]);
    assert!(signal("-CONT").success());
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(cluster.wait().status.code(), Some(0));
}

#[test]
fn a_follower_that_dies_ends_the_floor_with_an_error() {
    let cluster = Cluster::start("dead", &[]);
    let followers = cluster.followers();
    kill(followers[0]);
    let output = {
        let end_ns = monotonic_ns() + PATIENCE_NS;
        let mut cluster = cluster;
        while cluster.leader.try_wait().unwrap().is_none() {
            assert!(monotonic_ns() < end_ns, "the leader goes on alone");
            thread::sleep(Duration::from_millis(5));
        }
        // What a killed process left is nobody's to remove but the test's.
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
    let mut cluster = Cluster::start("killed", &[]);
    let followers = cluster.followers();
    cluster.leader.kill().unwrap();
    cluster.leader.wait().unwrap();
    wait_until_gone(&followers);
    fs::remove_dir_all(&cluster.dir).unwrap();
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
