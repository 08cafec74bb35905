//! The manifests for Kubernetes, checked against its schemas.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use super::stage::fresh;
use crate::compat::{install_python, python_of};
use crate::step;

const LIMIT: Duration = Duration::from_secs(60);

/// Name of the Python environment.
const VENV: &str = "kubernetes";

/// Validates the manifests with the schemas of the version in `packaging/kubernetes/requirements.txt`,
/// and checks that a manifest with a mistake is refused.
pub(super) fn check() -> Result<()> {
    let manifests = Path::new("packaging/kubernetes");
    let workspace = std::env::current_dir()?.join("target/compat");
    std::fs::create_dir_all(&workspace)?;
    install_python(&workspace, VENV, &manifests.join("requirements.txt"))?;
    let python = python_of(&workspace, VENV);
    let validator = python.with_file_name("kubernetes-validate");
    let manifest = manifests.join("telpher.yaml");
    let validate = |path: &Path| {
        let mut command = Command::new(&validator);
        command.arg("--strict").arg(path);
        command
    };
    step::run("validate the manifests", &mut validate(&manifest), LIMIT)?;
    let text = std::fs::read_to_string(&manifest)?;
    let wrong = fresh("kubernetes")?.join("wrong.yaml");
    std::fs::write(
        &wrong,
        text.replace("readOnlyRootFilesystem", "readOnlyRoot"),
    )?;
    let refused = validate(&wrong).output()?;
    anyhow::ensure!(!refused.status.success(), "a wrong manifest is accepted");
    Ok(())
}
