//! A cluster of processes: a leader and the followers that it starts.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use contract::monotonic_ns;

/// Time limit of a step that should take no time.
pub(crate) const PATIENCE_NS: u64 = 10_000_000_000;

/// A leader with a directory of its own.
pub(crate) struct Cluster {
    pub(crate) leader: Child,
    pub(crate) address: String,
    pub(crate) dir: PathBuf,
}

impl Cluster {
    /// Starts a leader with a new directory, whose name begins with `name`.
    pub(crate) fn start(name: &str, mut command: Command) -> Cluster {
        let dir = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
        fs::create_dir(&dir).unwrap();
        command.args(["--listen", "127.0.0.1:0", "--file-mib", "1", "--dir"]);
        command
            .arg(&dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
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

    /// Returns the process ids of the followers.
    pub(crate) fn followers(&self) -> Vec<u32> {
        let pid = self.leader.id();
        let mut followers = Vec::new();
        for task in fs::read_dir(format!("/proc/{pid}/task")).unwrap() {
            let children = fs::read_to_string(task.unwrap().path().join("children")).unwrap();
            let pids = children.split_whitespace();
            followers.extend(pids.map(|pid| pid.parse::<u32>().unwrap()));
        }
        followers
    }

    /// Waits for the leader and removes the directory, which must be empty.
    pub(crate) fn wait(mut self) -> Output {
        drop(self.leader.stdin.take());
        let output = self.leader.wait_with_output().unwrap();
        let left = fs::read_dir(&self.dir).unwrap().count();
        fs::remove_dir_all(&self.dir).unwrap();
        assert_eq!(left, 0, "files were left");
        output
    }
}

/// Checks that the followers end with a leader that is killed.
pub(crate) fn kill_leader(mut cluster: Cluster) {
    let followers = cluster.followers();
    cluster.leader.kill().unwrap();
    cluster.leader.wait().unwrap();
    wait_until_gone(&followers);
    fs::remove_dir_all(&cluster.dir).unwrap();
}

/// Waits until the processes have ended.
pub(crate) fn wait_until_gone(pids: &[u32]) {
    let end_ns = monotonic_ns() + PATIENCE_NS;
    while pids
        .iter()
        .any(|pid| Path::new(&format!("/proc/{pid}")).exists())
    {
        assert!(monotonic_ns() < end_ns, "a follower outlives its leader");
        thread::sleep(Duration::from_millis(5));
    }
}
