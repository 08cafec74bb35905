//! Reading a partition record by record.
//!
//! Batches are fetched as any reader fetches them; one at a time is unpacked, elsewhere if it is
//! compressed, and walked as far as whoever reads wants to go. What a transaction took back and the
//! markers that end one are passed over.
//!
//! ```text
//! Nowhere => Fetching => Nowhere, with batches => (Unpacking =>) Open => Nowhere
//! ```
//!
//! What is unpacked counts against the node's budget ([`super::unpacked`]): a reader may have to wait for
//! memory, and loses a batch that it does not read from; then it fetches again from where it was.
//!
//! Invariant: *offsets only grow, and what comes out of a batch is bounded whatever the batch says.*

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::task::{Poll, Waker};

use bytes::Bytes;
use recordbatch::codecs::{Unpack, unpack};
use recordbatch::{
    Batch, Compression, HEADER_SIZE, Header, Marker, MarkerKind, Place, Record, Records,
};

use super::unpacked::{Key, Lease, Reservation, UNPACKED_SIZE_MAX};
use crate::Handle;
use crate::later::Later;
use crate::topics::{
    Ask, FetchError, FetchLimits, Fetched, Fetching, Isolation, Storage, Topic, Topics,
};

/// Bytes of batches that are fetched at a time; one batch comes even if it is larger.
const FETCH_SIZE: usize = 256 << 10;

/// Reads one partition from an offset on, for as long as somebody wants to.
pub struct Reader {
    node: Handle,
    topics: Topics,
    topic: Arc<Topic>,
    partition: u32,
    next: u64,
    is_hurried: bool,
    /// Fetched, and not looked into.
    batches: VecDeque<Bytes>,
    aborted: Aborted,
    at: At,
}

/// Why records are not handed out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotRead {
    /// See [`FetchError`].
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// Their producer has packed more than is unpacked here.
    #[error(
        "the batch at offset {offset} holds more than {UNPACKED_SIZE_MAX} bytes when it is unpacked"
    )]
    Large {
        /// Of the batch.
        offset: u64,
        /// Where to go on behind it.
        next: u64,
    },
    /// They are not what their batch says: they came like that, and are kept as they came.
    #[error("the batch at offset {offset} holds something that is no record")]
    Malformed {
        /// Of the batch.
        offset: u64,
        /// Where to go on behind it.
        next: u64,
    },
}

/// Whether whoever reads wants more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The next one too.
    More,
    /// None for now.
    Enough,
    /// Not even this one, which comes again.
    NotThis,
}

enum At {
    Nowhere,
    Fetching(Fetching),
    /// A compressed batch waits for memory.
    Waiting(Bytes),
    Unpacking(Header, Unpacking),
    Open(Open),
}

type Unpacking = Arc<Later<(Reservation, Result<Vec<u8>, Unpack>)>>;

/// A batch that is being walked.
struct Open {
    header: Header,
    payload: Payload,
    place: Place,
}

/// The records of a batch.
enum Payload {
    /// As they are stored.
    Stored(Bytes),
    /// Unpacked, and perhaps let go of meanwhile.
    Unpacked(Arc<Lease>),
}

/// What was taken back, of the batches that were fetched.
#[derive(Default)]
struct Aborted {
    /// Whose, and from which offset on; not reached yet.
    ahead: Vec<(i64, u64)>,
    /// Whose transaction is one of those, here.
    within: HashSet<i64>,
}

impl Reader {
    /// Of a partition, from that offset on; `None` if the node keeps no topics.
    pub fn open(node: &Handle, topic: Arc<Topic>, partition: u32, from: u64) -> Option<Self> {
        Some(Self {
            node: node.clone(),
            topics: node.topics()?,
            topic,
            partition,
            next: from,
            is_hurried: false,
            batches: VecDeque::new(),
            aborted: Aborted::default(),
            at: At::Nowhere,
        })
    }

    /// From now on it ends where nothing is left, instead of waiting there for more.
    pub fn hurry(&mut self) {
        self.is_hurried = true;
        if let At::Fetching(fetching) = &mut self.at {
            fetching.hurry();
        }
    }

