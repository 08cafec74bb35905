//! A network between named hosts in memory, from a seed: bytes arrive in order, late, or not at all.
//!
//! As with TCP, the application does not notice a lost segment: it arrives after a retransmission,
//! and everything after it waits. Segments of different connections overtake each other. A cut ends a
//! connection for both sides, and bytes on the way are lost. Nothing arrives over a blocked direction
//! until it is unblocked.
//!
//! Time is tokio's, so that a paused clock makes it a simulation.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, Sleep};

use crate::{Sink, Source, Stream};

/// Delay, loss and cuts of the network.
#[derive(Clone, Copy, Debug)]
pub struct Weather {
    /// Shortest delay of a segment.
    pub delay_min: Duration,
    /// Longest delay of a segment.
    pub delay_max: Duration,
    /// Lost and retransmitted segments, per thousand.
    pub loss_per_mille: u32,
    /// Additional delay of a retransmitted segment.
    pub retransmission: Duration,
    /// Segments that cut their connection, per ten thousand.
    pub cut_per_ten_thousand: u32,
}

impl Weather {
    /// Some delay, no loss, no cuts.
    pub const CALM: Self = Self {
        delay_min: Duration::from_micros(50),
        delay_max: Duration::from_micros(500),
        loss_per_mille: 0,
        retransmission: Duration::from_millis(200),
        cut_per_ten_thousand: 0,
    };

    /// Delay, loss and cuts.
    pub const STORM: Self = Self {
        delay_max: Duration::from_millis(20),
        loss_per_mille: 20,
        cut_per_ten_thousand: 20,
        ..Self::CALM
    };
}

/// Bytes in one direction before its writer must wait.
const IN_FLIGHT_MAX: usize = 256 << 10;

/// Time until an attempt to connect over a blocked direction ends.
const CONNECT_MAX: Duration = Duration::from_secs(3);

/// First bytes of a connection's dialer that blocks can refer to.
const GREETING_SIZE: usize = 8;

/// A network under a seed. Cheap to clone.
#[derive(Clone)]
pub struct Network {
    shared: Arc<Mutex<Shared>>,
}

struct Shared {
    random: fastrand::Rng,
    weather: Weather,
    blocks: Vec<Block>,
    links: Vec<Link>,
}

/// A direction in which nothing arrives.
struct Block {
    from: String,
    to: String,
    /// Only connections whose dialer has sent this byte at this place.
    greeting: Option<(usize, u8)>,
}

/// A connection, as seen by a test.
#[derive(Clone)]
pub struct Link {
    /// The dialer and the listener.
    hosts: Arc<[String; 2]>,
    /// From the dialer, and to it.
    directions: [Arc<Mutex<Direction>>; 2],
    /// The first bytes of the dialer.
    greeting: Arc<Mutex<Vec<u8>>>,
}

impl Link {
    /// Ends the connection for both sides; bytes on the way are lost.
    pub fn cut(&self) {
        for direction in &self.directions {
            direction.lock().cut();
        }
    }

    fn is_of(&self, host: &str) -> bool {
        self.hosts.iter().any(|it| it == host)
    }

    fn is_over(&self) -> bool {
        self.directions.iter().all(|it| it.lock().is_cut)
    }

    /// Blocks and unblocks the directions.
    fn update(&self, blocks: &[Block]) {
        let [dialer, listener] = &*self.hosts;
        let greeting = self.greeting.lock();
        let fits = |block: &Block| {
            let greeted = block.greeting;
            greeted.is_none_or(|(place, byte)| greeting.get(place) == Some(&byte))
        };
        let ends = [(dialer, listener), (listener, dialer)];
        for (direction, (from, to)) in self.directions.iter().zip(ends) {
            let mut blocks = blocks.iter();
            let is_blocked = blocks.any(|it| it.from == *from && it.to == *to && fits(it));
            direction.lock().set_blocked(is_blocked);
        }
    }
}

