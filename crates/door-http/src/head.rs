//! Parser of the few frequent requests on the fast path.
//!
//! The library that hyper uses parses the head. Of what it accepts, this module serves a strict
//! subset of HTTP/1 (RFC 9112): lines that end with CRLF, fields in ASCII, and a body with
//! `Content-Length`. Everything else, valid or not, is [`Read::Other`] and is left to hyper.
//! Invariant: *every HTTP parser agrees on the meaning of an accepted request.*

use std::mem::MaybeUninit;

use http_api::{FastRequest, Method, Version};
use httparse::Status;
use memchr::{memchr, memchr_iter, memmem};

/// Longest head, in bytes.
const HEAD_SIZE_MAX: usize = 8 << 10;
/// Maximum number of fields; requests with more are left to hyper.
const FIELDS_MAX: usize = 32;
/// Longest body, in bytes.
pub const BODY_SIZE_MAX: usize = 64 << 10;

/// The beginning of the buffer.
#[derive(Debug, PartialEq, Eq)]
pub enum Read<'a> {
    /// A request and its size in bytes.
    Request(FastRequest<'a>, usize),
    /// An incomplete request, possibly.
    Part,
    /// A request that is not for the fast path.
    Other,
}

/// Reads the first request in the buffer, if `served` is true for its method and path.
pub fn read(bytes: &[u8], served: impl Fn(Method, &str) -> bool) -> Read<'_> {
    match read_head(bytes, served) {
        Ok(Some((mut request, head, length))) => match bytes.get(head..head + length) {
            Some(body) => {
                request.body = body;
                Read::Request(request, head + length)
            }
            None => Read::Part,
        },
        Ok(None) if bytes.len() < HEAD_SIZE_MAX => Read::Part,
        Ok(None) | Err(Unsupported) => Read::Other,
    }
}

/// Returns true if the bytes have a complete head, as [`read`] accepts one.
pub(super) fn is_head_complete(bytes: &[u8]) -> bool {
    memmem::find(bytes, b"\r\n\r\n").is_some()
}

/// Error: the request is not for the fast path.
#[derive(Debug)]
struct Unsupported;

/// Returns the request without its body, the size of its head, and the size of its body.
fn read_head(
    bytes: &[u8],
    served: impl Fn(Method, &str) -> bool,
) -> Result<Option<(FastRequest<'_>, usize, usize)>, Unsupported> {
    let mut fields = [const { MaybeUninit::uninit() }; FIELDS_MAX];
    let mut parsed = httparse::Request::new(&mut []);
    let status = parsed.parse_with_uninit_headers(bytes, &mut fields);
    let status = status.map_err(|_| Unsupported)?;
    if let (Some(method), Some(path)) = (parsed.method, parsed.path)
        && !(is_plain(path) && served(method_of(method)?, path))
    {
        return Err(Unsupported);
    }
    let Status::Complete(size) = status else {
        return Ok(None);
    };
    let is_whole = |at: usize| at > 0 && bytes[at - 1] == b'\r';
    if !memchr_iter(b'\n', &bytes[..size]).all(is_whole) {
        return Err(Unsupported);
    }
    let (request, length) = interpret(&parsed)?;
    Ok(Some((request, size, length)))
}

/// Returns the request without its body, and the size of its body.
fn interpret<'a>(
    parsed: &httparse::Request<'_, 'a>,
) -> Result<(FastRequest<'a>, usize), Unsupported> {
    let method = method_of(parsed.method.ok_or(Unsupported)?)?;
    let version = match parsed.version {
        Some(0) => Version::Http10,
        Some(1) => Version::Http11,
        _ => return Err(Unsupported),
    };
    let mut request = FastRequest {
        method,
        path: parsed.path.ok_or(Unsupported)?,
        is_kept_alive: false,
        version,
        host: "",
        token: "",
        forwarded: "",
        content_type: "",
        if_match: "",
        idempotency_key: "",
        body: &[],
    };
    let mut length = None;
    let mut is_kept_alive = None;
    for header in parsed.headers.iter() {
        let value = || text(header.value);
        match Field::of(header.name) {
            Field::Unimportant => {}
            Field::Unsupported => return Err(Unsupported),
            Field::ContentLength => once(&mut length, content_length(value()?)?)?,
            Field::Host => once_text(&mut request.host, value()?)?,
            Field::ContentType => once_text(&mut request.content_type, essence(value()?))?,
            Field::Authorization => {
                let token = value()?.strip_prefix("Bearer ").ok_or(Unsupported)?;
                once_text(&mut request.token, token)?;
            }
            Field::ForwardedFor => once_text(&mut request.forwarded, value()?)?,
            Field::IfMatch => once_text(&mut request.if_match, value()?)?,
            Field::IdempotencyKey => once_text(&mut request.idempotency_key, value()?)?,
            Field::Connection => once(&mut is_kept_alive, keeps_alive(value()?)?)?,
        }
    }
    if request.host.is_empty() && version == Version::Http11 {
        return Err(Unsupported);
    }
    request.is_kept_alive = is_kept_alive.unwrap_or(version == Version::Http11);
    let length = match (method, length) {
        (Method::Get, None | Some(0)) => 0,
        (Method::Post, Some(length)) => length,
        _ => return Err(Unsupported),
    };
    Ok((request, length))
}

