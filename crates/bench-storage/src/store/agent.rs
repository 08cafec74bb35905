//! Mock webhook agent that answers every call at once, as in the set-up of FleetLM's report.
//!
//! The agent is part of the suite's own process, whose cost is not measured. The node's cost of the
//! calls and their answers is measured.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use hyper::Method;
use tokio::task::LocalSet;

use super::http::Connection;
use bench::workload::error::WorkloadError;
use bench::workload::role::{Failure, runtime};

/// Message in each of its answers.
const ANSWER: &str = r#"{"content":"at once"}"#;

/// Maximum size of a call: a window of some thousand tokens.
const CALL_MAX: usize = 4 << 20;

/// Running agent, until it is dropped.
pub(super) struct Agent {
    address: SocketAddr,
    shared: Arc<SharedState>,
}

#[derive(Default)]
struct SharedState {
    answered: AtomicU64,
    is_over: AtomicBool,
}

impl Agent {
    /// Listens on a free loopback port.
    ///
    /// # Errors
    /// When no port is free.
    pub(super) fn start() -> Result<Self, WorkloadError> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(WorkloadError::Directory)?;
        let address = listener.local_addr().map_err(WorkloadError::Directory)?;
        let shared = Arc::new(SharedState::default());
        let accepting = shared.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if accepting.is_over.load(Ordering::Relaxed) {
                    return;
                }
                let shared = accepting.clone();
                // The thread ends when the node closes the connection.
                thread::spawn(move || answer_all(stream, &shared));
            }
        });
        Ok(Self { address, shared })
    }

    /// Returns the number of answered calls.
    pub(super) fn answered(&self) -> u64 {
        self.shared.answered.load(Ordering::Relaxed)
    }

    /// Registers the agent at the node's HTTP listener, for the conversations of all users.
    ///
    /// # Errors
    /// When the node rejects a request.
    pub(super) fn register(&self, http: &str, vus: u32) -> Result<(), WorkloadError> {
        let runtime = runtime().map_err(WorkloadError::Directory)?;
        let registered = LocalSet::new().block_on(&runtime, self.put_all(http, vus));
        registered.map_err(|failure| WorkloadError::Node(failure.to_string()))
    }

    async fn put_all(&self, http: &str, vus: u32) -> Result<(), Failure> {
        let mut connection = Connection::open(http).await?;
        let mut put = async |path: String, body: String| {
            let sent = connection.send(Method::PUT, &path, "application/json", body);
            let answer = sent.await?;
            match answer.status.is_success() {
                true => Ok(()),
                false => Err(Failure::from(format!("{path}: {}", answer.status))),
            }
        };
        let settings = format!(r#"{{"url":"http://{}/"}}"#, self.address);
        put("/v1/agents/mock".to_owned(), settings).await?;
        for vu in 0..vus {
            let named = r#"{"agent":"mock"}"#.to_owned();
            put(format!("/v1/conversations/vu-{vu}"), named).await?;
        }
        Ok(())
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        // Wake the accepting thread. An error means that it has already ended.
        let _ = TcpStream::connect(self.address);
    }
}

/// Answers the calls of a connection until it ends.
fn answer_all(stream: TcpStream, shared: &SharedState) {
    let mut reader = BufReader::new(stream);
    while let Some(size) = call_size(&mut reader) {
        let mut rest = (&mut reader).take(size as u64);
        if std::io::copy(&mut rest, &mut std::io::sink()).ok() != Some(size as u64) {
            return;
        }
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ";
        let answer = format!("{head}{}\r\n\r\n{ANSWER}", ANSWER.len());
        if reader.get_mut().write_all(answer.as_bytes()).is_err() {
            return;
        }
        shared.answered.fetch_add(1, Ordering::Relaxed);
    }
}

/// Reads the head of a call. Returns the size of its body, or `None` at the end.
fn call_size(reader: &mut impl BufRead) -> Option<usize> {
    let mut size = None;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end();
        if line.is_empty() {
            return size.filter(|size| *size <= CALL_MAX);
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            size = value.trim().parse().ok();
        }
    }
}
