//! Producer role: one thread, one `epoll`, producers as slots that each wait for an ack.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::acknowledged::AckedMessages;
use super::batches::{Batch, BatchRules, Clocks, Lane};
use super::link::{Link, LinkSettings, Outcome};
use super::message::{MessageGenerator, partition_of};
use super::session::{Session, connect};
use super::socket::Socket;
use super::topic::{self, Layout, OffsetKind};
use super::{LoadSpec, ProduceCounts, ProduceSpec, verify};
use bench::measurement::Verification;
use bench::pacing::Schedule;
use bench::tally::{Departure, Tally};
use bench::workload::poll::{Events, Poll, Ready};
use bench::workload::role::{self, Failure, read_line, write_line};
use meter::clock::{now_ns, unix_ms};

/// Maximum time without a response while requests are in flight.
const SILENCE_NS: u64 = 60_000_000_000;

/// Maximum time between two iterations of the loop.
const LOOK_NS: u64 = 1_000_000_000;

/// Pause of a producer after a failure, so that a broker that rejects every request is not flooded.
const PAUSE_NS: u64 = 10_000_000;

/// Plays the role: warms up, produces, and reads back.
///
/// # Errors
/// When the broker cannot be reached, stops answering, or sends an invalid answer.
pub(super) fn play(spec: &LoadSpec, produce: &ProduceSpec) -> Result<(), Failure> {
    let opened_ns = now_ns();
    let mut session = Session::open(&spec.address)?;
    let layout = topic::layout(&mut session, &spec.topic)?;
    let begin = topic::offsets(&layout, &spec.topic, OffsetKind::Next)?;
    let mut load = Load::open(spec, produce, &layout, &session)?;
    load.produce(spec.warmup_ns, u64::MAX)?;
    write_line(&role::Ready {
        address: None,
        setup_ns: now_ns() - opened_ns,
    })?;
    if read_line()?.is_some() {
        let messages = match produce.messages {
            0 => u64::MAX,
            messages => messages,
        };
        write_line(&load.produce(spec.window_ns, messages)?)?;
    }
    // Verify after the suite has read the cost of the window.
    if read_line()?.is_some() {
        write_line(&load.verify(&layout, begin)?)?;
    }
    read_line()?;
    Ok(())
}

/// State of a load: producers, requests in flight, and acknowledged messages.
pub(super) struct Load {
    spec: LoadSpec,
    produce: ProduceSpec,
    poll: Poll,
    /// Connections: for each connection of the shape, one to each leader of a partition.
    links: Vec<Link>,
    /// By partition: index of its leader, and index of its lane on that connection.
    partition_lanes: Vec<(usize, usize)>,
    leaders: usize,
    maker: MessageGenerator,
    acked: AckedMessages,
    tally: Tally,
    /// Departure of the message that each producer waits for.
    departures: Vec<Departure>,
    /// Producers that wait for the schedule, and since when.
    idle: VecDeque<(u32, u64)>,
    /// Producers that pause after a failure.
    asleep: BinaryHeap<Reverse<(u64, u32)>>,
    under_way: usize,
    heard_ns: u64,
    /// Links with new messages.
    touched: Vec<usize>,
    done: Vec<Outcome>,
}

/// Number and schedule of the messages to send.
struct Pace {
    begin_ns: u64,
    end_ns: u64,
    left: u64,
    schedule: Option<Schedule>,
    next: u64,
}

impl Pace {
    /// Returns the intended send time of the schedule's next message; `None` if there is none.
    fn due_ns(&self) -> Option<u64> {
        let due_ns = self.begin_ns + self.schedule?.intended_ns(self.next);
        (due_ns < self.end_ns && self.left > 0).then_some(due_ns)
    }
}

