//! Recordings of the calls to a disk, replayable up to any call.

use super::tree::Tree;

/// A recorded call.
#[derive(Clone, Debug)]
pub(super) enum Operation {
    Create {
        path: String,
    },
    CreateDir {
        path: String,
    },
    Rename {
        from: String,
        to: String,
    },
    Remove {
        path: String,
    },
    SyncDir {
        path: String,
    },
    Write {
        file: u64,
        bytes: Vec<u8>,
        offset: u64,
    },
    SetSize {
        file: u64,
        size: u64,
    },
    SyncData {
        file: u64,
    },
    SyncAll {
        file: u64,
    },
}

/// A recording of all changing calls from one moment on. Faults are not included.
#[derive(Clone)]
pub struct Trace {
    start: Tree,
    operations: Vec<Operation>,
}

impl Trace {
    pub(super) fn new(start: Tree) -> Self {
        Self {
            start,
            operations: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, operation: Operation) {
        self.operations.push(operation);
    }

    /// Returns the number of calls. [`Trace::prefixes`] has one disk more.
    #[must_use]
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Returns true if there were no calls.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Describes a call, for a person.
    #[must_use]
    pub fn describe(&self, call: usize) -> String {
        match self.operations.get(call) {
            Some(Operation::Write {
                file,
                bytes,
                offset,
            }) => format!(
                "Write {{ file: {file}, {} bytes at {offset} }}",
                bytes.len()
            ),
            Some(operation) => format!("{operation:?}"),
            None => "the end".to_owned(),
        }
    }

    /// Returns the disk after 0, 1, 2, … calls, each a disk of its own.
    pub fn prefixes(&self) -> impl Iterator<Item = super::SimulatedDisk> {
        let mut tree = self.start.clone();
        (0..=self.operations.len()).map(move |count| {
            if let Some(operation) = count.checked_sub(1).map(|last| &self.operations[last]) {
                operation.apply(&mut tree);
            }
            super::SimulatedDisk::from_tree(tree.clone(), count as u64)
        })
    }
}

impl Operation {
    /// Applies the operation. It succeeded on the same tree when it was recorded, so it succeeds
    /// again.
    fn apply(&self, tree: &mut Tree) {
        let file = |tree: &mut Tree, number: u64, change: &dyn Fn(&mut super::image::Image)| {
            tree.file(number).map(change)
        };
        let result = match self {
            Self::Create { path } => tree.create(path).map(drop),
            Self::CreateDir { path } => tree.create_dir(path),
            Self::Rename { from, to } => tree.rename(from, to),
            Self::Remove { path } => tree.remove(path),
            Self::SyncDir { path } => tree.sync_dir(path),
            Self::Write {
                file: number,
                bytes,
                offset,
            } => file(tree, *number, &|image| image.write(bytes, *offset as usize)),
            Self::SetSize { file: number, size } => {
                file(tree, *number, &|image| image.set_size(*size as usize))
            }
            Self::SyncData { file: number } => file(tree, *number, &|image| image.sync_data()),
            Self::SyncAll { file: number } => file(tree, *number, &|image| image.sync_all()),
        };
        if let Err(error) = result {
            unreachable!("{self:?} went well before: {error}");
        }
    }
}
