//! The model of a journal: every block of every shard, and how far each is known to be durable.

use std::collections::BTreeMap;

use journal::StreamId;

/// Payload bytes that identify their append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Payload {
    /// Unique per append.
    pub(crate) id: u64,
    pub(crate) size: usize,
}

/// Bytes of the id in front of every payload with room for it.
const ID_SIZE: usize = 8;

impl Payload {
    pub(crate) fn bytes(self) -> Vec<u8> {
        // Neighbouring bytes differ, so that a shifted read is detected.
        let mut rng = fastrand::Rng::with_seed(self.id);
        let mut bytes = self.id.to_le_bytes().to_vec();
        bytes.resize_with(self.size, || rng.u8(..));
        bytes
    }

    /// Returns the payload with these bytes; there must be exactly one.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let Some((id, _)) = bytes.split_first_chunk::<ID_SIZE>() else {
            panic!("a payload of {} bytes was never written", bytes.len());
        };
        let payload = Self {
            id: u64::from_le_bytes(*id),
            size: bytes.len(),
        };
        assert!(payload.bytes() == bytes, "{payload:?} has other bytes");
        payload
    }
}

/// Effect of a call on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Data {
        stream: StreamId,
        offset: u64,
        payload: Payload,
    },
    /// Trim or erase: removes records below an offset.
    Start { stream: StreamId, start: u64 },
}

/// A stream after some blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stream {
    pub(crate) start: u64,
    pub(crate) next: u64,
    pub(crate) records: BTreeMap<u64, Payload>,
}

impl Stream {
    fn apply(&mut self, change: Change) {
        match change {
            Change::Data {
                offset, payload, ..
            } => {
                assert_eq!(offset, self.next, "offsets are dense");
                self.records.insert(offset, payload);
                self.next = offset + 1;
            }
            Change::Start { start, .. } => {
                self.start = self.start.max(start);
                self.records = self.records.split_off(&start);
            }
        }
    }
}

/// All streams of a shard.
pub(crate) type Streams = BTreeMap<StreamId, Stream>;

/// Events of a shard, in order.
#[derive(Clone, Debug)]
enum Event {
    /// Changes that become durable together.
    Block { index: u64, changes: Vec<Change> },
    /// The blocks from this index on are void.
    Cut { index: u64 },
}

/// A shard. Its durable part is a prefix of its events. It may be longer than the part known to be
/// durable; only a crash shows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shard {
    events: Vec<Event>,
    /// Number of events that were acknowledged, or seen after an open.
    durable: usize,
}

impl Shard {
    /// Adds a call's changes to a block: the last one, or the next.
    pub(crate) fn add(&mut self, index: u64, changes: impl IntoIterator<Item = Change>) {
        let last = self.last();
        if index == last + 1 {
            let changes = Vec::new();
            self.events.push(Event::Block { index, changes });
        }
        let is_open = self.events.len() > self.durable;
        match self.events.last_mut() {
            Some(Event::Block {
                index: open,
                changes: all,
            }) if *open == index && is_open => all.extend(changes),
            _ => panic!("block {index} does not follow {last}"),
        }
    }

    /// Forgets the blocks from this index on: none of them is on disk, or ever will be.
    pub(crate) fn dropped(&mut self, index: u64) {
        while let Some(Event::Block { index: last, .. }) = self.events.last()
            && *last >= index
        {
            self.events.pop();
        }
        assert!(
            self.durable <= self.events.len(),
            "block {index} is on disk"
        );
    }

    /// Voids the blocks from this index on.
    pub(crate) fn cut(&mut self, index: u64) {
        self.events.push(Event::Cut { index });
    }

    /// Records that all blocks up to this index were acknowledged.
    pub(crate) fn acked(&mut self, index: u64) {
        let mut events = self.events.iter();
        let place = events
            .rposition(|event| matches!(event, Event::Block { index: at, .. } if *at <= index));
        self.durable = self.durable.max(place.map_or(0, |place| place + 1));
    }

    /// Returns the last block.
    pub(crate) fn last(&self) -> u64 {
        last_after(&self.events)
    }

    /// Returns the last block that is known to be durable and was not cut.
    pub(crate) fn durable(&self) -> u64 {
        let (durable, later) = self.events.split_at(self.durable);
        let cuts = later.iter().filter_map(|event| match event {
            Event::Cut { index } => Some(index - 1),
            Event::Block { .. } => None,
        });
        cuts.fold(last_after(durable), u64::min)
    }

    /// Checks a shard that was recovered with its blocks up to this one, and these streams. It must
    /// have everything acknowledged and nothing that was never written. What it has stays.
    pub(crate) fn recovered(&mut self, index: u64, streams: &Streams) {
        let possible = self.durable..=self.events.len();
        let fitting = |count: &usize| last_after(&self.events[..*count]) == index;
        let candidates: Vec<usize> = possible.filter(fitting).collect();
        let Some(first) = candidates.first() else {
            let (acked, written) = (self.durable(), self.last());
            panic!("came back with {index} blocks; {acked} were acked, {written} written");
        };
        let is_it = |count: &&usize| after(&self.events[..**count]) == *streams;
        let Some(found) = candidates.iter().find(is_it) else {
            let wanted = after(&self.events[..*first]);
            panic!("with {index} blocks, {}", difference(&wanted, streams));
        };
        self.events.truncate(*found);
        self.durable = *found;
    }

    /// Returns the same events, with no more known to be durable than in `other`.
    pub(crate) fn acked_like(&self, other: &Shard) -> Shard {
        Shard {
            events: self.events.clone(),
            durable: other.durable,
        }
    }

    /// Returns the streams as far as they are known to be durable.
    pub(crate) fn streams(&self) -> Streams {
        after(&self.events[..self.durable])
    }

    /// Returns the streams after the first blocks, none of which will ever be void.
    pub(crate) fn streams_up_to(&self, index: u64) -> Streams {
        let mut blocks = blocks(&self.events);
        blocks.truncate(index as usize);
        apply(&blocks)
    }
}

fn last_after(events: &[Event]) -> u64 {
    events.last().map_or(0, |event| match event {
        Event::Block { index, .. } => *index,
        Event::Cut { index } => index - 1,
    })
}

/// Returns the streams after some events.
fn after(events: &[Event]) -> Streams {
    apply(&blocks(events))
}

/// Returns the blocks that are not void.
fn blocks(events: &[Event]) -> Vec<&[Change]> {
    let mut blocks: Vec<&[Change]> = Vec::new();
    for event in events {
        match event {
            Event::Block { changes, .. } => blocks.push(changes),
            Event::Cut { index } => blocks.truncate(*index as usize - 1),
        }
    }
    blocks
}

fn apply(blocks: &[&[Change]]) -> Streams {
    let mut streams = Streams::new();
    for change in blocks.iter().copied().flatten() {
        let (Change::Data { stream, .. } | Change::Start { stream, .. }) = *change;
        streams.entry(stream).or_default().apply(*change);
    }
    streams
}

/// Returns the first stream that differs.
fn difference(wanted: &Streams, found: &Streams) -> String {
    let mut names: Vec<_> = wanted.keys().chain(found.keys()).collect();
    names.sort_unstable();
    let differing = names
        .iter()
        .find(|name| wanted.get(**name) != found.get(**name));
    match differing {
        Some(name) => format!(
            "stream {} should be {:?} and is {:?}",
            name.0,
            wanted.get(*name),
            found.get(*name)
        ),
        None => "nothing differs".to_owned(),
    }
}