impl Load {
    /// Connects to every leader.
    pub(super) fn open(
        spec: &LoadSpec,
        produce: &ProduceSpec,
        layout: &Layout,
        session: &Session,
    ) -> Result<Self, Failure> {
        let terms = LinkSettings {
            version: session.versions().of::<kafka::produce::Request>()?,
            acks: produce.acks.number(),
            rules: BatchRules {
                linger_ns: produce.linger_ns,
                batch_size: produce.batch_size,
                compression: produce.packing.compression(),
            },
            requests_max: produce.requests_max,
        };
        let poll = Poll::new()?;
        let (mut links, mut partition_lanes) = (Vec::new(), Vec::new());
        let partitions = layout.led_by.len();
        for connection in 0..produce.connections as usize {
            for (leader, address) in layout.leaders.iter().enumerate() {
                let socket = Socket::of(connect(address)?, &poll, links.len())?;
                let mut lanes = Vec::new();
                for partition in (0..partitions).filter(|at| layout.led_by[*at] == leader) {
                    if connection == 0 {
                        partition_lanes.push((partition, (leader, lanes.len())));
                    }
                    let id = connection * partitions + partition;
                    lanes.push(Lane::new(u32::try_from(id)?, i32::try_from(partition)?));
                }
                links.push(Link::new(socket, &spec.topic, terms, lanes));
            }
        }
        partition_lanes.sort_unstable();
        let slots = produce.connections as usize * produce.in_flight as usize;
        let nothing = Departure {
            intended_ns: 0,
            ready_ns: 0,
            sent_ns: 0,
        };
        Ok(Self {
            spec: spec.clone(),
            produce: produce.clone(),
            poll,
            links,
            partition_lanes: partition_lanes.into_iter().map(|(_, lane)| lane).collect(),
            leaders: layout.leaders.len(),
            maker: MessageGenerator::new(spec.tag, produce.size, produce.key, produce.payload),
            acked: AckedMessages::default(),
            tally: Tally::new(),
            departures: vec![nothing; slots],
            idle: VecDeque::new(),
            asleep: BinaryHeap::new(),
            under_way: 0,
            heard_ns: now_ns(),
            touched: Vec::new(),
            done: Vec::new(),
        })
    }

    /// Runs every producer for `window_ns` or until `messages` are sent, and waits for all acks.
    /// The window closes with the last of them.
    pub(super) fn produce(
        &mut self,
        window_ns: u64,
        messages: u64,
    ) -> Result<ProduceCounts, Failure> {
        let begin_ns = now_ns();
        let mut pace = Pace {
            begin_ns,
            end_ns: begin_ns + window_ns,
            left: messages,
            schedule: Schedule::new(self.produce.rate, 1, 0),
            next: 0,
        };
        self.tally = Tally::new();
        self.heard_ns = begin_ns;
        let requests_before = self.requests();
        for slot in 0..self.departures.len() {
            self.free(slot as u32, begin_ns, &mut pace);
        }
        let mut events = Events::new(self.links.len().max(16));
        self.send(&mut pace)?;
        while self.under_way > 0 || !self.asleep.is_empty() || pace.due_ns().is_some() {
            self.wait(&pace, &mut events)?;
            for Ready { key: link, .. } in events.drain() {
                self.links[link].receive(&mut self.done)?;
                self.touched.push(link);
                self.settle(&mut pace);
            }
            self.wake(&mut pace);
            self.send(&mut pace)?;
        }
        self.idle.clear();
        Ok(ProduceCounts {
            tally: std::mem::take(&mut self.tally),
            window_ns: (now_ns() - begin_ns).max(1),
            requests: self.requests() - requests_before,
        })
    }

    fn requests(&self) -> u64 {
        self.links.iter().map(|link| link.requests).sum()
    }

    /// Handles a producer without a message in flight: it sends, waits for the schedule, or is
    /// finished.
    fn free(&mut self, slot: u32, now_ns: u64, pace: &mut Pace) {
        if pace.schedule.is_some() {
            self.idle.push_back((slot, now_ns));
        } else if now_ns < pace.end_ns && pace.left > 0 {
            let at_once = Departure {
                intended_ns: now_ns,
                ready_ns: now_ns,
                sent_ns: now_ns,
            };
            self.put(slot, at_once, pace);
            self.tally.sent();
        }
    }

    /// Adds a producer's next message to a batch.
    fn put(&mut self, slot: u32, departure: Departure, pace: &mut Pace) {
        pace.left -= 1;
        self.departures[slot as usize] = departure;
        let key = self.maker.key();
        let (leader, lane) = self.partition_lanes[partition_of(key, self.partition_lanes.len())];
        let size = key.len() + self.produce.size;
        let connection = slot as usize / self.produce.in_flight as usize;
        let link = connection * self.leaders + leader;
        let now = Clocks {
            monotonic_ns: departure.sent_ns,
            unix_ms: unix_ms(),
        };
        self.links[link].push(lane, &mut self.maker, slot, size, now);
        self.under_way += 1;
        if self.touched.last() != Some(&link) {
            self.touched.push(link);
        }
    }

