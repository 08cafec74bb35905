//! Reading a partition record by record.
//!
//! Batches are fetched as by any consumer. One batch at a time is decompressed, on another thread
//! if it is compressed, and iterated over as far as the caller wants. Records of aborted
//! transactions and transaction markers are skipped.
//!
//! ```text
//! Nowhere => Fetching => Nowhere, with batches => (Unpacking =>) Open => Nowhere
//! ```
//!
//! Decompressed data counts towards the node's budget ([`super::unpacked`]): a reader may have to
//! wait for memory, and loses a batch that it does not read from. It then fetches again at its
//! position.
//!
//! Invariant: *offsets only grow, and the size of a decompressed batch is bounded.*

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::task::{Poll, Waker};

use bytes::Bytes;
use journal::StoredBytes;
use platform::Later;
use recordbatch::codecs::{Unpack, unpack};
use recordbatch::{
    Batch, Compression, HEADER_SIZE, Header, Marker, MarkerKind, Record, RecordPosition, Records,
};

use super::unpacked::{Key, Lease, Reservation, UNPACKED_SIZE_MAX};
use crate::error::FetchError;
use crate::error::Storage;
use crate::fetch::Ask;
use crate::fetch::FetchLimits;
use crate::fetch::{BatchPlacement, Fetched};
use crate::fetching::Fetching;
use crate::service::Topics;
use crate::topic::Topic;
use topics::Isolation;

/// Size of one fetch in bytes; one batch is returned even if it is larger.
const FETCH_SIZE: usize = 256 << 10;

/// A reader of one partition, starting at an offset.
pub struct Reader {
    topics: Topics,
    topic: Arc<Topic>,
    partition: u32,
    next: u64,
    is_hurried: bool,
    /// Batches that were fetched but not opened yet.
    batches: VecDeque<Bytes>,
    aborted: AbortedTransactions,
    state: State,
}

/// The reason why records cannot be returned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotRead {
    /// The fetch failed; see [`FetchError`].
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The batch is larger than the maximum when it is decompressed.
    #[error(
        "the batch at offset {offset} has more than {UNPACKED_SIZE_MAX} bytes when decompressed"
    )]
    Large {
        /// The offset of the batch.
        offset: u64,
        /// The offset after the batch, to continue at.
        next: u64,
    },
    /// The batch contains invalid records. The producer sent it like that, and it is stored
    /// unchanged.
    #[error("the batch at offset {offset} has an invalid record")]
    Malformed {
        /// The offset of the batch.
        offset: u64,
        /// The offset after the batch, to continue at.
        next: u64,
    },
}

/// The caller's answer to a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Continue with the next record.
    More,
    /// Stop after this record.
    Enough,
    /// Stop before this record, which is returned again.
    NotThis,
}

enum State {
    Nowhere,
    Fetching(Fetching),
    /// A compressed batch that waits for memory.
    Waiting(Bytes),
    Unpacking(Header, Unpacking),
    Open(OpenBatch),
}

type Unpacking = Arc<Later<(Reservation, Result<Vec<u8>, Unpack>)>>;

/// A batch that is being iterated over.
struct OpenBatch {
    header: Header,
    payload: Payload,
    place: RecordPosition,
}

/// The records of a batch.
enum Payload {
    /// Uncompressed, as stored.
    Stored(Bytes),
    /// Decompressed; the memory may have been reclaimed meanwhile.
    Unpacked(Arc<Lease>),
}

/// The aborted transactions in the fetched batches.
#[derive(Default)]
struct AbortedTransactions {
    /// Producers and the first offsets of aborted transactions that were not reached yet.
    ahead: Vec<(i64, u64)>,
    /// Producers whose aborted transaction covers the current position.
    within: HashSet<i64>,
}

impl Reader {
    /// Opens a reader of a partition at an offset.
    pub fn open(topics: &Topics, topic: Arc<Topic>, partition: u32, from: u64) -> Self {
        Self {
            topics: topics.clone(),
            topic,
            partition,
            next: from,
            is_hurried: false,
            batches: VecDeque::new(),
            aborted: AbortedTransactions::default(),
            state: State::Nowhere,
        }
    }

    /// Makes the reader return at the end of the partition instead of waiting for more.
    pub fn hurry(&mut self) {
        self.is_hurried = true;
        if let State::Fetching(fetching) = &mut self.state {
            fetching.hurry();
        }
    }

