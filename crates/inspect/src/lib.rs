//! Inspects a journal's directory without opening it: validates every file, and reports contents,
//! damage and what depends on the damaged data.
//!
//! It is a second opinion: it uses the same decoders but its own rules, so that it does not repeat
//! mistakes of opening. It reads every page and block, and changes nothing; on a [`ReadOnlyDisk`]
//! it could not. In memory it holds the table of streams and one page or block at a time. It knows
//! nothing about the meaning of records.

mod claims;
mod damage;
mod error;
mod extents;
mod inspection;
mod line;
mod segments;
mod table;
#[cfg(test)]
mod tests;

use std::io;

pub use disk::ReadOnlyDisk;
use disk::{Disk, list_existing};
use journal::StreamId;
use journal::extent;
use journal::manifest::{self, Manifest, ManifestError};
use journal::segment::LINE_DIR;

pub use damage::{Damage, Dependent, Evidence, MissingRecords};
pub use error::InspectError;
pub use inspection::{
    ExtentView, Files, Inspection, LineView, SegmentState, SegmentView, StreamView,
};
use table::Table;

/// Options of an inspection.
pub struct Request<'a> {
    /// A stream of each shard whose records are returned in [`Inspection::records`].
    pub stream: Option<StreamId>,
    /// Called now and then with the bytes read and the total bytes.
    pub progress: &'a mut dyn FnMut(u64, u64),
}

/// Reads and validates a journal's whole directory.
pub fn inspect(disk: &dyn Disk, request: Request<'_>) -> Result<Inspection, InspectError> {
    let names = disk.list("")?;
    let has = |name: &str| names.iter().any(|one| one == name);
    if !has(manifest::PATH) && !has(LINE_DIR) {
        return Err(InspectError::NoJournal);
    }
    let mut found = Inspection::default();
    let manifest = load_manifest(disk, &mut found)?;
    let extents = match &manifest {
        Some(manifest) => extents::open(disk, manifest, &mut found)?,
        None => extents::open_all(disk, &mut found)?,
    };
    let retained = extents::segments(&extents);
    let opened = segments::open(disk, manifest.as_ref(), &retained, &mut found)?;
    count_files(disk, manifest.as_ref(), &mut found)?;

    let mut table = Table::new(request.stream);
    let total = segments::bytes(&opened) * 2 + extents::bytes(&extents);
    let mut done = 0;
    let mut read = |bytes: u64| {
        done += bytes;
        (request.progress)(done, total);
    };
    extents::read_tables(&extents, &mut table, &mut found)?;
    let plan = line::survey(
        &opened,
        manifest.as_ref(),
        &mut table,
        &mut found,
        &mut read,
    )?;
    extents::read_records(&extents, &mut table, &mut found, &mut read)?;
    line::replay(&plan, &mut table, &mut read)?;
    table.finish(&mut found);
    found.is_loss_accepted |= found.line.lost_bytes > 0;
    Ok(found)
}

fn load_manifest(
    disk: &dyn Disk,
    found: &mut Inspection,
) -> Result<Option<Manifest>, InspectError> {
    let manifest = match Manifest::load(disk) {
        Ok(Some(manifest)) => manifest,
        Ok(None) => {
            let what = "it is missing: the valid extents and the end of the filed data are unknown";
            found.damage.push(Damage::of_file(manifest::PATH, 0, what));
            return Ok(None);
        }
        Err(ManifestError::Damaged(what)) => {
            let size = disk.open(manifest::PATH)?.size()?;
            found
                .damage
                .push(Damage::of_file(manifest::PATH, size, what));
            return Ok(None);
        }
        Err(ManifestError::Io(error)) => return Err(error.into()),
        Err(newer @ ManifestError::Version { .. }) => {
            return Err(InspectError::Newer(newer.to_string()));
        }
    };
    found.format_version = manifest.version;
    found.journal_id = manifest.journal_id;
    found.shard_count = manifest.shards.len() as u16;
    found.filed = manifest.filed;
    found.is_loss_accepted = manifest.has_lost || manifest.has_holes;
    Ok(Some(manifest))
}

/// Counts the files other than segments and valid extents.
fn count_files(
    disk: &dyn Disk,
    manifest: Option<&Manifest>,
    found: &mut Inspection,
) -> io::Result<()> {
    let size_of = |path: &str| disk.open(path).and_then(|file| file.size());
    for name in list_existing(disk, LINE_DIR)? {
        let is_unfinished = name.ends_with(".new");
        if journal::segment::sequence_of(&name).is_some() {
            continue;
        }
        let files = if is_unfinished {
            &mut found.strays
        } else {
            &mut found.spares
        };
        files.add(size_of(&format!("{LINE_DIR}/{name}"))?);
    }
    let named = |path: &str| {
        let is_complete = path.ends_with(".ext");
        manifest.map_or(is_complete, |manifest| {
            manifest.extents().flatten().any(|one| one.path() == path)
        })
    };
    for name in list_existing(disk, extent::DIRECTORY)? {
        let path = format!("{}/{name}", extent::DIRECTORY);
        if !named(&path) {
            found.strays.add(size_of(&path)?);
        }
    }
    match size_of(disk::reserve::PATH) {
        Ok(size) => found.reserve_bytes = size,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    Ok(())
}
