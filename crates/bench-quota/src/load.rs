//! HTTP load role: one thread, one `epoll`, a configured number of connections.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::net::{SocketAddr, ToSocketAddrs};

use super::agents::Names;
use super::answer::{self, Answer, ParseError, checks, of_step, of_takes};
use super::caller::{Caller, Flight, ReadState};
use super::counts::{Counts, Phases};
use super::pace::{NextAction, NextRequest, Pacer};
use super::request::{Destination, Template};
use super::script;
use super::{Dialect, LoadCounts, LoadSpec, Pace, Reuse, STEADY, Step};
use bench::tally::Departure;
use bench::workload::poll::{Events, Poll, Ready};
use bench::workload::role::{self, Failure, read_line, write_line};
use meter::clock::now_ns;

/// Maximum time without a response while requests are in flight.
const SILENCE_NS: u64 = 30_000_000_000;

/// Maximum time between two iterations of the loop.
const LOOK_NS: u64 = 1_000_000_000;

/// Plays the role.
///
/// # Errors
/// When the server cannot be reached, stops answering, or sends an invalid answer.
pub(super) fn play(spec: &LoadSpec, dialect: Dialect) -> Result<(), Failure> {
    let opened_ns = now_ns();
    let mut load = Load::open(spec, dialect)?;
    write_line(&role::Ready {
        address: None,
        setup_ns: now_ns() - opened_ns,
    })?;
    if read_line()?.is_some() {
        write_line(&load.ask(|| write_line(&STEADY))?)?;
    }
    // The suite reads this process's memory before it ends.
    read_line()?;
    Ok(())
}

struct Load<'a> {
    spec: &'a LoadSpec,
    dialect: Dialect,
    /// Addresses, to which connections are distributed in turn.
    addresses: Vec<SocketAddr>,
    poll: Poll,
    callers: Vec<Caller>,
    templates: Vec<Template>,
    counts: Counts,
    /// Time since which each caller has been free, for the lag.
    free_ns: Vec<u64>,
    idle: VecDeque<usize>,
    asleep: BinaryHeap<Reverse<(u64, usize)>>,
    /// Number of callers that may still have something to do.
    working: usize,
    /// Requests in flight on all connections.
    under_way: usize,
    heard_ns: u64,
}

impl<'a> Load<'a> {
    fn open(spec: &'a LoadSpec, dialect: Dialect) -> Result<Self, Failure> {
        let addresses: Result<Vec<_>, Failure> = spec.addresses.iter().map(resolve).collect();
        let templates = templates(spec, dialect);
        let mut load = Self {
            spec,
            dialect,
            addresses: addresses?,
            poll: Poll::new()?,
            callers: (0..spec.pace.callers()).map(|_| Caller::new()).collect(),
            counts: counts(&templates),
            templates,
            free_ns: vec![0; spec.pace.callers()],
            idle: VecDeque::new(),
            asleep: BinaryHeap::new(),
            working: spec.pace.callers(),
            under_way: 0,
            heard_ns: now_ns(),
        };
        if spec.pace.reuse() == Reuse::Kept {
            for caller in 0..load.callers.len() {
                load.connect(caller)?;
            }
        }
        Ok(load)
    }

    /// Sends all requests. `open` is called once, when the window opens.
    fn ask(
        &mut self,
        mut open: impl FnMut() -> Result<(), Failure>,
    ) -> Result<LoadCounts, Failure> {
        let begin_ns = now_ns();
        let pacer = Pacer::new(&self.spec.pace, &self.spec.agents, begin_ns);
        let mut pacer = pacer.ok_or("a schedule needs a rate")?;
        self.heard_ns = begin_ns;
        for caller in 0..self.callers.len() {
            self.keep_busy(&mut pacer, caller, now_ns())?;
        }
        let mut events = Events::new(self.callers.len());
        let mut is_open = false;
        while self.working > 0 {
            if !is_open && now_ns() >= pacer.open_ns() {
                is_open = true;
                open()?;
            }
            self.wait(&pacer, &mut events)?;
            for Ready { key, has_ended } in events.drain() {
                let upto = match has_ended {
                    true => ReadState::Ended,
                    false => ReadState::Open,
                };
                self.on_ready(&mut pacer, key, upto)?;
            }
            self.wake(&mut pacer)?;
        }
        if !is_open {
            open()?;
        }
        let window_ns = now_ns().saturating_sub(pacer.open_ns()).max(1);
        let counts = std::mem::replace(&mut self.counts, counts(&self.templates));
        Ok(LoadCounts {
            tally: counts.tally,
            answered: counts.answered,
            window_ns,
        })
    }

