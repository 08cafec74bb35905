//! A Telpher node as a child process: free ports, a temporary directory.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;

use super::child::{Actor, ChildError, Pin};

/// A running node. Dropping it ends the process.
#[derive(Debug)]
pub struct Node {
    actor: Actor,
    /// Address of the native listener.
    pub native: String,
    /// Path of the Unix socket.
    pub socket: String,
    http: String,
    limiter: Option<String>,
    kafka: Option<String>,
    slim: Option<String>,
}

#[derive(Deserialize)]
struct Ready {
    native: String,
    socket: String,
    http: String,
    limiter: Option<String>,
    kafka: Option<String>,
    slim: Option<String>,
}

/// Time limit for reading the metrics.
const METRICS_LIMIT: Duration = Duration::from_secs(10);

const ARGUMENTS: [&str; 13] = [
    "serve",
    "--json",
    "--end-with-stdin",
    "--log-level",
    "error",
    "--native-listen",
    "127.0.0.1:0",
    "--http-listen",
    "127.0.0.1:0",
    "--kafka-listen",
    "127.0.0.1:0",
    "--slim-listen",
    "127.0.0.1:0",
];

/// Environment variables of the rate limiter that the node replaces.
const LIMITER_VARIABLES: [(&str, &str); 3] = [
    ("PORT", "0"),
    ("TOKEN_BUCKET_CAPACITY", "100"),
    ("TOKEN_BUCKET_RATE", "10"),
];

impl Node {
    /// Starts a node without data and waits until it is ready.
    ///
    /// # Errors
    /// When the node does not start, with its output.
    pub fn start(executable: &Path, pin: Pin) -> Result<Self, ChildError> {
        Self::start_with(executable, pin, &["--dev"])
    }

    /// Starts a node with a data directory and further flags, and waits until it is ready.
    ///
    /// # Errors
    /// When the node does not start, with its output.
    pub fn start_in(executable: &Path, data: &Path, flags: &[&str]) -> Result<Self, ChildError> {
        let data = data.display().to_string();
        let flags: Vec<_> = ["--data", &data]
            .into_iter()
            .chain(flags.iter().copied())
            .collect();
        Self::start_with(executable, Pin::Nowhere, &flags)
    }

    /// Starts a node with a data directory that also serves the rate limiter's API on a port of its
    /// own.
    ///
    /// # Errors
    /// When the node does not start, with its output.
    pub fn start_limiter(
        executable: &Path,
        data: &Path,
        flags: &[&str],
    ) -> Result<Self, ChildError> {
        let data = data.display().to_string();
        let own = ["--compat-limiter", "--data", &data];
        let flags = ARGUMENTS.iter().chain(&own).chain(flags);
        Self::ready(Actor::start_with(
            executable,
            flags,
            Pin::Nowhere,
            &LIMITER_VARIABLES,
        )?)
    }

    fn start_with(executable: &Path, pin: Pin, flags: &[&str]) -> Result<Self, ChildError> {
        Self::ready(Actor::start(
            executable,
            ARGUMENTS.iter().chain(flags),
            pin,
        )?)
    }

    fn ready(mut actor: Actor) -> Result<Self, ChildError> {
        let Ready {
            native,
            socket,
            http,
            limiter,
            kafka,
            slim,
        } = actor.json()?;
        Ok(Self {
            actor,
            native,
            socket,
            http,
            limiter,
            kafka,
            slim,
        })
    }

    /// Kills the node at once, as a crash would.
    pub fn kill(self) {
        self.actor.kill();
    }

    /// Returns a counter or gauge of `/metrics`; `None` if it cannot be read or does not exist.
    #[must_use]
    pub fn metric(&self, name: &str) -> Option<u64> {
        let text = self.metrics().ok()?;
        let line = text
            .lines()
            .find(|line| line.split(' ').next() == Some(name))?;
        line.rsplit(' ').next()?.parse().ok()
    }

    fn metrics(&self) -> std::io::Result<String> {
        let address = self.http_address();
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(METRICS_LIMIT))?;
        let request =
            format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes())?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok(text)
    }

    /// Returns the address of the HTTP listener: `HOST:PORT`.
    #[must_use]
    pub fn http_address(&self) -> &str {
        self.http.trim_start_matches("http://")
    }

    /// Returns the address of the rate limiter's API, if enabled.
    #[must_use]
    pub fn limiter_address(&self) -> Option<&str> {
        let limiter = self.limiter.as_ref()?;
        Some(limiter.trim_start_matches("http://"))
    }

    /// Returns the address of the Kafka listener, if enabled: `HOST:PORT`.
    #[must_use]
    pub fn kafka_address(&self) -> Option<&str> {
        self.kafka.as_deref()
    }

    /// Returns the URL of the SLIM listener, if enabled, in the form that applications take.
    #[must_use]
    pub fn slim_url(&self) -> Option<&str> {
        self.slim.as_deref()
    }

    /// Returns the pid.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.actor.pid()
    }

    /// Checks that the process runs.
    ///
    /// # Errors
    /// When it has ended.
    pub fn check_alive(&mut self) -> Result<(), ChildError> {
        self.actor.check_alive()
    }
}