    /// Resumes the producers whose pause or scheduled time is over.
    fn wake(&mut self, pace: &mut Pace) {
        let now_ns = now_ns();
        while let Some(Reverse((wake_ns, slot))) = self.asleep.peek().copied() {
            if wake_ns > now_ns {
                break;
            }
            self.asleep.pop();
            self.free(slot, now_ns, pace);
        }
        while let Some(intended_ns) = pace.due_ns().filter(|due_ns| *due_ns <= now_ns) {
            let Some((slot, ready_ns)) = self.idle.pop_front() else {
                break;
            };
            pace.next += 1;
            let departure = Departure {
                intended_ns,
                ready_ns,
                sent_ns: now_ns,
            };
            self.put(slot, departure, pace);
            self.tally.sent_paced(departure);
        }
    }

    /// Sends the batches that may leave, until none remains.
    fn send(&mut self, pace: &mut Pace) -> Result<(), Failure> {
        if self.produce.linger_ns > 0 {
            // A batch on any link may have lingered long enough.
            self.touched.extend(0..self.links.len());
        }
        while let Some(link) = self.touched.pop() {
            self.links[link].send(now_ns(), &mut self.done)?;
            self.settle(pace);
        }
        Ok(())
    }

    /// Accounts for the finished batches, and resumes their producers.
    fn settle(&mut self, pace: &mut Pace) {
        if self.done.is_empty() {
            return;
        }
        let done_ns = now_ns();
        self.heard_ns = done_ns;
        let mut done = std::mem::take(&mut self.done);
        for (batch, outcome) in done.drain(..) {
            self.under_way -= batch.slots.len();
            match outcome {
                Ok(offset) => self.acknowledged(&batch, offset, done_ns, pace),
                Err(word) => self.refused(&batch, &word, done_ns),
            }
            let connection = batch.lane as usize / self.partition_lanes.len();
            let (leader, _) =
                self.partition_lanes[batch.lane as usize % self.partition_lanes.len()];
            self.links[connection * self.leaders + leader].reuse(batch);
        }
        self.done = done;
    }

    fn acknowledged(&mut self, batch: &Batch, offset: i64, done_ns: u64, pace: &mut Pace) {
        let count = batch.slots.len() as u64;
        if self.spec.verify {
            self.acked.note(batch.lane, batch.first, count, offset);
        }
        for &slot in &batch.slots {
            let departure = self.departures[slot as usize];
            match pace.schedule {
                Some(_) => self.tally.answered_paced(departure, done_ns),
                None => self.tally.answered(departure.sent_ns, done_ns),
            }
            self.free(slot, done_ns, pace);
        }
    }

    fn refused(&mut self, batch: &Batch, word: &str, done_ns: u64) {
        for &slot in &batch.slots {
            self.tally.failed(word);
            self.asleep.push(Reverse((done_ns + PAUSE_NS, slot)));
        }
    }

    /// Waits for the next event: a response, the end of a linger time, a scheduled time.
    fn wait(&self, pace: &Pace, events: &mut Events) -> Result<(), Failure> {
        let now_ns = now_ns();
        if self.under_way > 0 && now_ns.saturating_sub(self.heard_ns) > SILENCE_NS {
            return Err("the broker stopped answering".into());
        }
        let asleep = self.asleep.peek().map(|Reverse((wake_ns, _))| *wake_ns);
        let due = pace.due_ns().filter(|_| !self.idle.is_empty());
        let lingering = match self.produce.linger_ns {
            0 => None,
            _ => self.links.iter().filter_map(Link::due_ns).min(),
        };
        let times = [asleep, due, lingering].into_iter().flatten();
        let until_ns = times.fold(now_ns + LOOK_NS, u64::min);
        Ok(self.poll.wait(events, until_ns.saturating_sub(now_ns))?)
    }

    /// Reads back all partitions from their end offsets before the first message, from their
    /// current leaders.
    pub(super) fn verify(
        &mut self,
        layout: &Layout,
        begin: Vec<i64>,
    ) -> Result<Verification, Failure> {
        for link in &mut self.links {
            link.drain()?;
        }
        let numbers = |lane: u32| {
            let of_partition = self
                .partition_lanes
                .get(lane as usize % self.partition_lanes.len())?;
            let connection = lane as usize / self.partition_lanes.len();
            let link = self.links.get(connection * self.leaders + of_partition.0)?;
            Some(link.lanes().get(of_partition.1)?.numbers())
        };
        let run = verify::ReadBackRun {
            topic: &self.spec.topic,
            layout,
            tag: self.spec.tag,
            size: self.produce.size,
        };
        verify::read_back(&run, begin, &self.acked, numbers)
    }
}

#[cfg(test)]
mod tests;
