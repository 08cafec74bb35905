//! Verification: reads back all acknowledged messages.

use std::thread;
use std::time::Duration;

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

/// Time without growth of a partition after which its end counts as final.
const STILL_NS: u64 = 5_000_000_000;

const LOOK: Duration = Duration::from_millis(20);

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
    let end = wait_for_end(run, &begin, acked.count())?;
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

/// Returns the ends of the partitions once they cover the acknowledged messages, or do not grow any
/// more: with `acks=1` a broker shows a message only after its followers have it.
fn wait_for_end(run: &ReadBackRun<'_>, begin: &[i64], acked: u64) -> Result<Vec<i64>, Failure> {
    let mut last = Vec::new();
    let mut grown_ns = now_ns();
    loop {
        let end = topic::offsets(run.layout, run.topic, OffsetKind::Next)?;
        let count: i64 = end.iter().zip(begin).map(|(end, begin)| end - begin).sum();
        if count.cast_unsigned() >= acked || now_ns() - grown_ns > STILL_NS {
            return Ok(end);
        }
        if end != last {
            grown_ns = now_ns();
            last = end;
        }
        thread::sleep(LOOK);
    }
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
