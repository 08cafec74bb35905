//! A Redis server for a test, in its own directory and on its own port.

mod cluster;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::support::eventually;
pub(crate) use cluster::Cluster;

/// A server, killed on drop.
pub(crate) struct Redis {
    dir: TempDir,
    port: u16,
    child: Option<Child>,
    more: &'static [&'static str],
}

impl Redis {
    pub(crate) fn started() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        Self::started_on(port, &[])
    }

    fn started_on(port: u16, more: &'static [&'static str]) -> Self {
        let mut redis = Self {
            dir: tempfile::tempdir().unwrap(),
            port,
            child: None,
            more,
        };
        redis.start();
        redis
    }

    pub(crate) fn start(&mut self) {
        let port = self.port.to_string();
        let mut command = Command::new("redis-server");
        command.args(["--port", &port, "--bind", "127.0.0.1"]);
        // Answered writes are on disk.
        command.args(["--appendonly", "yes", "--appendfsync", "always"]);
        command.args(["--save", "", "--dir"]).arg(self.dir.path());
        command.args(self.more);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        self.child = Some(command.spawn().expect("redis-server is installed"));
        eventually("the server answers", || self.answers().is_some());
    }

    /// Kills the server.
    pub(crate) fn crash(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    fn answers(&self) -> Option<()> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        stream.write_all(b"PING\r\n").ok()?;
        let mut answer = [0; 7];
        stream.read_exact(&mut answer).ok()?;
        (&answer == b"+PONG\r\n").then_some(())
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.crash();
    }
}
