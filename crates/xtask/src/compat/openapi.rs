//! Clients of `/openapi.json`: schemathesis, which sends any request that the document allows.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use super::client::{Client, TestNode, install_python};

const REQUIREMENTS: &str = "compat/openapi/requirements.txt";
/// Directory of the hooks of schemathesis.
const SCRIPTS: &str = "compat/openapi";
const VENV: &str = "venv-openapi";

pub(super) const CLIENTS: [Client; 1] = [Client {
    name: "schemathesis",
    fetch,
    run: schemathesis,
    limit: Duration::from_secs(30 * 60),
}];

/// Checks that responses match the document. Its design is not checked.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_schema_conformance";

/// Excluded paths: endless responses, and the one that stops other clients.
const EXCLUDED: &str = "/(ws|watch|follow|halt)$";

fn fetch(workspace: &Path) -> Result<()> {
    install_python(workspace, VENV, Path::new(REQUIREMENTS))
}

fn schemathesis(workspace: &Path, served: &TestNode) -> Result<Command> {
    let mut command = Command::new(workspace.join(VENV).join("bin/schemathesis"));
    command
        .arg("run")
        .arg(format!("http://{}/openapi.json", served.http))
        .args(["--checks", CHECKS, "--exclude-path-regex", EXCLUDED])
        .args([
            "--phases",
            "examples,coverage,fuzzing",
            "--max-examples",
            "30",
        ])
        .args(["--seed", "1", "--request-timeout", "20", "--no-color"])
        .args(["--suppress-health-check", "all", "--continue-on-failure"])
        .env("PYTHONPATH", Path::new(SCRIPTS).canonicalize()?)
        .env("SCHEMATHESIS_HOOKS", "hooks")
        .current_dir(workspace);
    Ok(command)
}