    /// The offset to go on from: behind everything that was handed out or passed over.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Whether [`Reader::each`] may have something: `false` when whoever is in a hurry has seen all
    /// there is. Until that is known nothing, and the waker is woken once it may be.
    pub fn poll_ready(&mut self, waker: &Waker) -> Poll<Result<bool, NotRead>> {
        loop {
            match &mut self.at {
                At::Open(_) => return Poll::Ready(Ok(true)),
                At::Unpacking(header, later) => {
                    let Some(unpacked) = later.take(waker) else {
                        return Poll::Pending;
                    };
                    let header = *header;
                    self.at = At::Nowhere;
                    let (reservation, unpacked) = unpacked;
                    self.unpacked(header, reservation, unpacked)?;
                }
                At::Waiting(batch) => {
                    let batch = batch.clone();
                    self.unpack(batch, waker)?;
                    if let At::Waiting(_) = self.at {
                        return Poll::Pending;
                    }
                }
                At::Fetching(fetching) => {
                    let Poll::Ready(mut answers) = fetching.poll_fetched(waker) else {
                        return Poll::Pending;
                    };
                    self.at = At::Nowhere;
                    // One partition was asked for.
                    match answers.pop() {
                        Some(Ok(fetched)) if !fetched.batches.is_empty() => self.take(fetched),
                        Some(Err(error)) => return Poll::Ready(Err(error.into())),
                        Some(Ok(_)) | None => return Poll::Ready(Ok(false)),
                    }
                }
                At::Nowhere => match self.batches.pop_front() {
                    Some(batch) => self.look_into(batch)?,
                    None => self.fetch(),
                },
            }
        }
    }

