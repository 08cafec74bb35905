//! A file that reserves disk space for the moment when the disk is full.
//!
//! Trimming and merging free space, but need some first. The reserve is a file of allocated bytes.
//! It is removed when the disk is full and created again when there is space. It does not know who
//! uses the space.

use std::io;
use std::sync::Arc;

use crate::{Disk, sync_names, write_zeros};

/// Path of the reserve file.
pub const PATH: &str = "reserve";

const PATH_UNFINISHED: &str = "reserve.new";

/// The reserve of a directory.
#[derive(Debug)]
pub struct Reserve {
    disk: Arc<dyn Disk>,
    size: u64,
    is_held: bool,
}

impl Reserve {
    /// Looks for an existing reserve. One of another size is removed; `size` 0 disables the
    /// reserve.
    pub fn open(disk: Arc<dyn Disk>, size: u64) -> io::Result<Reserve> {
        let mut reserve = Reserve {
            disk,
            size,
            is_held: size == 0,
        };
        match reserve.disk.open(PATH).and_then(|file| file.size()) {
            Ok(found) if found == size && size > 0 => reserve.is_held = true,
            Ok(_) => reserve.disk.remove(PATH)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        Ok(reserve)
    }

    /// Returns true if the space is reserved.
    pub fn is_held(&self) -> bool {
        self.is_held
    }

    /// Reserves the space, unless it is reserved already. An error leaves it free.
    pub fn hold(&mut self) -> io::Result<()> {
        if self.is_held {
            return Ok(());
        }
        let filled = self.fill();
        if filled.is_err() {
            let _ = self.disk.remove(PATH_UNFINISHED);
        }
        self.is_held = filled.is_ok();
        filled
    }

    /// Frees the reserved space.
    pub fn release(&mut self) -> io::Result<()> {
        if self.is_held && self.size > 0 {
            self.disk.remove(PATH)?;
            sync_names(&*self.disk, "")?;
            self.is_held = false;
        }
        Ok(())
    }

    fn fill(&self) -> io::Result<()> {
        match self.disk.remove(PATH_UNFINISHED) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = self.disk.create(PATH_UNFINISHED)?;
        write_zeros(&*file, 0, self.size)?;
        file.sync_all()?;
        self.disk.rename(PATH_UNFINISHED, PATH)?;
        sync_names(&*self.disk, "")
    }
}

#[cfg(test)]
mod tests;