impl Network {
    /// Creates a network whose delays, losses and cuts follow from `seed`.
    pub fn new(seed: u64, weather: Weather) -> Self {
        let random = fastrand::Rng::with_seed(seed);
        let shared = Shared {
            random,
            weather,
            blocks: Vec::new(),
            links: Vec::new(),
        };
        Self {
            shared: Arc::new(Mutex::new(shared)),
        }
    }

    /// Changes delay, loss and cuts from now on.
    pub fn set_weather(&self, weather: Weather) {
        self.shared.lock().weather = weather;
    }

    /// Creates two connected streams.
    pub fn connect(&self, from: &str, to: &str) -> (Stream, Stream) {
        let link = Link {
            hosts: Arc::new([from.to_owned(), to.to_owned()]),
            directions: Default::default(),
            greeting: Arc::default(),
        };
        {
            let mut shared = self.shared.lock();
            shared.links.retain(|link| !link.is_over());
            link.update(&shared.blocks);
            shared.links.push(link.clone());
        }
        let end = |read: usize, write: usize, peer: &str| Stream {
            source: Box::new(SimSource {
                direction: link.directions[read].clone(),
                timer: None,
            }),
            sink: Arc::new(SimSink {
                network: self.clone(),
                write: link.directions[write].clone(),
                is_dialer: write == 0,
                link: link.clone(),
            }),
            peer: format!("sim:{peer}"),
        };
        (end(1, 0, to), end(0, 1, from))
    }

    /// Creates two connected streams after a delay.
    ///
    /// # Errors
    ///
    /// A direction is blocked: after three seconds. The segment is cut off.
    pub async fn dial(&self, from: &str, to: &str) -> io::Result<(Stream, Stream)> {
        if self.is_blocked(from, to) || self.is_blocked(to, from) {
            tokio::time::sleep(CONNECT_MAX).await;
            return Err(io::ErrorKind::TimedOut.into());
        }
        let delay = self.fate().ok_or(io::ErrorKind::ConnectionReset)?;
        tokio::time::sleep(delay).await;
        Ok(self.connect(from, to))
    }

    /// Blocks one direction.
    pub fn block(&self, from: &str, to: &str) {
        self.add_block(from, to, None);
    }

    /// Blocks one direction of the connections whose dialer has sent `byte` at `place`, which is below
    /// 8. Others can be dialed.
    pub fn block_greeted(&self, from: &str, to: &str, (place, byte): (usize, u8)) {
        assert!(place < GREETING_SIZE, "a place in the greeting");
        self.add_block(from, to, Some((place, byte)));
    }

    fn add_block(&self, from: &str, to: &str, greeting: Option<(usize, u8)>) {
        let mut shared = self.shared.lock();
        let (from, to) = (from.to_owned(), to.to_owned());
        shared.blocks.push(Block { from, to, greeting });
        shared.update();
    }

    /// Unblocks all directions.
    pub fn heal(&self) {
        let mut shared = self.shared.lock();
        shared.blocks.clear();
        shared.update();
    }

    /// Cuts all connections.
    pub fn cut_all(&self) {
        self.cut_if(|_| true);
    }

    /// Cuts all connections of a host.
    pub fn cut_host(&self, host: &str) {
        self.cut_if(|link| link.is_of(host));
    }

    /// Cuts all connections between two hosts.
    pub fn cut_between(&self, one: &str, other: &str) {
        self.cut_if(|link| link.is_of(one) && link.is_of(other));
    }

    fn cut_if(&self, is_cut: impl Fn(&Link) -> bool) {
        let mut links = Vec::new();
        {
            let mut shared = self.shared.lock();
            let all = std::mem::take(&mut shared.links);
            for link in all {
                match is_cut(&link) {
                    true => links.push(link),
                    false => shared.links.push(link),
                }
            }
        }
        links.iter().for_each(Link::cut);
    }

    fn is_blocked(&self, from: &str, to: &str) -> bool {
        let shared = self.shared.lock();
        let mut blocks = shared.blocks.iter();
        blocks.any(|it| it.greeting.is_none() && it.from == from && it.to == to)
    }

