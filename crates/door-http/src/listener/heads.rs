//! Scans the head of every request on a connection for ambiguous body lengths: both
//! `Content-Length` and `Transfer-Encoding`.
//!
//! A proxy in front of the node may see another end of such a request, so that a part of its body
//! becomes the next request (RFC 9112, 6.3: request smuggling). hyper drops the length before a
//! handler could see it. Invariant: *a request whose end two parsers may disagree about is refused,
//! and so is every later request of the connection*. This includes requests that the scanner cannot
//! parse.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};

use memchr::memchr;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Longest part of a line that is inspected, in bytes.
const LINE_SIZE_MAX: usize = 256;

/// A stream that scans requests as they are read.
#[derive(Debug)]
pub(super) struct Heads<I> {
    io: I,
    scanner: Scanner,
    findings: Findings,
}

/// The requests to refuse on a connection. The handler takes the verdicts in the order of the
/// requests.
#[derive(Clone, Debug)]
pub(super) struct Findings(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// Number of the first request to refuse.
    refused_from: AtomicU64,
    /// Number of requests that the handler was called with.
    handled: AtomicU64,
    /// True if the stream is no longer HTTP.
    is_upgraded: AtomicBool,
}

impl Findings {
    fn new() -> Self {
        Self(Arc::new(Shared {
            refused_from: AtomicU64::new(u64::MAX),
            handled: AtomicU64::new(0),
            is_upgraded: AtomicBool::new(false),
        }))
    }

    /// Returns true if the next request must be refused. Called once for each request.
    pub(super) fn is_next_refused(&self) -> bool {
        let number = self.0.handled.fetch_add(1, Ordering::Relaxed);
        number >= self.0.refused_from.load(Ordering::Relaxed)
    }

    /// Ends the scan: further bytes belong to another protocol.
    pub(super) fn upgrade(&self) {
        self.0.is_upgraded.store(true, Ordering::Relaxed);
    }
}

impl<I> Heads<I> {
    /// Scans the bytes that are read from `io`.
    pub(super) fn new(io: I) -> (Self, Findings) {
        let findings = Findings::new();
        let heads = Self {
            io,
            scanner: Scanner::default(),
            findings: findings.clone(),
        };
        (heads, findings)
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Heads<I> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let read = Pin::new(&mut this.io).poll_read(cx, buffer);
        let shared = &this.findings.0;
        if !shared.is_upgraded.load(Ordering::Relaxed) {
            this.scanner.scan(&buffer.filled()[before..]);
            let refused_from = this.scanner.refused_from.unwrap_or(u64::MAX);
            shared.refused_from.store(refused_from, Ordering::Relaxed);
        }
        read
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Heads<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, bytes)
    }
}

/// Follows the framing of requests as hyper does.
///
/// ## RequestLine => (Fields => (RequestLine | Body | ChunkSize))
/// ## ChunkSize => (Chunk => ChunkEnd => ChunkSize | Trailers => RequestLine)
#[derive(Debug, Default)]
struct Scanner {
    state: State,
    /// Beginning of a line whose end was not read yet.
    line: Vec<u8>,
    is_line_cut: bool,
    head: Head,
    /// Number of requests whose heads were read.
    count: u64,
    /// Number of the first request to refuse; nothing after it is scanned.
    refused_from: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    RequestLine,
    Fields,
    /// This number of bytes of a body is left.
    Body(u64),
    ChunkSize,
    /// This number of bytes of a chunk is left.
    Chunk(u64),
    ChunkEnd,
    Trailers,
}

/// The fields of a head that delimit its body.
#[derive(Clone, Copy, Debug, Default)]
struct Head {
    length: Option<u64>,
    has_length: bool,
    has_encoding: bool,
    is_chunked: bool,
    is_unreadable: bool,
}

impl Scanner {
    fn scan(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && self.refused_from.is_none() {
            let (State::Body(left) | State::Chunk(left)) = &mut self.state else {
                bytes = self.scan_line(bytes);
                continue;
            };
            let size = usize::try_from(*left)
                .unwrap_or(usize::MAX)
                .min(bytes.len());
            *left -= size as u64;
            bytes = &bytes[size..];
            match self.state {
                State::Body(0) => self.state = State::RequestLine,
                State::Chunk(0) => self.state = State::ChunkEnd,
                _ => {}
            }
        }
    }

    /// Consumes bytes up to the end of a line. Returns the remaining bytes.
    fn scan_line<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let end = memchr(b'\n', bytes);
        let (part, rest) = bytes.split_at(end.map_or(bytes.len(), |end| end + 1));
        let free = LINE_SIZE_MAX - self.line.len();
        self.line.extend_from_slice(&part[..part.len().min(free)]);
        self.is_line_cut |= part.len() > free;
        if end.is_some() {
            let line = std::mem::take(&mut self.line);
            let is_cut = std::mem::take(&mut self.is_line_cut);
            let text = line.strip_suffix(b"\n").unwrap_or(&line);
            self.take_line(text.strip_suffix(b"\r").unwrap_or(text), is_cut);
            // The allocation is reused.
            self.line = line;
            self.line.clear();
        }
        rest
    }

    fn take_line(&mut self, line: &[u8], is_cut: bool) {
        self.state = match self.state {
            State::RequestLine if line.is_empty() => State::RequestLine,
            State::RequestLine => {
                self.head = Head::default();
                State::Fields
            }
            State::Fields if line.is_empty() => return self.end_head(),
            State::Fields => {
                self.head.add(line, is_cut);
                State::Fields
            }
            State::ChunkSize => match chunk_size(line, is_cut) {
                Some(0) => State::Trailers,
                Some(size) => State::Chunk(size),
                None => return self.refuse_from(self.count),
            },
            State::ChunkEnd if line.is_empty() => State::ChunkSize,
            State::ChunkEnd => return self.refuse_from(self.count),
            State::Trailers if line.is_empty() => State::RequestLine,
            State::Trailers => State::Trailers,
            // These states have no lines.
            state @ (State::Body(_) | State::Chunk(_)) => state,
        };
    }

    fn end_head(&mut self) {
        let number = self.count;
        self.count += 1;
        let head = self.head;
        if head.is_unreadable || (head.has_length && head.has_encoding) {
            return self.refuse_from(number);
        }
        self.state = match head.length {
            _ if head.is_chunked => State::ChunkSize,
            None | Some(0) => State::RequestLine,
            Some(length) => State::Body(length),
        };
    }

    fn refuse_from(&mut self, number: u64) {
        self.refused_from = Some(number);
    }
}

