//! Spares: files that wait to become segments.
//!
//! ```text
//!                 ┌── zeroing ──┐
//! nothing ──▸ spare-N.new ──▸ spare-N.seg ──▸ taken by the line ──▸ filed
//!                 ▴                                                  │
//!                 └────────── used-N.seg (old bytes) ◂───────────────┘
//!                                  └──▸ taken by the line as it is
//! ```
//!
//! A segment's size must never change while it is written. So its file is filled with zeros and
//! synced in advance, or was a segment before. If a sync of the line covers many bytes, as in bulk, a
//! file is only allocated: its syncs have metadata to write as well, which costs less than to write
//! every byte twice. Stale bytes are harmless for recovery, because CRCs
//! are seeded per use, but not for an erase. While an erase is due, and after a start unless
//! nothing was ever erased, files are zeroed before they are reused. This module knows nothing
//! about the contents of segments.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::{Disk, File, sync_names, write_zeros};

/// Bytes per step of zeroing. The line's own syncs may have to wait behind that much.
const ZERO_SIZE: u64 = 256 << 10;

/// A synced file of the right size without needed contents.
#[derive(Clone, Debug)]
pub struct Spare {
    /// Path of the file; the line renames it.
    pub path: String,
    /// The file.
    pub file: Arc<dyn File>,
}

impl Spare {
    /// Returns true if the file holds bytes of an earlier segment.
    fn is_used(&self) -> bool {
        self.path.contains("/used-")
    }
}

/// All spare files of a line.
#[derive(Debug)]
pub struct Spares {
    disk: Arc<dyn Disk>,
    directory: &'static str,
    size: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    ready: VecDeque<Spare>,
    /// Files to zero before their next use; by number, ascending.
    dirty: VecDeque<(u64, Spare)>,
    /// Files with old bytes that the line has taken and not given back; by number.
    stale: Vec<(u64, Arc<dyn File>)>,
    /// The file that is being zeroed; it is in no other list.
    zeroing: Option<Zeroing>,
    /// True if every returned file must be zeroed.
    all_dirty: bool,
    next: u64,
}

#[derive(Debug)]
struct Zeroing {
    number: u64,
    spare: Spare,
    done: u64,
}

impl State {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }
}

impl Spares {
    /// Takes over the spares of an earlier run in a directory. `size` is the size of new segments.
    pub fn open(disk: Arc<dyn Disk>, directory: &'static str, size: u64) -> io::Result<Spares> {
        let mut state = State {
            next: 1,
            ..State::default()
        };
        for name in disk.list(directory)? {
            let path = format!("{directory}/{name}");
            let Some((kind, number)) = parse(&name) else {
                continue;
            };
            state.next = state.next.max(number + 1);
            let spare = Spare {
                file: disk.open(&path)?,
                path,
            };
            if kind == Kind::Unfinished || spare.file.size()? != size {
                disk.remove(&spare.path)?;
            } else if kind == Kind::Zero {
                spare.file.sync_all()?;
                state.ready.push_back(spare);
            } else {
                state.dirty.push_back((number, spare));
            }
        }
        state
            .dirty
            .make_contiguous()
            .sort_by_key(|(number, _)| *number);
        Ok(Spares {
            disk,
            directory,
            size,
            state: Mutex::new(state),
        })
    }

    /// Makes used files available without zeroing, because nothing was erased before this run.
    pub fn trust_used(&self) {
        let mut state = self.state.lock();
        let used = std::mem::take(&mut state.dirty);
        state.ready.extend(used.into_iter().map(|(_, spare)| spare));
    }

    /// Returns the size of each spare in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Takes a spare for the line. The caller renames it and syncs the directory.
    pub fn take(&self) -> Option<Spare> {
        let mut state = self.state.lock();
        let spare = state.ready.pop_front()?;
        if spare.is_used() {
            let number = state.number();
            state.stale.push((number, spare.file.clone()));
        }
        Some(spare)
    }

    /// Returns true if `file` is one of the spares.
    pub fn holds(&self, file: &Arc<dyn File>) -> bool {
        let state = self.state.lock();
        let dirty = state.dirty.iter().map(|(_, spare)| spare);
        let mut all = state.ready.iter().chain(dirty);
        all.any(|spare| Arc::ptr_eq(&spare.file, file))
    }

