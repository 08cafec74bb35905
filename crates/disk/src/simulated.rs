//! An in-memory disk that loses unsynced data at a crash and injects faults, from a seed.
//!
//! It has every file and directory twice: as it is read, and as a crash would leave it. A crash
//! retains any subset of the unsynced changes, sector by sector and name by name, and may tear a
//! sector. The disk can also return errors, run full, write short, flip bits and lie about syncs.
//!
//! It implements no more than the contract: a name is lost without [`Disk::sync_dir`], even where
//! every real file system would retain it. Calls take no time.

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

use self::crash::RandomFates;
use self::fault::Plans;
use self::handle::Handle;
use self::image::Image;
use self::trace::Operation;
use self::tree::Tree;
use super::{Disk, File, with_path};

pub use self::crash::{Fate, Unsynced};
pub use self::fault::{Call, Fault, Kind};
pub use self::trace::Trace;

/// A simulated disk. A clone is another handle to the same disk; [`SimulatedDisk::fork`] copies it.
#[derive(Clone)]
pub struct SimulatedDisk(Arc<Mutex<State>>);

struct State {
    tree: Tree,
    /// Increased by a crash; handles of earlier generations fail.
    generation: u64,
    opens: BTreeMap<u64, usize>,
    rng: fastrand::Rng,
    calls: u64,
    /// Bytes read from files.
    read: u64,
    /// Bytes written to files.
    written: u64,
    plans: Plans,
    /// Limit on the bytes of all files.
    capacity: u64,
    /// Files can be allocated without writing to them.
    can_allocate: bool,
    /// All bytes are in the page cache.
    is_cached: bool,
    trace: Option<Trace>,
}

impl SimulatedDisk {
    /// Creates an empty disk. The seed determines the effects of faults.
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
            written: 0,
            plans: Plans::default(),
            capacity: u64::MAX,
            can_allocate: true,
            is_cached: false,
            trace: None,
        })))
    }

    /// Returns a copy with the same contents, durable and volatile, without faults and capacity
    /// limit.
    #[must_use]
    pub fn fork(&self) -> Self {
        let mut state = self.0.lock();
        let seed = state.rng.u64(..);
        Self::from_tree(state.tree.clone(), seed)
    }

    /// Simulates a power failure. A random subset of the unsynced changes is retained.
    pub fn crash(&self, rng: &mut fastrand::Rng) {
        let mut chance = RandomFates::new(rng);
        self.crash_with(|unsynced| chance.fate(unsynced));
    }

    /// Simulates a power failure. `choose` decides about each unsynced change.
    pub fn crash_with(&self, mut choose: impl FnMut(&Unsynced) -> Fate) {
        let mut state = self.0.lock();
        state.tree.crash(&mut choose);
        state.end_handles();
    }

    /// Returns every change that a crash could lose now.
    #[must_use]
    pub fn unsynced(&self) -> Vec<Unsynced> {
        let mut all = Vec::new();
        self.fork().crash_with(|unsynced| {
            all.push(*unsynced);
            Fate::Kept
        });
        all
    }

    /// Simulates the death of the process: handles become invalid, but nothing is lost.
    pub fn kill(&self) {
        self.0.lock().end_handles();
    }

    /// Makes a random subset of the unsynced changes durable, as a kernel may at any time.
    pub fn write_back(&self, rng: &mut fastrand::Rng) {
        let mut chance = RandomFates::new(rng);
        let mut state = self.0.lock();
        state.tree.write_back(&mut |unsynced| chance.fate(unsynced));
    }

    /// Injects the fault into the first call for which `call` returns true.
    pub fn fail_once(&self, fault: Fault, call: impl FnMut(&Call<'_>) -> bool + Send + 'static) {
        self.0.lock().plans.add(fault, true, Box::new(call));
    }

    /// Injects the fault into every call for which `call` returns true, until
    /// [`SimulatedDisk::heal`].
    pub fn fail_always(&self, fault: Fault, call: impl FnMut(&Call<'_>) -> bool + Send + 'static) {
        self.0.lock().plans.add(fault, false, Box::new(call));
    }

    /// Removes all injected faults.
    pub fn heal(&self) {
        self.0.lock().plans.clear();
    }

    /// Limits the bytes of all files. An open file without a name counts too.
    pub fn set_capacity(&self, bytes: u64) {
        self.0.lock().capacity = bytes;
    }

    /// Refuses [`File::allocate`] from now on, as some file systems do.
    pub fn refuse_allocation(&self) {
        self.0.lock().can_allocate = false;
    }

    /// Sets whether all bytes are in the page cache ([`File::read_cached`]); at first it is not known.
    pub fn set_cached(&self, is_cached: bool) {
        self.0.lock().is_cached = is_cached;
    }

    /// Returns the bytes of all files.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.0.lock().used()
    }

    /// Returns the number of calls so far, which is the number of the next call.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.0.lock().calls
    }

    /// Returns the number of bytes read from files.
    #[must_use]
    pub fn read(&self) -> u64 {
        self.0.lock().read
    }

    /// Returns the number of bytes written to files.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.0.lock().written
    }

    /// Starts recording every call that changes something.
    pub fn record(&self) {
        let mut state = self.0.lock();
        state.trace = Some(Trace::new(state.tree.clone()));
    }

    /// Returns the number of recorded calls.
    #[must_use]
    pub fn recorded(&self) -> usize {
        self.0.lock().trace.as_ref().map_or(0, Trace::len)
    }

    /// Ends the recording and returns it, if [`SimulatedDisk::record`] was called.
    #[must_use]
    pub fn take_trace(&self) -> Option<Trace> {
        self.0.lock().trace.take()
    }

    /// Returns the files with their sizes, sorted by path.
    #[must_use]
    pub fn files(&self) -> Vec<(String, u64)> {
        let mut state = self.0.lock();
        let mut files = state.tree.files();
        for (_, file) in &mut files {
            *file = state.tree.file(*file).map_or(0, |image| size(image));
        }
        files
    }

    /// Returns a file's bytes: as they are read, and as a crash would leave them.
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

    /// Flips one bit of a file, volatile and durable.
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

    /// Runs a call on a path: counts it and injects a fault, if one is due.
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
        result.map_err(|error| with_path(path, error))
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

/// Returns the error of a failed device.
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
