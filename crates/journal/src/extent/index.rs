//! The sparse index of an extent: position and first record of each page.
//!
//! It is the only part of an extent that stays in memory: 24 bytes per page of records, 16 per page
//! of the stream table. On disk it is one page: the entries of the record pages (`count` of them),
//! then those of the table's pages (`before` of them). An extent in place has pieces of its segment
//! instead of pages of records; each takes 56 bytes of memory.
//!
//! ```text
//! records:  first stream u64 │ its offset u64 │ place ÷ 64 u32 │ largest time, seconds up, u32
//! pieces:   stream u64 │ first offset u64 │ time_ms u64 │ place in the segment u32 │ length u32 │
//!           records u32 │ crc u32
//! streams:  first stream u64 │ place ÷ 64 u32 │ 0 u32
//! ```

use super::Damage;
use super::frame::Layout;
use super::page::{self, ALIGNMENT, HEADER_SIZE, Head, Kind, Salt};
use crate::StreamId;
use crate::record::{RECORD_HEADER_SIZE, u32_at, u64_at};

const RECORDS_ENTRY: usize = 24;
const PIECES_ENTRY: usize = 40;
const STREAMS_ENTRY: usize = 16;

/// Index entry of a page of records, or of a piece: first record, position and largest time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordsPage {
    pub(super) stream: StreamId,
    pub(super) offset: u64,
    /// In units of [`ALIGNMENT`] bytes; of a piece, in bytes of the segment.
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
        Some(RecordsPage {
            stream,
            offset,
            place: units(place)?,
            seconds: seconds(time_ms_max),
        })
    }

    /// Creates the entry of a piece at this byte of its segment.
    pub(super) fn of_piece(stream: StreamId, offset: u64, place: u32, time_ms: u64) -> RecordsPage {
        RecordsPage {
            stream,
            offset,
            place,
            seconds: seconds(time_ms),
        }
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

/// Index entry of a piece, in addition to its [`RecordsPage`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) time_ms: u64,
    /// Bytes of the stream's payloads in the pieces before this one.
    pub(super) before: u64,
    pub(super) length: u32,
    /// Number of records.
    pub(super) count: u32,
    pub(super) crc: u32,
}

impl Piece {
    /// Returns the bytes of the payloads.
    fn payload_bytes(&self) -> u64 {
        let headers = u64::from(self.count) * RECORD_HEADER_SIZE as u64;
        u64::from(self.length).saturating_sub(headers)
    }
}

/// The index: positions of all pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Index {
    pub(super) records: Box<[RecordsPage]>,
    /// The pieces of an extent in place, one for each entry of `records`; `None` for another extent.
    pub(super) pieces: Option<Box<[Piece]>>,
    pub(super) streams: Box<[StreamsPage]>,
    /// End of the records, which is the start of the stream table.
    pub(super) records_end: u64,
    /// End of the stream table, which is the start of the index.
    pub(super) streams_end: u64,
}

impl Index {
    /// Returns position and length of a page of records, or of a piece in its segment.
    pub(super) fn records_page(&self, number: usize) -> (u64, u64) {
        if let Some(pieces) = &self.pieces {
            let place = self.records[number].place;
            return (u64::from(place), u64::from(pieces[number].length));
        }
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
        // A page may have records of several streams, a piece has those of one.
        let may_contain = |page: &RecordsPage| self.pieces.is_none() || page.stream == stream;
        let last = behind.checked_sub(1);
        if let Some(last) = last.filter(|&last| may_contain(&self.records[last])) {
            return Some(last);
        }
        let next = self.records.get(behind);
        next.is_some_and(|page| page.stream == stream)
            .then_some(behind)
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
        let (kind, entry_size) = match self.pieces {
            None => (Kind::Index, RECORDS_ENTRY),
            Some(_) => (Kind::Pieces, PIECES_ENTRY),
        };
        let size = self.records.len() * entry_size + self.streams.len() * STREAMS_ENTRY;
        let mut out = Vec::with_capacity(HEADER_SIZE + size + ALIGNMENT);
        out.resize(HEADER_SIZE, 0);
        for (number, page) in self.records.iter().enumerate() {
            out.extend_from_slice(&page.stream.0.to_le_bytes());
            out.extend_from_slice(&page.offset.to_le_bytes());
            let Some(pieces) = &self.pieces else {
                out.extend_from_slice(&page.place.to_le_bytes());
                out.extend_from_slice(&page.seconds.to_le_bytes());
                continue;
            };
            let piece = &pieces[number];
            out.extend_from_slice(&piece.time_ms.to_le_bytes());
            for number in [page.place, piece.length, piece.count, piece.crc] {
                out.extend_from_slice(&number.to_le_bytes());
            }
        }
        for page in &self.streams {
            out.extend_from_slice(&page.stream.0.to_le_bytes());
            out.extend_from_slice(&page.place.to_le_bytes());
            out.extend_from_slice(&[0; 4]);
        }
        let (count, before) = (self.records.len() as u32, self.streams.len() as u64);
        let head = Head {
            kind,
            count,
            before,
        };
        page::seal(&mut out, 0, head, salt, self.streams_end);
        out
    }

