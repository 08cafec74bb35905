//! A disk whose reads can be held up, and threads that wait for it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use journal::disk::{Disk, File, SimulatedDisk};
use parking_lot::{Condvar, Mutex};
use platform::{Offload, Overloaded, Work};

use crate::PATIENCE;

/// A gate that reads pass while it is open. A read that waits longer than [`PATIENCE`] fails, so that
/// no test hangs.
#[derive(Debug, Default)]
pub struct Gate {
    is_shut: Mutex<bool>,
    opened: Condvar,
    waiting: AtomicUsize,
}

impl Gate {
    /// Holds up further reads.
    pub fn shut(&self) {
        *self.is_shut.lock() = true;
    }

    /// Lets all reads pass.
    pub fn open(&self) {
        *self.is_shut.lock() = false;
        self.opened.notify_all();
    }

    /// Returns the number of reads that wait.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }

    fn pass(&self) -> io::Result<()> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let mut is_shut = self.is_shut.lock();
        while *is_shut {
            if self.opened.wait_for(&mut is_shut, PATIENCE).timed_out() {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        Ok(())
    }
}

/// A disk behind a gate.
#[derive(Debug)]
pub struct Gated {
    /// The disk.
    pub disk: SimulatedDisk,
    /// The gate.
    pub gate: Arc<Gate>,
}

#[derive(Debug)]
struct GatedFile {
    file: Arc<dyn File>,
    gate: Arc<Gate>,
}

impl Gated {
    fn gated(&self, file: Arc<dyn File>) -> Arc<dyn File> {
        let gate = self.gate.clone();
        Arc::new(GatedFile { file, gate })
    }
}

impl Disk for Gated {
    fn create(&self, path: &str) -> io::Result<Arc<dyn File>> {
        Ok(self.gated(self.disk.create(path)?))
    }

    fn open(&self, path: &str) -> io::Result<Arc<dyn File>> {
        Ok(self.gated(self.disk.open(path)?))
    }

    fn create_dir(&self, path: &str) -> io::Result<()> {
        self.disk.create_dir(path)
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        self.disk.list(path)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.disk.remove(path)
    }

    fn sync_dir(&self, path: &str) -> io::Result<()> {
        self.disk.sync_dir(path)
    }
}

impl File for GatedFile {
    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.gate.pass()?;
        self.file.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.file.write_at(bytes, offset)
    }

    fn allocate(&self, size: u64) -> io::Result<()> {
        self.file.allocate(size)
    }

    fn set_size(&self, size: u64) -> io::Result<()> {
        self.file.set_size(size)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.file.sync_all()
    }
}

/// An executor with a thread for each piece of work; refuses all of it if overloaded.
#[derive(Debug, Default)]
pub struct ThreadPerWork {
    /// True if all work is refused.
    pub is_overloaded: AtomicBool,
}

impl Offload for ThreadPerWork {
    fn offload(&self, work: Work) -> Result<(), Overloaded> {
        if self.is_overloaded.load(Ordering::SeqCst) {
            return Err(Overloaded);
        }
        // It ends with its work, and the gate does not hold that up for ever.
        let _ = std::thread::spawn(work);
        Ok(())
    }
}