    /// Waits for the next event: a response, the end of a think time, a scheduled time.
    fn wait(&self, pacer: &Pacer, events: &mut Events) -> Result<(), Failure> {
        let now_ns = now_ns();
        if self.under_way > 0 && now_ns.saturating_sub(self.heard_ns) > SILENCE_NS {
            return Err("the server stopped answering".into());
        }
        let mut until_ns = now_ns + LOOK_NS;
        if let Some(Reverse((wake_ns, _))) = self.asleep.peek() {
            until_ns = until_ns.min(*wake_ns);
        }
        if !self.idle.is_empty() {
            until_ns = until_ns.min(pacer.due_ns());
        }
        if pacer.open_ns() > now_ns {
            until_ns = until_ns.min(pacer.open_ns());
        }
        Ok(self.poll.wait(events, until_ns.saturating_sub(now_ns))?)
    }

    /// Resumes the callers whose think time or scheduled time is over.
    fn wake(&mut self, pacer: &mut Pacer) -> Result<(), Failure> {
        let now_ns = now_ns();
        while let Some(Reverse((wake_ns, caller))) = self.asleep.peek().copied() {
            if wake_ns > now_ns {
                break;
            }
            self.asleep.pop();
            self.keep_busy(pacer, caller, now_ns)?;
        }
        while !self.idle.is_empty() && pacer.due_ns() <= now_ns {
            if let Some(caller) = self.idle.pop_front() {
                self.keep_busy(pacer, caller, now_ns)?;
            }
        }
        Ok(())
    }

    /// Handles a connection that is readable or writable.
    fn on_ready(&mut self, pacer: &mut Pacer, key: usize, upto: ReadState) -> Result<(), Failure> {
        let caller = &mut self.callers[key];
        let inflow = caller.flush().and_then(|()| caller.fill(upto));
        // A broken connection has ended.
        let inflow = inflow.unwrap_or(ReadState::Ended);
        if caller.flights.is_empty() {
            if inflow == ReadState::Ended {
                caller.hang_up();
            }
            return Ok(());
        }
        let done_ns = now_ns();
        if !caller.bytes().is_empty() {
            self.heard_ns = done_ns;
            caller.first_byte_ns.get_or_insert(done_ns);
        }
        let is_free = self.take_answers(key, inflow, done_ns)?;
        match is_free {
            true => self.keep_busy(pacer, key, done_ns),
            false => Ok(()),
        }
    }

    /// Accounts for every complete response. Returns true if there was one, or if no more will
    /// come.
    fn take_answers(
        &mut self,
        key: usize,
        inflow: ReadState,
        done_ns: u64,
    ) -> Result<bool, Failure> {
        let caller = &mut self.callers[key];
        let (mut at, mut count, mut is_last) = (0, 0, inflow == ReadState::Ended);
        while let Some(flight) = caller.flights.get(count).copied() {
            let bytes = &caller.bytes()[at..];
            let Some(answer) = first(self.dialect, bytes, inflow)? else {
                break;
            };
            (at, count) = (at + answer.size, count + 1);
            let (counts, pace) = (&mut self.counts, &self.spec.pace);
            account(counts, pace, self.dialect, flight, answer, done_ns);
            is_last |= answer.is_last;
        }
        caller.consume(at);
        caller.flights.drain(..count);
        self.under_way -= count;
        if count > 0 && self.spec.pace.has_phases() {
            let (begun_ns, connected_ns) = caller.connect_ns;
            let first_ns = caller.first_byte_ns.unwrap_or(done_ns);
            self.counts.phases(Phases {
                connect_ns: connected_ns - begun_ns,
                waiting_ns: first_ns.saturating_sub(connected_ns),
                processing_ns: done_ns.saturating_sub(connected_ns),
            });
        }
        if count > 0 {
            caller.first_byte_ns = None;
        }
        if is_last || (count > 0 && self.spec.pace.reuse() == Reuse::Never) {
            self.count_lost(key);
            return Ok(true);
        }
        Ok(count > 0)
    }

    /// Closes a connection, and counts its requests in flight as failed.
    fn count_lost(&mut self, key: usize) {
        let caller = &mut self.callers[key];
        caller.hang_up();
        for flight in caller.flights.drain(..) {
            self.under_way -= 1;
            // A failure counts even outside the window: a run with a failure is not clean.
            if !flight.is_counted {
                let timed = self.spec.pace.timed();
                self.counts.sent(flight.decisions, flight.departure, timed);
            }
            self.counts.failed(flight.decisions, "connection-lost");
        }
    }