    /// Returns the number of spares that can be taken.
    pub fn ready(&self) -> usize {
        self.state.lock().ready.len()
    }

    /// Returns the number of files that must be zeroed first.
    pub fn dirty(&self) -> usize {
        let state = self.state.lock();
        state.dirty.len() + usize::from(state.zeroing.is_some())
    }

    /// Returns the number of bytes zeroed of the current file, if there is one.
    pub fn zeroed(&self) -> Option<u64> {
        self.state
            .lock()
            .zeroing
            .as_ref()
            .map(|zeroing| zeroing.done)
    }

    /// Returns a lower bound of the numbers of files that are returned or begun from now on.
    pub fn mark(&self) -> u64 {
        self.state.lock().next
    }

    /// Returns true if a file with a number below `mark` is not zeroed yet.
    pub fn is_dirty_before(&self, mark: u64) -> bool {
        let state = self.state.lock();
        let zeroing = state.zeroing.as_ref().map(|zeroing| zeroing.number);
        zeroing
            .into_iter()
            .chain(state.dirty.iter().map(|(number, _)| *number))
            .any(|number| number < mark)
    }

    /// Returns true if the line still uses a file with old bytes whose number is below `mark`.
    pub fn is_stale_before(&self, mark: u64) -> bool {
        self.state
            .lock()
            .stale
            .iter()
            .any(|(number, _)| *number < mark)
    }

    /// Creates a spare whose disk space is allocated but not written, at once. Where the file system
    /// cannot do that, it begins a file to be zeroed.
    pub fn allocate(&self) -> io::Result<()> {
        let number = self.state.lock().number();
        let path = format!("{}/spare-{number}.new", self.directory);
        let file = self.disk.create(&path)?;
        let allocated = file.allocate(self.size).and_then(|()| file.sync_all());
        let renamed = allocated.and_then(|()| {
            let spare = Spare {
                path: path.clone(),
                file: file.clone(),
            };
            self.rename(spare, Kind::Zero)
        });
        let Err(error) = renamed else {
            return Ok(());
        };
        if !self.holds(&file) {
            self.abandon(&path);
        }
        match error.kind() {
            io::ErrorKind::Unsupported => self.begin(),
            _ => Err(error),
        }
    }

    /// Returns true if the line was given the file with old bytes in it. It may still have some.
    pub fn is_stale(&self, file: &Arc<dyn File>) -> bool {
        let state = self.state.lock();
        let mut stale = state.stale.iter();
        stale.any(|(_, stale)| Arc::ptr_eq(stale, file))
    }

    /// Forgets a file that will not be given back, and has no old bytes any more.
    pub fn part_with(&self, file: &Arc<dyn File>) {
        let mut state = self.state.lock();
        state.stale.retain(|(_, stale)| !Arc::ptr_eq(stale, file));
    }

    /// Creates a zeroed spare at once.
    pub fn prepare(&self) -> io::Result<()> {
        self.begin()?;
        while self.zero()? {}
        Ok(())
    }

    /// Begins a new file, unless one is being zeroed. [`Spares::zero`] continues it.
    pub fn begin(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        if state.zeroing.is_some() {
            return Ok(());
        }
        let number = state.number();
        let path = format!("{}/spare-{number}.new", self.directory);
        let file = self.disk.create(&path)?;
        state.zeroing = Some(Zeroing {
            number,
            spare: Spare { path, file },
            done: 0,
        });
        Ok(())
    }

    /// Writes some zeros, to the begun file or else to a dirty one. Returns false if there is none.
    pub fn zero(&self) -> io::Result<bool> {
        let mut zeroing = {
            let mut state = self.state.lock();
            let begin = |(number, spare)| Zeroing {
                number,
                spare,
                done: 0,
            };
            let found = state
                .zeroing
                .take()
                .or_else(|| state.dirty.pop_front().map(begin));
            let Some(zeroing) = found else {
                return Ok(false);
            };
            zeroing
        };
        match self.zero_some(&mut zeroing) {
            Ok(()) if zeroing.done == self.size => {
                let (path, file) = (zeroing.spare.path.clone(), zeroing.spare.file.clone());
                let renamed = self.rename(zeroing.spare, Kind::Zero);
                if renamed.is_err() && !self.holds(&file) {
                    self.abandon(&path);
                }
                renamed?;
            }
            Ok(()) => self.state.lock().zeroing = Some(zeroing),
            Err(error) => {
                self.abandon(&zeroing.spare.path);
                return Err(error);
            }
        }
        Ok(true)
    }

