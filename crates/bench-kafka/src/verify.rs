//! Verification: reads back all acknowledged messages.

use recordbatch::{Batch, Batches, Compression, Records, codecs};

use super::acknowledged::{AckedMessages, ReadBack};
use super::fetch::{Fetcher, Position};
use super::message::{Id, id_of};
use super::topic::{self, Layout, OffsetKind};
use bench::measurement::Verification;
use bench::workload::role::Failure;
use meter::clock::now_ns;

/// Maximum wait of a fetch: all data is already there.
const WAIT_MS: i32 = 100;

/// Maximum time without records from a partition that is not read to its end.
const SILENCE_NS: u64 = 30_000_000_000;

/// Maximum size of an unpacked batch.
const UNPACKED_SIZE_MAX: usize = 64 << 20;

/// Run whose messages are read back.
pub(super) struct ReadBackRun<'a> {
    pub(super) topic: &'a str,
    pub(super) layout: &'a Layout,
    pub(super) tag: u32,
    /// Size of each payload in bytes.
    pub(super) size: usize,
}

/// Reads every partition from `begin` to its end. `numbers` returns how many messages a lane has
/// sent.
///
/// # Errors
/// When a broker cannot be read from.
pub(super) fn read_back(
    run: &ReadBackRun<'_>,
    begin: Vec<i64>,
    acked: &AckedMessages,
    numbers: impl Fn(u32) -> Option<u64>,
) -> Result<Verification, Failure> {
    let end = topic::offsets(run.layout, run.topic, OffsetKind::Next)?;
    let mut found = ReadBack::of(acked);
    for (leader, address) in run.layout.leaders.iter().enumerate() {
        let mut positions = Vec::new();
        for (partition, offset) in begin.iter().copied().enumerate() {
            if run.layout.led_by[partition] == leader && offset < end[partition] {
                let partition = i32::try_from(partition)?;
                positions.push(Position { partition, offset });
            }
        }
        let mut fetcher = Fetcher::open(address, run.topic, positions)?;
        let mut heard_ns = now_ns();
        while !fetcher.positions.is_empty() {
            fetcher.ask(WAIT_MS)?;
            let fetched = fetcher.take()?;
            match fetched.is_empty() {
                false => heard_ns = now_ns(),
                true if now_ns() - heard_ns > SILENCE_NS => {
                    return Err("a partition returns no records before its end offset".into());
                }
                true => {}
            }
            for one in &fetched {
                for batch in Batches::new(one).map_while(Result::ok) {
                    read_batch(run, &batch, &mut found, &numbers);
                }
            }
            fetcher
                .positions
                .retain(|one| one.offset < end[one.partition as usize]);
        }
    }
    Ok(found.end())
}

fn read_batch(
    run: &ReadBackRun<'_>,
    batch: &Batch<'_>,
    found: &mut ReadBack<'_>,
    numbers: &impl Fn(u32) -> Option<u64>,
) {
    let header = batch.header();
    if header.attributes.is_control() {
        return;
    }
    if !batch.is_intact() {
        return found.damaged();
    }
    let is_packed = header.attributes.compression() != Some(Compression::None);
    let unpacked = match is_packed {
        true => match codecs::unpack(batch, UNPACKED_SIZE_MAX) {
            Ok(unpacked) => Some(unpacked),
            Err(_) => return found.damaged(),
        },
        false => None,
    };
    let payload = unpacked.as_deref().unwrap_or(batch.payload());
    for record in Records::new(header, payload) {
        let Ok(record) = record else {
            return found.damaged();
        };
        // Ignore records that other clients wrote meanwhile.
        let id: Option<Id> = record.value.and_then(|value| id_of(run.tag, value));
        if let Some(id) = id {
            if record.value.map(<[u8]>::len) != Some(run.size) {
                found.damaged();
            }
            found.message(id, record.offset, numbers);
        }
    }
}
