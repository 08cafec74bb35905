//! The sparse index of an extent: position and first record of each page.
//!
//! It is the only part of an extent that stays in memory: 24 bytes per page of records, 16 per page
//! of the stream table. On disk it is one page: the entries of the record pages (`count` of them),
//! then those of the table's pages (`before` of them).
//!
//! ```text
//! records:  first stream u64 │ its offset u64 │ place ÷ 64 u32 │ largest time, seconds up, u32
//! streams:  first stream u64 │ place ÷ 64 u32 │ 0 u32
//! ```

use super::Damage;
use super::page::{self, ALIGNMENT, HEADER_SIZE, Head, Kind, Salt};
use crate::StreamId;
use crate::record::{u32_at, u64_at};

const RECORDS_ENTRY: usize = 24;
const STREAMS_ENTRY: usize = 16;

/// Index entry of a page of records: first record, position and largest time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordsPage {
    pub(super) stream: StreamId,
    pub(super) offset: u64,
    place: u32,
    /// Largest time in seconds since 1970, rounded up. The maximum stands for "any time".
    seconds: u32,
}

impl RecordsPage {
    pub(super) fn new(
        stream: StreamId,
        offset: u64,
        place: u64,
        time_ms_max: u64,
    ) -> Option<RecordsPage> {
        let seconds = u32::try_from(time_ms_max.div_ceil(1000)).unwrap_or(u32::MAX);
        Some(RecordsPage {
            stream,
            offset,
            place: units(place)?,
            seconds,
        })
    }

    /// Returns true if the page can contain a record of `time_ms` or later.
    pub(super) fn reaches(&self, time_ms: u64) -> bool {
        self.seconds == u32::MAX || u64::from(self.seconds) * 1000 >= time_ms
    }
}

/// Index entry of a page of the stream table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StreamsPage {
    pub(super) stream: StreamId,
    place: u32,
}

impl StreamsPage {
    pub(super) fn new(stream: StreamId, place: u64) -> Option<StreamsPage> {
        Some(StreamsPage {
            stream,
            place: units(place)?,
        })
    }
}

/// The index: positions of all pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Index {
    pub(super) records: Box<[RecordsPage]>,
    pub(super) streams: Box<[StreamsPage]>,
    /// End of the records, which is the start of the stream table.
    pub(super) records_end: u64,
    /// End of the stream table, which is the start of the index.
    pub(super) streams_end: u64,
}

impl Index {
    /// Returns position and length of a page of records.
    pub(super) fn records_page(&self, number: usize) -> (u64, u64) {
        let place = bytes(self.records[number].place);
        let end = self
            .records
            .get(number + 1)
            .map_or(self.records_end, |next| bytes(next.place));
        (place, end - place)
    }

    /// Returns position and length of a page of the stream table.
    pub(super) fn streams_page(&self, number: usize) -> (u64, u64) {
        let place = bytes(self.streams[number].place);
        let end = self
            .streams
            .get(number + 1)
            .map_or(self.streams_end, |next| bytes(next.place));
        (place, end - place)
    }

    /// Returns the first page that can contain records of the stream from an offset on.
    pub(super) fn seek(&self, stream: StreamId, offset: u64) -> Option<usize> {
        let behind = self
            .records
            .partition_point(|page| (page.stream, page.offset) <= (stream, offset));
        match behind {
            0 => self
                .records
                .first()
                .is_some_and(|page| page.stream == stream)
                .then_some(0),
            _ => Some(behind - 1),
        }
    }

    /// Returns the offset of the stream's first record that is the first of its page, if there is
    /// one.
    pub(super) fn first(&self, stream: StreamId) -> Option<u64> {
        let at = self.records.partition_point(|page| page.stream < stream);
        let page = self.records.get(at)?;
        (page.stream == stream).then_some(page.offset)
    }

    /// Returns the page that can contain the stream's entry.
    pub(super) fn seek_entry(&self, stream: StreamId) -> Option<usize> {
        self.streams
            .partition_point(|page| page.stream <= stream)
            .checked_sub(1)
    }

    /// Encodes the index as a page, to be written at `streams_end`.
    pub(super) fn seal(&self, salt: Salt) -> Vec<u8> {
        let size = self.records.len() * RECORDS_ENTRY + self.streams.len() * STREAMS_ENTRY;
        let mut out = Vec::with_capacity(HEADER_SIZE + size + ALIGNMENT);
        out.resize(HEADER_SIZE, 0);
        for page in &self.records {
            out.extend_from_slice(&page.stream.0.to_le_bytes());
            out.extend_from_slice(&page.offset.to_le_bytes());
            out.extend_from_slice(&page.place.to_le_bytes());
            out.extend_from_slice(&page.seconds.to_le_bytes());
        }
        for page in &self.streams {
            out.extend_from_slice(&page.stream.0.to_le_bytes());
            out.extend_from_slice(&page.place.to_le_bytes());
            out.extend_from_slice(&[0; 4]);
        }
        let (count, before) = (self.records.len() as u32, self.streams.len() as u64);
        page::seal(
            &mut out,
            0,
            Head {
                kind: Kind::Index,
                count,
                before,
            },
            salt,
            self.streams_end,
        );
        out
    }

    /// Decodes the index. The two ends are those in the footer.
    pub(super) fn open(
        page: &[u8],
        salt: Salt,
        records_end: u64,
        streams_end: u64,
    ) -> Result<Index, Damage> {
        let head = page::check(page, Kind::Index, salt, streams_end)?;
        let body = &page[HEADER_SIZE..];
        let (records, streams) = (head.count as usize, usize::try_from(head.before).ok());
        let split = records.checked_mul(RECORDS_ENTRY);
        let end = streams
            .and_then(|count| count.checked_mul(STREAMS_ENTRY))
            .and_then(|size| split?.checked_add(size));
        let (Some(split), Some(end)) = (split, end.filter(|&end| end <= body.len())) else {
            return Err(Damage("the index does not fit its page"));
        };
        let records = body[..split]
            .chunks_exact(RECORDS_ENTRY)
            .map(|entry| RecordsPage {
                stream: StreamId(u64_at(entry, 0)),
                offset: u64_at(entry, 8),
                place: u32_at(entry, 16),
                seconds: u32_at(entry, 20),
            });
        let streams = body[split..end]
            .chunks_exact(STREAMS_ENTRY)
            .map(|entry| StreamsPage {
                stream: StreamId(u64_at(entry, 0)),
                place: u32_at(entry, 8),
            });
        let index = Index {
            records: records.collect(),
            streams: streams.collect(),
            records_end,
            streams_end,
        };
        index
            .is_ordered()
            .then_some(index)
            .ok_or(Damage("the index is not in order"))
    }

    fn is_ordered(&self) -> bool {
        let records = self.records.windows(2).all(|pair| {
            (pair[0].stream, pair[0].offset) < (pair[1].stream, pair[1].offset)
                && pair[0].place < pair[1].place
        });
        let streams = self
            .streams
            .windows(2)
            .all(|pair| pair[0].stream < pair[1].stream && pair[0].place < pair[1].place);
        records
            && streams
            && self
                .records
                .last()
                .is_none_or(|page| bytes(page.place) < self.records_end)
            && self
                .streams
                .first()
                .is_none_or(|page| bytes(page.place) == self.records_end)
            && self
                .streams
                .last()
                .is_none_or(|page| bytes(page.place) < self.streams_end)
    }
}

fn units(place: u64) -> Option<u32> {
    u32::try_from(place / ALIGNMENT as u64).ok()
}

fn bytes(units: u32) -> u64 {
    u64::from(units) * ALIGNMENT as u64
}
