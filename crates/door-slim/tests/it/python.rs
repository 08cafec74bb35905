//! A Python environment with the third-party package `slim-bindings` from PyPI.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

const REQUIREMENT: &str = "slim-bindings==3.3.8";

/// The interpreter; the first call installs it below the directory of builds.
pub(crate) fn python() -> PathBuf {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(make).clone()
}

fn make() -> PathBuf {
    let environment = Path::new(env!("CARGO_TARGET_TMPDIR")).join("slim-bindings-3.3.8");
    let python = environment.join("bin/python");
    let has_bindings = || {
        let mut probe = Command::new(&python);
        let probe = probe
            .args(["-c", "import slim_bindings"])
            .stderr(Stdio::null());
        probe.status().is_ok_and(|status| status.success())
    };
    if !has_bindings() {
        let mut venv = Command::new("python3");
        run(venv.args(["-m", "venv", "--clear"]).arg(&environment));
        let install = [
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ];
        run(Command::new(&python).args(install).arg(REQUIREMENT));
        assert!(has_bindings(), "{REQUIREMENT} is installed");
    }
    python
}

fn run(command: &mut Command) {
    let status = command.status();
    let is_done = status.as_ref().is_ok_and(|status| status.success());
    assert!(is_done, "{command:?}: {status:?}");
}
