//! A Kafka client that sends single requests, so that a test can stop between two requests.

use std::io::{Error, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use kafka::{ErrorCode, RequestBody};

use crate::support::Node;

/// Time limit of an answer.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Client {
    stream: TcpStream,
    sent: i32,
}

impl Client {
    pub(crate) fn connect(node: &Node) -> std::io::Result<Self> {
        Self::connect_to(node.url("kafka"))
    }

    pub(crate) fn connect_to(address: &str) -> std::io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { stream, sent: 0 })
    }

    pub(crate) fn send<R: RequestBody>(
        &mut self,
        version: i16,
        request: &R,
    ) -> std::io::Result<()> {
        self.sent += 1;
        let mut bytes = Vec::new();
        kafka::encode_request(&mut bytes, version, self.sent, Some("steps"), request).unwrap();
        self.stream.write_all(&bytes)
    }

    /// Returns the answer to the last request.
    pub(crate) fn receive<R: RequestBody>(&mut self, version: i16) -> std::io::Result<R::Response> {
        let mut size = [0; 4];
        self.stream.read_exact(&mut size)?;
        let mut frame = vec![0; u32::from_be_bytes(size) as usize];
        self.stream.read_exact(&mut frame)?;
        let (number, response) =
            kafka::decode_response::<R>(&frame.into(), version).map_err(Error::other)?;
        assert_eq!(number, self.sent);
        Ok(response)
    }

    pub(crate) fn ask<R: RequestBody>(
        &mut self,
        version: i16,
        request: &R,
    ) -> std::io::Result<R::Response> {
        self.send(version, request)?;
        self.receive::<R>(version)
    }
}

/// Waits until the condition holds.
#[track_caller]
pub(crate) fn until(mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "it never is");
        std::thread::yield_now();
    }
}

/// Converts an error code of an answer to an error.
pub(crate) fn good(code: ErrorCode) -> std::io::Result<()> {
    match code.is_error() {
        true => Err(Error::other(format!("{code:?}"))),
        false => Ok(()),
    }
}
