//! Frames: a size of four bytes, a header and a body.
//!
//! A size never reserves memory: a frame is split off once it has arrived completely.

use bytes::{Buf, Bytes, BytesMut};

use crate::api::{Api, ApiKey, Request, RequestBody, ResponseBody};
use crate::error_code::ErrorCode;
use crate::field::Field;
use crate::header::{Prefix, RequestHeader, read_response_header, write_response_header};
use crate::reader::{DecodeError, Reader};
use crate::writer::{EncodeError, Gap, Writer};

const SIZE_SIZE: usize = size_of::<i32>();

/// A frame above the size limit. The connection cannot be read further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("frame size {size} is not between 0 and {size_max}")]
pub struct FrameError {
    /// Announced size.
    pub size: i32,
    /// Maximum size.
    pub size_max: usize,
}

/// A request that cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The header is incomplete, so no response is possible.
    #[error(transparent)]
    Header(DecodeError),
    /// The API is not in the table. Clients expect the connection to be closed.
    #[error("unknown API key {0}")]
    UnknownApi(i16),
    /// The version is not in the table. ApiVersions is answered with
    /// [`encode_api_versions_refusal`]; for other APIs clients expect the connection to be closed.
    #[error("{name} version {version} is not supported", name = key.api().name)]
    UnsupportedVersion {
        /// API key.
        key: ApiKey,
        /// Version of the request.
        version: i16,
        /// Correlation id of the request.
        correlation_id: i32,
    },
    /// The header is valid, the rest is not.
    #[error("{name}, version {version}: {error}", name = key.api().name)]
    Body {
        /// API key.
        key: ApiKey,
        /// Version of the request.
        version: i16,
        /// Correlation id of the request.
        correlation_id: i32,
        /// Decoding error.
        error: DecodeError,
    },
}

/// Splits the first frame, without its size, off the received bytes; `None` if it is incomplete.
pub fn take_frame(arrived: &mut BytesMut, size_max: usize) -> Result<Option<Bytes>, FrameError> {
    let Some(announced) = announced_size(arrived) else {
        return Ok(None);
    };
    let size = usize::try_from(announced)
        .ok()
        .filter(|&size| size <= size_max)
        .ok_or(FrameError {
            size: announced,
            size_max,
        })?;
    if arrived.len() - SIZE_SIZE < size {
        return Ok(None);
    }
    arrived.advance(SIZE_SIZE);
    Ok(Some(arrived.split_to(size).freeze()))
}

/// Returns the size of the frame at the start of the received bytes as announced, without the size
/// itself, if it has arrived.
fn announced_size(arrived: &[u8]) -> Option<i32> {
    arrived.first_chunk().map(|size| i32::from_be_bytes(*size))
}

/// Returns the bytes of the frame at the start of the received ones, with its size; `None` if the size
/// has not arrived or is invalid.
pub fn peek_frame_size(arrived: &[u8]) -> Option<usize> {
    let size = usize::try_from(announced_size(arrived)?).ok()?;
    Some(size.saturating_add(SIZE_SIZE))
}

/// Returns the API key of the request at the start of the received bytes, if it has arrived and is
/// known. Only Produce requests need to be large, so a broker may set a lower limit for others.
pub fn peek_api_key(arrived: &[u8]) -> Option<ApiKey> {
    let key = arrived.get(SIZE_SIZE..)?.first_chunk()?;
    ApiKey::from_code(i16::from_be_bytes(*key))
}

/// Decodes a request. Extra bytes at the end are ignored, as in Kafka's broker.
pub fn decode_request(frame: &Bytes) -> Result<(RequestHeader<'_>, Request), RequestError> {
    let mut reader = Reader::new(frame, 0, false);
    let prefix = Prefix::read(&mut reader).map_err(RequestError::Header)?;
    let Prefix {
        version,
        correlation_id,
        ..
    } = prefix;
    let key = ApiKey::from_code(prefix.key).ok_or(RequestError::UnknownApi(prefix.key))?;
    if !key.api().serves(version) {
        return Err(RequestError::UnsupportedVersion {
            key,
            version,
            correlation_id,
        });
    }
    let body = |error| RequestError::Body {
        key,
        version,
        correlation_id,
        error,
    };
    let header = RequestHeader::read(key, prefix, &mut reader).map_err(body)?;
    let request = Request::read(key, &mut reader).map_err(body)?;
    Ok((header, request))
}

/// Appends a request as a whole frame. On an error `out` is unchanged.
pub fn encode_request<R: RequestBody>(
    out: &mut Vec<u8>,
    version: i16,
    correlation_id: i32,
    client_id: Option<&str>,
    request: &R,
) -> Result<(), EncodeError> {
    let header = RequestHeader {
        key: R::KEY,
        version,
        correlation_id,
        client_id,
    };
    let start = out.len();
    let encoded = encode_frame(out, |writer| {
        header.write(writer);
        request.write(writer);
    })?;
    encoded.without_gaps(out, start).map(drop)
}