fn method_of(name: &str) -> Result<Method, Unsupported> {
    match name {
        "GET" => Ok(Method::Get),
        "POST" => Ok(Method::Post),
        _ => Err(Unsupported),
    }
}

/// Returns true for a path without a query, in ASCII.
fn is_plain(path: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'?' | b'#');
    path.starts_with('/') && path.bytes().all(is_plain)
}

/// Returns the value of a field, if it is printable ASCII.
fn text(value: &[u8]) -> Result<&str, Unsupported> {
    let is_text = |byte: &u8| matches!(byte, b'\t' | b' '..=b'~');
    match value.iter().all(is_text) {
        true => std::str::from_utf8(value).map_err(|_| Unsupported),
        false => Err(Unsupported),
    }
}

/// A header field by its meaning for this parser.
enum Field {
    ContentLength,
    ContentType,
    Connection,
    Host,
    Authorization,
    ForwardedFor,
    IfMatch,
    IdempotencyKey,
    Unimportant,
    Unsupported,
}

impl Field {
    fn of(name: &str) -> Self {
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        match name.len() {
            14 if is("content-length") => Self::ContentLength,
            // Requests of browsers are left to the full access check.
            14 if is("sec-fetch-site") => Self::Unsupported,
            4 if is("host") => Self::Host,
            12 if is("content-type") => Self::ContentType,
            10 if is("connection") => Self::Connection,
            13 if is("authorization") => Self::Authorization,
            15 if is("x-forwarded-for") => Self::ForwardedFor,
            8 if is("if-match") => Self::IfMatch,
            15 if is("idempotency-key") => Self::IdempotencyKey,
            13 if is("if-none-match") => Self::Unsupported,
            6 if is("expect") || is("origin") => Self::Unsupported,
            7 if is("upgrade") || is("trailer") => Self::Unsupported,
            16 if is("content-encoding") => Self::Unsupported,
            17 if is("transfer-encoding") => Self::Unsupported,
            _ => Self::Unimportant,
        }
    }
}

fn keeps_alive(value: &str) -> Result<bool, Unsupported> {
    match value {
        _ if value.eq_ignore_ascii_case("keep-alive") => Ok(true),
        _ if value.eq_ignore_ascii_case("close") => Ok(false),
        _ => Err(Unsupported),
    }
}

fn content_length(value: &str) -> Result<usize, Unsupported> {
    let is_number = (1..=6).contains(&value.len()) && value.bytes().all(|it| it.is_ascii_digit());
    let length = value.parse().map_err(|_| Unsupported)?;
    match is_number && length <= BODY_SIZE_MAX {
        true => Ok(length),
        false => Err(Unsupported),
    }
}

fn essence(value: &str) -> &str {
    let end = memchr(b';', value.as_bytes()).unwrap_or(value.len());
    value[..end].trim_end()
}

/// Sets a field; HTTP parsers treat a duplicate differently, so it is an error.
fn once<T>(known: &mut Option<T>, value: T) -> Result<(), Unsupported> {
    match known.replace(value) {
        None => Ok(()),
        Some(_) => Err(Unsupported),
    }
}

fn once_text<'a>(known: &mut &'a str, value: &'a str) -> Result<(), Unsupported> {
    match known.is_empty() && !value.is_empty() {
        true => {
            *known = value;
            Ok(())
        }
        false => Err(Unsupported),
    }
}

#[cfg(test)]
mod tests;
