//! An open file of the simulated disk.

use std::fmt;
use std::io::{self, ErrorKind};

use super::fault::{Fault, Kind};
use super::image::Image;
use super::trace::Operation;
use super::{SimulatedDisk, State, broken, size, with_path};
use crate::File;

/// An open file. It becomes invalid when the process that opened it dies.
pub(super) struct Handle {
    pub(super) disk: SimulatedDisk,
    pub(super) generation: u64,
    pub(super) number: u64,
}

impl Handle {
    fn call<T>(
        &self,
        kind: Kind,
        run: impl FnOnce(&mut State, Option<Fault>) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut state = self.disk.0.lock();
        if state.generation != self.generation {
            return Err(io::Error::other("the process that opened this is gone"));
        }
        let path = match state.plans.is_empty() {
            true => String::new(),
            false => self.path(&state),
        };
        let fault = state.draw(kind, &path);
        let result = match fault {
            Some(Fault::Full) => Err(ErrorKind::StorageFull.into()),
            fault => run(&mut state, fault),
        };
        result.map_err(|error| with_path(self.path(&state), error))
    }

    fn path(&self, state: &State) -> String {
        let mut files = state.tree.files().into_iter();
        let file = files.find(|(_, number)| *number == self.number);
        file.map_or_else(String::new, |(path, _)| path)
    }

    fn sync(&self, kind: Kind, sync: fn(&mut Image), operation: Operation) -> io::Result<()> {
        self.call(kind, |state, fault| {
            let image = state.tree.file(self.number)?;
            match fault {
                Some(Fault::Broken) => {
                    image.lose(&mut state.rng);
                    return Err(broken());
                }
                Some(Fault::Lie) => image.forget(),
                _ => sync(image),
            }
            state.note(|| operation);
            Ok(())
        })
    }

    /// Returns how many of `count` bytes are written before the fault.
    fn written(state: &mut State, count: usize, fault: Option<Fault>) -> usize {
        match fault {
            Some(Fault::Broken | Fault::Short) if count > 0 => state.rng.usize(..count),
            _ => count,
        }
    }

    /// Returns the size up to which the file may grow.
    fn size_max(&self, state: &mut State, old: u64) -> u64 {
        match state.capacity {
            u64::MAX => u64::MAX,
            capacity => old + capacity.saturating_sub(state.used()),
        }
    }
}

impl File for Handle {
    fn size(&self) -> io::Result<u64> {
        let mut state = self.disk.0.lock();
        state.tree.file(self.number).map(|image| size(image))
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.call(Kind::Read, |state, fault| {
            if fault == Some(Fault::Broken) {
                return Err(broken());
            }
            let bytes = state.tree.file(self.number)?.bytes();
            let rest = bytes.get(offset as usize..).unwrap_or_default();
            let rest = rest.get(..buffer.len()).ok_or(ErrorKind::UnexpectedEof)?;
            buffer.copy_from_slice(rest);
            state.read += buffer.len() as u64;
            Ok(())
        })
    }

    fn read_cached(&self, buffer: &mut [u8], offset: u64) -> io::Result<bool> {
        let is_cached = self.disk.0.lock().is_cached;
        match is_cached {
            true => self.read_at(buffer, offset).map(|()| true),
            false => Ok(false),
        }
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.call(Kind::Write, |state, fault| {
            let old = size(state.tree.file(self.number)?);
            let room = self.size_max(state, old).saturating_sub(offset);
            let count = bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX));
            if count == 0 && !bytes.is_empty() {
                return Err(ErrorKind::StorageFull.into());
            }
            let written = &bytes[..Self::written(state, count, fault)];
            state
                .tree
                .file(self.number)?
                .write(written, offset as usize);
            state.written += written.len() as u64;
            state.note(|| Operation::Write {
                file: self.number,
                bytes: written.to_vec(),
                offset,
            });
            match fault {
                Some(Fault::Broken) => Err(broken()),
                _ => Ok(written.len()),
            }
        })
    }

    fn allocate(&self, size: u64) -> io::Result<()> {
        if !self.disk.0.lock().can_allocate {
            return Err(ErrorKind::Unsupported.into());
        }
        match size > self.size()? {
            true => self.set_size(size),
            false => Ok(()),
        }
    }

    fn set_size(&self, new: u64) -> io::Result<()> {
        self.call(Kind::SetSize, |state, fault| {
            let old = size(state.tree.file(self.number)?);
            if fault == Some(Fault::Broken) {
                return Err(broken());
            }
            if new > old && new > self.size_max(state, old) {
                return Err(ErrorKind::StorageFull.into());
            }
            state.tree.file(self.number)?.set_size(new as usize);
            state.note(|| Operation::SetSize {
                file: self.number,
                size: new,
            });
            Ok(())
        })
    }

    fn sync_data(&self) -> io::Result<()> {
        let file = self.number;
        self.sync(
            Kind::SyncData,
            Image::sync_data,
            Operation::SyncData { file },
        )
    }

    fn sync_all(&self) -> io::Result<()> {
        let file = self.number;
        self.sync(Kind::SyncAll, Image::sync_all, Operation::SyncAll { file })
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let mut state = self.disk.0.lock();
        if state.generation != self.generation {
            return;
        }
        if let Some(count) = state.opens.get_mut(&self.number) {
            *count -= 1;
            if *count == 0 {
                state.opens.remove(&self.number);
            }
        }
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path(&self.disk.0.lock());
        formatter
            .debug_struct("Handle")
            .field("path", &path)
            .finish_non_exhaustive()
    }
}
