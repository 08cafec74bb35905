//! Parser of the few frequent requests on the fast path.
//!
//! It accepts a strict subset of HTTP/1 (RFC 9112): a request line, fields without folding, and a
//! body with `Content-Length`. Everything else, valid or not, is [`Read::Other`] and is left to
//! hyper. Invariant: *every HTTP parser agrees on the meaning of an accepted request.*

use memchr::memchr;

/// Longest head, in bytes.
const HEAD_SIZE_MAX: usize = 8 << 10;
/// Longest body, in bytes.
pub(super) const BODY_SIZE_MAX: usize = 64 << 10;

/// A request, borrowed from the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::http) struct Asked<'a> {
    pub(in crate::http) method: Method,
    /// The path without a query.
    pub(in crate::http) path: &'a str,
    /// True if another request may follow on the connection.
    pub(in crate::http) is_kept_alive: bool,
    pub(in crate::http) version: Version,
    /// The `Host` field; empty for none.
    pub(in crate::http) host: &'a str,
    /// The bearer token; empty for none.
    pub(in crate::http) token: &'a str,
    /// `X-Forwarded-For`; empty for none.
    pub(in crate::http) forwarded: &'a str,
    /// The content type as written, without parameters; empty for none.
    pub(in crate::http) content_type: &'a str,
    pub(in crate::http) body: &'a [u8],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::http) enum Method {
    Get,
    Post,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::http) enum Version {
    /// The connection is closed unless both sides ask to keep it.
    Http10,
    /// The connection is kept unless one side asks to close it.
    Http11,
}

/// The beginning of the buffer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Read<'a> {
    /// A request and its size in bytes.
    Asked(Asked<'a>, usize),
    /// An incomplete request, possibly.
    Part,
    /// A request that is not for the fast path.
    Other,
}

/// Reads the first request in the buffer, if `served` is true for its method and path.
pub(super) fn read(bytes: &[u8], served: impl Fn(Method, &str) -> bool) -> Read<'_> {
    match read_head(bytes, served) {
        Ok(Some((mut asked, head, length))) => match bytes.get(head..head + length) {
            Some(body) => {
                asked.body = body;
                Read::Asked(asked, head + length)
            }
            None => Read::Part,
        },
        Ok(None) if bytes.len() < HEAD_SIZE_MAX => Read::Part,
        Ok(None) | Err(Strange) => Read::Other,
    }
}

/// Error: the request is not for the fast path.
#[derive(Debug)]
struct Strange;

/// Returns the request without its body, the size of its head, and the size of its body.
fn read_head(
    bytes: &[u8],
    served: impl Fn(Method, &str) -> bool,
) -> Result<Option<(Asked<'_>, usize, usize)>, Strange> {
    let Some((line, mut rest)) = split_line(bytes)? else {
        return Ok(None);
    };
    let mut asked = request_line(line)?;
    if !served(asked.method, asked.path) {
        return Err(Strange);
    }
    let mut length = None;
    let mut is_closed_or_kept = None;
    loop {
        let Some((line, behind)) = split_line(rest)? else {
            return Ok(None);
        };
        rest = behind;
        if line.is_empty() {
            break;
        }
        let (name, value) = field(line)?;
        match Field::of(name) {
            Field::Unimportant => {}
            Field::Strange => return Err(Strange),
            Field::ContentLength => once(&mut length, content_length(value)?)?,
            Field::Host => once_text(&mut asked.host, value)?,
            Field::ContentType => once_text(&mut asked.content_type, essence(value))?,
            Field::Authorization => {
                let token = value.strip_prefix("Bearer ").ok_or(Strange)?;
                once_text(&mut asked.token, token)?;
            }
            Field::ForwardedFor => once_text(&mut asked.forwarded, value)?,
            Field::Connection if value.eq_ignore_ascii_case("keep-alive") => {
                once(&mut is_closed_or_kept, true)?;
            }
            Field::Connection if value.eq_ignore_ascii_case("close") => {
                once(&mut is_closed_or_kept, false)?;
            }
            Field::Connection => return Err(Strange),
        }
    }
    if asked.host.is_empty() && asked.version == Version::Http11 {
        return Err(Strange);
    }
    asked.is_kept_alive = is_closed_or_kept.unwrap_or(asked.version == Version::Http11);
    let length = match (asked.method, length) {
        (Method::Get, None | Some(0)) => 0,
        (Method::Post, Some(length)) => length,
        _ => return Err(Strange),
    };
    Ok(Some((asked, bytes.len() - rest.len(), length)))
}

