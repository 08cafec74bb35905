//! The load generator of both echo floors: connections shared out to threads, phases, a report.

use std::io;
use std::sync::Barrier;
use std::thread;

use contract::{
    Bound, Failure, Flags, Load, Mode, Outcome, Report, SILENCE_SECONDS_MAX, Tally, limit,
    monotonic_ns,
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
    limit(load.patience(), Vec::new());

    let mut lanes = open(&load, threads)?;
    if !load.warmup.is_zero() {
        phase(&mut lanes, &load, Bound::Time(load.warmup), Check::Bytes)?;
    }
    let tally = phase(&mut lanes, &load, load.bound, Check::Header)?;
    let notes = format!(
        "blocking sockets, {threads} client thread(s), one write per read; the three modes are one \
         and the same here; replies are checked for length and id, before the window for every byte"
    );
    Report::of(program, &load, &tally, &notes).print()
}

/// The connections that one thread carries.
struct Lane {
    members: Vec<Member>,
    poll: Poll,
}

struct Member {
    connection: Connection,
    /// Its place among all connections.
    index: usize,
    interest: Interest,
}

fn open(load: &Load, threads: usize) -> Outcome<Vec<Lane>> {
    let mut lanes = Vec::with_capacity(threads);
    for thread in 0..threads {
        let mut lane = Lane {
            members: Vec::new(),
            poll: Poll::new().map_err(no_poll)?,
        };
        for index in (thread..load.connections).step_by(threads) {
            let connection = Connection::open(load)?;
            lane.poll
                .add(connection.socket.fd(), lane.members.len())
                .map_err(no_poll)?;
            lane.members.push(Member {
                connection,
                index,
                interest: Interest::Read,
            });
        }
        lanes.push(lane);
    }
    Ok(lanes)
}

/// Runs the load until `bound` and the last reply.
fn phase(lanes: &mut [Lane], load: &Load, bound: Bound, check: Check) -> Outcome<Tally> {
    let share = |index| match bound {
        Bound::Time(_) => u64::MAX,
        Bound::Requests(_) => load.share(index),
    };
    let window_ns = match bound {
        Bound::Time(window) => window.as_nanos() as u64,
        Bound::Requests(_) => u64::MAX,
    };
    let barrier = &Barrier::new(lanes.len());
    let run = move |lane: &mut Lane| {
        barrier.wait();
        lane.run(share, window_ns, check)
    };
    if let [lane] = lanes {
        return run(lane);
    }
    let tallies: Vec<Outcome<Tally>> = thread::scope(|scope| {
        let threads: Vec<_> = lanes
            .iter_mut()
            .map(|lane| scope.spawn(move || run(lane)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("a lane panicked"))
            .collect()
    });
    tallies
        .into_iter()
        .reduce(|joined, tally| Ok(joined?.join(&tally?)))
        .expect("there is at least one lane")
}

impl Lane {
    /// Keeps every window full for `window_ns`, then waits for what is still in flight.
    fn run(
        &mut self,
        share: impl Fn(usize) -> u64,
        window_ns: u64,
        check: Check,
    ) -> Outcome<Tally> {
        let mut tally = Tally::start();
        let mut now_ns = tally.start_ns();
        let end_ns = now_ns.saturating_add(window_ns);
        let mut waiting = 0;
        for (key, member) in self.members.iter_mut().enumerate() {
            member
                .connection
                .begin(share(member.index), monotonic_ns())?;
            member.update_interest(key, &self.poll)?;
            waiting += usize::from(member.connection.waiting() > 0);
        }
        let mut ready = Vec::new();
        while waiting > 0 {
            match self.members.as_slice() {
                // A lone connection with nothing to write can simply be read.
                [member] if !member.connection.unwritten() => {
                    ready.clear();
                    ready.push(Ready {
                        key: 0,
                        readable: true,
                        writable: false,
                    });
                }
                _ => self.wait(&mut ready)?,
            }
            for &Ready {
                key,
                readable,
                writable,
            } in &ready
            {
                let member = &mut self.members[key];
                if writable {
                    member.connection.flush()?;
                }
                if readable {
                    member.connection.read()?;
                    now_ns = monotonic_ns();
                    let latency = &mut tally.latency;
                    member.connection.absorb(now_ns, end_ns, check, latency)?;
                    waiting -= usize::from(member.connection.waiting() == 0);
                }
                member.update_interest(key, &self.poll)?;
            }
        }
        tally.end(now_ns);
        Ok(tally)
    }

    fn wait(&mut self, ready: &mut Vec<Ready>) -> Outcome<()> {
        self.poll
            .wait(SILENCE_SECONDS_MAX as i32 * 1000, ready)
            .map_err(no_poll)?;
        if ready.is_empty() {
            return Err(Failure::run(
                format!("nothing came for {SILENCE_SECONDS_MAX} s"),
                "is the server still alive?",
            ));
        }
        Ok(())
    }
}

impl Member {
    /// Waits for room only while there is something to write.
    fn update_interest(&mut self, key: usize, poll: &Poll) -> Outcome<()> {
        let interest = match self.connection.unwritten() {
            true => Interest::ReadAndWrite,
            false => Interest::Read,
        };
        if interest != self.interest {
            poll.change(self.connection.socket.fd(), key, interest)
                .map_err(no_poll)?;
            self.interest = interest;
        }
        Ok(())
    }
}

fn no_poll(error: io::Error) -> Failure {
    Failure::run(format!("cannot poll: {error}"), "raise `ulimit -n`")
}
