//! Kafka clients: librdkafka (kcat, Python), kafka-python, KafkaJS, franz-go and Apache Kafka's own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

use super::client::{Client, FETCH_LIMIT, RUN_LIMIT, TestNode, install_python, python_of};
use crate::step::{self, is_installed};

const SCRIPTS: &str = "compat/kafka";
pub(super) const VENV: &str = "venv";

pub(super) const CLIENTS: [Client; 6] = [
    Client {
        name: "kcat",
        fetch: find_kcat,
        run: |_, served| Ok(shell("kcat.sh", served)),
        limit: RUN_LIMIT,
    },
    Client {
        name: "librdkafka",
        fetch: fetch_python,
        run: |workspace, served| Ok(python(workspace, "librdkafka.py", served)),
        limit: RUN_LIMIT,
    },
    Client {
        name: "kafka-python",
        fetch: fetch_python,
        run: |workspace, served| Ok(python(workspace, "pure_python.py", served)),
        limit: RUN_LIMIT,
    },
    Client {
        name: "kafkajs",
        fetch: fetch_node,
        run: |workspace, served| Ok(node(workspace, served)),
        limit: RUN_LIMIT,
    },
    Client {
        name: "franz-go",
        fetch: fetch_go,
        run: |workspace, served| Ok(go_client(workspace, served)),
        limit: RUN_LIMIT,
    },
    Client {
        name: "java",
        fetch: fetch_java,
        run: java,
        limit: RUN_LIMIT,
    },
];

fn shell(script: &str, served: &TestNode) -> Command {
    let mut command = Command::new("sh");
    command
        .arg(Path::new(SCRIPTS).join(script))
        .arg(&served.kafka);
    command
}

fn find_kcat(_: &Path) -> Result<()> {
    ensure!(
        is_installed("kcat"),
        "kcat is not installed\nhint: apt-get install kcat"
    );
    Ok(())
}

pub(super) fn fetch_python(workspace: &Path) -> Result<()> {
    let requirements = Path::new(SCRIPTS).join("requirements.txt");
    install_python(workspace, VENV, &requirements)
}

fn python(workspace: &Path, script: &str, served: &TestNode) -> Command {
    let mut command = Command::new(python_of(workspace, VENV));
    command
        .arg(Path::new(SCRIPTS).join(script))
        .arg(&served.kafka);
    command
}

pub(super) fn fetch_node(workspace: &Path) -> Result<()> {
    fs::copy(
        Path::new(SCRIPTS).join("package.json"),
        workspace.join("package.json"),
    )?;
    let mut install = Command::new("npm");
    install.args(["install", "--silent", "--no-audit", "--no-fund"]);
    step::run("npm install", install.current_dir(workspace), FETCH_LIMIT)
}

fn node(workspace: &Path, served: &TestNode) -> Command {
    let mut command = Command::new("node");
    command.env("NODE_PATH", workspace.join("node_modules"));
    command.arg(Path::new(SCRIPTS).join("kafkajs.cjs"));
    command.arg(&served.kafka);
    command
}

pub(super) fn fetch_go(workspace: &Path) -> Result<()> {
    let mut build = Command::new("go");
    build.arg("-C").arg(Path::new(SCRIPTS).join("franz-go"));
    build
        .args(["build", "-o"])
        .arg(workspace.join("franz-go"))
        .arg(".");
    step::run("go build", &mut build, FETCH_LIMIT)
}

fn go_client(workspace: &Path, served: &TestNode) -> Command {
    let mut command = Command::new(workspace.join("franz-go"));
    command.arg(&served.kafka);
    command
}

pub(super) fn classpath(workspace: &Path) -> PathBuf {
    workspace.join("classpath")
}

pub(super) fn fetch_java(workspace: &Path) -> Result<()> {
    let mut fetch = Command::new("mvn");
    let pom = Path::new(SCRIPTS).join("pom.xml");
    fetch.args(["--quiet", "--batch-mode", "--file"]).arg(pom);
    let output = classpath(workspace);
    fetch.arg("dependency:build-classpath");
    fetch.arg(format!("-Dmdep.outputFile={}", output.display()));
    step::run("maven", &mut fetch, FETCH_LIMIT)
}

fn java(workspace: &Path, served: &TestNode) -> Result<Command> {
    let mut command = shell("java.sh", served);
    command.env("CLASSPATH", fs::read_to_string(classpath(workspace))?);
    Ok(command)
}
