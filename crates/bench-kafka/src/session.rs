//! Connection with one request in flight at a time.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use kafka::{ApiKey, ErrorCode, RequestBody, decode_response, encode_request, take_frame};

use bench::workload::role::Failure;

/// Client id in requests.
pub(crate) const CLIENT_ID: &str = "telpher-bench";

/// Maximum size of a response frame: larger than any fetch here requests.
pub(crate) const FRAME_SIZE_MAX: usize = 256 << 20;

/// Minimum read size.
const READ_SIZE: usize = 64 << 10;

/// Maximum time without an answer from the broker.
const SILENCE: Duration = Duration::from_secs(60);

/// Version ranges of the APIs that a broker supports.
#[derive(Debug, Clone, Default)]
pub(crate) struct Versions(BTreeMap<i16, (i16, i16)>);

impl Versions {
    /// Returns the highest version that both sides support.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn of<R: RequestBody>(&self) -> Result<i16, Failure> {
        let api = R::KEY.api();
        let (min, max) = self.0.get(&R::KEY.code()).copied().unwrap_or((0, -1));
        let version = max.min(api.version_max).min(highest(R::KEY));
        match version >= min.max(api.version_min) {
            true => Ok(version),
            false => {
                let problem = format!(
                    "the broker supports no version of {} that this client knows",
                    api.name
                );
                Err(problem.into())
            }
        }
    }
}

/// Returns the highest version to use, because later versions identify topics by ids, which are not
/// needed here.
fn highest(key: ApiKey) -> i16 {
    match key {
        ApiKey::Produce | ApiKey::Fetch => 12,
        ApiKey::DeleteTopics => 5,
        _ => i16::MAX,
    }
}

/// A connection to a broker.
#[derive(Debug)]
pub struct Session {
    stream: TcpStream,
    arrived: BytesMut,
    outbox: Vec<u8>,
    correlation_id: i32,
    versions: Versions,
}

impl Session {
    /// Connects, and requests the supported versions.
    ///
    /// # Errors
    /// When the connection fails, or the answer is not that of a broker.
    pub fn open(address: &str) -> Result<Self, Failure> {
        Self::open_within(address, SILENCE)
    }

    /// Like [`Self::open`], with a time limit for each answer.
    ///
    /// # Errors
    /// When the connection fails, or the answer is not that of a broker.
    pub(crate) fn open_within(address: &str, silence: Duration) -> Result<Self, Failure> {
        let mut session = Self {
            stream: connect_within(address, silence)?,
            arrived: BytesMut::new(),
            outbox: Vec::new(),
            correlation_id: 0,
            versions: Versions::default(),
        };
        let request = kafka::api_versions::Request {
            client_software_name: CLIENT_ID.to_owned(),
            client_software_version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        // A broker that does not support version 3 answers in version 0 with its supported
        // versions.
        session.send_as(&request, 3)?;
        let served = session.receive::<kafka::api_versions::Request>(3)?;
        let served = served.api_keys.iter();
        session.versions = Versions(
            served
                .map(|one| (one.api_key, (one.min_version, one.max_version)))
                .collect(),
        );
        Ok(session)
    }

    /// Returns the versions that the broker supports.
    pub(crate) fn versions(&self) -> &Versions {
        &self.versions
    }

    /// Sends a request and waits for its response.
    ///
    /// # Errors
    /// When the connection is lost, or the response is invalid.
    pub fn ask<R: RequestBody>(&mut self, request: &R) -> Result<R::Response, Failure> {
        let version = self.send(request)?;
        self.receive::<R>(version)
    }

    /// Sends a request. Returns the version in which its response will be encoded.
    ///
    /// # Errors
    /// When the connection is lost.
    pub fn send<R: RequestBody>(&mut self, request: &R) -> Result<i16, Failure> {
        let version = self.versions.of::<R>()?;
        self.send_as(request, version)?;
        Ok(version)
    }

    fn send_as<R: RequestBody>(&mut self, request: &R, version: i16) -> Result<(), Failure> {
        self.correlation_id = self.correlation_id.wrapping_add(1);
        self.outbox.clear();
        encode_request(
            &mut self.outbox,
            version,
            self.correlation_id,
            Some(CLIENT_ID),
            request,
        )?;
        Ok(self.stream.write_all(&self.outbox)?)
    }

    /// Waits for the response to the last request.
    ///
    /// # Errors
    /// When the connection is lost, or the response does not match the request.
    pub fn receive<R: RequestBody>(&mut self, version: i16) -> Result<R::Response, Failure> {
        let frame = self.frame()?;
        let (correlation_id, response) = decode_response::<R>(&frame, version)
            .map_err(|error| format!("{}: {error}", R::KEY.api().name))?;
        if correlation_id != self.correlation_id {
            return Err("the broker sent a response without a request".into());
        }
        drop(frame);
        Ok(response)
    }

    fn frame(&mut self) -> Result<Bytes, Failure> {
        loop {
            if let Some(frame) = take_frame(&mut self.arrived, FRAME_SIZE_MAX)? {
                return Ok(frame);
            }
            if fill(&mut self.stream, &mut self.arrived)? == 0 {
                return Err("the broker has closed the connection".into());
            }
        }
    }
}

/// Connects to `HOST:PORT`.
pub(crate) fn connect(address: &str) -> Result<TcpStream, Failure> {
    connect_within(address, SILENCE)
}

fn connect_within(address: &str, silence: Duration) -> Result<TcpStream, Failure> {
    let cannot = |error: io::Error| format!("cannot connect to {address}: {error}");
    let mut addresses = address.to_socket_addrs().map_err(cannot)?;
    // Prefer IPv4: a broker on loopback often listens only there.
    let first = addresses.find(std::net::SocketAddr::is_ipv4);
    let to = match first.or_else(|| address.to_socket_addrs().ok()?.next()) {
        Some(to) => to,
        None => return Err(format!("{address} is not an address").into()),
    };
    let stream = TcpStream::connect_timeout(&to, silence).map_err(cannot)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(silence))?;
    stream.set_write_timeout(Some(silence))?;
    Ok(stream)
}

/// Reads once, up to the end of the current frame if its size is known.
pub(crate) fn fill(stream: &mut TcpStream, arrived: &mut BytesMut) -> io::Result<usize> {
    let have = arrived.len();
    let announced = arrived
        .first_chunk()
        .map_or(0, |size| i32::from_be_bytes(*size));
    let whole = usize::try_from(announced).unwrap_or(0).min(FRAME_SIZE_MAX) + size_of::<i32>();
    arrived.resize(
        have + whole.saturating_sub(have).clamp(READ_SIZE, 1 << 20),
        0,
    );
    let read = loop {
        match stream.read(&mut arrived[have..]) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            read => break read,
        }
    };
    arrived.truncate(have + *read.as_ref().unwrap_or(&0));
    read
}

/// Formats an error code as a word for the tally: `NotLeaderOrFollower` is
/// `not-leader-or-follower`.
#[must_use]
pub fn error_name(code: ErrorCode) -> String {
    let name = match code {
        ErrorCode::Other(number) => return format!("error-{number}"),
        code => format!("{code:?}"),
    };
    let mut word = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !word.is_empty() {
            word.push('-');
        }
        word.push(letter.to_ascii_lowercase());
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kafka_error_codes_are_counted_by_kebab_case_name() {
        assert_eq!(
            error_name(ErrorCode::NotLeaderOrFollower),
            "not-leader-or-follower"
        );
        assert_eq!(error_name(ErrorCode::Other(999)), "error-999");
    }
}
