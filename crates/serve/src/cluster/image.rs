//! Images of the journal for new members: hard links to what is filed.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use cluster::Image;
use journal::backup;
use journal::disk::{Disk, RealDisk};

use crate::journal::DIRECTORY;

/// Begin of the names of images in the data directory.
const PREFIX: &str = "image-";

/// An image in a directory of its own, which is removed with it.
pub(super) struct DirectoryImage {
    directory: PathBuf,
    disk: RealDisk,
}

impl DirectoryImage {
    /// Makes an image of the journal in a data directory.
    pub(super) fn make(data: &Path) -> io::Result<Box<dyn Image>> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let directory = data.join(format!("{PREFIX}{number}"));
        std::fs::create_dir(&directory)?;
        let image = DirectoryImage {
            disk: RealDisk::new(&directory),
            directory,
        };
        let from = data.join(DIRECTORY);
        let link = |path: &str| std::fs::hard_link(from.join(path), image.directory.join(path));
        let copied = backup::copy(&RealDisk::new(&from), &image.disk, &link);
        copied.map_err(io::Error::other)?;
        Ok(Box::new(image))
    }

    /// Removes images that an earlier process left in a data directory.
    pub(super) fn remove_left(data: &Path) {
        let entries = std::fs::read_dir(data).into_iter().flatten().flatten();
        for entry in entries {
            if entry.file_name().to_string_lossy().starts_with(PREFIX) {
                remove(&entry.path());
            }
        }
    }
}

impl Image for DirectoryImage {
    fn disk(&self) -> &dyn Disk {
        &self.disk
    }
}

impl Drop for DirectoryImage {
    fn drop(&mut self) {
        remove(&self.directory);
    }
}

fn remove(directory: &Path) {
    if let Err(error) = std::fs::remove_dir_all(directory) {
        tracing::warn!(path = %directory.display(), %error, "cannot remove an image");
    }
}
