//! The fast path in front of hyper: answers the few frequent requests directly.
//!
//! A quota request or an append is decided in less time than hyper and the router need to dispatch
//! it. Every connection therefore begins here: all requests of one read are answered in order, with
//! one write. With the first other request, the connection and all bytes read from it move to hyper
//! for good. Invariant: *the fast path answers a request as the router would*: both use the same
//! [`FastPath`].

mod prefixed;
mod write_wait;

use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use door::Patience;
use http_api::reply::{Reply, push_number};
use http_api::time::push_http_date;
use http_api::{FastPath, Handle, Verdict, Version};
use platform::Durable;
pub(super) use prefixed::Prefixed;
use quota_service::Desk;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::Instant;
use write_wait::WriteWait;

use super::access::Access;
use super::head::{self, BODY_SIZE_MAX, Read};

/// Smallest free buffer space for a read, in bytes.
const READ_SIZE: usize = 8 << 10;
/// Answers are collected up to this size, in bytes, before they are written.
const WRITE_SIZE: usize = 64 << 10;
/// Longest time that a client may leave its answers unread.
const READER_LIMIT: Duration = Duration::from_secs(30);

/// The end of a connection's time on the fast path.
pub(super) enum Handoff<I> {
    /// The connection is closed.
    Ended,
    /// hyper must serve the rest.
    Other(Prefixed<I>),
}

/// The environment of a connection.
pub(super) struct Front<'a> {
    pub(super) fast_path: &'a dyn FastPath,
    pub(super) access: &'a Access,
    pub(super) connection: &'a Handle,
    pub(super) peer: IpAddr,
    /// Longest time for a request to arrive.
    pub(super) limit: Duration,
}

/// Serves a connection until hyper has to; immediately so for an overflow connection.
pub(super) async fn serve<I: AsyncRead + AsyncWrite + Unpin>(
    io: I,
    front: Front<'_>,
    is_overflow: bool,
) -> io::Result<Handoff<I>> {
    if is_overflow {
        return Ok(Handoff::Other(Prefixed::new(BytesMut::new(), io)));
    }
    let limit = front.limit;
    let mut closing = pin!(front.connection.all().closing());
    let mut served = Served {
        io,
        fast_path: front.fast_path,
        access: front.access,
        connection: front.connection,
        peer: front.peer,
        buffer: BytesMut::new(),
        out: Vec::new(),
        reply: Reply::default(),
        desk: Desk::new(),
        write_wait: WriteWait::default(),
        date: Date::default(),
    };
    let mut patience = Patience::new(limit);
    loop {
        let before = served.buffer.len();
        served.connection.begin();
        let answered = served.answer_all().await;
        served.connection.end();
        match answered? {
            Next::Read => {}
            Next::Close => {
                served.io.shutdown().await?;
                return Ok(Handoff::Ended);
            }
            Next::Leave => return Ok(Handoff::Other(Prefixed::new(served.buffer, served.io))),
        }
        if before == 0 || served.buffer.len() < before {
            patience.renew(Instant::now());
        }
        served.buffer.reserve(READ_SIZE);
        let read = tokio::select! {
            biased;
            read = served.io.read_buf(&mut served.buffer) => read?,
            // The body of a request has more time than its head.
            () = patience.over() => match head::is_head_complete(&served.buffer) {
                true => return Ok(Handoff::Other(Prefixed::new(served.buffer, served.io))),
                false => return Ok(Handoff::Ended),
            },
            () = &mut closing => return Ok(Handoff::Ended),
        };
        if read == 0 {
            return Ok(Handoff::Ended);
        }
    }
}

struct Served<'a, I> {
    io: I,
    fast_path: &'a dyn FastPath,
    access: &'a Access,
    connection: &'a Handle,
    peer: IpAddr,
    /// Bytes that were read and not answered: after a turn, less than a request.
    buffer: BytesMut,
    out: Vec<u8>,
    reply: Reply,
    desk: Desk,
    write_wait: WriteWait,
    date: Date,
}

enum Next {
    Read,
    Close,
    Leave,
}

