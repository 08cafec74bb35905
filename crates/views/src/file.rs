//! The file of the views, and the handling of damage.

use std::fs::{DirBuilder, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use redb::backends::{FileBackend, InMemoryBackend};
use redb::{Builder, Database};

use super::damage::Damage;
use super::tables::Tables;

/// The name of the file in the views' directory.
const FILE: &str = "conversations";

/// The location of the views.
#[derive(Clone, Debug)]
pub enum ViewsLocation {
    /// In this directory, which is created if necessary.
    Directory(PathBuf),
    /// In memory: rebuilt at each start.
    Memory,
}

/// Opens the tables. A file that cannot be used is replaced by an empty one.
pub(super) fn open(
    place: &ViewsLocation,
    journal: u64,
    cache_size: usize,
) -> Result<Tables, Damage> {
    let ViewsLocation::Directory(directory) = place else {
        let backend = InMemoryBackend::new();
        let database = builder(cache_size).create_with_backend(backend)?;
        return Tables::new(database, journal)?.ok_or_else(foreign);
    };
    let mut making = DirBuilder::new();
    making.recursive(true).mode(0o700);
    making.create(directory).map_err(io)?;
    let path = directory.join(FILE);
    match open_file(&path, journal, cache_size) {
        Ok(Some(tables)) => return Ok(tables),
        Err(damage) if !damage.is_lasting() => return Err(damage),
        Ok(None) | Err(_) => {}
    }
    std::fs::remove_file(&path).map_err(io)?;
    open_file(&path, journal, cache_size)?.ok_or_else(foreign)
}

/// Removes the file.
pub(super) fn remove(place: &ViewsLocation) -> Result<(), Damage> {
    match place {
        ViewsLocation::Memory => Ok(()),
        ViewsLocation::Directory(directory) => match std::fs::remove_file(directory.join(FILE)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(io(error)),
            _ => Ok(()),
        },
    }
}

fn open_file(path: &Path, journal: u64, cache_size: usize) -> Result<Option<Tables>, Damage> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).mode(0o600);
    let file = options.open(path).map_err(io)?;
    // The database checks every page before its content is used. A panic during that check also
    // counts as damage.
    let open = || -> Result<Option<Tables>, Damage> {
        Tables::new(database(FileBackend::new(file)?, cache_size)?, journal)
    };
    catch_unwind(AssertUnwindSafe(open)).unwrap_or_else(|_| {
        Err(Damage::Malformed {
            table: FILE.to_owned(),
        })
    })
}

/// Opens a database and checks its integrity.
pub(super) fn database(
    backend: impl redb::StorageBackend,
    cache_size: usize,
) -> Result<Database, Damage> {
    Ok(builder(cache_size).create_with_backend(backend)?)
}

fn builder(cache_size: usize) -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(cache_size);
    builder.set_check_integrity_on_open(true);
    builder
}

fn io(error: std::io::Error) -> Damage {
    Damage::Database(Box::new(error.into()))
}

fn foreign() -> Damage {
    Damage::Malformed {
        table: FILE.to_owned(),
    }
}
