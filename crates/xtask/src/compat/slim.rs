//! SLIM applications: `slim-bindings` of several versions, also with each other, and `slima2a`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::client::{Client, RUN_LIMIT, TestNode, install_python, python_of};

const SCRIPTS: &str = "compat/slim";

/// Newest tested version; older ones are also run together with it.
const NEWEST: &str = "3.3";

pub(super) const CLIENTS: [Client; 6] = [
    Client {
        name: "slim-3.3",
        fetch: |workspace| fetch(workspace, &[NEWEST]),
        run: |workspace, served| Ok(sessions(workspace, served, NEWEST, NEWEST)),
        limit: RUN_LIMIT,
    },
    Client {
        name: "slim-2.2",
        fetch: |workspace| fetch(workspace, &["2.2", NEWEST]),
        run: |workspace, served| Ok(sessions(workspace, served, "2.2", NEWEST)),
        limit: RUN_LIMIT,
    },
    Client {
        name: "slim-2.0",
        fetch: |workspace| fetch(workspace, &["2.0", NEWEST]),
        run: |workspace, served| Ok(sessions(workspace, served, "2.0", NEWEST)),
        limit: RUN_LIMIT,
    },
    Client {
        name: "slim-1.4",
        fetch: |workspace| fetch(workspace, &["1.4"]),
        run: |workspace, served| Ok(refused(workspace, served, "1.4")),
        limit: RUN_LIMIT,
    },
    Client {
        name: "slim-1.0",
        fetch: |workspace| fetch(workspace, &["1.0"]),
        run: |workspace, served| Ok(refused(workspace, served, "1.0")),
        limit: RUN_LIMIT,
    },
    Client {
        name: "slima2a",
        fetch: |workspace| fetch(workspace, &["a2a"]),
        run: |workspace, served| Ok(agents(workspace, served)),
        limit: RUN_LIMIT,
    },
];

fn venv(version: &str) -> String {
    format!("slim-{version}")
}

fn python(workspace: &Path, version: &str) -> PathBuf {
    python_of(workspace, &venv(version))
}

fn fetch(workspace: &Path, versions: &[&str]) -> Result<()> {
    for version in versions {
        let requirements = format!("requirements-{version}.txt");
        let requirements = Path::new(SCRIPTS).join(requirements);
        install_python(workspace, &venv(version), &requirements)?;
    }
    Ok(())
}

/// Runs every kind of session between applications of two versions, each calling the other.
fn sessions(workspace: &Path, served: &TestNode, version: &str, other: &str) -> Command {
    let mut command = Command::new("python3");
    command.arg(Path::new(SCRIPTS).join("sessions.py"));
    command.arg(&served.slim);
    command.arg(python(workspace, version));
    command.arg(python(workspace, other));
    command
}

/// Runs an application of SLIM 1.x, which the node must refuse.
fn refused(workspace: &Path, served: &TestNode, version: &str) -> Command {
    let mut command = Command::new("python3");
    command.arg(Path::new(SCRIPTS).join("old.py"));
    command.arg(&served.slim).arg(python(workspace, version));
    command
}

fn agents(workspace: &Path, served: &TestNode) -> Command {
    let mut command = Command::new(python(workspace, "a2a"));
    command.arg(Path::new(SCRIPTS).join("agents.py"));
    command.arg(&served.slim);
    command
}
