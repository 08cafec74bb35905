//! The stream floor: whoever asks for so many bytes gets them from memory, and asks for the next while
//! they come.
//!
//! A question is a number of bytes, `u32` little-endian, at most [`ASKED_MAX`]. The answer has no frame:
//! it is that many bytes.

use std::io;

use contract::{Bound, Failure, Flags, Load, Mode, Outcome, Report, Tally, limit, monotonic_ns};

use crate::echo::CHUNK_SIZE;
use crate::socket::Socket;

/// What one question may ask for.
const ASKED_MAX: usize = 1 << 20;

/// Answers one connection until it ends.
pub(crate) fn answer(socket: &Socket) -> io::Result<()> {
    let bytes = vec![7; ASKED_MAX];
    let mut question = [0; size_of::<u32>()];
    loop {
        let mut filled = 0;
        while filled < question.len() {
            match socket.read(&mut question[filled..])? {
                0 => return Ok(()),
                size => filled += size,
            }
        }
        let asked = u32::from_le_bytes(question) as usize;
        let asked = bytes.get(..asked).ok_or(io::ErrorKind::InvalidData)?;
        socket.write_all(asked)?;
    }
}

/// Reads for the time that is given and prints the result.
pub(crate) fn load(mut flags: Flags) -> Outcome<()> {
    let load = Load::take(&mut flags)?;
    flags.finish()?;
    load.refuse(Mode::Publish, "a floor answers every question")?;
    let Bound::Time(window) = load.bound else {
        return Err(Failure::usage(
            "a stream is not counted in requests",
            "give --seconds instead",
        ));
    };
    if load.connections != 1 || load.in_flight != 1 || !(1..=ASKED_MAX).contains(&load.size) {
        return Err(Failure::usage(
            format!("one connection reads one stream, of messages of at most {ASKED_MAX} bytes"),
            "leave out --connections and --in-flight",
        ));
    }
    limit(load.patience(), Vec::new());

    let mut reader = Reader::open(&load)?;
    reader.read_for(load.warmup.as_nanos() as u64)?;
    let tally = reader.read_for(window.as_nanos() as u64)?;
    let notes = format!(
        "a blocking socket; {} messages are asked for at a time, and the next while they come; a message's \
         latency is its share of the time that they took",
        reader.messages
    );
    Report::of("stream-floor", &load, &tally, &notes).print()
}

struct Reader {
    socket: Socket,
    chunk: Vec<u8>,
    /// That one question asks for, and their bytes.
    messages: u64,
    size: usize,
}

impl Reader {
    fn open(load: &Load) -> Outcome<Reader> {
        let messages = ASKED_MAX / load.size;
        Ok(Reader {
            socket: Socket::connect(&load.connect)?,
            chunk: vec![0; CHUNK_SIZE],
            messages: messages as u64,
            size: messages * load.size,
        })
    }

    /// One question is always ahead of what is read. Everything that was asked for is read.
    fn read_for(&mut self, window_ns: u64) -> Outcome<Tally> {
        let mut tally = Tally::start();
        let mut now_ns = tally.start_ns();
        let end_ns = now_ns.saturating_add(window_ns);
        self.ask()?;
        let mut is_last = false;
        while !is_last {
            is_last = now_ns >= end_ns;
            if !is_last {
                self.ask()?;
            }
            self.read_answer()?;
            let read_ns = monotonic_ns();
            for _ in 0..self.messages {
                tally.latency.record((read_ns - now_ns) / self.messages);
            }
            now_ns = read_ns;
        }
        tally.end(now_ns);
        Ok(tally)
    }

    fn ask(&self) -> Outcome<()> {
        let question = (self.size as u32).to_le_bytes();
        self.socket.write_all(&question).map_err(lost)
    }

    fn read_answer(&mut self) -> Outcome<()> {
        let mut left = self.size;
        while left > 0 {
            let space = CHUNK_SIZE.min(left);
            match self.socket.read(&mut self.chunk[..space]).map_err(lost)? {
                0 => return Err(lost(io::ErrorKind::UnexpectedEof.into())),
                size => left -= size,
            }
        }
        Ok(())
    }
}

fn lost(error: io::Error) -> Failure {
    Failure::run(
        format!("the stream is lost: {error}"),
        "does a server of the same program listen there, and is it alive?",
    )
}
