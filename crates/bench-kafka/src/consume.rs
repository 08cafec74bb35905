//! Consumer role: one connection for each broker, reading batches as they are stored.
//!
//! Every batch is split off and its checksum verified, as by any consumer. Its records are counted
//! by the batch header and not decoded, so that the broker is the bottleneck. At the end of the
//! topic the consumer starts again.

use recordbatch::{Batch, Batches};

use super::fetch::{Fetcher, Position};
use super::session::Session;
use super::topic::{self, OffsetKind};
use super::{ConsumeCounts, LoadSpec};
use bench::measurement::Arrivals;
use bench::workload::role::{Failure, Ready, read_line, write_line};
use meter::clock::now_ns;

/// Maximum wait of a fetch: all data is already there.
const WAIT_MS: i32 = 100;

/// Plays the role.
///
/// When the broker cannot be read from, or the topic is empty.
/// When the broker cannot be read from, or there is nothing in the topic.
pub(super) fn play(spec: &LoadSpec) -> Result<(), Failure> {
    let opened_ns = now_ns();
    let mut session = Session::open(&spec.address)?;
    let layout = topic::layout(&mut session, &spec.topic)?;
    let begin = topic::offsets(&layout, &spec.topic, OffsetKind::First)?;
    let end = topic::offsets(&layout, &spec.topic, OffsetKind::Next)?;
    if begin == end {
        return Err(format!("the topic {} is empty", spec.topic).into());
    }
    let mut readers = Vec::new();
    for (leader, address) in layout.leaders.iter().enumerate() {
        let own =
            (0..begin.len()).filter(|at| layout.led_by[*at] == leader && begin[*at] < end[*at]);
        let position = |at| {
            Ok::<_, Failure>(Position {
                partition: i32::try_from(at)?,
                offset: begin[at],
            })
        };
        let positions = own.map(position).collect::<Result<Vec<_>, _>>()?;
        if !positions.is_empty() {
            readers.push(Reader {
                fetcher: Fetcher::open(address, &spec.topic, positions)?,
                begin: begin.clone(),
                end: end.clone(),
            });
        }
    }
    consume(&mut readers, spec.warmup_ns)?;
    write_line(&Ready {
        address: None,
        setup_ns: now_ns() - opened_ns,
    })?;
    if read_line()?.is_some() {
        write_line(&consume(&mut readers, spec.window_ns)?)?;
    }
    read_line()?;
    Ok(())
}

struct Reader {
    fetcher: Fetcher,
    begin: Vec<i64>,
    end: Vec<i64>,
}

impl Reader {
    /// Moves the positions that have reached the end back to the beginning.
    fn rewind(&mut self) {
        for position in &mut self.fetcher.positions {
            let at = position.partition as usize;
            if position.offset >= self.end[at] {
                position.offset = self.begin[at];
            }
        }
    }
}

/// Consumes for the given time. As in other clients, the next fetch is in flight while the last
/// response is processed.
fn consume(readers: &mut [Reader], window_ns: u64) -> Result<ConsumeCounts, Failure> {
    let begin_ns = now_ns();
    let end_ns = begin_ns + window_ns;
    let mut consumed = ConsumeCounts::default();
    for reader in &mut *readers {
        reader.fetcher.ask(WAIT_MS)?;
    }
    let mut is_last = false;
    while !is_last {
        is_last = now_ns() >= end_ns;
        for reader in &mut *readers {
            let fetched = reader.fetcher.take()?;
            reader.rewind();
            if !is_last {
                reader.fetcher.ask(WAIT_MS)?;
            }
            let arrived_ns = now_ns();
            for one in &fetched {
                count(one, arrived_ns, &mut consumed);
            }
        }
    }
    consumed.window_ns = (now_ns() - begin_ns).max(1);
    Ok(consumed)
}

fn count(records: &[u8], arrived_ns: u64, consumed: &mut ConsumeCounts) {
    for batch in Batches::new(records) {
        let Ok(batch) = batch else {
            // A partial batch at the end comes again with the next fetch.
            break;
        };
        match batch.is_intact() {
            true => count_batch(&batch, consumed),
            false => consumed.damaged += 1,
        }
    }
    Arrivals::note(&mut consumed.arrivals, arrived_ns);
}

fn count_batch(batch: &Batch<'_>, consumed: &mut ConsumeCounts) {
    consumed.messages += u64::try_from(batch.header().count).unwrap_or(0);
    consumed.bytes += batch.bytes().len() as u64;
}
