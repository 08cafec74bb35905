//! Inspection of the extents: checks every page.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use disk::{Disk, list_existing};
use journal::StreamId;
use journal::extent::{
    self, DamagedPage, Entry, Extent, ExtentError, Identity, RetainedSegments, SegmentRef,
};
use journal::manifest::Manifest;

use super::table::Table;
use super::{Damage, Dependent, Evidence, ExtentView, InspectError, Inspection};

/// An opened extent and the index of its view.
pub(super) struct OpenedExtent {
    extent: Arc<Extent>,
    view: usize,
}

/// Opens the extents of the manifest. One that cannot be opened is one damage.
pub(super) fn open(
    disk: &dyn Disk,
    manifest: &Manifest,
    found: &mut Inspection,
) -> Result<Vec<OpenedExtent>, InspectError> {
    let mut opened = Vec::new();
    let mut segments = RetainedSegments::default();
    for identity in manifest.extents().flatten() {
        match Extent::open(disk, *identity, &mut segments) {
            Ok(extent) => opened.push(take(extent, found)),
            Err(error) => {
                let damage = unusable(disk, error)?;
                let mut damage = damage.positions(identity.begin, identity.end);
                damage.add_dependent(Dependent {
                    shard: identity.shard,
                    stream: None,
                    first: None,
                    evidence: Evidence::Index,
                });
                found.damage.push(damage);
                found.extents.push(view(identity));
            }
        }
    }
    Ok(opened)
}

/// Opens every extent in the directory. Without a manifest it is unknown which of them are valid,
/// so extents that were merged and not yet removed are included.
pub(super) fn open_all(
    disk: &dyn Disk,
    found: &mut Inspection,
) -> Result<Vec<OpenedExtent>, InspectError> {
    let mut extents = Vec::new();
    let mut segments = RetainedSegments::default();
    for name in list_existing(disk, extent::DIRECTORY)? {
        let path = format!("{}/{name}", extent::DIRECTORY);
        if !path.ends_with(".ext") {
            continue;
        }
        match Extent::open_any(disk, &path, &mut segments) {
            Ok(extent) => extents.push(extent),
            Err(error) => found.damage.push(unusable(disk, error)?),
        }
    }
    extents.sort_by_key(|extent| (extent.identity().shard, extent.identity().begin));
    Ok(extents
        .into_iter()
        .map(|extent| take(extent, found))
        .collect())
}

fn take(extent: Extent, found: &mut Inspection) -> OpenedExtent {
    let place = found.extents.len();
    found.extents.push(ExtentView {
        size: extent.size(),
        segment: extent.segment().map(|segment| segment.sequence),
        streams: extent.streams(),
        ..view(extent.identity())
    });
    OpenedExtent {
        extent: Arc::new(extent),
        view: place,
    }
}

/// Creates the view of an extent of which only the identity is known.
fn view(identity: &Identity) -> ExtentView {
    ExtentView {
        path: identity.path(),
        shard: identity.shard,
        size: 0,
        segment: None,
        positions: (identity.begin, identity.end),
        streams: 0,
        records: 0,
        bytes: 0,
        dead_bytes: 0,
    }
}

/// Returns the bytes of all extents, and of the records to which they refer.
pub(super) fn bytes(opened: &[OpenedExtent]) -> u64 {
    opened.iter().map(|one| one.extent.data_size()).sum()
}

/// Returns the segments to which extents refer, by sequence.
pub(super) fn segments(opened: &[OpenedExtent]) -> BTreeMap<u64, SegmentRef> {
    let segments = opened.iter().filter_map(|one| one.extent.segment());
    segments
        .map(|segment| (segment.sequence, *segment))
        .collect()
}

/// Describes an extent that cannot be opened: its header, footer or index is damaged, or it is
/// missing, or the segment to which it refers.
fn unusable(disk: &dyn Disk, error: ExtentError) -> Result<Damage, InspectError> {
    let path = error.path().to_owned();
    let size = disk.open(&path).and_then(|file| file.size());
    let (place, size, what) = match (error, size) {
        (ExtentError::Damaged { place, what, .. }, Ok(size)) => (place, size, what),
        (ExtentError::Io { source, .. }, _) if source.kind() == io::ErrorKind::NotFound => {
            (0, 0, "it is missing")
        }
        (error, _) => return Err(error.into()),
    };
    let length = size.saturating_sub(place);
    Ok(Damage::at(path, place, length, what))
}

/// Reads the states of streams from every stream table.
pub(super) fn read_tables(
    opened: &[OpenedExtent],
    table: &mut Table,
    found: &mut Inspection,
) -> io::Result<()> {
    for OpenedExtent { extent, .. } in opened {
        let shard = extent.identity().shard;
        let pages = extent.check_streams(&mut |entry| table.learn_entry(shard, entry))?;
        found
            .damage
            .extend(pages.iter().map(|page| damaged(extent, page, &[])));
    }
    Ok(())
}

/// Reads and counts every record.
pub(super) fn read_records(
    opened: &[OpenedExtent],
    table: &mut Table,
    found: &mut Inspection,
    read: &mut dyn FnMut(u64),
) -> io::Result<()> {
    for OpenedExtent { extent, view } in opened {
        let shard = extent.identity().shard;
        let view = &mut found.extents[*view];
        let pages = extent.check_records(
            &mut |record| {
                let bytes = record.payload.len() as u64;
                view.records += 1;
                view.bytes += bytes;
                if !table.count(
                    shard,
                    record.stream,
                    record.offset,
                    record.tag,
                    record.payload,
                ) {
                    view.dead_bytes += bytes;
                }
            },
            read,
        )?;
        let entries = entries(extent)?;
        let expected: u64 = entries.iter().map(|entry| entry.records).sum();
        let is_counted = (view.records, view.bytes) == (expected, extent.bytes());
        if pages.is_empty() && !is_counted {
            let what = "its records do not match the counts in its stream table and footer";
            let (begin, end) = view.positions;
            let damage = Damage::of_file(extent.path(), extent.size(), what);
            found.damage.push(damage.positions(begin, end));
        }
        found
            .damage
            .extend(pages.iter().map(|page| damaged(extent, page, &entries)));
    }
    Ok(())
}

/// Returns the readable entries of the stream table.
fn entries(extent: &Arc<Extent>) -> io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    extent.check_streams(&mut |entry| entries.push(*entry))?;
    Ok(entries)
}

fn damaged(extent: &Extent, page: &DamagedPage, entries: &[Entry]) -> Damage {
    let identity = extent.identity();
    let mut damage = Damage::at(page.path.clone(), page.place, page.length, page.what);
    damage = damage.positions(identity.begin, identity.end);
    let mut depends = |stream: StreamId, first| {
        damage.add_dependent(Dependent {
            shard: identity.shard,
            stream: Some(stream),
            first,
            evidence: Evidence::Index,
        });
    };
    let (first, offset) = page.first;
    depends(first, page.held_records.then_some(offset));
    for entry in entries.iter().filter(|entry| is_on(page, entry)) {
        depends(entry.stream, Some(entry.first));
    }
    // If a page of the stream table is damaged, the streams on it are unknown.
    damage.has_more_dependents |= !page.held_records;
    damage
}

/// Returns true if a stream has records on a page.
fn is_on(page: &DamagedPage, entry: &Entry) -> bool {
    let begins_before_next = page
        .next
        .is_none_or(|next| (entry.stream, entry.first) < next);
    entry.records > 0 && entry.stream >= page.first.0 && begins_before_next
}
