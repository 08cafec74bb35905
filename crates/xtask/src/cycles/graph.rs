//! Cycles of a directed graph.

use std::collections::{BTreeMap, BTreeSet};

/// Groups of at least two nodes that reach each other, sorted.
pub(super) fn cycles(edges: &BTreeMap<String, BTreeSet<String>>) -> Vec<BTreeSet<String>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> = edges
        .keys()
        .map(|node| (node.as_str(), reach(edges, node)))
        .collect();
    let mut found = BTreeSet::new();
    for (node, others) in &reached {
        let group: BTreeSet<String> = others
            .iter()
            .filter(|other| reached.get(*other).is_some_and(|back| back.contains(node)))
            .map(|other| (*other).to_owned())
            .collect();
        if group.len() > 1 {
            found.insert(group);
        }
    }
    found.into_iter().collect()
}

/// All nodes behind the edges of a node.
fn reach<'a>(edges: &'a BTreeMap<String, BTreeSet<String>>, node: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut waiting: Vec<&str> = edges[node].iter().map(String::as_str).collect();
    while let Some(next) = waiting.pop() {
        if reached.insert(next)
            && let Some(targets) = edges.get(next)
        {
            waiting.extend(targets.iter().map(String::as_str));
        }
    }
    reached
}
