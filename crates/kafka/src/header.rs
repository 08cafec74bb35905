//! Headers of requests and responses.
//!
//! ```text
//! request   api_key i16 | api_version i16 | correlation_id i32 | client_id text | [tagged fields]
//! answer    correlation_id i32 | [tagged fields]
//! ```
//!
//! Flexible versions have tagged fields (header versions 2 and 1). The client id has the old
//! encoding in both. Request header version 0, without a client id, was used only by
//! ControlledShutdown between brokers.

use crate::api::{Api, ApiKey};
use crate::reader::{DecodeError, Reader};
use crate::writer::Writer;

/// Header of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHeader<'a> {
    /// API key.
    pub key: ApiKey,
    /// Version of the request and of its response.
    pub version: i16,
    /// Number from the client, which the response repeats.
    pub correlation_id: i32,
    /// Name of the client.
    pub client_id: Option<&'a str>,
}

/// The fields with the same position in all versions of all APIs.
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
    /// Decodes the header after `prefix`; the reader is at the body afterwards.
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

/// Decodes the header of a response; the reader is at the body afterwards.
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

/// Encodes the header of a response.
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
