//! What was done to a disk, call by call, so that it can be done again up to any of them.

use super::tree::Tree;

/// A call that changed something, or made something durable.
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

/// Everything that a disk was told from a moment on. Faults are not in it.
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

    /// How many calls there are. A disk after each of them, and before the first, can be had.
    #[must_use]
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Whether nothing was done.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// What call this is, for a person.
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

    /// The disk as it was after 0, 1, 2, … calls, with nothing but that on it.
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
    /// It succeeded when it was recorded, on the same tree, so it does again.
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
