//! A connection to a broker: one request, one answer.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use bytes::BytesMut;
use kafka::{RequestBody, api_versions, decode_response, encode_request, take_frame};

const CLIENT_ID: &str = "oracle";
const FRAME_SIZE_MAX: usize = 64 << 20;
const SILENCE: Duration = Duration::from_secs(15);

/// The connection; it is made again when the broker ends it.
#[derive(Debug)]
pub(super) struct Door {
    address: String,
    stream: TcpStream,
    served: BTreeMap<i16, (i16, i16)>,
    correlation_id: i32,
}

impl Door {
    pub(super) fn open(address: &str) -> Result<Self> {
        let mut door = Self {
            address: address.to_owned(),
            stream: connect(address)?,
            served: BTreeMap::new(),
            correlation_id: 0,
        };
        let served = door.ask(
            3,
            &api_versions::Request {
                client_software_name: CLIENT_ID.to_owned(),
                client_software_version: "1".to_owned(),
            },
        )?;
        let apis = served.api_keys.iter();
        door.served = apis
            .map(|api| (api.api_key, (api.min_version, api.max_version)))
            .collect();
        Ok(door)
    }

    /// Whether it says that it serves the version.
    pub(super) fn serves<R: RequestBody>(&self, version: i16) -> bool {
        let range = self.served.get(&R::KEY.code());
        range.is_some_and(|(min, max)| (*min..=*max).contains(&version))
    }

    /// Asks and waits; after an error the connection is another.
    pub(super) fn ask<R: RequestBody>(&mut self, version: i16, request: &R) -> Result<R::Response> {
        let answer = self.try_ask(version, request);
        if answer.is_err() {
            self.stream = connect(&self.address)?;
        }
        answer
    }

    fn try_ask<R: RequestBody>(&mut self, version: i16, request: &R) -> Result<R::Response> {
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
            match self.stream.read(&mut chunk)? {
                0 => bail!("the connection was closed"),
                size => arrived.extend_from_slice(&chunk[..size]),
            }
        };
        let (correlation_id, answer) = decode_response::<R>(&frame, version)?;
        match correlation_id == self.correlation_id {
            true => Ok(answer),
            false => bail!("the answer is to something else"),
        }
    }
}

fn connect(address: &str) -> Result<TcpStream> {
    let stream = TcpStream::connect(address).with_context(|| format!("nobody is at {address}"))?;
    stream.set_read_timeout(Some(SILENCE))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
