//! Connection to a broker with one request in flight.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use bytes::BytesMut;
use kafka::{RequestBody, api_versions, decode_response, encode_request, take_frame};

const CLIENT_ID: &str = "oracle";
const FRAME_SIZE_MAX: usize = 64 << 20;
/// Maximum time for a response. Apache Kafka's longest, a group's first join, takes three seconds.
const SILENCE: Duration = Duration::from_secs(60);

/// A connection, which is made again when the broker closes it.
#[derive(Debug)]
pub(super) struct Connection {
    address: String,
    stream: TcpStream,
    served: BTreeMap<i16, (i16, i16)>,
    correlation_id: i32,
}

impl Connection {
    pub(super) fn open(address: &str) -> Result<Self> {
        let mut door = Self {
            address: address.to_owned(),
            stream: connect(address)?,
            served: BTreeMap::new(),
            correlation_id: 0,
        };
        let request = api_versions::Request {
            client_software_name: CLIENT_ID.to_owned(),
            client_software_version: "1".to_owned(),
        };
        let served = door.ask(3, &request)?;
        let served = served.context("the connection was closed")?;
        let apis = served.api_keys.iter();
        door.served = apis
            .map(|api| (api.api_key, (api.min_version, api.max_version)))
            .collect();
        Ok(door)
    }

    /// Returns true if the broker says that it supports the version.
    pub(super) fn serves<R: RequestBody>(&self, version: i16) -> bool {
        let range = self.served.get(&R::KEY.code());
        range.is_some_and(|(min, max)| (*min..=*max).contains(&version))
    }

    /// Sends a request and waits for the response. Returns `None` if the broker closes the
    /// connection instead. After that, and after an error, a new connection is used.
    ///
    /// # Errors
    /// When the broker cannot be reached, when no response comes in time, or when it is invalid.
    pub(super) fn ask<R: RequestBody>(
        &mut self,
        version: i16,
        request: &R,
    ) -> Result<Option<R::Response>> {
        let answer = self.try_ask(version, request);
        if !matches!(answer, Ok(Some(_))) {
            self.stream = connect(&self.address)?;
        }
        answer
    }

    fn try_ask<R: RequestBody>(
        &mut self,
        version: i16,
        request: &R,
    ) -> Result<Option<R::Response>> {
        self.correlation_id += 1;
        let mut out = Vec::new();
        encode_request(
            &mut out,
            version,
            self.correlation_id,
            Some(CLIENT_ID),
            request,
        )?;
        self.stream.write_all(&out)?;
        let mut arrived = BytesMut::new();
        let frame = loop {
            if let Some(frame) = take_frame(&mut arrived, FRAME_SIZE_MAX)? {
                break frame;
            }
            let mut chunk = [0; 16 << 10];
            match self.stream.read(&mut chunk) {
                Ok(0) => return Ok(None),
                Ok(size) => arrived.extend_from_slice(&chunk[..size]),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(None),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    bail!("no response after {} s", SILENCE.as_secs())
                }
                Err(error) => return Err(error.into()),
            }
        };
        let (correlation_id, answer) = decode_response::<R>(&frame, version)?;
        match correlation_id == self.correlation_id {
            true => Ok(Some(answer)),
            false => bail!("the response is to another request"),
        }
    }
}

fn connect(address: &str) -> Result<TcpStream> {
    let stream =
        TcpStream::connect(address).with_context(|| format!("cannot connect to {address}"))?;
    stream.set_read_timeout(Some(SILENCE))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
