//! What stands in front of every request and every answer.
//!
//! ```text
//! request   api_key i16 | api_version i16 | correlation_id i32 | client_id text | [tagged fields]
//! answer    correlation_id i32 | [tagged fields]
//! ```
//!
//! The tagged fields are there in the versions that are flexible (header versions 2 and 1). The
//! client id is written the old way in both. Request header version 0, without a client id,
//! belonged to ControlledShutdown alone, which brokers sent each other.

use crate::api::{Api, ApiKey};
use crate::reader::{DecodeError, Reader};
use crate::writer::Writer;

/// What stands in front of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHeader<'a> {
    /// Which API.
    pub key: ApiKey,
    /// Which version of it; the answer is written in the same.
    pub version: i16,
    /// The client's number for the request, which the answer repeats.
    pub correlation_id: i32,
    /// What the client calls itself.
    pub client_id: Option<&'a str>,
}

/// The part that stands at the same place in all versions of all APIs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prefix {
    pub(crate) key: i16,
    pub(crate) version: i16,
    pub(crate) correlation_id: i32,
}

impl Prefix {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.at("request header");
        Ok(Self {
            key: i16::from_be_bytes(reader.array()?),
            version: i16::from_be_bytes(reader.array()?),
            correlation_id: i32::from_be_bytes(reader.array()?),
        })
    }
}

impl<'a> RequestHeader<'a> {
    /// Reads what follows `prefix`, and leaves the reader at the body.
    pub(crate) fn read(
        key: ApiKey,
        prefix: Prefix,
        reader: &mut Reader<'a>,
    ) -> Result<Self, DecodeError> {
        reader.at("client_id");
        let client_id = reader.text()?;
        reader.set_version(prefix.version, key.api().is_flexible(prefix.version));
        reader.tagged(|_, _| Ok(false))?;
        Ok(Self {
            key,
            version: prefix.version,
            correlation_id: prefix.correlation_id,
            client_id,
        })
    }

    pub(crate) fn write(&self, writer: &mut Writer<'_>) {
        writer.put(&self.key.code().to_be_bytes());
        writer.put(&self.version.to_be_bytes());
        writer.put(&self.correlation_id.to_be_bytes());
        writer.text(self.client_id);
        writer.set_version(self.version, self.key.api().is_flexible(self.version));
        writer.tagged(|_| {});
    }
}

/// Reads what stands in front of an answer, and leaves the reader at the body.
pub(crate) fn read_response_header(
    api: &Api,
    version: i16,
    reader: &mut Reader<'_>,
) -> Result<i32, DecodeError> {
    reader.at("response header");
    let correlation_id = i32::from_be_bytes(reader.array()?);
    reader.set_version(version, api.has_tagged_response_header(version));
    reader.tagged(|_, _| Ok(false))?;
    reader.set_version(version, api.is_flexible(version));
    Ok(correlation_id)
}

/// Writes what stands in front of an answer.
pub(crate) fn write_response_header(
    api: &Api,
    version: i16,
    correlation_id: i32,
    writer: &mut Writer<'_>,
) {
    writer.put(&correlation_id.to_be_bytes());
    writer.set_version(version, api.has_tagged_response_header(version));
    writer.tagged(|_| {});
    writer.set_version(version, api.is_flexible(version));
}
