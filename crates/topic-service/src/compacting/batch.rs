//! A batch whose records cannot be read (it was produced before records were checked, or exceeds
//! the unpacking limit) is kept unchanged, and its keys do not supersede others.

use recordbatch::codecs::{compress, unpack};
use recordbatch::{Batch, Compression, Header, MarkerKind, Record, Records, retain, seal};
use topics::compaction::{BatchFacts, Facts, Gather, Sweep, Verdict};
use topics::{Ending, ProducerId};

use crate::keys::UNPACKED_SIZE_MAX;
use crate::reader::Stored;

/// The outcome of gathering the keys of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gathered {
    /// All keys are gathered, or none of them counts.
    Whole,
    /// The memory limit was reached before all keys were gathered.
    Full,
    /// The records cannot be read.
    Unreadable,
}

/// The memory limit for the keys of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Memory {
    /// The rest of the compaction's limit.
    Limited,
    /// Unlimited: for the first batch of a compaction, which could never be compacted otherwise.
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
    // A batch that turns out to be unreadable halfway must not supersede earlier keys either.
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

/// Unpacks the records of a batch; `None` if not all of them can be read.
fn readable(stored: &Stored) -> Option<Vec<u8>> {
    let (batch, _) = Batch::split(&stored.bytes).ok()?;
    let payload = unpack(&batch, UNPACKED_SIZE_MAX).ok()?;
    let mut records = Records::new(&stored.header, &payload);
    records.all(|record| record.is_ok()).then_some(payload)
}

/// The result of compacting a batch.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Compacted {
    /// No record is left.
    Nothing,
    /// The batch is unchanged.
    Unchanged,
    /// The batch has fewer records, or a delete horizon.
    Rewritten(Vec<u8>),
}

/// Compacts one batch.
pub(super) fn judge(sweep: &mut Sweep, stored: &Stored) -> Compacted {
    let Some(seen) = seen(stored) else {
        return Compacted::Unchanged;
    };
    match sweep.judge(&seen) {
        Verdict::Drop => Compacted::Nothing,
        Verdict::Keep => Compacted::Unchanged,
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

/// Rewrites a batch with only the records for which `keep` is true.
fn thin(stored: &Stored, delete_horizon_ms: i64, keep: impl Fn(&Record<'_>) -> bool) -> Compacted {
    let Some(payload) = readable(stored) else {
        return Compacted::Unchanged;
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
        return Compacted::Unchanged;
    };
    let header = retained.header;
    if header.count == 0 {
        return Compacted::Nothing;
    }
    if retained.dropped == 0 && header.attributes == stored.header.attributes {
        return Compacted::Unchanged;
    }
    let compression = header.attributes.compression().unwrap_or(Compression::None);
    let mut bytes = Vec::new();
    seal(&header, &compress(compression, &records), &mut bytes);
    Compacted::Rewritten(bytes)
}

/// Returns the facts by which the engine judges a batch; `None` for a control batch without a
/// marker.
fn seen(stored: &Stored) -> Option<BatchFacts> {
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
    Some(BatchFacts {
        last_offset: header.last_offset().unsigned_abs(),
        transaction: producer.map(|it| ProducerId(it.id)),
        marker,
        delete_horizon_ms: attributes
            .has_delete_horizon()
            .then_some(header.base_timestamp),
    })
}