    /// Decodes the index. The two ends are those in the footer.
    pub(super) fn open(
        page: &[u8],
        layout: Layout,
        salt: Salt,
        records_end: u64,
        streams_end: u64,
    ) -> Result<Index, Damage> {
        let (kind, entry_size) = match layout {
            Layout::Pages => (Kind::Index, RECORDS_ENTRY),
            Layout::InPlace => (Kind::Pieces, PIECES_ENTRY),
        };
        let head = page::check(page, kind, salt, streams_end)?;
        let body = &page[HEADER_SIZE..];
        let (records, streams) = (head.count as usize, usize::try_from(head.before).ok());
        let split = records.checked_mul(entry_size);
        let end = streams
            .and_then(|count| count.checked_mul(STREAMS_ENTRY))
            .and_then(|size| split?.checked_add(size));
        let (Some(split), Some(end)) = (split, end.filter(|&end| end <= body.len())) else {
            return Err(Damage("the index does not fit its page"));
        };
        let entries = body[..split].chunks_exact(entry_size);
        let (records, pieces) = match layout {
            Layout::Pages => (entries.map(decode_page).collect(), None),
            Layout::InPlace => {
                let (records, pieces) = decode_pieces(entries);
                (records, Some(pieces))
            }
        };
        let streams = body[split..end]
            .chunks_exact(STREAMS_ENTRY)
            .map(|entry| StreamsPage {
                stream: StreamId(u64_at(entry, 0)),
                place: u32_at(entry, 8),
            });
        let index = Index {
            records,
            pieces,
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
            let are_placed = self.pieces.is_some() || pair[0].place < pair[1].place;
            (pair[0].stream, pair[0].offset) < (pair[1].stream, pair[1].offset) && are_placed
        });
        let streams = self
            .streams
            .windows(2)
            .all(|pair| pair[0].stream < pair[1].stream && pair[0].place < pair[1].place);
        let ends = match (&self.pieces, self.records.last()) {
            (None, Some(page)) => bytes(page.place) < self.records_end,
            _ => true,
        };
        records
            && streams
            && ends
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

fn decode_page(entry: &[u8]) -> RecordsPage {
    RecordsPage {
        stream: StreamId(u64_at(entry, 0)),
        offset: u64_at(entry, 8),
        place: u32_at(entry, 16),
        seconds: u32_at(entry, 20),
    }
}

/// Decodes the entries of pieces, and counts the bytes before each in its stream.
fn decode_pieces<'a>(
    entries: impl Iterator<Item = &'a [u8]>,
) -> (Box<[RecordsPage]>, Box<[Piece]>) {
    let mut stream = StreamId(0);
    let mut before = 0;
    let decode = |entry: &[u8]| {
        let time_ms = u64_at(entry, 16);
        let (id, offset) = (StreamId(u64_at(entry, 0)), u64_at(entry, 8));
        let page = RecordsPage::of_piece(id, offset, u32_at(entry, 24), time_ms);
        if id != stream {
            (stream, before) = (id, 0);
        }
        let piece = Piece {
            time_ms,
            before,
            length: u32_at(entry, 28),
            count: u32_at(entry, 32),
            crc: u32_at(entry, 36),
        };
        before += piece.payload_bytes();
        (page, piece)
    };
    let (pages, pieces): (Vec<_>, Vec<_>) = entries.map(decode).unzip();
    (pages.into(), pieces.into())
}

/// Returns a time in seconds, rounded up. The maximum stands for "any time".
fn seconds(time_ms: u64) -> u32 {
    u32::try_from(time_ms.div_ceil(1000)).unwrap_or(u32::MAX)
}

fn units(place: u64) -> Option<u32> {
    u32::try_from(place / ALIGNMENT as u64).ok()
}

fn bytes(units: u32) -> u64 {
    u64::from(units) * ALIGNMENT as u64
}