    /// Shows the records that are at hand, as far as they are wanted. It may be none.
    pub fn each(&mut self, mut look: impl FnMut(&Record<'_>) -> Wanted) -> Result<(), NotRead> {
        let At::Open(open) = &mut self.at else {
            return Ok(());
        };
        let payload = match &open.payload {
            Payload::Stored(bytes) => Some(bytes.clone()),
            Payload::Unpacked(lease) => lease.payload(self.node.inner.ports.clock.now_ns()),
        };
        let Some(payload) = payload else {
            // Its memory went to others: it is fetched again.
            (self.at, self.batches) = (At::Nowhere, VecDeque::new());
            return Ok(());
        };
        let mut records = Records::resume(&open.header, &payload, open.place);
        loop {
            let before = records.place();
            let Some(record) = records.next() else {
                break;
            };
            let Ok(record) = record else {
                let (offset, next) = (open.header.base_offset.unsigned_abs(), end_of(&open.header));
                (self.next, self.at) = (next, At::Nowhere);
                return Err(NotRead::Malformed { offset, next });
            };
            let offset = record.offset.unsigned_abs();
            if offset < self.next {
                continue;
            }
            match look(&record) {
                Wanted::More => self.next = offset + 1,
                Wanted::Enough => {
                    self.next = offset + 1;
                    open.place = records.place();
                    return Ok(());
                }
                Wanted::NotThis => {
                    open.place = before;
                    return Ok(());
                }
            }
        }
        self.next = end_of(&open.header);
        self.at = At::Nowhere;
        Ok(())
    }

    fn fetch(&mut self) {
        let ask = Ask {
            topic: self.topic.clone(),
            partition: self.partition,
            offset: self.next,
            bytes_max: FETCH_SIZE,
            leader_epoch: None,
        };
        let limits = FetchLimits {
            isolation: Isolation::Committed,
            bytes_min: 1,
            bytes_max: FETCH_SIZE,
        };
        let mut fetching = self.topics.fetch(vec![ask], limits);
        if self.is_hurried {
            fetching.hurry();
        }
        self.at = At::Fetching(fetching);
    }

    fn take(&mut self, fetched: Fetched) {
        let aborted = fetched.aborted.into_iter();
        self.aborted = Aborted {
            ahead: aborted.map(|(producer, from)| (producer.0, from)).collect(),
            within: HashSet::new(),
        };
        self.batches = fetched.batches.into();
    }

    /// Begins to walk a batch, or passes it over.
    fn look_into(&mut self, bytes: Bytes) -> Result<(), NotRead> {
        let (batch, _) = Batch::split(&bytes).map_err(|error| {
            let reason = error.to_string();
            FetchError::from(Storage::Unreadable { reason })
        })?;
        let header = *batch.header();
        if self.aborted.hides(&batch) {
            self.next = end_of(&header).max(self.next);
            return Ok(());
        }
        if header.attributes.compression() == Some(Compression::None) {
            let payload = Payload::Stored(bytes.slice(HEADER_SIZE..));
            self.open_at(header, bytes.len() - HEADER_SIZE, payload);
            return Ok(());
        }
        self.at = At::Waiting(bytes);
        Ok(())
    }

    /// Has a batch unpacked, or goes on waiting for the memory: then the waker is woken once there may be
    /// some.
    fn unpack(&mut self, bytes: Bytes, waker: &Waker) -> Result<(), NotRead> {
        let (batch, _) = Batch::split(&bytes).map_err(|error| {
            let reason = error.to_string();
            FetchError::from(Storage::Unreadable { reason })
        })?;
        let header = *batch.header();
        let budget = self.topics.unpacked();
        if let Some(lease) = budget.find(&self.key(&header)) {
            self.open_unpacked(lease);
            return Ok(());
        }
        let now_ns = self.node.inner.ports.clock.now_ns();
        let Some(reservation) = budget.reserve(&batch, now_ns, waker) else {
            self.node.inner.need_sweep();
            return Ok(());
        };
        let unpack = move || {
            let unpacked = match Batch::split(&bytes) {
                Ok((batch, _)) => unpack(&batch, UNPACKED_SIZE_MAX),
                Err(_) => Err(Unpack::Malformed),
            };
            (reservation, unpacked)
        };
        let later = self.node.inner.make_elsewhere(unpack);
        let later = later.map_err(|error| {
            self.at = At::Nowhere;
            self.batches.clear();
            FetchError::from(Storage::from(error))
        })?;
        self.at = At::Unpacking(header, later);
        Ok(())
    }

    fn key(&self, header: &Header) -> Key {
        (self.topic.about().id, self.partition, header.base_offset)
    }

    fn open_unpacked(&mut self, lease: Arc<Lease>) {
        let now_ns = self.node.inner.ports.clock.now_ns();
        let Some(payload) = lease.payload(now_ns) else {
            // Let go of in this moment: it is fetched again.
            (self.at, self.batches) = (At::Nowhere, VecDeque::new());
            return;
        };
        let header = *lease.header();
        self.open_at(header, payload.len(), Payload::Unpacked(lease));
    }

    fn unpacked(
        &mut self,
        header: Header,
        reservation: Reservation,
        unpacked: Result<Vec<u8>, Unpack>,
    ) -> Result<(), NotRead> {
        match unpacked {
            Ok(payload) => {
                let now_ns = self.node.inner.ports.clock.now_ns();
                let (budget, key) = (self.topics.unpacked(), self.key(&header));
                let lease = budget.hold(key, header, payload, reservation, now_ns);
                self.open_unpacked(lease);
                Ok(())
            }
            Err(error) => {
                let (offset, next) = (header.base_offset.unsigned_abs(), end_of(&header));
                self.next = next;
                Err(match error {
                    Unpack::TooLarge { .. } => NotRead::Large { offset, next },
                    Unpack::Malformed | Unpack::Unknown => NotRead::Malformed { offset, next },
                })
            }
        }
    }

    fn open_at(&mut self, header: Header, size: usize, payload: Payload) {
        let place = Place::first(size);
        self.at = At::Open(Open {
            header,
            payload,
            place,
        });
    }
}

impl Aborted {
    /// Whether a reader of what is committed is not shown that batch, which comes behind those that it
    /// was asked of before.
    fn hides(&mut self, batch: &Batch<'_>) -> bool {
        let header = batch.header();
        let last = header.last_offset().unsigned_abs();
        let within = &mut self.within;
        self.ahead.retain(|(producer, from)| {
            let is_ahead = *from > last;
            if !is_ahead {
                within.insert(*producer);
            }
            is_ahead
        });
        if header.attributes.is_control() {
            if let Ok(marker) = Marker::decode(batch)
                && marker.kind == MarkerKind::Abort
            {
                self.within.remove(&marker.producer_id);
            }
            return true;
        }
        header.attributes.is_transactional()
            && header
                .producer()
                .is_some_and(|it| self.within.contains(&it.id))
    }
}

/// Behind the last offset of a batch.
fn end_of(header: &Header) -> u64 {
    header.last_offset().unsigned_abs() + 1
}