impl<I: AsyncRead + AsyncWrite + Unpin> Served<'_, I> {
    /// Answers all complete requests in the buffer.
    async fn answer_all(&mut self) -> io::Result<Next> {
        let next = loop {
            if self.buffer.is_empty() {
                break Next::Read;
            }
            let serves = |method, path: &str| self.fast_path.serves(method, path);
            let (request, size) = match head::read(&self.buffer, serves) {
                Read::Request(request, size) => (request, size),
                Read::Part => break Next::Read,
                Read::Other => break Next::Leave,
            };
            if !request.host.is_empty()
                && !self.access.is_known(request.host)
                && self.fast_path.is_open()
            {
                break Next::Leave;
            }
            let start = Instant::now();
            let (desk, reply) = (&mut self.desk, &mut self.reply);
            match self.fast_path.answer(desk, &request, self.peer, reply) {
                Verdict::Answered => {}
                Verdict::When(durables) => wait_for(self.fast_path, durables, reply).await,
                Verdict::Later(later) => {
                    let durables;
                    (*reply, durables) = later.await;
                    wait_for(self.fast_path, durables, reply).await;
                }
                Verdict::Written(written) => *reply = self.write_wait.reply(written, start).await,
                Verdict::NotHere => break Next::Leave,
            }
            let (status, took) = (self.reply.status, start.elapsed());
            self.fast_path.observe(&request, status, took);
            let is_kept_alive = request.is_kept_alive && !self.connection.all().is_closing();
            let version = request.version;
            self.buffer.advance(size);
            let unix_s = self.fast_path.now_ns() / 1_000_000_000;
            let date = self.date.at(unix_s);
            push_response(&mut self.out, &self.reply, date, is_kept_alive, version);
            if !is_kept_alive {
                break Next::Close;
            }
            if self.out.len() >= WRITE_SIZE {
                self.write().await?;
            }
        };
        self.write().await?;
        // A client that sends one request at a time needs no large buffer.
        if self.buffer.is_empty() && self.buffer.capacity() > BODY_SIZE_MAX {
            self.buffer = BytesMut::new();
        }
        Ok(next)
    }

    async fn write(&mut self) -> io::Result<()> {
        if self.out.is_empty() {
            return Ok(());
        }
        let writing = async {
            self.io.write_all(&self.out).await?;
            self.io.flush().await
        };
        tokio::time::timeout(READER_LIMIT, writing).await??;
        self.out.clear();
        Ok(())
    }
}

/// Waits until decisions are on disk.
async fn wait_for(fast_path: &dyn FastPath, durables: Vec<Durable>, reply: &mut Reply) {
    for durable in durables {
        if let Err(error) = durable.await {
            fast_path.not_durable(error, reply);
        }
    }
}

fn push_response(
    out: &mut Vec<u8>,
    reply: &Reply,
    date: &[u8],
    is_kept_alive: bool,
    version: Version,
) {
    let status = reply.status;
    let reason = status.canonical_reason().unwrap_or("");
    for part in ["HTTP/1.1 ", status.as_str(), " ", reason, "\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
    if !reply.content_type.is_empty() {
        out.extend_from_slice(b"Content-Type: ");
        out.extend_from_slice(reply.content_type.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"Content-Length: ");
    push_number(out, reply.body.len());
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(reply.fields());
    match (is_kept_alive, version) {
        (true, Version::Http11) => {}
        // HTTP/1.0 clients need an explicit keep-alive.
        (true, Version::Http10) => out.extend_from_slice(b"Connection: keep-alive\r\n"),
        (false, _) => out.extend_from_slice(b"Connection: close\r\n"),
    }
    out.extend_from_slice(b"Date: ");
    out.extend_from_slice(date);
    out.extend_from_slice(b"\r\n\r\n");
    out.extend_from_slice(&reply.body);
}

/// A cached value of the `Date` field, updated once a second.
#[derive(Default)]
struct Date {
    unix_s: Option<u64>,
    text: Vec<u8>,
}

impl Date {
    fn at(&mut self, unix_s: u64) -> &[u8] {
        if self.unix_s != Some(unix_s) {
            self.unix_s = Some(unix_s);
            self.text.clear();
            push_http_date(&mut self.text, unix_s);
        }
        &self.text
    }
}
