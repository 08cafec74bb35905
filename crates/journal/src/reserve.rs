//! Room that is kept for the moment at which the disk is full.
//!
//! Trimming and merging make room, and need some first. The reserve is a file of real bytes that is
//! removed then, and made again when there is room. It knows nothing of who needs it.

use std::io;
use std::sync::Arc;

use crate::disk::{Disk, sync_names};
use crate::zeros::write_zeros;

/// Where it lies.
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
    /// Looks what is there. A reserve of another size is removed; 0 means that none is wanted.
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

    /// Whether the room is there.
    pub fn is_held(&self) -> bool {
        self.is_held
    }

    /// Takes the room, if it is not held. An error leaves it free.
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

    /// Gives the room to whoever needs it.
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