/// Splits off a line, without its end.
fn split_line(bytes: &[u8]) -> Result<Option<(&str, &[u8])>, Strange> {
    let Some(end) = memchr(b'\n', bytes) else {
        return Ok(None);
    };
    let line = bytes[..end].strip_suffix(b"\r").ok_or(Strange)?;
    let is_text = |byte: &u8| matches!(byte, b'\t' | b' '..=b'~');
    if !line.iter().all(is_text) {
        return Err(Strange);
    }
    let line = std::str::from_utf8(line).map_err(|_| Strange)?;
    Ok(Some((line, &bytes[end + 1..])))
}

fn request_line(line: &str) -> Result<Asked<'_>, Strange> {
    let (method, line) = match (line.strip_prefix("GET "), line.strip_prefix("POST ")) {
        (Some(rest), _) => (Method::Get, rest),
        (_, Some(rest)) => (Method::Post, rest),
        (None, None) => return Err(Strange),
    };
    let (path, version) = line.split_once(' ').ok_or(Strange)?;
    let version = match version {
        "HTTP/1.1" => Version::Http11,
        "HTTP/1.0" => Version::Http10,
        _ => return Err(Strange),
    };
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'?' | b'#');
    match path.starts_with('/') && path.bytes().all(is_plain) {
        true => Ok(Asked {
            method,
            path,
            is_kept_alive: false,
            version,
            host: "",
            token: "",
            forwarded: "",
            content_type: "",
            body: &[],
        }),
        false => Err(Strange),
    }
}

fn field(line: &str) -> Result<(&str, &str), Strange> {
    let colon = memchr(b':', line.as_bytes()).ok_or(Strange)?;
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.!#$%&'*+^`|~".contains(&byte);
    match !name.is_empty() && name.bytes().all(is_token) {
        true => Ok((name, value.trim_matches([' ', '\t']))),
        false => Err(Strange),
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
    Unimportant,
    Strange,
}

impl Field {
    fn of(name: &str) -> Self {
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        match name.len() {
            14 if is("content-length") => Self::ContentLength,
            // Requests of browsers are left to the full access check.
            14 if is("sec-fetch-site") => Self::Strange,
            4 if is("host") => Self::Host,
            12 if is("content-type") => Self::ContentType,
            10 if is("connection") => Self::Connection,
            13 if is("authorization") => Self::Authorization,
            15 if is("x-forwarded-for") => Self::ForwardedFor,
            6 if is("expect") || is("origin") => Self::Strange,
            7 if is("upgrade") || is("trailer") => Self::Strange,
            16 if is("content-encoding") => Self::Strange,
            17 if is("transfer-encoding") => Self::Strange,
            _ => Self::Unimportant,
        }
    }
}

fn content_length(value: &str) -> Result<usize, Strange> {
    let is_number = (1..=6).contains(&value.len()) && value.bytes().all(|it| it.is_ascii_digit());
    let length = value.parse().map_err(|_| Strange)?;
    match is_number && length <= BODY_SIZE_MAX {
        true => Ok(length),
        false => Err(Strange),
    }
}

fn essence(value: &str) -> &str {
    let end = memchr(b';', value.as_bytes()).unwrap_or(value.len());
    value[..end].trim_end()
}

/// Sets a field; HTTP parsers treat a duplicate differently, so it is an error.
fn once<T>(known: &mut Option<T>, value: T) -> Result<(), Strange> {
    match known.replace(value) {
        None => Ok(()),
        Some(_) => Err(Strange),
    }
}

fn once_text<'a>(known: &mut &'a str, value: &'a str) -> Result<(), Strange> {
    match known.is_empty() && !value.is_empty() {
        true => {
            *known = value;
            Ok(())
        }
        false => Err(Strange),
    }
}

#[cfg(test)]
mod tests;
