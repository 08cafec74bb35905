//! Inspection of the line's files: which exist, which are missing, and where each ends.

use std::collections::BTreeMap;

use disk::{Disk, list_existing};
use journal::Position;
use journal::extent::SegmentRef;
use journal::manifest::Manifest;
use journal::segment::{self, LINE_DIR, Segment, SegmentError};

use super::{Damage, InspectError, Inspection, SegmentState, SegmentView};

/// An unfiled segment and its successor.
pub(super) struct OpenedSegment {
    pub(super) segment: Segment,
    /// Index of its view.
    pub(super) view: usize,
    pub(super) successor: Successor,
}

/// The successor of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Successor {
    /// None: the segment is the last.
    None,
    /// A segment that states the end of this one.
    States(Position),
    /// A segment that cannot be read.
    Unreadable,
}

/// Opens every segment, and reports those that are missing or have no header.
pub(super) fn open(
    disk: &dyn Disk,
    manifest: Option<&Manifest>,
    retained: &BTreeMap<u64, SegmentRef>,
    found: &mut Inspection,
) -> Result<Vec<OpenedSegment>, InspectError> {
    let names = list_existing(disk, LINE_DIR)?;
    let mut sequences: Vec<u64> = names
        .iter()
        .filter_map(|name| segment::sequence_of(name))
        .collect();
    sequences.sort_unstable();
    let filed = manifest.map_or(0, |manifest| manifest.sequence);
    let mut expected = match manifest {
        Some(_) => Some(filed + 1),
        None => sequences
            .iter()
            .find(|it| !retained.contains_key(it))
            .copied(),
    };
    let mut opened: Vec<OpenedSegment> = Vec::new();
    for &sequence in &sequences {
        let file = disk.open(&segment::path(sequence))?;
        let mut view = SegmentView {
            path: segment::path(sequence),
            sequence,
            size: file.size()?,
            state: SegmentState::Filed,
            positions: (Position(0), Position(0)),
            blocks: 0,
            records: 0,
        };
        if let Some(segment) = retained.get(&sequence) {
            expected = expected.map(|it| it.max(sequence + 1));
            view.state = SegmentState::Retained;
            view.positions = (segment.base, Position(segment.base.0 + segment.size));
        } else if sequence > filed {
            let missing = expected.into_iter().flat_map(|first| first..sequence);
            found.damage.extend(missing.map(missing_segment));
            expected = Some(sequence + 1);
            let segment = open_one(disk, sequence, found)?;
            follow(opened.last_mut(), sequence, segment.as_ref());
            view.state = match &segment {
                Some(_) => SegmentState::Active,
                None => SegmentState::Unreadable,
            };
            if let Some(segment) = segment {
                view.positions.0 = segment.header.base;
                opened.push(OpenedSegment {
                    segment,
                    view: found.line.segments.len(),
                    successor: Successor::None,
                });
            }
        }
        found.line.segments.push(view);
    }
    if filed > 0 && sequences.last().is_none_or(|last| *last <= filed) {
        found.damage.push(missing_segment(filed + 1));
    }
    for one in &opened {
        if one.successor != Successor::None {
            found.line.segments[one.view].state = SegmentState::Sealed;
        }
    }
    Ok(opened)
}

/// Sets the successor of the segment before `sequence`.
fn follow(last: Option<&mut OpenedSegment>, sequence: u64, next: Option<&Segment>) {
    let Some(last) = last else { return };
    let is_next = last.segment.header.sequence + 1 == sequence;
    let range = last.segment.header.first()..=last.segment.header.limit();
    last.successor = match next.map(|next| next.header.previous_end) {
        Some(end) if is_next && range.contains(&end) => Successor::States(end),
        _ => Successor::Unreadable,
    };
}

fn missing_segment(sequence: u64) -> Damage {
    Damage::of_file(segment::path(sequence), 0, "it is missing")
}

fn open_one(
    disk: &dyn Disk,
    sequence: u64,
    found: &mut Inspection,
) -> Result<Option<Segment>, InspectError> {
    let path = segment::path(sequence);
    let of_header = |what: &str| Damage::of_file(&path, segment::SEGMENT_HEADER_SIZE, what);
    if found.journal_id == 0 {
        let mut bytes = vec![0; segment::SEGMENT_HEADER_SIZE as usize];
        let read = disk.open(&path)?.read_at(&mut bytes, 0).ok();
        let header = read.and_then(|()| segment::SegmentHeader::decode(&bytes, &path).ok());
        if let Some(header) = header {
            found.journal_id = header.journal_id;
            found.shard_count = header.shards.len() as u16;
        }
    }
    match Segment::open(disk, sequence, found.journal_id) {
        Ok(segment) => Ok(Some(segment)),
        Err(SegmentError::Damaged { .. }) => {
            found.damage.push(of_header("the header is damaged"));
            Ok(None)
        }
        Err(other @ SegmentError::OtherJournal { .. }) => {
            found.damage.push(of_header(&other.to_string()));
            Ok(None)
        }
        Err(error @ (SegmentError::Io { .. } | SegmentError::Newer { .. })) => Err(error.into()),
    }
}

/// Returns the bytes of all segments to read.
pub(super) fn bytes(opened: &[OpenedSegment]) -> u64 {
    opened.iter().map(|one| one.segment.header.size).sum()
}
