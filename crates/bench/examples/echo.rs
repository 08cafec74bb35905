//! Complete benchmark in one file: bytes echoed over a loopback socket by a second process.
//!
//! ```text
//! cargo run --release -p telpher-bench --example echo -- [DIRECTORY]
//! ```
//!
//! The example runs two cases of paced request-reply, two of one-way, two call depths and a
//! capacity sweep, with a few short runs each: enough to see every part of the reports, but not to
//! quote.

use std::error::Error;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bench::measurement::{Arrivals, Measurement, Sink};
use bench::model::{Area, Case, CountedBy, Environment, Mode, Setup};
use bench::output::Output;
use bench::pacing::Schedule;
use bench::plan;
use bench::process::{Role, Watch};
use bench::progress::{Progress, Show};
use bench::report;
use bench::suite::Suite;
use bench::sweep::SweepOptions;
use bench::tally::{Departure, Tally};
use meter::clock::{Utc, now_ns};

type Failure = Box<dyn Error>;

const WINDOW_NS: u64 = 250_000_000;
const REPEATS: u32 = 5;

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let first = arguments.next();
    if first.as_deref() == Some("--responder") {
        let (size, echo) = (arguments.next(), arguments.next());
        let size = size.ok_or("no size")?.parse()?;
        return respond(size, echo.as_deref() == Some("echo"));
    }
    let base = first.map_or_else(|| PathBuf::from("bench-out"), PathBuf::from);
    let output = Output::create(&base, "echo", Utc::now())?;
    let results = run()?;
    output.write(&results)?;
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "{}\n{}",
        report::terminal(&results),
        output.directory().display()
    )?;
    Ok(())
}

fn run() -> Result<bench::model::Results, Failure> {
    let paced = |mode: Mode, size| Case::new("tcp", Area::Agent, mode).size(size).rate(2_000);
    let calls = |mode: Mode, depth| Case::new("tcp", Area::Rpc, mode).size(128).in_flight(depth);
    let cases = [
        paced(Mode::REQUEST_REPLY, 16),
        paced(Mode::REQUEST_REPLY, 16_384),
        paced(Mode::FIRE_AND_FORGET, 16),
        calls(Mode::SERIAL, 1),
        calls(Mode::CONCURRENT, 10),
    ];
    let setup = Setup {
        duration: Some("0.25s".to_owned()),
        repeats: Some(REPEATS),
        notes: vec![(
            "Responder".to_owned(),
            "this program again, as a process".to_owned(),
        )],
        ..Setup::default()
    };
    let environment = Environment::gather(std::env::args()).placement("unpinned");
    let progress = Progress::new(cases.len() as u32 * REPEATS, Show::fitting(false));
    let mut suite = Suite::new("echo", environment, setup, progress);
    for (position, _) in plan::interleaved(cases.len(), REPEATS) {
        let case = &cases[position];
        suite.starting(case);
        suite.record(case, measure(case)?)?;
    }
    let case = Case::new("tcp", Area::Agent, Mode::FIRE_AND_FORGET).size(16);
    let options = SweepOptions {
        start_rate: 20_000,
        repeats: 2,
        ..SweepOptions::default()
    };
    let mut sweep = suite.sweep(case.clone(), options)?;
    while let Some(attempt) = sweep.attempt() {
        let case = case.clone().rate(attempt.rate);
        let repeats = (0..options.repeats).map(|_| measure(&case));
        sweep.record(repeats.collect::<Result<_, _>>()?)?;
    }
    Ok(suite.finish())
}

/// Runs one repeat, with a responder of its own.
fn measure(case: &Case) -> Result<Measurement, Failure> {
    let opened_ns = now_ns();
    let (mut responder, mut socket) = Responder::start(case)?;
    let size = usize::try_from(case.size)?;
    let setup_ns = now_ns() - opened_ns;
    let roles = [
        (Role::Sender, std::process::id()),
        (Role::Responder, responder.process.id()),
    ];
    let watch = Watch::start(&roles)?;
    let tally = match Schedule::new(case.rate, 1, 0) {
        Some(schedule) => paced(&mut socket, size, case.mode.answered, schedule)?,
        None => closed(&mut socket, size, case.in_flight.unwrap_or(1))?,
    };
    let (tally, window_ns) = tally;
    let usage = watch.stop();
    socket.shutdown(std::net::Shutdown::Write)?;
    let sink = responder.sink()?;
    let counted = case.mode.counted_by == CountedBy::Sink;
    Ok(Measurement {
        setup_ns: Some(setup_ns),
        sink: counted.then_some(sink),
        usage: Some(usage),
        ..tally.over(window_ns)
    })
}