/// Returns the correlation id of a response.
pub fn response_correlation_id(frame: &[u8]) -> Option<i32> {
    frame.first_chunk().copied().map(i32::from_be_bytes)
}

/// Decodes the response to a request of `version`. Returns the correlation id and the body.
pub fn decode_response<R: RequestBody>(
    frame: &Bytes,
    version: i16,
) -> Result<(i32, R::Response), DecodeError> {
    let api = R::KEY.api();
    let mut reader = Reader::new(frame, version, false);
    let correlation_id = read_response_header(api, version, &mut reader)?;
    if is_refusal(api, reader.rest()) {
        reader.set_version(0, false);
    }
    let response = R::Response::read(&mut reader)?;
    reader.at("body");
    reader.end()?;
    Ok((correlation_id, response))
}

/// True for a version 0 response to ApiVersions, sent by a broker that does not support the version
/// of the request.
fn is_refusal(api: &Api, body: &[u8]) -> bool {
    let refusal = ErrorCode::UnsupportedVersion.code().to_be_bytes();
    api.key == ApiKey::ApiVersions && body.starts_with(&refusal)
}

/// Appends a response as a whole frame. On an error `out` is unchanged.
pub fn encode_response<R: ResponseBody>(
    out: &mut Vec<u8>,
    version: i16,
    correlation_id: i32,
    response: &R,
) -> Result<(), EncodeError> {
    encode_response_with_errors(out, version, correlation_id, response).map(drop)
}

/// Appends a response like [`encode_response`], and returns all error codes in it.
pub fn encode_response_with_errors<R: ResponseBody>(
    out: &mut Vec<u8>,
    version: i16,
    correlation_id: i32,
    response: &R,
) -> Result<Vec<ErrorCode>, EncodeError> {
    let start = out.len();
    let encoded = encode_response_around(out, version, correlation_id, response)?;
    encoded.without_gaps(out, start)
}

/// Appends a response like [`encode_response_with_errors`], without the records that are left out
/// ([`crate::Records::left_out`]). The frame is complete when the caller has inserted them.
pub fn encode_response_around<R: ResponseBody>(
    out: &mut Vec<u8>,
    version: i16,
    correlation_id: i32,
    response: &R,
) -> Result<EncodedResponse, EncodeError> {
    encode_frame(out, |writer| {
        write_response_header(R::KEY.api(), version, correlation_id, writer);
        response.write(writer);
    })
}

/// An encoded response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EncodedResponse {
    /// All error codes in it.
    pub errors: Vec<ErrorCode>,
    /// The places at which bytes are to be inserted, in order.
    pub gaps: Vec<Gap>,
}

impl EncodedResponse {
    /// Returns the error codes of a frame that begins at `start` of `out` and is complete; otherwise
    /// removes it.
    fn without_gaps(self, out: &mut Vec<u8>, start: usize) -> Result<Vec<ErrorCode>, EncodeError> {
        match self.gaps.first() {
            None => Ok(self.errors),
            Some(gap) => {
                out.truncate(start);
                Err(EncodeError::LeftOut(gap.size))
            }
        }
    }
}

/// Appends the response to ApiVersions in an unsupported version: version 0, with an error and the
/// supported versions, so that the client tries again with one of these.
pub fn encode_api_versions_refusal(
    out: &mut Vec<u8>,
    correlation_id: i32,
) -> Result<(), EncodeError> {
    let refusal = crate::api_versions::Response {
        error_code: ErrorCode::UnsupportedVersion,
        ..crate::api_versions::Response::of_table()
    };
    encode_response(out, 0, correlation_id, &refusal)
}

fn encode_frame(
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Writer<'_>),
) -> Result<EncodedResponse, EncodeError> {
    let start = out.len();
    out.extend_from_slice(&[0; SIZE_SIZE]);
    let mut writer = Writer::new(out, 0, false);
    write(&mut writer);
    let written = writer.finish();
    let framed = written.and_then(|(errors, gaps)| {
        let inserted: usize = gaps.iter().map(|gap| gap.size).sum();
        let size = out.len() - start - SIZE_SIZE + inserted;
        match i32::try_from(size) {
            Ok(size) => Ok((size, EncodedResponse { errors, gaps })),
            Err(_) => Err(EncodeError::Size(size)),
        }
    });
    match framed {
        Ok((size, encoded)) => {
            out[start..start + SIZE_SIZE].copy_from_slice(&size.to_be_bytes());
            Ok(encoded)
        }
        Err(error) => {
            out.truncate(start);
            Err(error)
        }
    }
}
