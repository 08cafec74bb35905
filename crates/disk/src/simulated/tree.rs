//! The directory tree of the simulated disk: nodes by number, and their names.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};

use super::Unsynced;
use super::crash::Fate;
use super::image::{ChooseFate, Image};

const ROOT: u64 = 0;

#[derive(Clone)]
pub(super) enum Node {
    File(Image),
    Directory(Directory),
}

/// Names and node numbers, as they are read and as a crash would leave them.
#[derive(Clone, Default)]
pub(super) struct Directory {
    names: BTreeMap<String, u64>,
    durable: BTreeMap<String, u64>,
    /// Changes since the last sync, in order. A crash retains or loses each as a whole.
    pending: Vec<Change>,
}

/// Changes of names by one call.
type Change = Vec<(String, Option<u64>)>;

impl Directory {
    fn change(&mut self, change: Change) {
        apply(&mut self.names, &change);
        self.pending.push(change);
    }

    fn sync(&mut self) {
        for change in self.pending.drain(..) {
            apply(&mut self.durable, &change);
        }
    }

    fn crash(&mut self, directory: u64, choose: ChooseFate<'_>) {
        for (number, change) in std::mem::take(&mut self.pending).into_iter().enumerate() {
            let change_id = Unsynced::Name {
                directory,
                change: number,
            };
            if choose(&change_id) == Fate::Kept {
                apply(&mut self.durable, &change);
            }
        }
        self.names = self.durable.clone();
    }
}

fn apply(names: &mut BTreeMap<String, u64>, change: &Change) {
    for (name, node) in change {
        match node {
            Some(node) => names.insert(name.clone(), *node),
            None => names.remove(name),
        };
    }
}

/// All contents of a disk.
#[derive(Clone)]
pub(super) struct Tree {
    nodes: BTreeMap<u64, Node>,
    next: u64,
}

impl Tree {
    pub(super) fn new() -> Self {
        let root = Node::Directory(Directory::default());
        Self {
            nodes: BTreeMap::from([(ROOT, root)]),
            next: ROOT + 1,
        }
    }

    pub(super) fn create(&mut self, path: &str) -> io::Result<u64> {
        self.add(path, Node::File(Image::default()))
    }

    pub(super) fn create_dir(&mut self, path: &str) -> io::Result<()> {
        match self.find(path) {
            Ok(node) if matches!(self.nodes[&node], Node::Directory(_)) => Ok(()),
            _ => self
                .add(path, Node::Directory(Directory::default()))
                .map(drop),
        }
    }

    fn add(&mut self, path: &str, node: Node) -> io::Result<u64> {
        let number = self.next;
        let (directory, name) = self.parent(path)?;
        if directory.names.contains_key(name) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        directory.change(vec![(name.to_owned(), Some(number))]);
        self.nodes.insert(number, node);
        self.next += 1;
        Ok(number)
    }

    pub(super) fn open(&self, path: &str) -> io::Result<u64> {
        let number = self.find(path)?;
        match self.nodes[&number] {
            Node::File(_) => Ok(number),
            Node::Directory(_) => Err(ErrorKind::IsADirectory.into()),
        }
    }

    pub(super) fn list(&mut self, path: &str) -> io::Result<Vec<String>> {
        Ok(self.directory(path)?.names.keys().cloned().collect())
    }

    /// Renames atomically within a directory. Between two directories it is not atomic: a crash may
    /// leave both names, or neither.
    pub(super) fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        let (source, name) = split(from);
        let (target, new_name) = split(to);
        for directory in [source, target] {
            self.directory(directory)?;
        }
        let number = self.open(from)?;
        match self.open(to) {
            Ok(replaced) if replaced == number => return Ok(()),
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let added = (new_name.to_owned(), Some(number));
        let removed = (name.to_owned(), None);
        if source == target {
            self.directory(source)?.change(vec![added, removed]);
        } else {
            self.directory(target)?.change(vec![added]);
            self.directory(source)?.change(vec![removed]);
        }
        Ok(())
    }

