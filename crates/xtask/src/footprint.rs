//! `cargo xtask footprint`: memory and CPU time of an idle node.
//!
//! The task prints figures and checks nothing, because the memory of a process also depends on the
//! machine. Everything is measured on the release build, from `/proc`.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::step::expect_none;
use crate::step::{self, cargo};

const BUILD_LIMIT: Duration = Duration::from_secs(40 * 60);

/// Maximum time for a process to become ready.
const READY_LIMIT: Duration = Duration::from_secs(60);

/// Number of connections, and of the processes that hold them: many systems limit a process to
/// 20,000 descriptors.
const CONNECTIONS: usize = 10_000;
const HOLDERS: usize = 4;

/// Period over which CPU time is read.
const WATCH: Duration = Duration::from_secs(10);

/// Time for the node to finish the work of the previous step.
const SETTLE: Duration = Duration::from_secs(2);

/// Builds the release, starts a node and measures it.
pub(crate) fn run(args: &[String]) -> Result<()> {
    expect_none(args)?;
    let build = &mut cargo(&["build", "--release", "--package", "telpher"]);
    step::run("release", build, BUILD_LIMIT)?;
    step::heading("footprint");
    let executable = executable()?;
    let node = Node::start(&executable)?;
    let idle = node.measure("no connections")?;
    let mut holders = Vec::new();
    for _ in 0..HOLDERS {
        holders.push(node.hold(&executable, CONNECTIONS / HOLDERS)?);
    }
    let many = node.measure(&format!("{CONNECTIONS} idle connections"))?;
    let bytes = many.saturating_sub(idle) * 1024 / CONNECTIONS as u64;
    eprintln!("{:<28} {bytes} bytes of resident memory", "per connection");
    drop(holders);
    node.measure("after they closed")?;
    Ok(())
}

/// Returns the path of the release build.
pub(crate) fn executable() -> Result<PathBuf> {
    built("release")
}

/// Returns the path of the `telpher` executable in this profile's target directory.
pub(crate) fn built(profile: &str) -> Result<PathBuf> {
    let metadata = step::read(&mut cargo(&[
        "metadata",
        "--no-deps",
        "--format-version",
        "1",
    ]))?;
    let (_, rest) = metadata
        .split_once("\"target_directory\":\"")
        .context("cargo names no target directory")?;
    let directory = rest.split('"').next().unwrap_or_default();
    Ok(Path::new(directory).join(profile).join("telpher"))
}

/// A child process, killed on drop.
pub(crate) struct Process(Child);

impl Process {
    /// Starts the process, and returns the line that it prints when it is ready.
    ///
    /// # Errors
    /// When it ends first, or is not ready within a minute.
    pub(crate) fn start(command: &mut Command) -> Result<(Self, String)> {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = Self(command.spawn().context("cannot start telpher")?);
        let stdout = process.0.stdout.take().context("it has no output")?;
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let mut line = String::new();
            let read = BufReader::new(stdout).read_line(&mut line);
            // The receiver is gone after the time limit.
            let _ = sender.send(read.map(|_| line));
        });
        let line = receiver.recv_timeout(READY_LIMIT);
        let line = line.context("telpher is not ready in time")??;
        if line.is_empty() {
            bail!("telpher ended before it was ready");
        }
        Ok((process, line))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A process that has already ended cannot be killed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Node {
    process: Process,
    url: String,
}

impl Node {
    fn start(executable: &Path) -> Result<Self> {
        let mut command = Command::new(executable);
        command.args(["serve", "--dev", "--json"]);
        command.args([
            "--native-listen",
            "127.0.0.1:0",
            "--http-listen",
            "127.0.0.1:0",
            "--kafka-listen",
            "none",
            "--slim-listen",
            "none",
        ]);
        let (process, ready) = Process::start(&mut command)?;
        let url = ready
            .split('"')
            .find(|text| text.starts_with("tcp://"))
            .context("the node has no address")?;
        let url = url.to_owned();
        Ok(Self { process, url })
    }

    fn hold(&self, executable: &Path, connections: usize) -> Result<Process> {
        let mut command = Command::new(executable);
        command.args(["idle", &connections.to_string(), "--url", &self.url]);
        let (process, _) = Process::start(&mut command)?;
        Ok(process)
    }

    /// Prints memory and CPU time. Returns the resident memory in KiB.
    fn measure(&self, title: &str) -> Result<u64> {
        thread::sleep(SETTLE);
        let resident_kib = self.resident_kib()?;
        let before_ns = self.cpu_ns()?;
        thread::sleep(WATCH);
        let used_ns = self.cpu_ns()?.saturating_sub(before_ns);
        eprintln!(
            "{title:<28} {:>6.1} MiB resident, {:>6.2} ms of CPU time in {} s",
            resident_kib as f64 / 1024.0,
            used_ns as f64 / 1e6,
            WATCH.as_secs(),
        );
        Ok(resident_kib)
    }

    fn resident_kib(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.0.id()))?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .context("no resident memory in /proc")?;
        let kib = line.split_whitespace().next().unwrap_or_default();
        kib.parse().context("no number in /proc")
    }

    /// Returns the CPU time of all its threads, in nanoseconds.
    fn cpu_ns(&self) -> Result<u64> {
        let mut sum = 0;
        for thread in std::fs::read_dir(format!("/proc/{}/task", self.process.0.id()))? {
            let text = std::fs::read_to_string(thread?.path().join("schedstat"))?;
            let running = text.split_whitespace().next().unwrap_or_default();
            sum += running.parse::<u64>().context("no number in /proc")?;
        }
        Ok(sum)
    }
}