    /// Takes back the file of a filed segment.
    pub fn give_back(
        &self,
        path: String,
        file: Arc<dyn File>,
        must_be_zeroed: bool,
    ) -> io::Result<()> {
        let kind = if must_be_zeroed {
            Kind::Dirty
        } else {
            Kind::Used
        };
        self.rename(Spare { path, file }, kind)
    }

    /// Removes the file of a filed segment.
    pub fn discard(&self, path: &str, file: &Arc<dyn File>) -> io::Result<()> {
        match self.disk.remove(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        sync_names(&*self.disk, self.directory)?;
        self.part_with(file);
        Ok(())
    }

    /// Sets whether every file with old bytes must be zeroed before it is used.
    pub fn zero_all(&self, all: bool) {
        let mut state = self.state.lock();
        state.all_dirty = all;
        if all {
            let ready = std::mem::take(&mut state.ready);
            let (used, zero): (VecDeque<_>, _) = ready.into_iter().partition(Spare::is_used);
            state.ready = zero;
            for spare in used {
                let number = state.number();
                state.dirty.push_back((number, spare));
            }
        }
    }

    /// Removes dirty files and all but `count` ready ones, to free disk space.
    pub fn shrink(&self, count: usize) -> io::Result<()> {
        let removed = {
            let mut state = self.state.lock();
            let kept = count.min(state.ready.len());
            let mut removed: Vec<Spare> = state.ready.drain(kept..).collect();
            removed.extend(state.dirty.drain(..).map(|(_, spare)| spare));
            removed.extend(state.zeroing.take().map(|zeroing| zeroing.spare));
            removed
        };
        for spare in &removed {
            self.disk.remove(&spare.path)?;
        }
        if removed.is_empty() {
            Ok(())
        } else {
            sync_names(&*self.disk, self.directory)
        }
    }

    fn zero_some(&self, zeroing: &mut Zeroing) -> io::Result<()> {
        let file = &*zeroing.spare.file;
        if zeroing.done == 0 {
            file.take_room(self.size)?;
        }
        let size = ZERO_SIZE.min(self.size - zeroing.done);
        write_zeros(file, zeroing.done, size)?;
        file.write_out(zeroing.done, size)?;
        zeroing.done += size;
        if zeroing.done == self.size {
            file.sync_all()?;
        }
        Ok(())
    }

    /// Renames a file by its kind and queues it.
    fn rename(&self, spare: Spare, kind: Kind) -> io::Result<()> {
        let mut state = self.state.lock();
        let number = state.number();
        let word = if kind == Kind::Zero { "spare" } else { "used" };
        let path = format!("{}/{word}-{number}.seg", self.directory);
        self.disk.rename(&spare.path, &path)?;
        state
            .stale
            .retain(|(_, stale)| !Arc::ptr_eq(stale, &spare.file));
        let spare = Spare {
            path,
            file: spare.file,
        };
        match kind {
            Kind::Used if !state.all_dirty => state.ready.push_back(spare),
            Kind::Used | Kind::Dirty | Kind::Unfinished => {
                state.dirty.push_back((number, spare));
            }
            Kind::Zero => state.ready.push_back(spare),
        }
        drop(state);
        sync_names(&*self.disk, self.directory)
    }

    /// Removes a file that could not be zeroed. If that fails, the next start removes it.
    fn abandon(&self, path: &str) {
        let _ = self.disk.remove(path);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Zero,
    Used,
    Dirty,
    Unfinished,
}

fn parse(name: &str) -> Option<(Kind, u64)> {
    let (stem, kind) = match name.split_once('.')? {
        (stem, "new") => (stem, Kind::Unfinished),
        (stem, "seg") if stem.starts_with("spare-") => (stem, Kind::Zero),
        (stem, "seg") => (stem, Kind::Dirty),
        _ => return None,
    };
    let number = stem
        .strip_prefix("spare-")
        .or_else(|| stem.strip_prefix("used-"))?;
    Some((kind, number.parse().ok()?))
}

#[cfg(test)]
mod tests;
