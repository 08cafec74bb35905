//! One connection of the load generator: a window of frames, each reply of which sends the next.
//!
//! The replies of one connection come in the order of its requests, so the id of every reply is
//! known in advance. Its length and id are checked always, all its bytes before the window.

use std::collections::VecDeque;
use std::io;

use contract::{
    Failure, HEADER_SIZE, Header, Histogram, Inbox, Load, Outcome, SILENCE_SECONDS_MAX,
};

use crate::echo::CHUNK_SIZE;
use crate::socket::Socket;

/// How thoroughly a reply is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Check {
    /// Its length and its id.
    Header,
    /// Every byte.
    Bytes,
}

/// A connection and its requests in flight.
pub(crate) struct Connection {
    pub(crate) socket: Socket,
    inbox: Inbox,
    frame: Vec<u8>,
    /// Requests that are sent, but of which no byte is in the output yet.
    backlog: usize,
    output: Vec<u8>,
    written: usize,
    output_id: u64,
    sent_ns: VecDeque<u64>,
    next_id: u64,
    quota: u64,
    in_flight: usize,
}

impl Connection {
    /// Connects to the server that `load` names.
    pub(crate) fn open(load: &Load) -> Outcome<Connection> {
        let header = Header {
            payload_size: load.size,
            id: 0,
        };
        let mut frame = header.encode().to_vec();
        frame.extend((0..load.size).map(|index| (index * 31 + 7) as u8));
        Ok(Connection {
            socket: Socket::connect(&load.connect)?,
            inbox: Inbox::new(CHUNK_SIZE.max(frame.len())),
            output: Vec::with_capacity(CHUNK_SIZE.max(frame.len())),
            written: 0,
            output_id: 0,
            backlog: 0,
            frame,
            sent_ns: VecDeque::with_capacity(load.in_flight),
            next_id: 0,
            quota: 0,
            in_flight: load.in_flight,
        })
    }

    /// Fills the window; `quota` requests may be sent until the next call.
    pub(crate) fn begin(&mut self, quota: u64, now_ns: u64) -> Outcome<()> {
        self.quota = quota;
        for _ in 0..self.in_flight {
            self.issue(now_ns);
        }
        self.flush()
    }

    /// Requests that wait for their reply.
    pub(crate) fn waiting(&self) -> usize {
        self.sent_ns.len()
    }

    /// Whether bytes wait for room in the socket.
    pub(crate) fn unwritten(&self) -> bool {
        self.backlog > 0 || self.written < self.output.len()
    }

    /// Reads once, waiting if there is nothing.
    pub(crate) fn read(&mut self) -> Outcome<()> {
        match self.socket.read(self.inbox.space()) {
            Ok(0) => Err(self.lost("the server closed the connection")),
            Ok(size) => {
                self.inbox.advance(size);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                Err(self.lost(&format!("nothing came for {SILENCE_SECONDS_MAX} s")))
            }
            Err(error) => Err(self.lost(&error.to_string())),
        }
    }

    /// Counts the replies that were read and, before `end_ns`, sends a request for each.
    pub(crate) fn absorb(
        &mut self,
        now_ns: u64,
        end_ns: u64,
        check: Check,
        latency: &mut Histogram,
    ) -> Outcome<()> {
        let mut consumed = 0;
        while let Some(header) = self.next_reply(consumed)? {
            let end = consumed + header.frame_size();
            if end > self.inbox.bytes().len() {
                break;
            }
            if check == Check::Bytes
                && self.inbox.bytes()[consumed + HEADER_SIZE..end] != self.frame[HEADER_SIZE..]
            {
                return Err(self.lost("a reply carries other bytes than its request"));
            }
            consumed = end;
            match self.sent_ns.pop_front() {
                Some(sent_ns) => latency.record(now_ns - sent_ns),
                None => return Err(self.lost("a reply came that nothing asked for")),
            }
            if now_ns < end_ns {
                self.issue(now_ns);
            }
        }
        self.inbox.consume(consumed);
        self.flush()
    }

    /// Writes what there is room for: one write, unless more than a chunk is to be sent.
    pub(crate) fn flush(&mut self) -> Outcome<()> {
        while self.unwritten() {
            if self.written == self.output.len() {
                self.refill();
            }
            let rest = &self.output[self.written..];
            match self.socket.write_some(rest) {
                Ok(size) if size == rest.len() => self.written += size,
                Ok(size) => {
                    self.written += size;
                    break;
                }
                Err(error) => return Err(self.lost(&error.to_string())),
            }
        }
        Ok(())
    }

    /// Fills the output, which is written, with the next chunk of the backlog.
    fn refill(&mut self) {
        self.output.clear();
        self.written = 0;
        let frames = self.backlog.min((CHUNK_SIZE / self.frame.len()).max(1));
        for _ in 0..frames {
            self.frame[8..HEADER_SIZE].copy_from_slice(&self.output_id.to_le_bytes());
            self.output.extend_from_slice(&self.frame);
            self.output_id += 1;
        }
        self.backlog -= frames;
    }

    fn issue(&mut self, now_ns: u64) {
        if self.quota == 0 {
            return;
        }
        self.quota -= 1;
        self.backlog += 1;
        self.next_id += 1;
        self.sent_ns.push_back(now_ns);
    }

    /// The header at `offset`, checked, if it is all there.
    fn next_reply(&self, offset: usize) -> Outcome<Option<Header>> {
        let expected = Header {
            payload_size: self.frame.len() - HEADER_SIZE,
            id: self.next_id - self.sent_ns.len() as u64,
        };
        match Header::decode(&self.inbox.bytes()[offset..]) {
            Ok(None) => Ok(None),
            Ok(Some(header)) if header == expected => Ok(Some(header)),
            Ok(Some(header)) => Err(self.lost(&format!("{header:?} came instead of {expected:?}"))),
            Err(_) => Err(self.lost("the server sent garbage")),
        }
    }

    fn lost(&self, why: &str) -> Failure {
        Failure::run(
            format!("{why}; {} replies are missing", self.waiting()),
            "does a server of the same program listen there, and is it alive?",
        )
    }
}
