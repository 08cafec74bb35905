//! A Redis server for a test: Debian's, with its own directory and port.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use outbound::redis::{Options, Redis};
use quota::{Bucket, Kind};
use quota_service::quota_store::{RemoteCell, RemoteDecision, RemoteTake, Verb};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// A time limit above the duration of every operation here.
const PATIENCE: Duration = Duration::from_secs(60);
pub(crate) const SECOND: u64 = 1_000_000_000;

/// A server; it is killed when this is dropped.
pub(crate) struct Server {
    dir: TempDir,
    pub(crate) port: u16,
    child: Option<Child>,
    more: Vec<String>,
}

impl Server {
    pub(crate) fn started() -> Self {
        Self::started_with(&[])
    }

    pub(crate) fn started_with(more: &[&str]) -> Self {
        let mut server = Self::new();
        server.set(more);
        server.start();
        server
    }

    /// Creates a server that is not running yet.
    pub(crate) fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            port: free_port(),
            child: None,
            more: Vec::new(),
        }
    }

    /// Sets options of the next start.
    pub(crate) fn set(&mut self, more: &[&str]) {
        self.more.extend(more.iter().map(|&word| word.to_owned()));
    }

    /// Writes a file for the server and returns its path.
    pub(crate) fn write(&self, name: &str, content: &str) -> String {
        let path = self.dir.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    }

    pub(crate) fn start(&mut self) {
        self.spawn();
        eventually("the server answers", || {
            let answer = self.cli(&["ping"]);
            answer.trim() == "PONG" || answer.starts_with("NOAUTH")
        });
    }

    /// Starts the server without waiting.
    pub(crate) fn spawn(&mut self) {
        let port = self.port.to_string();
        let mut command = Command::new("redis-server");
        command.args(["--port", &port, "--bind", "127.0.0.1"]);
        command.args(["--appendonly", "yes", "--appendfsync", "always"]);
        command.args(["--save", "", "--dir"]).arg(self.dir.path());
        command.args(&self.more);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        self.child = Some(command.spawn().expect("redis-server is installed"));
    }

    /// Kills the server, as in a crash.
    pub(crate) fn crash(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Suspends or resumes the server.
    pub(crate) fn freeze(&self, is_frozen: bool) {
        let signal = match is_frozen {
            true => Signal::STOP,
            false => Signal::CONT,
        };
        let id = self.child.as_ref().unwrap().id();
        kill_process(Pid::from_raw(id as i32).unwrap(), signal).unwrap();
    }

    pub(crate) fn cli(&self, args: &[&str]) -> String {
        let mut command = Command::new("redis-cli");
        command.args(["-p", &self.port.to_string()]).args(args);
        let output = command.output().expect("redis-cli is installed");
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(crate) fn store(&self) -> Redis {
        store(vec![self.url()], 1)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.crash();
    }
}

pub(crate) fn store(urls: Vec<String>, nodes: u32) -> Redis {
    Redis::new(options(urls, nodes)).unwrap()
}

pub(crate) fn options(urls: Vec<String>, nodes: u32) -> Options {
    Options {
        urls,
        certificate: None,
        deadline: Duration::from_secs(5),
        waiting_max: 1_000,
        nodes,
    }
}

/// A bucket that takes years to refill.
pub(crate) fn slow(key: &str, capacity: u64, count: i64) -> RemoteCell {
    RemoteCell {
        key: key.to_owned(),
        kind: Kind::Bucket(Bucket {
            capacity,
            amount: 1,
            period_ns: 300 * 86_400 * SECOND,
        }),
        count,
        is_enforced: true,
        mark: None,
        lasting_ns: 0,
    }
}

pub(crate) fn take(cells: Vec<RemoteCell>) -> Vec<RemoteTake> {
    vec![RemoteTake {
        verb: Verb::Take,
        cells,
    }]
}

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().unwrap()
}

pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// In a cluster, the port ten thousand above must be free too.
pub(crate) fn free_port() -> u16 {
    loop {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        if port < 55_000 && TcpListener::bind(("127.0.0.1", port + 10_000)).is_ok() {
            return port;
        }
    }
}

/// Credit left in each cell.
pub(crate) fn remaining(decision: &RemoteDecision) -> Vec<i64> {
    decision.cells.iter().map(|cell| cell.have).collect()
}
