//! The load generator of both echo floors: connections shared out to threads, phases, a report.

use std::sync::Barrier;
use std::thread;

use contract::{
    Bound, Failure, Flags, Histogram, Load, Mode, Outcome, Report, SILENCE_SECONDS_MAX, limit,
    monotonic_ns, process_cpu_ns,
};

use crate::client::{Check, Connection};
use crate::poll::{Interest, Poll, Ready};

/// How many threads carry the connections unless `--threads` says so.
pub(crate) enum Threads {
    One,
    PerConnection,
}

/// Loads a server and prints the result.
pub(crate) fn run(program: &str, threads: Threads, mut flags: Flags) -> Outcome<()> {
    let load = Load::take(&mut flags)?;
    let default = match threads {
        Threads::One => 1,
        Threads::PerConnection => load.connections,
    };
    let max = load.connections as u64;
    let threads = flags.number("threads", default as u64, 1, max)? as usize;
    flags.finish()?;
    load.refuse(Mode::Publish, "a floor answers every frame")?;
    limit(load.patience());

    let mut lanes = open(&load, threads)?;
    if !load.warmup.is_zero() {
        phase(&mut lanes, &load, Bound::Time(load.warmup), Check::Bytes)?;
    }
    let tally = phase(&mut lanes, &load, load.bound, Check::Header)?;
    let notes = format!(
        "blocking sockets, {threads} client thread(s), one write per read; the three modes are one \
         and the same here; replies are checked for length and id, before the window for every byte"
    );
    Report {
        program,
        mode: load.mode.word(),
        in_flight: load.in_flight,
        size: load.size,
        connections: load.connections,
        completed: tally.latency.count(),
        window_ns: tally.window_ns,
        cpu_ns: tally.cpu_ns,
        latency: &tally.latency,
        notes: &notes,
        extra: &[],
    }
    .print()
}

/// The connections that one thread carries, and where each stands in the whole.
struct Lane {
    connections: Vec<(usize, Connection)>,
    poll: Poll,
}

/// What one phase has shown.
struct Tally {
    latency: Histogram,
    window_ns: u64,
    cpu_ns: u64,
}

fn open(load: &Load, threads: usize) -> Outcome<Vec<Lane>> {
    let mut lanes = Vec::with_capacity(threads);
    for thread in 0..threads {
        let poll = Poll::new().map_err(no_poll)?;
        let mut connections = Vec::new();
        for index in (thread..load.connections).step_by(threads) {
            let connection = Connection::open(load)?;
            poll.add(connection.socket.fd(), connections.len()).map_err(no_poll)?;
            connections.push((index, connection));
        }
        lanes.push(Lane { connections, poll });
    }
    Ok(lanes)
}

/// Runs the load until `bound` and the last reply.
fn phase(lanes: &mut [Lane], load: &Load, bound: Bound, check: Check) -> Outcome<Tally> {
    let share = |index| match bound {
        Bound::Time(_) => u64::MAX,
        Bound::Requests(_) => load.share(index),
    };
    let barrier = Barrier::new(lanes.len());
    let (start_ns, start_cpu_ns) = (monotonic_ns(), process_cpu_ns());
    let end_ns = match bound {
        Bound::Time(window) => start_ns + window.as_nanos() as u64,
        Bound::Requests(_) => u64::MAX,
    };
    let done: Outcome<Vec<Done>> = match lanes {
        [lane] => lane.run(share, end_ns, check).map(|done| vec![done]),
        lanes => thread::scope(|scope| {
            let threads: Vec<_> = lanes
                .iter_mut()
                .map(|lane| {
                    scope.spawn(|| {
                        barrier.wait();
                        lane.run(share, end_ns, check)
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("a lane panicked")).collect()
        }),
    };
    let mut tally = Tally { latency: Histogram::default(), window_ns: 0, cpu_ns: 0 };
    for done in done? {
        tally.latency.merge(&done.latency);
        tally.window_ns = tally.window_ns.max(done.at_ns - start_ns);
        tally.cpu_ns = tally.cpu_ns.max(done.at_cpu_ns - start_cpu_ns);
    }
    Ok(tally)
}

/// What one lane has shown, and when its last reply came.
struct Done {
    latency: Histogram,
    at_ns: u64,
    at_cpu_ns: u64,
}

impl Lane {
    fn run(&mut self, share: impl Fn(usize) -> u64, end_ns: u64, check: Check) -> Outcome<Done> {
        let mut latency = Histogram::default();
        for (index, connection) in &mut self.connections {
            connection.begin(share(*index), monotonic_ns())?;
        }
        match self.connections.as_mut_slice() {
            [(_, connection)] => {
                while connection.waiting() > 0 {
                    if connection.unwritten() {
                        turn(&mut self.poll, &mut self.connections, end_ns, check, &mut latency)?;
                        return self.rest(end_ns, check, latency);
                    }
                    connection.read()?;
                    connection.absorb(monotonic_ns(), end_ns, check, &mut latency)?;
                }
            }
            _ => return self.rest(end_ns, check, latency),
        }
        Ok(Done { latency, at_ns: monotonic_ns(), at_cpu_ns: process_cpu_ns() })
    }
}