impl Head {
    fn add(&mut self, line: &[u8], is_cut: bool) {
        let colon = memchr(b':', line).unwrap_or(line.len());
        let (name, value) = line.split_at(colon);
        let (name, value) = (name.trim_ascii(), &value[value.len().min(1)..]);
        if name.eq_ignore_ascii_case(b"content-length") {
            self.has_length = true;
            let length = std::str::from_utf8(value.trim_ascii()).ok();
            let length = length.and_then(|text| text.parse().ok());
            self.is_unreadable |= is_cut || length.is_none();
            // hyper refuses contradicting lengths.
            self.length = self.length.or(length);
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            self.has_encoding = true;
            self.is_unreadable |= is_cut;
            let last = value.rsplit(|byte| *byte == b',').next();
            let last = last.unwrap_or_default().trim_ascii();
            self.is_chunked = last.eq_ignore_ascii_case(b"chunked");
        }
    }
}

/// Returns the size of the chunk that a line announces; `None` if the line is invalid.
fn chunk_size(line: &[u8], is_cut: bool) -> Option<u64> {
    let is_digit = |byte: &u8| byte.is_ascii_hexdigit();
    let digits = line.iter().take_while(|byte| is_digit(byte)).count();
    let is_ended = match line.get(digits) {
        None => !is_cut,
        Some(byte) => matches!(byte, b' ' | b'\t' | b';'),
    };
    let text = std::str::from_utf8(&line[..digits]).ok()?;
    let size = u64::from_str_radix(text, 16).ok()?;
    is_ended.then_some(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of the first request to refuse, the same for all splits of the bytes.
    fn check(text: &str) -> Option<u64> {
        let whole = {
            let mut scanner = Scanner::default();
            scanner.scan(text.as_bytes());
            scanner.refused_from
        };
        for size in [1, 2, 3, 7, 64] {
            let mut scanner = Scanner::default();
            text.as_bytes().chunks(size).for_each(|it| scanner.scan(it));
            assert_eq!(scanner.refused_from, whole, "in pieces of {size}: {text:?}");
        }
        whole
    }

    const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    const LENGTH: &str = "POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nGET /";
    const CHUNKED: &str = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n\
                           3;x=y\r\nabc\r\n00010\r\n0123456789abcdef\r\n0\r\nTrailer: x\r\n\r\n";
    const BOTH: &str = "POST / HTTP/1.1\r\ncontent-LENGTH: 4\r\nX: y\r\ntransfer-encoding: \
                        chunked\r\n\r\n0\r\n\r\n";

    #[test]
    fn only_requests_with_both_body_lengths_are_refused() {
        let sound = format!("\r\n{GET}{LENGTH}{CHUNKED}\r\n{GET}{LENGTH}");
        assert_eq!(check(&sound), None);
        assert_eq!(check(BOTH), Some(0));
        assert_eq!(check(&format!("{sound}{BOTH}{GET}")), Some(5));
        let bare = "POST / HTTP/1.1\nTransfer-Encoding: gzip,chunked\nContent-Length:0\n\n";
        assert_eq!(check(&format!("{GET}{bare}")), Some(1));
        let in_body = format!(
            "POST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n{BOTH}",
            BOTH.len()
        );
        assert_eq!(check(&format!("{in_body}{GET}")), None);
    }

    #[test]
    fn malformed_chunks_and_overlong_framing_fields_are_refused() {
        let chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
        let zeros = "0".repeat(LINE_SIZE_MAX);
        for (body, expected) in [
            ("x\r\n", Some(1)),
            ("\r\n", Some(1)),
            ("fffffffffffffffff\r\n", Some(1)),
            ("3\r\nabcd\r\n", Some(1)),
            (&format!("{zeros}1\r\na\r\n"), Some(1)),
            ("1 \r\na\r\n", None),
        ] {
            assert_eq!(check(&format!("{chunked}{body}")), expected, "{body:?}");
        }
        let blanks = " ".repeat(LINE_SIZE_MAX);
        for field in [
            format!("Transfer-Encoding:{blanks}chunked"),
            format!("Content-Length:{blanks}5"),
            "Content-Length: 5, 5".to_owned(),
        ] {
            let request = format!("{GET}POST / HTTP/1.1\r\n{field}\r\n\r\n");
            assert_eq!(check(&request), Some(1), "{field}");
        }
    }

    #[test]
    fn long_lines_take_no_more_memory_than_they_need() {
        let mut scanner = Scanner::default();
        for _ in 0..1_000 {
            scanner.scan(&[b'x'; 4096]);
        }
        assert!(scanner.line.capacity() <= 2 * LINE_SIZE_MAX);
    }
}
