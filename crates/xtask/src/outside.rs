//! `cargo xtask outside`: the loads of `telpher bench quota` with third-party tools.
//!
//! The task starts a node on the release build with a directory of its own, or uses the server at
//! `--url`. It sends takes from k6, Apache Bench and wrk, as far as they are installed. It fails
//! when a tool does: when a threshold is crossed, or a bucket allows too many or too few takes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::footprint::{Process, executable};
use crate::step::{self, cargo, is_installed};

const K6: &str = "bench/peers/bin/k6";
const SCRATCH: &str = "target/outside";

const BUILD_LIMIT: Duration = Duration::from_secs(40 * 60);
/// Time limit beyond the duration of a tool's load.
const MARGIN: Duration = Duration::from_secs(120);

/// A third-party load generator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tool {
    K6,
    Ab,
    Wrk,
}

/// Parameters of the task.
#[derive(Debug, PartialEq, Eq)]
struct Plan {
    tools: Vec<Tool>,
    /// `http://HOST:PORT` of a server that is already running.
    url: Option<String>,
    duration_s: u64,
}

/// Runs the task.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let plan = Plan::parse(args)?;
    let tools: Vec<Tool> = plan
        .tools
        .iter()
        .copied()
        .filter(|tool| tool.is_there())
        .collect();
    for tool in plan.tools.iter().filter(|tool| !tool.is_there()) {
        eprintln!("{} is not installed: {}", tool.name(), tool.hint());
    }
    ensure!(!tools.is_empty(), "no tool is installed");
    let (_node, _removed, url) = match &plan.url {
        Some(url) => (None, None, url.clone()),
        None => {
            let build = &mut cargo(&["build", "--release", "--package", "telpher"]);
            step::run("release", build, BUILD_LIMIT)?;
            let directory = PathBuf::from(SCRATCH).join(std::process::id().to_string());
            fs::create_dir_all(&directory)?;
            let (node, url) = serve(&executable()?, &directory)?;
            (Some(node), Some(ScratchDirectory(directory)), url)
        }
    };
    for tool in tools {
        tool.run(&url, plan.duration_s)?;
    }
    Ok(())
}

impl Plan {
    fn parse(args: &[String]) -> Result<Self> {
        let mut plan = Self {
            tools: Vec::new(),
            url: None,
            duration_s: 30,
        };
        let mut args = args.iter();
        while let Some(word) = args.next() {
            let mut value = || args.next().with_context(|| format!("{word} needs a value"));
            match word.as_str() {
                "--url" => plan.url = Some(value()?.trim_end_matches('/').to_owned()),
                "--duration" => {
                    plan.duration_s = value()?.parse().context("--duration takes seconds")?;
                }
                name => match Tool::ALL.iter().find(|tool| tool.name() == name) {
                    Some(tool) => plan.tools.push(*tool),
                    None => bail!(
                        "unknown tool or option {name}\nhint: use k6, ab, wrk, --url or --duration"
                    ),
                },
            }
        }
        if plan.tools.is_empty() {
            plan.tools = Tool::ALL.to_vec();
        }
        Ok(plan)
    }
}

impl Tool {
    const ALL: [Self; 3] = [Self::K6, Self::Ab, Self::Wrk];

    fn name(self) -> &'static str {
        match self {
            Self::K6 => "k6",
            Self::Ab => "ab",
            Self::Wrk => "wrk",
        }
    }

    fn is_there(self) -> bool {
        match self {
            Self::K6 => Path::new(K6).is_file(),
            Self::Ab | Self::Wrk => is_installed(self.name()),
        }
    }

    fn hint(self) -> &'static str {
        match self {
            Self::K6 => "cargo xtask peers k6",
            Self::Ab => "apt-get install apache2-utils",
            Self::Wrk => "apt-get install wrk",
        }
    }

    fn run(self, url: &str, duration_s: u64) -> Result<()> {
        let duration = duration_s.to_string();
        let mut command = match self {
            Self::K6 => {
                let mut command = Command::new(K6);
                let address = url.trim_start_matches("http://");
                command.args(["run", "--quiet", "--no-usage-report"]);
                command.args(["-e", &format!("ADDRESS={address}")]);
                command.args(["-e", &format!("DURATION={duration}"), "bench/k6/quota.js"]);
                command
            }
            Self::Ab => {
                let mut command = Command::new("bench/ab/take.sh");
                command.arg(url);
                command
            }
            Self::Wrk => {
                let mut command = Command::new("wrk");
                command.args([
                    "-t1",
                    "-c50",
                    &format!("-d{duration}s"),
                    "-s",
                    "bench/wrk/take.lua",
                ]);
                command.args([url, "--", "10000"]);
                command
            }
        };
        let limit = Duration::from_secs(duration_s) + MARGIN;
        step::run(self.name(), &mut command, limit)
    }
}

/// Starts a node with its data in a directory. Returns the URL of its rate limiter API.
fn serve(executable: &Path, directory: &Path) -> Result<(Process, String)> {
    let mut serve = Command::new(executable);
    serve.args(["serve", "--json", "--end-with-stdin", "--compat-limiter"]);
    serve.env("PORT", "0");
    serve.args([
        "--native-listen",
        "127.0.0.1:0",
        "--http-listen",
        "127.0.0.1:0",
        "--kafka-listen",
        "none",
        "--slim-listen",
        "none",
    ]);
    serve.arg("--data").arg(directory.join("data"));
    let (node, ready) = Process::start(&mut serve)?;
    Ok((node, url(&ready)?))
}

/// Returns the URL of the rate limiter API from the node's ready line.
fn url(ready: &str) -> Result<String> {
    let (_, rest) = ready
        .split_once("\"limiter\":\"")
        .with_context(|| format!("the node's ready line has no rate limiter API: {ready}"))?;
    Ok(rest.split('"').next().unwrap_or_default().to_owned())
}

/// A directory that is deleted on drop.
struct ScratchDirectory(PathBuf);

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        // A directory that cannot be deleted stays below `target`, where it does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Plan> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Plan::parse(&words)
    }

    #[test]
    fn all_tools_run_unless_some_are_named() {
        let all = parse("").unwrap();
        assert_eq!((all.tools.len(), all.url, all.duration_s), (3, None, 30));
        let some = parse("ab wrk --url http://127.0.0.1:3000/ --duration 5").unwrap();
        assert_eq!(some.tools, [Tool::Ab, Tool::Wrk]);
        assert_eq!(some.url.as_deref(), Some("http://127.0.0.1:3000"));
        for wrong in ["curl", "--url", "--duration soon"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_url_is_that_of_the_rate_limiter_api() {
        let ready =
            r#"{"http":"http://127.0.0.1:1","limiter":"http://127.0.0.1:4242","socket":"s"}"#;
        assert_eq!(url(ready).unwrap(), "http://127.0.0.1:4242");
        assert!(url("{}").is_err());
    }
}
