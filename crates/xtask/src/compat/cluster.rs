//! Kafka clients against a cluster whose leader moves: `cargo xtask compat --cluster`.
//!
//! Each client produces numbered records, and copies them in a group, with its default settings, while
//! the leader is killed, hands over and is paused. `compat/kafka/cluster/run.py` starts the nodes,
//! moves the leader and compares the topics. Every error that reaches the application is a failure.
//!
//! kcat is left out: it is librdkafka, and does not show which records are acknowledged.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, bail, ensure};

use super::client::python_of;
use super::kafka::{VENV, classpath, fetch_go, fetch_java, fetch_node, fetch_python};
use crate::footprint::built;
use crate::step;

const SCRIPTS: &str = "compat/kafka/cluster";

/// Time limit of a client, also on a busy machine.
const LIMIT: Duration = Duration::from_secs(20 * 60);

/// A client of a cluster.
struct Client {
    name: &'static str,
    /// Installs the client below the directory, if that is not done.
    fetch: fn(&Path) -> Result<()>,
    /// Returns the program and its arguments, without the addresses and topics.
    words: fn(&Path) -> Vec<OsString>,
    /// The producers are not idempotent: a repeated request may write a record twice.
    may_double: bool,
}

const CLIENTS: [Client; 7] = [
    Client {
        name: "librdkafka",
        fetch: fetch_python,
        words: |workspace| python(workspace, "librdkafka.py"),
        may_double: true,
    },
    Client {
        name: "librdkafka-idempotent",
        fetch: fetch_python,
        words: |workspace| idempotent(python(workspace, "librdkafka.py")),
        may_double: false,
    },
    Client {
        name: "kafka-python",
        fetch: fetch_python,
        words: |workspace| python(workspace, "pure_python.py"),
        may_double: false,
    },
    Client {
        name: "kafkajs",
        fetch: fetch_node,
        words: |_| node(),
        may_double: true,
    },
    Client {
        name: "kafkajs-idempotent",
        fetch: fetch_node,
        words: |_| idempotent(node()),
        may_double: false,
    },
    Client {
        name: "franz-go",
        fetch: fetch_go,
        words: |workspace| vec![workspace.join("franz-go").into(), "cluster".into()],
        may_double: false,
    },
    Client {
        name: "java",
        fetch: fetch_java,
        words: |_| vec!["java".into(), "-Xmx256m".into(), script("CopyJob.java")],
        may_double: false,
    },
];

/// Runs the named clients, or all, one after the other.
///
/// # Errors
/// When a name is unknown, when a client cannot be fetched, or when a client fails. After a failure
/// the other clients still run.
pub(super) fn run(names: &[String], workspace: &Path) -> Result<()> {
    for name in names {
        let known = CLIENTS.map(|it| it.name);
        ensure!(
            known.contains(&name.as_str()),
            "unknown client `{name}` of a cluster\nhint: use {}",
            known.join(", ")
        );
    }
    let is_wanted = |it: &&Client| names.is_empty() || names.iter().any(|name| name == it.name);
    let mut failed = Vec::new();
    for client in CLIENTS.iter().filter(is_wanted) {
        if let Err(error) = run_client(client, workspace) {
            eprintln!("{error:#}");
            failed.push(client.name);
        }
    }
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(())
}

fn run_client(client: &Client, workspace: &Path) -> Result<()> {
    // The comparison reads with librdkafka.
    fetch_python(workspace)?;
    (client.fetch)(workspace)?;
    let mut command = Command::new(python_of(workspace, VENV));
    command.arg(script("run.py"));
    if client.may_double {
        command.arg("--may-double");
    }
    command.arg(built("debug")?).arg("--");
    command.args((client.words)(workspace));
    command.env("NODE_PATH", workspace.join("node_modules"));
    if let Ok(classpath) = fs::read_to_string(classpath(workspace)) {
        command.env("CLASSPATH", classpath);
    }
    step::run(client.name, &mut command, LIMIT)
}

fn script(name: &str) -> OsString {
    Path::new(SCRIPTS).join(name).into()
}

fn python(workspace: &Path, name: &str) -> Vec<OsString> {
    let python: PathBuf = python_of(workspace, VENV);
    vec![python.into(), script(name)]
}

fn node() -> Vec<OsString> {
    vec!["node".into(), script("kafkajs.cjs")]
}

fn idempotent(mut words: Vec<OsString>) -> Vec<OsString> {
    words.push("idempotent".into());
    words
}
