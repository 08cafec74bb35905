//! Frames: a size of four bytes, a header, a body.
//!
//! The size never reserves anything: a frame is taken from what has arrived once it is whole.

use bytes::{Buf, Bytes, BytesMut};

use crate::api::{Api, ApiKey, Request, RequestBody, ResponseBody};
use crate::error_code::ErrorCode;
use crate::field::Field;
use crate::header::{Prefix, RequestHeader, read_response_header, write_response_header};
use crate::reader::{DecodeError, Reader};
use crate::writer::{EncodeError, Writer};

const SIZE_SIZE: usize = size_of::<i32>();

/// A frame that is not taken in. Nothing behind it can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a frame of {size} bytes, where {size_max} are allowed")]
pub struct FrameError {
    /// What the frame announces.
    pub size: i32,
    /// What is allowed.
    pub size_max: usize,
}

/// A request that is not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// There is not even a header: nothing can be answered.
    #[error(transparent)]
    Header(DecodeError),
    /// An API that is not in the table: clients expect the connection to be closed.
    #[error("unknown api key {0}")]
    UnknownApi(i16),
    /// A version that is not in the table. ApiVersions is answered with
    /// [`encode_api_versions_refusal`]; for others clients expect the connection to be closed.
    #[error("{name} is not served in version {version}", name = key.api().name)]
    UnsupportedVersion {
        /// Which API.
        key: ApiKey,
        /// The version that was asked for.
        version: i16,
        /// The client's number for the request.
        correlation_id: i32,
    },
    /// The header is right, what follows is not.
    #[error("{name}, version {version}: {error}", name = key.api().name)]
    Body {
        /// Which API.
        key: ApiKey,
        /// Its version.
        version: i16,
        /// The client's number for the request.
        correlation_id: i32,
        /// What is wrong.
        error: DecodeError,
    },
}

/// Takes the first frame from what has arrived, without its size; `None` when more must come.
pub fn take_frame(arrived: &mut BytesMut, size_max: usize) -> Result<Option<Bytes>, FrameError> {
    let Some(announced) = arrived.first_chunk() else {
        return Ok(None);
    };
    let announced = i32::from_be_bytes(*announced);
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

/// Which API the request at the start of what has arrived is for, as soon as that is there and
/// known: only Produce has a reason to be large, so that a broker may limit other frames more.
pub fn peek_api_key(arrived: &[u8]) -> Option<ApiKey> {
    let key = arrived.get(SIZE_SIZE..)?.first_chunk()?;
    ApiKey::from_code(i16::from_be_bytes(*key))
}

/// Reads a request. Bytes behind it are left alone, as Kafka's own broker does.
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

/// Appends a request, as a whole frame. On an error nothing has been appended.
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
    let written = encode_frame(out, |writer| {
        header.write(writer);
        request.write(writer);
    });
    written.map(drop)
}

/// The number of the request that an answer belongs to.
pub fn response_correlation_id(frame: &[u8]) -> Option<i32> {
    frame.first_chunk().copied().map(i32::from_be_bytes)
}

/// Reads the answer to a request that was sent in `version`, and the number of that request.
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

/// A broker that does not know the version of ApiVersions it is asked in answers in version 0.
fn is_refusal(api: &Api, body: &[u8]) -> bool {
    let refusal = ErrorCode::UnsupportedVersion.code().to_be_bytes();
    api.key == ApiKey::ApiVersions && body.starts_with(&refusal)
}

/// Appends an answer, as a whole frame. On an error nothing has been appended.
pub fn encode_response<R: ResponseBody>(
    out: &mut Vec<u8>,
    version: i16,
    correlation_id: i32,
    response: &R,
) -> Result<(), EncodeError> {
    encode_response_with_errors(out, version, correlation_id, response).map(drop)
}

/// The same; and the errors that the answer says, of whatever in it.
pub fn encode_response_with_errors<R: ResponseBody>(
    out: &mut Vec<u8>,
    version: i16,
    correlation_id: i32,
    response: &R,
) -> Result<Vec<ErrorCode>, EncodeError> {
    encode_frame(out, |writer| {
        write_response_header(R::KEY.api(), version, correlation_id, writer);
        response.write(writer);
    })
}

/// Appends what answers ApiVersions in a version that is not served: version 0 of the answer, with
/// an error and what is served, so that the client asks again in a version of the table.
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
) -> Result<Vec<ErrorCode>, EncodeError> {
    let start = out.len();
    out.extend_from_slice(&[0; SIZE_SIZE]);
    let mut writer = Writer::new(out, 0, false);
    write(&mut writer);
    let written = writer.finish();
    let size = out.len() - start - SIZE_SIZE;
    let framed = written.and_then(|errors| match i32::try_from(size) {
        Ok(size) => Ok((size, errors)),
        Err(_) => Err(EncodeError::Size(size)),
    });
    match framed {
        Ok((size, errors)) => {
            out[start..start + SIZE_SIZE].copy_from_slice(&size.to_be_bytes());
            Ok(errors)
        }
        Err(error) => {
            out.truncate(start);
            Err(error)
        }
    }
}
