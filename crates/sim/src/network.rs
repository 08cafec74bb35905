//! A simulated network between named hosts: bytes arrive in order, late, or not at all.
//!
//! As with TCP, the application does not notice a lost segment: it arrives after a retransmission,
//! and everything after it waits. A cut ends a connection for both sides, and bytes on the way are
//! lost.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use net::{Sink, Source, Stream};
use parking_lot::Mutex;
use tokio::time::{Instant, Sleep};

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

/// A network under a seed. Cheap to clone.
#[derive(Clone)]
pub struct Network {
    shared: Arc<Mutex<Shared>>,
}

struct Shared {
    random: fastrand::Rng,
    weather: Weather,
    links: Vec<Link>,
}

/// A connection, as seen by a test.
#[derive(Clone)]
pub struct Link {
    directions: [Arc<Mutex<Direction>>; 2],
}

impl Link {
    /// Ends the connection for both sides; bytes on the way are lost.
    pub fn cut(&self) {
        for direction in &self.directions {
            direction.lock().cut();
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
        let directions = [Direction::new(), Direction::new()];
        let link = Link {
            directions: directions.clone(),
        };
        self.shared.lock().links.push(link.clone());
        let [there, back] = directions;
        let end =
            |read: &Arc<Mutex<Direction>>, write: &Arc<Mutex<Direction>>, peer: &str| Stream {
                source: Box::new(SimSource {
                    direction: read.clone(),
                    timer: None,
                }),
                sink: Arc::new(SimSink {
                    network: self.clone(),
                    write: write.clone(),
                    link: link.clone(),
                }),
                peer: format!("sim:{peer}"),
            };
        (end(&back, &there, to), end(&there, &back, from))
    }

    /// Cuts all connections.
    pub fn cut_all(&self) {
        for link in std::mem::take(&mut self.shared.lock().links) {
            link.cut();
        }
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
}

/// A direction of a connection.
#[derive(Default)]
struct Direction {
    segments: VecDeque<(Instant, VecDeque<u8>)>,
    in_flight: usize,
    finished: bool,
    cut: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl Direction {
    fn new() -> Arc<Mutex<Self>> {
        Arc::default()
    }

    fn wake(&mut self) {
        for waker in [self.reader.take(), self.writer.take()]
            .into_iter()
            .flatten()
        {
            waker.wake();
        }
    }

    fn cut(&mut self) {
        self.cut = true;
        self.segments.clear();
        self.in_flight = 0;
        self.wake();
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
            if direction.cut {
                return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
            }
            let Some((arrives, bytes)) = direction.segments.front_mut() else {
                if direction.finished {
                    return Poll::Ready(Ok(0));
                }
                direction.reader = Some(cx.waker().clone());
                return Poll::Pending;
            };
            let arrives = *arrives;
            if arrives <= Instant::now() {
                let count = io::Read::read(bytes, buffer)?;
                if bytes.is_empty() {
                    direction.segments.pop_front();
                }
                direction.in_flight -= count;
                if let Some(writer) = direction.writer.take() {
                    writer.wake();
                }
                self.timer = None;
                return Poll::Ready(Ok(count));
            }
            direction.reader = Some(cx.waker().clone());
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
    link: Link,
}

impl Sink for SimSink {
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        let Some(delay) = self.network.fate() else {
            self.link.cut();
            return Err(io::ErrorKind::ConnectionReset.into());
        };
        let mut direction = self.write.lock();
        if direction.cut || direction.finished {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let count = bytes.len().min(IN_FLIGHT_MAX - direction.in_flight);
        if count == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let behind = direction.segments.back().map(|(arrives, _)| *arrives);
        let arrives = behind.into_iter().fold(Instant::now() + delay, Ord::max);
        direction
            .segments
            .push_back((arrives, bytes[..count].iter().copied().collect()));
        direction.in_flight += count;
        if let Some(reader) = direction.reader.take() {
            reader.wake();
        }
        Ok(count)
    }

    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut direction = self.write.lock();
        if direction.cut || direction.in_flight < IN_FLIGHT_MAX {
            return Poll::Ready(Ok(()));
        }
        direction.writer = Some(cx.waker().clone());
        Poll::Pending
    }

    fn finish(&self) {
        let mut direction = self.write.lock();
        direction.finished = true;
        direction.wake();
    }

    fn close(&self) {
        self.link.cut();
    }
}