    /// Sends a caller's next requests, as long as its connection has room.
    fn keep_busy(&mut self, pacer: &mut Pacer, key: usize, at_ns: u64) -> Result<(), Failure> {
        self.free_ns[key] = at_ns;
        while self.callers[key].flights.len() < self.spec.pace.depth() {
            match pacer.next(key, at_ns) {
                NextAction::Send(going) => self.put(pacer, key, going, at_ns)?,
                NextAction::Sleep(until_ns) => {
                    self.asleep.push(Reverse((until_ns, key)));
                    break;
                }
                NextAction::Idle => {
                    self.idle.push_back(key);
                    break;
                }
                NextAction::Done => {
                    self.working -= usize::from(self.callers[key].flights.is_empty());
                    break;
                }
            }
        }
        if self.callers[key].flush().is_err() {
            self.count_lost(key);
            // The request is repeated when the caller has a connection again.
            self.asleep.push(Reverse((at_ns, key)));
        }
        Ok(())
    }

    /// Writes a request to its connection.
    fn put(
        &mut self,
        pacer: &mut Pacer,
        key: usize,
        going: NextRequest,
        at_ns: u64,
    ) -> Result<(), Failure> {
        self.callers[key].connect_ns = (at_ns, at_ns);
        if !self.callers[key].is_connected() {
            self.connect(key)?;
            self.callers[key].connect_ns.1 = now_ns();
        }
        let departure = Departure {
            intended_ns: going.intended_ns.unwrap_or(at_ns),
            ready_ns: self.free_ns[key],
            sent_ns: at_ns,
        };
        let flight = Flight {
            template: going.template,
            decisions: self.dialect.decisions(),
            departure,
            is_counted: going.is_counted,
        };
        if flight.is_counted {
            let timed = self.spec.pace.timed();
            self.counts.sent(flight.decisions, departure, timed);
        }
        let caller = &mut self.callers[key];
        let template = &self.templates[going.template];
        template.write(caller.outbox(), || {
            going.agent.unwrap_or_else(|| pacer.agent())
        });
        caller.flights.push_back(flight);
        self.under_way += 1;
        Ok(())
    }

    fn connect(&mut self, key: usize) -> Result<(), Failure> {
        let address = self.addresses[key % self.addresses.len()];
        let connected = self.callers[key].connect(address, &self.poll, key);
        connected.map_err(|error| format!("cannot connect to {address}: {error}").into())
    }
}

/// Parses the first complete response.
fn first(
    dialect: Dialect,
    bytes: &[u8],
    inflow: ReadState,
) -> Result<Option<Answer<'_>>, ParseError> {
    match dialect {
        Dialect::Script(_) => script::first(bytes),
        _ => answer::first(bytes, inflow == ReadState::Ended),
    }
}

fn resolve(address: &String) -> Result<SocketAddr, Failure> {
    let found = address.to_socket_addrs()?.next();
    found.ok_or_else(|| format!("{address} is not an address").into())
}

fn counts(templates: &[Template]) -> Counts {
    Counts::of(templates.iter().map(|template| template.endpoint))
}

/// Counts one response. A failure counts even outside the window.
fn account(
    counts: &mut Counts,
    pace: &Pace,
    dialect: Dialect,
    flight: Flight,
    answer: Answer<'_>,
    done_ns: u64,
) {
    let decided = match pace {
        Pace::Users { steps, .. } => {
            let step = steps[flight.template];
            let (made, held) = checks(step, answer);
            counts.answered.checks += made;
            counts.answered.checks_held += held;
            of_step(step, answer)
        }
        _ => of_takes(dialect, answer),
    };
    let timed = pace.timed();
    match decided {
        Ok(decided) if flight.is_counted => {
            counts.answered(flight.template, decided, flight.departure, timed, done_ns);
        }
        Ok(_) => {}
        Err(kind) => {
            if !flight.is_counted {
                counts.sent(flight.decisions, flight.departure, timed);
            }
            counts.failed(flight.decisions, &kind);
        }
    }
}

/// Returns the requests of the load: the steps of its users, or takes.
fn templates(spec: &LoadSpec, dialect: Dialect) -> Vec<Template> {
    let to = Destination {
        host: spec.addresses.first().map_or("", String::as_str),
        reuse: spec.pace.reuse(),
    };
    let names: &Names = &spec.agents;
    match &spec.pace {
        Pace::Users { steps, .. } => {
            let step = |step: &Step| Template::step(*step, to, names);
            steps.iter().map(step).collect()
        }
        _ => vec![Template::take(dialect, to, names)],
    }
}

#[cfg(test)]
mod tests;
