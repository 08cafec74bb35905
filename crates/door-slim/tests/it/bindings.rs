//! Third-party clients: `slim-bindings` from PyPI.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

use platform::Counter;
use tokio::task::spawn_blocking;

use crate::python::python;
use crate::{Bench, until};

/// Sessions that run, and end with the test.
struct Sessions {
    child: Child,
    notes: BufReader<ChildStderr>,
}

impl Sessions {
    fn start(url: &str, names: &[&str]) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/sessions.py");
        let mut command = Command::new(python());
        command.arg(script).arg(url).args(names);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let notes = BufReader::new(child.stderr.take().unwrap());
        Self { child, notes }
    }

    /// Waits until the process prints that note. Panics with its other output if it ends before.
    fn wait_for(&mut self, note: &str) {
        let mut said = Vec::new();
        for line in self.notes.by_ref().lines() {
            match line.unwrap() {
                line if line == note => return,
                other => said.push(other),
            }
        }
        panic!("the sessions ended before `{note}`: {said:#?}");
    }

    fn continue_script(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    }
}

impl Drop for Sessions {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn every_kind_of_session_runs_and_one_survives_a_reconnect() {
    let bench = Bench::new().await;
    let url = format!("http://{}", bench.address);
    let kinds = [
        "point-to-point",
        "reliable",
        "mls",
        "reliable-mls",
        "group",
        "group-mls",
    ];
    let mut sessions = spawn_blocking(move || {
        let mut sessions = Sessions::start(&url, &[&kinds[..], &["survives"]].concat());
        for kind in kinds {
            sessions.wait_for(&format!("done {kind}"));
        }
        sessions.wait_for("end the node");
        sessions
    })
    .await
    .unwrap();
    assert_eq!(bench.count(Counter::SlimMalformed), 0);
    assert_eq!(bench.count(Counter::SlimBadMacs), 0);
    assert_eq!(bench.count(Counter::Dropped), 0);
    let (subscriptions, opened) = (
        bench.door.subscription_count(),
        bench.count(Counter::Opened),
    );
    let links = bench.node.messaging().connection_count() as u64;
    bench.node.messaging().close_all();
    // What an application says while it has not made its subscriptions again it drops itself.
    let all_are_back = || {
        bench.count(Counter::Opened) >= opened + links
            && bench.door.subscription_count() == subscriptions
    };
    until("the applications to come back", all_are_back).await;
    sessions.continue_script();
    spawn_blocking(move || sessions.wait_for("done survives"))
        .await
        .unwrap();
}
