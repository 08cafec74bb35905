//! `cargo xtask deps`: checks the layers of the crates, banned dependencies, cycles of files, and
//! the size of crates.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};

use crate::cycles;
use crate::layers::{BANNED, LAYERS, Layer};
use crate::size;
use crate::step::expect_none;
use crate::step::{self, cargo};
use crate::tree;

const PREFIX: &str = "telpher-";

/// Package names.
type Names = BTreeSet<String>;

/// Dependencies of the workspace.
#[derive(Default)]
struct Tree {
    /// Direct dependencies of each of our crates.
    direct: BTreeMap<String, Names>,
    /// Direct and indirect dependencies of each of our crates.
    whole: BTreeMap<String, Names>,
    /// All packages, including those of build scripts and tests.
    all: Names,
}

/// Reads the dependencies and reports all problems.
pub(crate) fn run(args: &[String]) -> Result<()> {
    expect_none(args)?;
    step::heading("dependencies");
    let root = tree::root()?;
    let mut problems = problems(&read_tree()?);
    problems.extend(cycles::problems(root)?);
    problems.extend(size::problems(root)?);
    for problem in &problems {
        eprintln!("error: {problem}");
    }
    match problems.len() {
        0 => {
            eprintln!("   dependencies: ok, {} crates of ours", LAYERS.len());
            Ok(())
        }
        count => bail!(
            "{count} problems with dependencies\nhint: the rules are in crates/xtask/src/layers.rs, cycles.rs and size.rs"
        ),
    }
}

fn read_tree() -> Result<Tree> {
    let mut tree = Tree {
        all: names(&["--workspace", "--edges", "all"])?,
        ..Tree::default()
    };
    for package in names(&["--workspace", "--depth", "0"])? {
        let normal = ["--package", &package, "--edges", "normal"];
        let direct = names(&[&normal[..], &["--depth", "1"]].concat())?;
        let name = short(&package);
        tree.direct.insert(
            name.clone(),
            direct.into_iter().filter(|it| *it != package).collect(),
        );
        tree.whole.insert(name, names(&normal)?);
    }
    Ok(tree)
}

fn names(args: &[&str]) -> Result<Names> {
    let tree = ["tree", "--prefix", "none", "--format", "{p}"];
    let text = step::read(&mut cargo(&[&tree[..], args].concat()))?;
    Ok(text
        .lines()
        .filter_map(|line| line.split(' ').next().filter(|name| !name.is_empty()))
        .map(str::to_owned)
        .collect())
}

/// Returns the name of a package without the prefix of the product.
fn short(package: &str) -> String {
    package.strip_prefix(PREFIX).unwrap_or(package).to_owned()
}

fn problems(tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    for (name, reason) in BANNED {
        if tree.all.contains(name) {
            problems.push(format!(
                "`{name}` is a dependency: {reason} (`cargo tree -i {name}`)"
            ));
        }
    }
    for (name, direct) in &tree.direct {
        match LAYERS.iter().find(|layer| layer.name == name) {
            Some(layer) => judge(layer, direct, &tree.whole[name], &mut problems),
            None => problems.push(format!("`{name}` has no layer")),
        }
    }
    for layer in LAYERS {
        if !tree.direct.contains_key(layer.name) {
            problems.push(format!("the layer `{}` has no crate", layer.name));
        }
    }
    problems
}

fn judge(layer: &Layer, direct: &Names, whole: &Names, problems: &mut Vec<String>) {
    let ours = |name: &str| LAYERS.iter().any(|layer| layer.name == name);
    for used in direct
        .iter()
        .map(|package| short(package))
        .filter(|name| ours(name))
    {
        if !layer.may_use.contains(&used.as_str()) {
            problems.push(format!("`{}` may not depend on `{used}`", layer.name));
        }
    }
    for unknown in layer.must_not_know {
        if whole.contains(*unknown) {
            problems.push(format!("`{}` must not know `{unknown}`", layer.name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Names {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    /// Returns a tree in which every crate exists and has all allowed dependencies.
    fn allowed_tree() -> Tree {
        let mut tree = Tree::default();
        for layer in LAYERS {
            let uses = layer
                .may_use
                .iter()
                .map(|name| format!("{PREFIX}{name}"))
                .collect();
            tree.direct.insert(layer.name.to_owned(), uses);
            tree.whole
                .insert(layer.name.to_owned(), names(&["thiserror"]));
        }
        tree
    }

    #[test]
    fn an_allowed_tree_passes() {
        assert_eq!(problems(&allowed_tree()), Vec::<String>::new());
    }

    #[test]
    fn a_forbidden_dependency_is_reported() {
        let mut tree = allowed_tree();
        tree.direct.insert(
            "routing".to_owned(),
            names(&["telpher-model", "telpher-node", "thiserror"]),
        );
        tree.whole
            .insert("model".to_owned(), names(&["thiserror", "serde"]));
        tree.all = names(&["rustls", "ring", "aws-lc-rs"]);
        assert_eq!(
            problems(&tree),
            [
                "`aws-lc-rs` is a dependency: ring is the only provider of rustls (`cargo tree -i aws-lc-rs`)",
                "`model` must not know `serde`",
                "`routing` may not depend on `node`",
            ]
        );
    }

    #[test]
    fn crates_without_layer_and_layers_without_crate_are_reported() {
        let mut tree = allowed_tree();
        tree.direct.insert("utils".to_owned(), Names::new());
        tree.whole.insert("utils".to_owned(), Names::new());
        tree.direct.remove("sim");
        assert_eq!(
            problems(&tree),
            ["`utils` has no layer", "the layer `sim` has no crate"]
        );
    }

    #[test]
    fn layers_only_point_down() {
        for (index, layer) in LAYERS.iter().enumerate() {
            for used in layer.may_use {
                assert!(
                    LAYERS[..index].iter().any(|below| below.name == *used),
                    "{used}"
                );
            }
        }
    }
}
