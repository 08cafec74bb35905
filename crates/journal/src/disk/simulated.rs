//! A disk in memory that forgets what was not synced, and worse, under a seed.
//!
//! Every file and every directory stands in it twice: as it is read, and as a crash would leave
//! it. A crash keeps any subset of what was not synced, sector by sector and name by name, and may
//! tear a sector. Beyond that it can err, run full, write short, flip bits and lie.
//!
//! It claims no more than the contract does: a name is lost without [`Disk::sync_dir`] even where
//! every real file system would have kept it. It knows nothing of time: a call takes none.

mod crash;
mod fault;
mod handle;
mod image;
mod trace;
mod tree;

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, ErrorKind};
use std::sync::Arc;

use parking_lot::Mutex;

use self::crash::Chance;
use self::fault::Plans;
use self::handle::Handle;
use self::image::Image;
use self::trace::Operation;
use self::tree::Tree;
use super::{Disk, File, at};

pub use self::crash::{Fate, Unsynced};
pub use self::fault::{Call, Fault, Kind};
pub use self::trace::Trace;

/// A disk. A clone is another handle to the same one; [`SimulatedDisk::fork`] makes another disk.
#[derive(Clone)]
pub struct SimulatedDisk(Arc<Mutex<State>>);

struct State {
    tree: Tree,
    /// Who was there before the last crash holds handles that lead nowhere.
    generation: u64,
    opens: BTreeMap<u64, usize>,
    rng: fastrand::Rng,
    calls: u64,
    /// Bytes of files that were read.
    read: u64,
    plans: Plans,
    /// Bytes that all files may have together.
    capacity: u64,
    trace: Option<Trace>,
}

impl SimulatedDisk {
    /// An empty disk. The seed decides what a fault leaves behind.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self::from_tree(Tree::new(), seed)
    }

    fn from_tree(mut tree: Tree, seed: u64) -> Self {
        tree.collect(&BTreeMap::new());
        Self(Arc::new(Mutex::new(State {
            tree,
            generation: 0,
            opens: BTreeMap::new(),
            rng: fastrand::Rng::with_seed(seed),
            calls: 0,
            read: 0,
            plans: Plans::default(),
            capacity: u64::MAX,
            trace: None,
        })))
    }

    /// Another disk with the same contents, durable and not, without faults and with room.
    #[must_use]
    pub fn fork(&self) -> Self {
        let mut state = self.0.lock();
        let seed = state.rng.u64(..);
        Self::from_tree(state.tree.clone(), seed)
    }

    /// The power goes: of what was not synced, chance keeps some.
    pub fn crash(&self, rng: &mut fastrand::Rng) {
        let mut chance = Chance::new(rng);
        self.crash_with(|unsynced| chance.fate(unsynced));
    }

    /// The power goes: of what was not synced, whoever asks decides.
    pub fn crash_with(&self, mut choose: impl FnMut(&Unsynced) -> Fate) {
        let mut state = self.0.lock();
        state.tree.crash(&mut choose);
        state.end_handles();
    }

    /// Everything that a crash could lose at this moment.
    #[must_use]
    pub fn unsynced(&self) -> Vec<Unsynced> {
        let mut all = Vec::new();
        self.fork().crash_with(|unsynced| {
            all.push(*unsynced);
            Fate::Kept
        });
        all
    }

    /// The process dies and the machine does not: handles end, and nothing is lost yet.
    pub fn kill(&self) {
        self.0.lock().end_handles();
    }

    /// Some of what was not synced becomes durable by itself, as it may at any time.
    pub fn write_back(&self, rng: &mut fastrand::Rng) {
        let mut chance = Chance::new(rng);
        let mut state = self.0.lock();
        state.tree.write_back(&mut |unsynced| chance.fate(unsynced));
    }

    /// The first call to which this applies goes wrong.
    pub fn fail_once(&self, fault: Fault, call: impl FnMut(&Call<'_>) -> bool + Send + 'static) {
        self.0.lock().plans.add(fault, true, Box::new(call));
    }

    /// Every call to which this applies goes wrong, until the disk is healed.
    pub fn fail_always(&self, fault: Fault, call: impl FnMut(&Call<'_>) -> bool + Send + 'static) {
        self.0.lock().plans.add(fault, false, Box::new(call));
    }

    /// No call goes wrong any more.
    pub fn heal(&self) {
        self.0.lock().plans.clear();
    }

    /// Bytes that all files may have together from now on. It counts what can still be reached:
    /// a file without a name does while somebody has it open.
    pub fn set_capacity(&self, bytes: u64) {
        self.0.lock().capacity = bytes;
    }

    /// Bytes that all files have together.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.0.lock().used()
    }

    /// Calls that were made so far; the next one has this number.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.0.lock().calls
    }

    /// Bytes that were read of files so far.
    #[must_use]
    pub fn read(&self) -> u64 {
        self.0.lock().read
    }

    /// From now on, remembers every call that changes something.
    pub fn record(&self) {
        let mut state = self.0.lock();
        state.trace = Some(Trace::new(state.tree.clone()));
    }

    /// How many calls [`SimulatedDisk::record`] has remembered so far.
    #[must_use]
    pub fn recorded(&self) -> usize {
        self.0.lock().trace.as_ref().map_or(0, Trace::len)
    }

    /// What was remembered, if [`SimulatedDisk::record`] was called.
    #[must_use]
    pub fn take_trace(&self) -> Option<Trace> {
        self.0.lock().trace.take()
    }

    /// Files with their sizes, sorted by path.
    #[must_use]
    pub fn files(&self) -> Vec<(String, u64)> {
        let mut state = self.0.lock();
        let mut files = state.tree.files();
        for (_, file) in &mut files {
            *file = state.tree.file(*file).map_or(0, |image| size(image));
        }
        files
    }

    /// A file's bytes: as they are read, and as a crash would leave them.
    ///
    /// # Errors
    ///
    /// There is no such file.
    pub fn images(&self, path: &str) -> io::Result<(Vec<u8>, Vec<u8>)> {
        let mut state = self.0.lock();
        let number = state.tree.open(path)?;
        let image = state.tree.file(number)?;
        Ok((image.bytes().to_vec(), image.durable().to_vec()))
    }

    /// Turns one bit of a file over, behind the back of everybody.
    ///
    /// # Errors
    ///
    /// There is no such file.
    pub fn flip(&self, path: &str, bit: u64) -> io::Result<()> {
        let mut state = self.0.lock();
        let number = state.tree.open(path)?;
        state.tree.file(number)?.flip(bit);
        Ok(())
    }

    /// Makes one call on a path: counted, perhaps failing, remembered.
    fn call<T>(
        &self,
        kind: Kind,
        path: &str,
        run: impl FnOnce(&mut State, Option<Fault>) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut state = self.0.lock();
        let fault = state.draw(kind, path);
        let result = match (kind, fault) {
            (_, Some(Fault::Full)) => Err(ErrorKind::StorageFull.into()),
            (Kind::SyncDir, _) | (_, None | Some(Fault::Short | Fault::Lie)) => {
                run(&mut state, fault)
            }
            (_, Some(Fault::Broken)) => Err(broken()),
        };
        result.map_err(|error| at(path, error))
    }

    fn handle(&self, state: &mut State, number: u64) -> Arc<dyn File> {
        *state.opens.entry(number).or_default() += 1;
        Arc::new(Handle {
            disk: self.clone(),
            generation: state.generation,
            number,
        })
    }
}