/// Sends messages on a schedule. Answered ones wait for the echo, the others only for the socket.
fn paced(
    socket: &mut TcpStream,
    size: usize,
    answered: bool,
    schedule: Schedule,
) -> io::Result<(Tally, u64)> {
    let mut message = vec![0; size];
    let mut tally = Tally::new();
    let start_ns = now_ns();
    let mut ready_ns = start_ns;
    for index in 0..schedule.count_within(WINDOW_NS) {
        let intended_ns = start_ns + schedule.intended_ns(index);
        let wait_ns = intended_ns.saturating_sub(now_ns());
        if wait_ns > 0 {
            std::thread::sleep(Duration::from_nanos(wait_ns));
        }
        let departure = Departure {
            intended_ns,
            ready_ns,
            sent_ns: now_ns(),
        };
        tally.sent_paced(departure);
        socket.write_all(&message)?;
        if answered {
            socket.read_exact(&mut message)?;
            ready_ns = now_ns();
            tally.answered_paced(departure, ready_ns);
        } else {
            ready_ns = now_ns();
            tally.completed(ready_ns);
        }
    }
    Ok((tally, (now_ns() - start_ns).max(WINDOW_NS)))
}

/// Sends in a closed loop with `depth` messages in flight.
fn closed(socket: &mut TcpStream, size: usize, depth: u32) -> io::Result<(Tally, u64)> {
    let mut message = vec![0; size];
    let mut tally = Tally::new();
    let mut sent = std::collections::VecDeque::new();
    let start_ns = now_ns();
    let mut done_ns = start_ns;
    while done_ns - start_ns < WINDOW_NS {
        while sent.len() < depth as usize {
            tally.sent();
            sent.push_back(now_ns());
            socket.write_all(&message)?;
        }
        socket.read_exact(&mut message)?;
        done_ns = now_ns();
        if let Some(sent_ns) = sent.pop_front() {
            tally.answered(sent_ns, done_ns);
        }
    }
    Ok((tally, done_ns - start_ns))
}

/// The second process, killed if the run fails before it ends by itself.
struct Responder {
    process: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Responder {
    fn start(case: &Case) -> Result<(Self, TcpStream), Failure> {
        let mut process = Command::new(std::env::current_exe()?)
            .args(["--responder", &case.size.to_string()])
            .arg(if case.mode.answered { "echo" } else { "sink" })
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = process.stdout.take().ok_or("no output")?;
        let mut responder = Self {
            process,
            lines: BufReader::new(stdout),
        };
        let socket = TcpStream::connect(responder.line()?)?;
        socket.set_nodelay(true)?;
        Ok((responder, socket))
    }

    /// Returns its counts, which it prints when the socket ends.
    fn sink(&mut self) -> Result<Sink, Failure> {
        Ok(serde_json::from_str(&self.line()?)?)
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.lines.read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        // The process ends with its socket; this is for a run that failed before.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Plays the responder: prints its address, accepts one connection, counts, echoes if requested,
/// and reports.
fn respond(size: usize, echo: bool) -> Result<(), Failure> {
    let started_ns = now_ns();
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut out = io::stdout().lock();
    writeln!(out, "{}", listener.local_addr()?)?;
    out.flush()?;
    let (mut socket, _) = listener.accept()?;
    socket.set_nodelay(true)?;
    let mut sink = Sink::default();
    let mut message = vec![0; size];
    while socket.read_exact(&mut message).is_ok() {
        sink.received += 1;
        Arrivals::note(&mut sink.arrivals, now_ns());
        if echo {
            socket.write_all(&message)?;
        }
    }
    sink.elapsed_ns = Some(now_ns() - started_ns);
    writeln!(out, "{}", serde_json::to_string(&sink)?)?;
    Ok(())
}