    pub(super) fn remove(&mut self, path: &str) -> io::Result<()> {
        self.open(path)?;
        let (directory, name) = self.parent(path)?;
        directory.change(vec![(name.to_owned(), None)]);
        Ok(())
    }

    pub(super) fn sync_dir(&mut self, path: &str) -> io::Result<()> {
        self.directory(path)?.sync();
        Ok(())
    }

    /// Simulates a sync that lies: the names stay until the next crash.
    pub(super) fn forget_dir(&mut self, path: &str) -> io::Result<()> {
        self.directory(path)?.pending.clear();
        Ok(())
    }

    /// Simulates a failed sync: each change becomes durable or only seems to.
    pub(super) fn lose_dir(&mut self, path: &str, rng: &mut fastrand::Rng) -> io::Result<()> {
        let directory = self.directory(path)?;
        directory.pending.retain(|_| rng.bool());
        directory.sync();
        Ok(())
    }

    /// Returns the file with this number. It exists while it has a name or is open.
    pub(super) fn file(&mut self, number: u64) -> io::Result<&mut Image> {
        match self.nodes.get_mut(&number) {
            Some(Node::File(image)) => Ok(image),
            _ => Err(ErrorKind::NotFound.into()),
        }
    }

    /// Returns the named files with their paths, sorted.
    pub(super) fn files(&self) -> Vec<(String, u64)> {
        let mut files = Vec::new();
        self.walk(ROOT, "", &mut files);
        files
    }

    fn walk(&self, number: u64, path: &str, files: &mut Vec<(String, u64)>) {
        match &self.nodes[&number] {
            Node::File(_) => files.push((path.to_owned(), number)),
            Node::Directory(directory) => {
                for (name, node) in &directory.names {
                    let separator = if path.is_empty() { "" } else { "/" };
                    self.walk(*node, &format!("{path}{separator}{name}"), files);
                }
            }
        }
    }

    pub(super) fn crash(&mut self, choose: ChooseFate<'_>) {
        for (number, node) in &mut self.nodes {
            match node {
                Node::File(image) => image.crash(*number, choose),
                Node::Directory(directory) => directory.crash(*number, choose),
            }
        }
        self.collect(&BTreeMap::new());
    }

    pub(super) fn write_back(&mut self, choose: ChooseFate<'_>) {
        for (number, node) in &mut self.nodes {
            if let Node::File(image) = node {
                image.write_back(*number, choose);
            }
        }
    }

    /// Drops the nodes that are reachable neither by a name, a pending change nor an open handle.
    pub(super) fn collect(&mut self, opens: &BTreeMap<u64, usize>) {
        let mut found: BTreeSet<u64> = opens.keys().copied().chain([ROOT]).collect();
        let mut queue = vec![ROOT];
        while let Some(number) = queue.pop() {
            if let Some(Node::Directory(directory)) = self.nodes.get(&number) {
                let named = directory.names.values().chain(directory.durable.values());
                let changes = directory.pending.iter().flatten();
                let changed = changes.filter_map(|(_, node)| node.as_ref());
                queue.extend(named.chain(changed).filter(|node| found.insert(**node)));
            }
        }
        self.nodes.retain(|number, _| found.contains(number));
    }

    fn find(&self, path: &str) -> io::Result<u64> {
        let mut number = ROOT;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            let Node::Directory(directory) = &self.nodes[&number] else {
                return Err(ErrorKind::NotADirectory.into());
            };
            number = *directory.names.get(name).ok_or(ErrorKind::NotFound)?;
        }
        Ok(number)
    }

    fn directory(&mut self, path: &str) -> io::Result<&mut Directory> {
        let number = self.find(path)?;
        match self.nodes.get_mut(&number) {
            Some(Node::Directory(directory)) => Ok(directory),
            _ => Err(ErrorKind::NotADirectory.into()),
        }
    }

    fn parent<'a>(&mut self, path: &'a str) -> io::Result<(&mut Directory, &'a str)> {
        let (directory, name) = split(path);
        Ok((self.directory(directory)?, name))
    }
}

fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}
