//! Test suites of Kafka clients, and applications on top of Kafka: librdkafka's own tests, franz-go's, Kafka
//! Streams and Kafka Connect.
//!
//! The suites are fetched at run time and built below `target/compat`: librdkafka's from the crate
//! `rdkafka-sys`, franz-go's from its Go module, the applications from Maven. `compat/kafka/suites`
//! lists the excluded tests, each with its reason.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::client::{Client, FETCH_LIMIT, TestNode};
use super::kafka::{classpath, fetch_java};
use crate::step::{self, cargo};

const SCRIPTS: &str = "compat/kafka/suites";
/// Go module that depends on franz-go.
const GO_MODULE: &str = "compat/kafka/franz-go";

/// Node options: librdkafka's tests write to four partitions of automatically created topics.
pub(super) const OPTIONS: [&str; 2] = ["--topics-partitions", "4"];

/// Go package of franz-go's client.
const FRANZ_GO: &str = "github.com/twmb/franz-go/pkg/kgo";

/// Time limit of a suite, also on a busy machine.
const SUITE_LIMIT: Duration = Duration::from_secs(60 * 60);
const APPLICATION_LIMIT: Duration = Duration::from_secs(15 * 60);

/// Manifest that depends on the crate with librdkafka 2.12.1 and its tests.
const LIBRDKAFKA: &str = r#"[package]
name = "fetch-librdkafka"
version = "0.0.0"
edition = "2024"

[lib]
path = "lib.rs"

[dependencies]
rdkafka-sys = "=4.10.0"

[workspace]
"#;

pub(super) const CLIENTS: [Client; 4] = [
    Client {
        name: "librdkafka-suite",
        fetch: fetch_librdkafka,
        run: librdkafka,
        limit: SUITE_LIMIT,
    },
    Client {
        name: "franz-go-suite",
        fetch: fetch_franz_go,
        run: franz_go,
        limit: SUITE_LIMIT,
    },
    Client {
        name: "streams",
        fetch: fetch_java,
        run: |workspace, served| {
            let mut command = Command::new("java");
            command.arg("-Xmx512m");
            command.arg(Path::new(SCRIPTS).join("WordCount.java"));
            command.arg(&served.kafka);
            with_classpath(command, workspace)
        },
        limit: APPLICATION_LIMIT,
    },
    Client {
        name: "connect",
        fetch: fetch_java,
        run: |workspace, served| with_classpath(shell("connect.sh", served), workspace),
        limit: APPLICATION_LIMIT,
    },
];

fn shell(script: &str, served: &TestNode) -> Command {
    let mut command = Command::new("sh");
    command.arg(Path::new(SCRIPTS).join(script));
    command.arg(&served.kafka);
    command
}

fn with_classpath(mut command: Command, workspace: &Path) -> Result<Command> {
    command.env("CLASSPATH", fs::read_to_string(classpath(workspace))?);
    Ok(command)
}

/// Returns the build directory of librdkafka.
fn librdkafka_dir(workspace: &Path) -> PathBuf {
    workspace.join("librdkafka")
}

/// Copies librdkafka out of its crate, and builds it with its tests.
fn fetch_librdkafka(workspace: &Path) -> Result<()> {
    // Some tests of partitions and topics call Kafka's own script.
    fetch_java(workspace)?;
    let directory = librdkafka_dir(workspace);
    if directory.join("tests/test-runner").is_file() {
        return Ok(());
    }
    let source = crate_dir(workspace)?.join("librdkafka");
    if directory.exists() {
        fs::remove_dir_all(&directory)?;
    }
    let mut copy = Command::new("cp");
    copy.arg("-r").arg(source).arg(&directory);
    step::run("copy librdkafka", &mut copy, FETCH_LIMIT)?;
    let mut configure = Command::new("./configure");
    configure.args(["--disable-ssl", "--disable-gssapi", "--disable-curl"]);
    let configure = configure.current_dir(&directory);
    step::run("configure librdkafka", configure, FETCH_LIMIT)?;
    let make = |arguments: &[&str]| {
        let mut make = Command::new("make");
        make.args(arguments).current_dir(&directory);
        step::run("make librdkafka", &mut make, FETCH_LIMIT)
    };
    make(&["libs"])?;
    make(&["-C", "tests", "build"])
}

/// Returns cargo's directory of the crate `rdkafka-sys`.
fn crate_dir(workspace: &Path) -> Result<PathBuf> {
    let fetching = workspace.join("librdkafka-crate");
    fs::create_dir_all(&fetching)?;
    let manifest = fetching.join("Cargo.toml");
    fs::write(&manifest, LIBRDKAFKA)?;
    fs::write(fetching.join("lib.rs"), "")?;
    let mut metadata = cargo(&["metadata", "--format-version", "1", "--manifest-path"]);
    let metadata = step::read(metadata.arg(&manifest))?;
    // Find the one needed text in the JSON.
    let mut manifests = metadata.split("\"manifest_path\":\"").skip(1);
    let manifest = manifests.find_map(|rest| {
        let path = rest.split('"').next()?;
        path.contains("/rdkafka-sys-").then_some(path)
    });
    let manifest = manifest.context("cargo does not know rdkafka-sys")?;
    let directory = Path::new(manifest).parent();
    Ok(directory.context("a manifest lies in a directory")?.into())
}

fn librdkafka(workspace: &Path, served: &TestNode) -> Result<Command> {
    let directory = librdkafka_dir(workspace);
    ensure!(directory.is_dir(), "librdkafka is not built");
    let mut command = shell("librdkafka.sh", served);
    command.arg(directory);
    with_classpath(command, workspace)
}

/// Returns the path of the test program of franz-go's client.
fn franz_go_tests(workspace: &Path) -> PathBuf {
    workspace.join("franz-go-tests")
}

fn franz_go(workspace: &Path, served: &TestNode) -> Result<Command> {
    let mut list = Command::new("go");
    list.args(["-C", GO_MODULE, "list", "-f", "{{.Dir}}", FRANZ_GO]);
    let sources = step::read(&mut list)?;
    let mut command = shell("franz-go.sh", served);
    command.arg(franz_go_tests(workspace)).arg(sources.trim());
    Ok(command)
}

fn fetch_franz_go(workspace: &Path) -> Result<()> {
    let mut build = Command::new("go");
    build.arg("-C").arg(GO_MODULE).args(["test", "-c", "-o"]);
    build.arg(franz_go_tests(workspace));
    build.arg(FRANZ_GO);
    step::run("go test -c", &mut build, FETCH_LIMIT)
}
