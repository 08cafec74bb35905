//! Damaged and missing files of one member, while the others write, and a member that stops for long.

use std::path::{Path, PathBuf};

use rustix::process::Signal;

use super::{Cluster, Writer};
use crate::support::eventually;

/// Returns all files of a member's journal that have bytes.
fn journal_files(cluster: &Cluster, node: usize) -> Vec<PathBuf> {
    let mut directories = vec![cluster.data(node).join("journal")];
    let mut files = Vec::new();
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            match entry.metadata().unwrap() {
                it if it.is_dir() => directories.push(entry.path()),
                it if it.len() > 0 => files.push(entry.path()),
                _ => {}
            }
        }
    }
    files.sort();
    files
}

/// Replaces one byte of a file, unless the member has written the file since.
fn replace(path: &Path, offset: usize, from: u8, to: u8) {
    let mut bytes = std::fs::read(path).unwrap_or_default();
    if bytes.get(offset) == Some(&from) {
        bytes[offset] = to;
        std::fs::write(path, bytes).unwrap();
    }
}

/// Waits until a member serves again, or says why it takes no part. Returns the reason.
#[track_caller]
fn outcome(cluster: &Cluster, node: usize) -> Option<String> {
    let mut answer = (0, String::new());
    eventually("the member serves or refuses", || {
        answer = cluster.get(node, "/readyz");
        let is_waiting = answer.1.contains("no member leads");
        answer.0 == 200 || (answer.0 == 503 && !is_waiting)
    });
    (answer.0 == 503).then_some(answer.1)
}

#[test]
fn damaged_file_of_one_member_loses_nothing_that_is_acknowledged() {
    let mut cluster = Cluster::start();
    let writer = Writer::start(&cluster, &[0, 1, 2]);
    writer.wait_for_progress();
    let member = (cluster.leader() + 1) % 3;
    cluster.kill_and_wait(member);
    let files = journal_files(&cluster, member);
    assert!(files.len() > 1, "{files:?}");
    let mut refused = 0;
    for path in files {
        // The member may have filed and removed it meanwhile.
        let Ok(original) = std::fs::read(&path) else {
            continue;
        };
        let written = original.iter().rposition(|byte| *byte != 0);
        // A spare segment holds nothing yet.
        let Some(last) = written else { continue };
        let (offset, right) = (last / 2, original[last / 2]);
        replace(&path, offset, right, right ^ 1);
        cluster.restart(member);
        refused += u32::from(outcome(&cluster, member).is_some());
        writer.wait_for_progress();
        cluster.kill_and_wait(member);
        replace(&path, offset, right ^ 1, right);

        // The member may have removed it.
        let _ = std::fs::remove_file(&path);
        cluster.restart(member);
        let is_refused = outcome(&cluster, member).is_some();
        writer.wait_for_progress();
        cluster.kill_and_wait(member);
        if is_refused {
            refused += 1;
            std::fs::write(&path, &original).unwrap();
        }
    }
    assert!(refused > 0, "some file has what a member cannot do without");
    cluster.restart(member);
    writer.wait_for_progress();
    let leader = cluster.leader();
    writer.check(&cluster, leader);
}

#[test]
fn member_that_stops_for_long_catches_up() {
    let cluster = Cluster::start();
    let leader = cluster.leader();
    let member = (leader + 1) % 3;
    let others: Vec<usize> = (0..3).filter(|it| *it != member).collect();
    let writer = Writer::start(&cluster, &others);
    cluster.signal(member, Signal::STOP);
    writer.wait_for_progress();
    cluster.wait_until_in_sync(member, false);
    writer.wait_for_progress();
    cluster.signal(member, Signal::CONT);
    cluster.wait_until_in_sync(member, true);
    writer.check(&cluster, member);
}
