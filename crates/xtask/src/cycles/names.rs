//! Resolution of names: from a path in a module to the file that defines its item.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{Import, Module, SourcePath};

/// Longest chain of imports that is followed.
const DEPTH_MAX: usize = 16;

/// All modules of a crate by their paths from the root; the root has the empty path.
#[derive(Default)]
pub(super) struct Names {
    modules: BTreeMap<SourcePath, (String, Module)>,
}

/// The target of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target<'a> {
    Module,
    /// An item, with the file that defines it.
    Item(&'a str),
}

impl Names {
    /// Adds a module of a file, and the modules in braces in it.
    pub(super) fn add(&mut self, path: SourcePath, file: &str, mut module: Module) {
        for (name, child) in &mut module.inline {
            let child = std::mem::take(child);
            self.add(
                [&path[..], std::slice::from_ref(name)].concat(),
                file,
                child,
            );
        }
        self.modules.insert(path, (file.to_owned(), module));
    }

    /// The files that each file refers to, without itself.
    pub(super) fn references(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut references: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (path, (file, module)) in &self.modules {
            let targets = references.entry(file.clone()).or_default();
            let used = self.targets(path, module).into_iter();
            targets.extend(used.filter(|used| used != file).map(str::to_owned));
        }
        references
    }

    fn targets(&self, at: &[String], module: &Module) -> Vec<&str> {
        let mut targets = Vec::new();
        for import in &module.imports {
            match import.name.as_str() {
                "*" if import.is_reexport => {}
                "*" => {
                    let paths = module.words.iter().map(|word| below(import, word));
                    targets.extend(paths.filter_map(|path| self.resolve_glob(at, &path, 1, 0)));
                }
                name if import.is_reexport && !module.words.contains(name) => {}
                _ => targets.extend(self.resolve(at, &import.path, 0)),
            }
        }
        targets.extend(
            module
                .paths
                .iter()
                .filter_map(|path| self.resolve(at, path, 0)),
        );
        let items = targets.into_iter().filter_map(|target| match target {
            Target::Item(file) => Some(file),
            Target::Module => None,
        });
        items.collect()
    }

    /// Finds the target of a path that stands in the module `at`. Nothing for paths of other crates.
    fn resolve(&self, at: &[String], path: &[String], depth: usize) -> Option<Target<'_>> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => self
                .find(&[], rest, depth)
                .or_else(|| self.owner(&[], rest)),
            "self" => self.find(at, rest, depth).or_else(|| self.owner(at, rest)),
            "super" => {
                let (_, mut parent) = at.split_last()?;
                let mut rest = rest;
                while let [first, more @ ..] = rest
                    && first == "super"
                {
                    parent = parent.split_last()?.1;
                    rest = more;
                }
                self.find(parent, rest, depth)
                    .or_else(|| self.owner(parent, rest))
            }
            _ => self.find(at, path, depth),
        }
    }

    /// Finds the target of a path below the module `at`. Nothing if the module does not have the
    /// name.
    fn find(&self, at: &[String], path: &[String], depth: usize) -> Option<Target<'_>> {
        let (file, module) = self.modules.get(at)?;
        let Some((first, rest)) = path.split_first() else {
            return Some(Target::Module);
        };
        let child = [at, std::slice::from_ref(first)].concat();
        if self.modules.contains_key(&child) {
            let found = self.find(&child, rest, depth);
            return found.or_else(|| self.owner(&child, rest));
        }
        if module.items.contains(first) || module.macros.contains(first) {
            return Some(Target::Item(file));
        }
        if depth == DEPTH_MAX {
            return None;
        }
        for import in module.imports.iter().filter(|it| it.name == *first) {
            let whole = [&import.path[..], rest].concat();
            // `use name::{self}` and names of other crates bring the search back to this module.
            if import.path.first() != Some(first)
                && let Some(target) = self.resolve(at, &whole, depth + 1)
            {
                return Some(target);
            }
        }
        let globs = module.imports.iter().filter(|it| it.name == "*");
        globs
            .filter_map(|import| {
                let whole = [&import.path[..], path].concat();
                let starts = ["crate", "self", "super"];
                let is_ours = starts.contains(&import.path[0].as_str())
                    || self.modules.contains_key(&[at, &import.path[..1]].concat());
                is_ours.then(|| self.resolve_glob(at, &whole, path.len(), depth + 1))?
            })
            .next()
    }

    /// Finds the target of the last segments of a path in the module before them, and nothing if that
    /// module does not have the name.
    fn resolve_glob(
        &self,
        at: &[String],
        path: &[String],
        count: usize,
        depth: usize,
    ) -> Option<Target<'_>> {
        let (module, name) = path.split_at(path.len() - count);
        self.find(&self.absolute(at, module)?, name, depth)
    }

    /// The path from the root of a module, without following imports.
    fn absolute(&self, at: &[String], path: &[String]) -> Option<SourcePath> {
        let mut absolute = match path.first()?.as_str() {
            "crate" => Vec::new(),
            _ => at.to_vec(),
        };
        for segment in path {
            match segment.as_str() {
                "crate" | "self" => {}
                "super" => {
                    absolute.pop()?;
                }
                _ => absolute.push(segment.clone()),
            }
        }
        self.modules.contains_key(&absolute).then_some(absolute)
    }

    /// The module that the path stops in: names that a macro defines belong to the module that calls
    /// it.
    fn owner(&self, at: &[String], rest: &[String]) -> Option<Target<'_>> {
        let (first, _) = rest.split_first()?;
        let of_macro = self
            .modules
            .values()
            .find(|(_, module)| at.is_empty() && module.macros.contains(first));
        let owner = of_macro.or_else(|| self.modules.get(at));
        owner.map(|(file, _)| Target::Item(file.as_str()))
    }
}

fn below(import: &Import, name: &str) -> SourcePath {
    [&import.path[..], &[name.to_owned()]].concat()
}