impl State {
    fn end_handles(&mut self) {
        self.generation += 1;
        self.opens.clear();
        self.tree.collect(&self.opens);
    }

    fn draw(&mut self, kind: Kind, path: &str) -> Option<Fault> {
        let number = self.calls;
        self.calls += 1;
        self.plans.draw(&Call { number, kind, path })
    }

    fn used(&mut self) -> u64 {
        let mut files: Vec<u64> = self
            .tree
            .files()
            .into_iter()
            .map(|(_, file)| file)
            .collect();
        files.extend(self.opens.keys());
        files.sort_unstable();
        files.dedup();
        let sizes = files
            .into_iter()
            .map(|file| self.tree.file(file).map_or(0, |image| size(image)));
        sizes.sum()
    }

    fn note(&mut self, operation: impl FnOnce() -> Operation) {
        if let Some(trace) = &mut self.trace {
            trace.push(operation());
        }
    }
}

impl Disk for SimulatedDisk {
    fn create(&self, path: &str) -> io::Result<Arc<dyn File>> {
        self.call(Kind::Create, path, |state, _| {
            let number = state.tree.create(path)?;
            state.note(|| Operation::Create { path: path.into() });
            Ok(self.handle(state, number))
        })
    }

    fn open(&self, path: &str) -> io::Result<Arc<dyn File>> {
        self.call(Kind::Open, path, |state, _| {
            let number = state.tree.open(path)?;
            Ok(self.handle(state, number))
        })
    }

    fn create_dir(&self, path: &str) -> io::Result<()> {
        self.call(Kind::CreateDir, path, |state, _| {
            state.tree.create_dir(path)?;
            state.note(|| Operation::CreateDir { path: path.into() });
            Ok(())
        })
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        self.call(Kind::List, path, |state, _| state.tree.list(path))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.call(Kind::Rename, to, |state, _| {
            state.tree.rename(from, to)?;
            state.note(|| Operation::Rename {
                from: from.into(),
                to: to.into(),
            });
            Ok(())
        })
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.call(Kind::Remove, path, |state, _| {
            state.tree.remove(path)?;
            state.note(|| Operation::Remove { path: path.into() });
            Ok(())
        })
    }

    fn sync_dir(&self, path: &str) -> io::Result<()> {
        self.call(Kind::SyncDir, path, |state, fault| {
            match fault {
                Some(Fault::Broken) => {
                    state.tree.lose_dir(path, &mut state.rng)?;
                    return Err(broken());
                }
                Some(Fault::Lie) => state.tree.forget_dir(path)?,
                _ => state.tree.sync_dir(path)?,
            }
            state.note(|| Operation::SyncDir { path: path.into() });
            state.tree.collect(&state.opens);
            Ok(())
        })
    }
}

/// The device failed.
fn broken() -> io::Error {
    rustix::io::Errno::IO.into()
}

fn size(image: &Image) -> u64 {
    image.bytes().len() as u64
}

impl fmt::Debug for SimulatedDisk {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.0.lock();
        let mut shown = formatter.debug_struct("SimulatedDisk");
        shown.field("calls", &state.calls);
        shown.field("plans", &state.plans);
        shown.finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