    /// Returns the offset to continue at: after all records that were returned or skipped.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Becomes ready with true once [`Reader::each`] may have records, or with false at the end
    /// after [`Reader::hurry`]; until then, the waker is woken when it may be.
    pub fn poll_ready(&mut self, waker: &Waker) -> Poll<Result<bool, NotRead>> {
        loop {
            match &mut self.state {
                State::Open(_) => return Poll::Ready(Ok(true)),
                State::Unpacking(header, later) => {
                    let Some(unpacked) = later.take(waker) else {
                        return Poll::Pending;
                    };
                    let header = *header;
                    self.state = State::Nowhere;
                    let (reservation, unpacked) = unpacked;
                    self.unpacked(header, reservation, unpacked)?;
                }
                State::Waiting(batch) => {
                    let batch = batch.clone();
                    self.unpack(batch, waker)?;
                    if let State::Waiting(_) = self.state {
                        return Poll::Pending;
                    }
                }
                State::Fetching(fetching) => {
                    let Poll::Ready(mut answers) = fetching.poll_fetched(waker) else {
                        return Poll::Pending;
                    };
                    self.state = State::Nowhere;
                    // One partition was requested.
                    match answers.pop() {
                        Some(Ok(fetched)) if !fetched.batches.is_empty() => self.take(fetched)?,
                        Some(Err(error)) => return Poll::Ready(Err(error.into())),
                        Some(Ok(_)) | None => return Poll::Ready(Ok(false)),
                    }
                }
                State::Nowhere => match self.batches.pop_front() {
                    Some(batch) => self.look_into(batch)?,
                    None => self.fetch(),
                },
            }
        }
    }

    /// Passes the available records to `look`, until it stops. There may be none.
    pub fn each(&mut self, mut look: impl FnMut(&Record<'_>) -> Wanted) -> Result<(), NotRead> {
        let State::Open(open) = &mut self.state else {
            return Ok(());
        };
        let payload = match &open.payload {
            Payload::Stored(bytes) => Some(bytes.clone()),
            Payload::Unpacked(lease) => lease.payload(self.topics.state.platform.now_ns()),
        };
        let Some(payload) = payload else {
            // Its memory was reclaimed: the batch is fetched again.
            (self.state, self.batches) = (State::Nowhere, VecDeque::new());
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
                (self.next, self.state) = (next, State::Nowhere);
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
        self.state = State::Nowhere;
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
            placement: BatchPlacement::Memory,
        };
        let mut fetching = self.topics.fetch(vec![ask], limits);
        if self.is_hurried {
            fetching.hurry();
        }
        self.state = State::Fetching(fetching);
    }

    fn take(&mut self, fetched: Fetched) -> Result<(), FetchError> {
        let aborted = fetched.aborted.into_iter();
        self.aborted = AbortedTransactions {
            ahead: aborted.map(|(producer, from)| (producer.0, from)).collect(),
            within: HashSet::new(),
        };
        let batches = fetched.batches.into_iter().map(StoredBytes::into_bytes);
        let batches = batches.collect::<Result<_, _>>();
        self.batches = batches.map_err(Storage::unreadable)?;
        Ok(())
    }

    /// Opens a batch, or skips it.
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
        self.state = State::Waiting(bytes);
        Ok(())
    }

    /// Starts decompressing a batch, or waits for memory: then the waker is woken when there may be
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
        let now_ns = self.topics.state.platform.now_ns();
        let Some(reservation) = budget.reserve(&batch, now_ns, waker) else {
            self.topics.state.platform.need_sweep();
            return Ok(());
        };
        let unpack = move || {
            let unpacked = match Batch::split(&bytes) {
                Ok((batch, _)) => unpack(&batch, UNPACKED_SIZE_MAX),
                Err(_) => Err(Unpack::Malformed),
            };
            (reservation, unpacked)
        };
        let later = self.topics.state.platform.offload_value(unpack);
        let later = later.map_err(|error| {
            self.state = State::Nowhere;
            self.batches.clear();
            FetchError::from(Storage::from(error))
        })?;
        self.state = State::Unpacking(header, later);
        Ok(())
    }

    fn key(&self, header: &Header) -> Key {
        (self.topic.about().id, self.partition, header.base_offset)
    }

    fn open_unpacked(&mut self, lease: Arc<Lease>) {
        let now_ns = self.topics.state.platform.now_ns();
        let Some(payload) = lease.payload(now_ns) else {
            // The memory was reclaimed just now: the batch is fetched again.
            (self.state, self.batches) = (State::Nowhere, VecDeque::new());
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
                let now_ns = self.topics.state.platform.now_ns();
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
        let place = RecordPosition::first(size);
        self.state = State::Open(OpenBatch {
            header,
            payload,
            place,
        });
    }
}

impl AbortedTransactions {
    /// Returns whether a batch is hidden from a reader of committed records. Batches must be passed
    /// in order.
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

/// Returns the offset after the last one of a batch.
fn end_of(header: &Header) -> u64 {
    header.last_offset().unsigned_abs() + 1
}
