//! One batch of a compaction: its keys, and which of its records stay.
//!
//! A batch whose records cannot be read (it was produced before they were checked, or holds more than is
//! unpacked) stays as it is: its keys do not count, and nothing of it goes.

use ::topics::compaction::{Facts, Gather, Seen, Sweep, Verdict};
use ::topics::{Ending, ProducerId};
use recordbatch::codecs::{compress, unpack};
use recordbatch::{Batch, Compression, Header, MarkerKind, Record, Records, retain, seal};

use crate::topics::keys::UNPACKED_SIZE_MAX;
use crate::topics::reader::Stored;

/// The outcome of gathering the keys of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gathered {
    /// All of them are gathered, or none of them counts.
    Whole,
    /// There was no room for all of them.
    Full,
    /// The records cannot be read.
    Unreadable,
}

/// How much memory the keys of a batch may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Memory {
    /// What the limit leaves.
    Limited,
    /// As much as they need: the first batch of a compaction, which would never be compacted otherwise.
    AsNeeded,
}

/// Gathers the keys of a batch.
pub(super) fn gather_keys(gather: &mut Gather, stored: &Stored, memory: Memory) -> Gathered {
    let Some(seen) = seen(stored) else {
        return Gathered::Unreadable;
    };
    if !gather.wants(&seen) {
        return Gathered::Whole;
    }
    // A batch that turns out to be unreadable half-way has no say about the keys before that either.
    let Some(payload) = readable(stored) else {
        return Gathered::Unreadable;
    };
    for record in Records::new(&stored.header, &payload).flatten() {
        let Some(key) = record.key else {
            continue;
        };
        let offset = record.offset.unsigned_abs();
        match memory {
            Memory::AsNeeded => gather.insert(key, offset),
            Memory::Limited => {
                if gather.key(key, offset).is_err() {
                    return Gathered::Full;
                }
            }
        }
    }
    Gathered::Whole
}

/// The records of a batch, unpacked; `None` if not all of them can be read.
fn readable(stored: &Stored) -> Option<Vec<u8>> {
    let (batch, _) = Batch::split(&stored.bytes).ok()?;
    let payload = unpack(&batch, UNPACKED_SIZE_MAX).ok()?;
    let mut records = Records::new(&stored.header, &payload);
    records.all(|record| record.is_ok()).then_some(payload)
}

/// What a compaction leaves of a batch.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// Nothing.
    Nothing,
    /// The batch as it is.
    Unchanged,
    /// The batch with fewer records, or with a delete horizon.
    Rewritten(Vec<u8>),
}

/// Judges a batch.
pub(super) fn judge(sweep: &mut Sweep, stored: &Stored) -> Left {
    let Some(seen) = seen(stored) else {
        return Left::Unchanged;
    };
    match sweep.judge(&seen) {
        Verdict::Drop => Left::Nothing,
        Verdict::Keep => Left::Unchanged,
        Verdict::Stamp { delete_horizon_ms } => thin(stored, delete_horizon_ms, |_| true),
        Verdict::Look { delete_horizon_ms } => thin(stored, delete_horizon_ms, |it| {
            let facts = Facts {
                offset: it.offset.unsigned_abs(),
                key: it.key,
                is_deletion: it.value.is_none(),
            };
            sweep.keeps(&seen, &facts)
        }),
    }
}

/// The batch with those of its records that stay.
fn thin(stored: &Stored, delete_horizon_ms: i64, keep: impl Fn(&Record<'_>) -> bool) -> Left {
    let Some(payload) = readable(stored) else {
        return Left::Unchanged;
    };
    let mut records = Vec::new();
    let retained = retain(
        &stored.header,
        &payload,
        delete_horizon_ms,
        keep,
        &mut records,
    );
    let Ok(retained) = retained else {
        return Left::Unchanged;
    };
    let header = retained.header;
    if header.count == 0 {
        return Left::Nothing;
    }
    if retained.dropped == 0 && header.attributes == stored.header.attributes {
        return Left::Unchanged;
    }
    let compression = header.attributes.compression().unwrap_or(Compression::None);
    let mut bytes = Vec::new();
    seal(&header, &compress(compression, &records), &mut bytes);
    Left::Rewritten(bytes)
}

/// The facts that the engine judges a batch by; `None` for a control batch that holds no marker.
fn seen(stored: &Stored) -> Option<Seen> {
    let header: &Header = &stored.header;
    let attributes = header.attributes;
    let marker = match attributes.is_control() {
        false => None,
        true => {
            let (batch, _) = Batch::split(&stored.bytes).ok()?;
            Some(match recordbatch::Marker::decode(&batch).ok()?.kind {
                MarkerKind::Abort => Ending::Abort,
                MarkerKind::Commit => Ending::Commit,
            })
        }
    };
    let producer = header.producer().filter(|_| attributes.is_transactional());
    Some(Seen {
        last_offset: header.last_offset().unsigned_abs(),
        transaction: producer.map(|it| ProducerId(it.id)),
        marker,
        delete_horizon_ms: attributes
            .has_delete_horizon()
            .then_some(header.base_timestamp),
    })
}