    /// Returns the delay of the next segment; `None` if it cuts its connection.
    fn fate(&self) -> Option<Duration> {
        let shared = &mut *self.shared.lock();
        let weather = shared.weather;
        if shared.random.u32(0..10_000) < weather.cut_per_ten_thousand {
            return None;
        }
        let (min, max) = (weather.delay_min, weather.delay_max);
        let delay = min + (max - min).mul_f64(shared.random.f64());
        let lost = shared.random.u32(0..1000) < weather.loss_per_mille;
        Some(if lost {
            delay + weather.retransmission
        } else {
            delay
        })
    }

    /// Notes the first bytes of a dialer, by which connections may be blocked.
    fn greet(&self, link: &Link, bytes: &[u8]) {
        {
            let mut greeting = link.greeting.lock();
            let missing = GREETING_SIZE - greeting.len();
            if missing == 0 {
                return;
            }
            greeting.extend(bytes.iter().take(missing));
        }
        link.update(&self.shared.lock().blocks);
    }
}

impl Shared {
    fn update(&self) {
        self.links.iter().for_each(|link| link.update(&self.blocks));
    }
}

/// A direction of a connection.
#[derive(Default)]
struct Direction {
    segments: VecDeque<(Instant, VecDeque<u8>)>,
    in_flight: usize,
    is_finished: bool,
    is_cut: bool,
    is_blocked: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl Direction {
    fn wake(&mut self) {
        let wakers = [self.reader.take(), self.writer.take()];
        wakers.into_iter().flatten().for_each(Waker::wake);
    }

    fn cut(&mut self) {
        self.is_cut = true;
        self.segments.clear();
        self.in_flight = 0;
        self.wake();
    }

    fn set_blocked(&mut self, is_blocked: bool) {
        if self.is_blocked != is_blocked {
            self.is_blocked = is_blocked;
            self.wake();
        }
    }
}

struct SimSource {
    direction: Arc<Mutex<Direction>>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Source for SimSource {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        loop {
            let mut direction = self.direction.lock();
            if direction.is_cut {
                return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
            }
            direction.reader = Some(cx.waker().clone());
            if direction.is_blocked {
                return Poll::Pending;
            }
            let Some((arrives, bytes)) = direction.segments.front_mut() else {
                return match direction.is_finished {
                    true => Poll::Ready(Ok(0)),
                    false => Poll::Pending,
                };
            };
            let arrives = *arrives;
            if arrives <= Instant::now() {
                let count = io::Read::read(bytes, buffer)?;
                if bytes.is_empty() {
                    direction.segments.pop_front();
                }
                direction.in_flight -= count;
                direction.writer.take().into_iter().for_each(Waker::wake);
                self.timer = None;
                return Poll::Ready(Ok(count));
            }
            drop(direction);
            let timer = self
                .timer
                .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(arrives)));
            timer.as_mut().reset(arrives);
            if timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }
}

struct SimSink {
    network: Network,
    write: Arc<Mutex<Direction>>,
    is_dialer: bool,
    link: Link,
}

impl Sink for SimSink {
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        let Some(delay) = self.network.fate() else {
            self.link.cut();
            return Err(io::ErrorKind::ConnectionReset.into());
        };
        if self.is_dialer {
            self.network.greet(&self.link, bytes);
        }
        let mut direction = self.write.lock();
        if direction.is_cut || direction.is_finished {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let count = bytes.len().min(IN_FLIGHT_MAX - direction.in_flight);
        if count == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let last = direction.segments.back().map(|(arrives, _)| *arrives);
        let arrives = last.into_iter().fold(Instant::now() + delay, Ord::max);
        let segment = bytes[..count].iter().copied().collect();
        direction.segments.push_back((arrives, segment));
        direction.in_flight += count;
        direction.reader.take().into_iter().for_each(Waker::wake);
        Ok(count)
    }

    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut direction = self.write.lock();
        if direction.is_cut || direction.in_flight < IN_FLIGHT_MAX {
            return Poll::Ready(Ok(()));
        }
        direction.writer = Some(cx.waker().clone());
        Poll::Pending
    }

    fn finish(&self) {
        let mut direction = self.write.lock();
        direction.is_finished = true;
        direction.wake();
    }

    fn close(&self) {
        self.link.cut();
    }
}
