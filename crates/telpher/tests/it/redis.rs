//! A Redis of a test's own: Debian's, in a directory and on a port that nobody else has.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::support::eventually;

/// A server; it is killed when this is dropped.
pub(crate) struct Redis {
    dir: TempDir,
    port: u16,
    child: Option<Child>,
}

impl Redis {
    pub(crate) fn started() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut redis = Self {
            dir: tempfile::tempdir().unwrap(),
            port: listener.local_addr().unwrap().port(),
            child: None,
        };
        drop(listener);
        redis.start();
        redis
    }

    pub(crate) fn start(&mut self) {
        let port = self.port.to_string();
        let mut command = Command::new("redis-server");
        command.args(["--port", &port, "--bind", "127.0.0.1"]);
        // What it has answered it does not forget.
        command.args(["--appendonly", "yes", "--appendfsync", "always"]);
        command.args(["--save", "", "--dir"]).arg(self.dir.path());
        command.stdin(Stdio::null()).stdout(Stdio::null());
        self.child = Some(command.spawn().expect("redis-server is installed"));
        eventually("the server answers", || self.answers().is_some());
    }

    /// Ends it as a crash would.
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
