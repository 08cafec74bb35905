//! A mock webhook agent: whatever it is asked, it answers at once, as in the set-up of FleetLM's report.
//!
//! It is part of the suite's own process, which is not measured; what its calls and their answers cost the
//! node is.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use hyper::Method;
use tokio::task::LocalSet;

use super::http::Connection;
use crate::workload::WorkloadError;
use crate::workload::role::{Failure, runtime};

/// The message that is each of its answers.
const ANSWER: &str = r#"{"content":"at once"}"#;

/// Bytes of a call, at most: a window of some thousand tokens.
const CALL_MAX: usize = 4 << 20;

/// One that answers until it is dropped.
pub(super) struct Agent {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    answered: AtomicU64,
    is_over: AtomicBool,
}

impl Agent {
    /// Listens on a free loopback port.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn start() -> Result<Self, WorkloadError> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(WorkloadError::Directory)?;
        let address = listener.local_addr().map_err(WorkloadError::Directory)?;
        let shared = Arc::new(Shared::default());
        let accepting = shared.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if accepting.is_over.load(Ordering::Relaxed) {
                    return;
                }
                let shared = accepting.clone();
                // It ends with the node, which hangs up.
                thread::spawn(move || answer_all(stream, &shared));
            }
        });
        Ok(Self { address, shared })
    }

    /// Calls that were answered.
    pub(super) fn answered(&self) -> u64 {
        self.shared.answered.load(Ordering::Relaxed)
    }

    /// Has the node whose HTTP door is there call it for what so many users write.
    ///
    /// # Errors
    /// When the node does not take it.
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
        // Wakes whoever accepts; if nobody does any more, so much the better.
        let _ = TcpStream::connect(self.address);
    }
}

/// Answers one call after the other, until the connection ends.
fn answer_all(stream: TcpStream, shared: &Shared) {
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

/// Reads the head of a call: the size of its body; `None` at the end.
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
