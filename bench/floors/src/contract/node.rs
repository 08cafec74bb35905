//! A node of a cluster: what it holds is released however it ends.

use std::env;
use std::fmt::Display;
use std::fs;
use std::path::PathBuf;

use super::lifetime::{announce, end_with_input_after, end_with_signal_after};
use super::{Children, Counts, Failure, Outcome};

/// Runs a node until `run` returns, stdin reaches its end, or SIGTERM or SIGINT arrives. Then the
/// children that `run` has started are stopped, the counts are written under `name`, and `files`
/// are removed. Call it before any other thread starts.
///
/// `run` starts children, and calls its second argument with the node's address when the node
/// answers: stdin is read from then on, and the parent is told.
pub fn run_node(
    name: &'static str,
    files: Vec<PathBuf>,
    counts: &Counts,
    run: impl FnOnce(&Children, &dyn Fn(&dyn Display) -> Outcome<()>) -> Outcome<()>,
) -> Outcome<()> {
    let children = Children::default();
    let stop = {
        let (children, counts) = (children.clone(), counts.clone());
        move || {
            children.stop();
            counts.write(name);
        }
    };
    end_with_signal_after(files.clone(), stop.clone());
    let outcome = run(&children, &|address| {
        end_with_input_after(files.clone(), stop.clone());
        announce(&address)
    });
    children.park_if_stopping();
    stop();
    for file in &files {
        let _ = fs::remove_file(file);
    }
    outcome
}

/// The path of this program, which starts its own followers.
pub fn own_program() -> Outcome<PathBuf> {
    env::current_exe().map_err(|error| {
        Failure::run(
            format!("the path of this program is unknown: {error}"),
            "mount /proc",
        )
    })
}
