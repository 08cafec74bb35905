//! Files that wait to become segments.
//!
//! ```text
//!                 ┌── zeroing ──┐
//! nothing ──▸ spare-N.new ──▸ spare-N.seg ──▸ taken by the line ──▸ filed
//!                 ▴                                                  │
//!                 └────────── used-N.seg (old bytes) ◂───────────────┘
//!                                  └──▸ taken by the line as it is
//! ```
//!
//! A segment's size must never change while it is written, so its file is filled with zeros and
//! synced ahead, or is one that was a segment before. What an old one still holds is harmless to
//! recovery (blocks are salted) but not to an erase: while one is due, and after a start unless it is
//! known that nothing was ever erased, no file is used again before it was zeroed. It knows nothing
//! of what segments hold.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::disk::{Disk, File, sync_names};
use crate::segment::LINE_DIR;
use crate::zeros::write_zeros;

/// What one step of zeroing sends to the device: as much as the line's own syncs may wait for.
const ZERO_SIZE: u64 = 256 << 10;

/// A file of the right size, synced, that holds nothing anybody needs.
#[derive(Clone, Debug)]
pub struct Spare {
    /// Where it lies; whoever takes it gives it another name.
    pub path: String,
    /// The file.
    pub file: Arc<dyn File>,
}

impl Spare {
    /// Whether it holds what a segment held.
    fn is_used(&self) -> bool {
        self.path.contains("/used-")
    }
}

/// All spare files of a line.
#[derive(Debug)]
pub struct Spares {
    disk: Arc<dyn Disk>,
    size: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    ready: VecDeque<Spare>,
    /// Must be zeroed before they are used; by number, ascending.
    dirty: VecDeque<(u64, Spare)>,
    /// Files that the line took with old bytes in them and has not given back; by number.
    stale: Vec<(u64, Arc<dyn File>)>,
    /// A file that is being zeroed is in neither list.
    zeroing: Option<Zeroing>,
    /// Whether everything that comes back must be zeroed.
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
    /// Takes over what an earlier run left behind. `size` is what segments have from now on.
    pub fn open(disk: Arc<dyn Disk>, size: u64) -> io::Result<Spares> {
        let mut state = State {
            next: 1,
            ..State::default()
        };
        for name in disk.list(LINE_DIR)? {
            let path = format!("{LINE_DIR}/{name}");
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
            size,
            state: Mutex::new(state),
        })
    }

    /// Nothing was erased before this run: what was left behind is as good as it is.
    pub fn trust_used(&self) {
        let mut state = self.state.lock();
        let used = std::mem::take(&mut state.dirty);
        state.ready.extend(used.into_iter().map(|(_, spare)| spare));
    }

    /// Bytes of every spare.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// One for the line to use at once. The directory is synced by whoever renames it.
    pub fn take(&self) -> Option<Spare> {
        let mut state = self.state.lock();
        let spare = state.ready.pop_front()?;
        if spare.is_used() {
            let number = state.number();
            state.stale.push((number, spare.file.clone()));
        }
        Some(spare)
    }

    /// Whether this file is one of them.
    pub fn holds(&self, file: &Arc<dyn File>) -> bool {
        let state = self.state.lock();
        let dirty = state.dirty.iter().map(|(_, spare)| spare);
        let mut all = state.ready.iter().chain(dirty);
        all.any(|spare| Arc::ptr_eq(&spare.file, file))
    }

    /// How many could be taken.
    pub fn ready(&self) -> usize {
        self.state.lock().ready.len()
    }

    /// How many must be zeroed first.
    pub fn dirty(&self) -> usize {
        let state = self.state.lock();
        state.dirty.len() + usize::from(state.zeroing.is_some())
    }

    /// How far the file is that is being zeroed, if there is one.
    pub fn zeroed(&self) -> Option<u64> {
        self.state
            .lock()
            .zeroing
            .as_ref()
            .map(|zeroing| zeroing.done)
    }

    /// A number that every file has that comes back or is begun from now on, or a larger one.
    pub fn mark(&self) -> u64 {
        self.state.lock().next
    }

    /// Whether a file must still be zeroed whose number is smaller.
    pub fn is_dirty_before(&self, mark: u64) -> bool {
        let state = self.state.lock();
        let zeroing = state.zeroing.as_ref().map(|zeroing| zeroing.number);
        zeroing
            .into_iter()
            .chain(state.dirty.iter().map(|(number, _)| *number))
            .any(|number| number < mark)
    }

    /// Whether the line still has a file that it took, with old bytes in it, before then.
    pub fn is_stale_before(&self, mark: u64) -> bool {
        self.state
            .lock()
            .stale
            .iter()
            .any(|(number, _)| *number < mark)
    }

    /// Makes a new one at once.
    pub fn prepare(&self) -> io::Result<()> {
        self.begin()?;
        while self.zero()? {}
        Ok(())
    }

    /// Begins to make a new one, unless one is being zeroed already; [`Spares::zero`] goes on.
    pub fn begin(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        if state.zeroing.is_some() {
            return Ok(());
        }
        let number = state.number();
        let path = format!("{LINE_DIR}/spare-{number}.new");
        let file = self.disk.create(&path)?;
        state.zeroing = Some(Zeroing {
            number,
            spare: Spare { path, file },
            done: 0,
        });
        Ok(())
    }

    /// Writes some zeros: to the file that was begun, else to a dirty one. False: there is none.
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

    /// Takes back the file of a segment that was filed.
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

    /// Removes the file of a segment that was filed.
    pub fn discard(&self, path: &str, file: &Arc<dyn File>) -> io::Result<()> {
        match self.disk.remove(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        sync_names(&*self.disk, LINE_DIR)?;
        self.state
            .lock()
            .stale
            .retain(|(_, stale)| !Arc::ptr_eq(stale, file));
        Ok(())
    }

    /// From now on, or no longer, no file that held anything is used before it was zeroed.
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

    /// Removes all but `count` that are ready, and what would have to be zeroed: makes room.
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
            sync_names(&*self.disk, LINE_DIR)
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

    /// Gives a file the name that says what it is, and queues it.
    fn rename(&self, spare: Spare, kind: Kind) -> io::Result<()> {
        let mut state = self.state.lock();
        let number = state.number();
        let word = if kind == Kind::Zero { "spare" } else { "used" };
        let path = format!("{LINE_DIR}/{word}-{number}.seg");
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
        sync_names(&*self.disk, LINE_DIR)
    }

    /// A file that could not be zeroed is of no use; if it cannot be removed either, the next
    /// start will.
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
