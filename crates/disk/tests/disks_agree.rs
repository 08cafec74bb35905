//! The simulated disk behaves like the real one, as long as nothing fails.
#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::io;
use std::sync::Arc;

use disk::{Disk, File, RealDisk, SimulatedDisk};
use proptest::collection::vec;
use proptest::prelude::*;

/// Files and directories have different names, but a path may lead through a file.
const FILES: [&str; 6] = ["a", "b", "line/a", "line/b", "far/a", "a/b"];
const DIRECTORIES: [&str; 4] = ["", "line", "far", "line/deep"];
const SLOTS: usize = 3;

/// A step whose result can be compared: bytes read, or the kind of error.
#[derive(Clone, Debug)]
enum Step {
    Create(usize, usize),
    Open(usize, usize),
    CreateDir(usize),
    List(usize),
    Rename(usize, usize),
    Remove(usize),
    SyncDir(usize),
    Size(usize),
    Read(usize, u64, usize),
    Write(usize, u64, Vec<u8>),
    Allocate(usize, u64),
    SetSize(usize, u64),
    SyncData(usize),
    SyncAll(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let file = 0..FILES.len();
    let directory = 0..DIRECTORIES.len();
    let slot = 0..SLOTS;
    let offset = 0..3000_u64;
    let bytes = || (any::<u8>(), 0..1500_usize).prop_map(|(byte, count)| vec![byte; count]);
    prop_oneof![
        3 => (slot.clone(), file.clone()).prop_map(|(slot, file)| Step::Create(slot, file)),
        2 => (slot.clone(), file.clone()).prop_map(|(slot, file)| Step::Open(slot, file)),
        2 => directory.clone().prop_map(Step::CreateDir),
        2 => directory.clone().prop_map(Step::List),
        2 => (file.clone(), file.clone()).prop_map(|(from, to)| Step::Rename(from, to)),
        1 => file.prop_map(Step::Remove),
        1 => directory.prop_map(Step::SyncDir),
        1 => slot.clone().prop_map(Step::Size),
        3 => (slot.clone(), offset.clone(), 0..1500_usize)
            .prop_map(|(slot, offset, count)| Step::Read(slot, offset, count)),
        4 => (slot.clone(), offset.clone(), bytes())
            .prop_map(|(slot, offset, bytes)| Step::Write(slot, offset, bytes)),
        2 => (slot.clone(), offset.clone()).prop_map(|(slot, size)| Step::SetSize(slot, size)),
        1 => (slot.clone(), offset).prop_map(|(slot, size)| Step::Allocate(slot, size + 1)),
        1 => slot.clone().prop_map(Step::SyncData),
        1 => slot.prop_map(Step::SyncAll),
    ]
}

/// A disk and its open files.
struct Side {
    disk: Arc<dyn Disk>,
    slots: [Option<Arc<dyn File>>; SLOTS],
}

impl Side {
    fn new(disk: Arc<dyn Disk>) -> Self {
        let slots = Default::default();
        Self { disk, slots }
    }

    /// Returns the observable result of a step.
    fn run(&mut self, step: &Step) -> Result<String, io::ErrorKind> {
        self.attempt(step).map_err(|error| error.kind())
    }

    fn attempt(&mut self, step: &Step) -> io::Result<String> {
        match step {
            Step::Create(slot, file) => {
                self.slots[*slot] = Some(self.disk.create(FILES[*file])?);
            }
            Step::Open(slot, file) => {
                self.slots[*slot] = Some(self.disk.open(FILES[*file])?);
            }
            Step::CreateDir(directory) => self.disk.create_dir(DIRECTORIES[*directory])?,
            Step::List(directory) => {
                return Ok(format!("{:?}", self.disk.list(DIRECTORIES[*directory])?));
            }
            Step::Rename(from, to) => self.disk.rename(FILES[*from], FILES[*to])?,
            Step::Remove(file) => self.disk.remove(FILES[*file])?,
            Step::SyncDir(directory) => self.disk.sync_dir(DIRECTORIES[*directory])?,
            Step::Size(slot) => {
                let size = self.slots[*slot].as_ref().map(|file| file.size());
                return Ok(format!("{:?}", size.transpose()?));
            }
            Step::Read(slot, offset, count) => {
                let mut bytes = vec![0; *count];
                if let Some(file) = &self.slots[*slot] {
                    file.read_at(&mut bytes, *offset)?;
                }
                return Ok(format!("{bytes:?}"));
            }
            Step::Write(slot, offset, bytes) => {
                let file = self.slots[*slot].as_ref();
                let written = file.map(|file| file.write_at(bytes, *offset));
                return Ok(format!("{:?}", written.transpose()?));
            }
            Step::Allocate(slot, size) => self.with(*slot, |file| file.allocate(*size))?,
            Step::SetSize(slot, size) => self.with(*slot, |file| file.set_size(*size))?,
            Step::SyncData(slot) => self.with(*slot, |file| file.sync_data())?,
            Step::SyncAll(slot) => self.with(*slot, |file| file.sync_all())?,
        }
        Ok(String::new())
    }

    fn with(&self, slot: usize, act: impl Fn(&dyn File) -> io::Result<()>) -> io::Result<()> {
        self.slots[slot].as_deref().map_or(Ok(()), act)
    }

    /// Returns every file by name, with its contents.
    fn contents(&self) -> Vec<(&'static str, Option<Vec<u8>>)> {
        let read = |path: &'static str| {
            let file = self.disk.open(path).ok()?;
            let mut bytes = vec![0; usize::try_from(file.size().unwrap()).unwrap()];
            file.read_at(&mut bytes, 0).unwrap();
            Some(bytes)
        };
        FILES.iter().map(|path| (*path, read(path))).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn simulated_and_real_disk_give_the_same_results(steps in vec(step(), 1..80)) {
        let directory = tempfile::tempdir().unwrap();
        let mut real = Side::new(Arc::new(RealDisk::new(directory.path())));
        let mut simulated = Side::new(Arc::new(SimulatedDisk::new(1)));
        for (number, step) in steps.iter().enumerate() {
            prop_assert_eq!(real.run(step), simulated.run(step), "step {}: {:?}", number, step);
        }
        prop_assert_eq!(real.contents(), simulated.contents());
    }
}
