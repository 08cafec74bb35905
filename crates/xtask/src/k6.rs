//! `cargo xtask k6`: the load of `telpher bench store` with k6, a third-party tool.
//!
//! The task starts a node on the release build with a directory of its own, runs
//! `bench/k6/conversations.js` in k6 against each client API, and prints k6's summary. It fails
//! when k6 does: when an acknowledged message is missing, a sequence number is skipped, or an
//! append fails.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::bench::commit;
use crate::footprint::{Process, executable};
use crate::step::{self, cargo};

const K6: &str = "bench/peers/bin/k6";
const SCRIPT: &str = "bench/k6/conversations.js";
const RESULTS: &str = "bench/results/k6";
const SCRATCH: &str = "target/k6";

const BUILD_LIMIT: Duration = Duration::from_secs(40 * 60);
/// Time limit beyond the ramp and the steady window, for k6 to start and to read everything back.
const MARGIN: Duration = Duration::from_secs(180);

/// Parameters of the task.
#[derive(Debug, PartialEq, Eq)]
struct Plan {
    doors: Vec<String>,
    vus: u64,
    pipeline: u64,
    ramp_s: u64,
    duration_s: u64,
    /// True if the result is copied to its committed directory.
    is_copied: bool,
}

/// Runs the task.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let plan = Plan::parse(args)?;
    ensure!(
        Path::new(K6).is_file(),
        "k6 is not built\nhint: cargo xtask peers k6"
    );
    let build = &mut cargo(&["build", "--release", "--package", "telpher"]);
    step::run("release", build, BUILD_LIMIT)?;
    let executable = executable()?;
    let mut found = Vec::new();
    for door in &plan.doors {
        found.push(plan.run(door, &executable)?);
    }
    match plan.is_copied {
        true => plan.keep(&found),
        false => Ok(()),
    }
}

impl Plan {
    fn parse(args: &[String]) -> Result<Self> {
        let mut plan = Self {
            doors: vec!["ws".to_owned(), "http".to_owned()],
            vus: 30,
            pipeline: 5,
            ramp_s: 30,
            duration_s: 60,
            is_copied: false,
        };
        let mut args = args.iter();
        while let Some(name) = args.next() {
            if name == "--keep" {
                plan.is_copied = true;
                continue;
            }
            let value = args
                .next()
                .with_context(|| format!("{name} needs a value"))?;
            let number = || {
                value
                    .parse()
                    .with_context(|| format!("{name} {value}: not a number"))
            };
            match name.as_str() {
                "--door" => plan.doors = value.split(',').map(str::to_owned).collect(),
                "--vus" => plan.vus = number()?,
                "--pipeline" => plan.pipeline = number()?,
                "--ramp" => plan.ramp_s = number()?,
                "--duration" => plan.duration_s = number()?,
                _ => bail!(
                    "unknown option {name}\nhint: use --door, --vus, --pipeline, --ramp, --duration or --keep"
                ),
            }
        }
        match plan
            .doors
            .iter()
            .find(|door| !["ws", "http"].contains(&door.as_str()))
        {
            Some(door) => bail!("unknown value `{door}` of --door\nhint: use ws or http"),
            None => Ok(plan),
        }
    }

    /// Runs one client API, with a node of its own. Returns k6's summary.
    fn run(&self, door: &str, executable: &Path) -> Result<String> {
        let directory = PathBuf::from(SCRATCH).join(format!("{}-{door}", std::process::id()));
        let _removed = ScratchDirectory(&directory);
        fs::create_dir_all(&directory)?;
        let mut serve = Command::new(executable);
        serve.args([
            "serve",
            "--json",
            "--end-with-stdin",
            "--native-listen",
            "127.0.0.1:0",
        ]);
        serve
            .args([
                "--http-listen",
                "127.0.0.1:0",
                "--kafka-listen",
                "none",
                "--slim-listen",
                "none",
                "--data",
            ])
            .arg(directory.join("data"));
        let (_node, ready) = Process::start(&mut serve)?;
        let summary = directory.join("summary.json");
        let mut k6 = Command::new(K6);
        k6.args(["run", "--quiet", "--no-usage-report"]);
        for (name, value) in self.variables(door, address(&ready)?, &summary) {
            k6.args(["-e", &format!("{name}={value}")]);
        }
        let limit = Duration::from_secs(self.ramp_s + self.duration_s) + MARGIN;
        step::run(&format!("k6 over {door}"), k6.arg(SCRIPT), limit)?;
        fs::read_to_string(&summary).context("k6 left no summary")
    }

    fn variables(&self, door: &str, address: &str, summary: &Path) -> [(&'static str, String); 7] {
        [
            ("DOOR", door.to_owned()),
            ("ADDRESS", address.to_owned()),
            ("VUS", self.vus.to_string()),
            ("PIPELINE", self.pipeline.to_string()),
            ("RAMP", self.ramp_s.to_string()),
            ("DURATION", self.duration_s.to_string()),
            ("SUMMARY", summary.display().to_string()),
        ]
    }

    /// Writes the summaries to their committed directory, with a page.
    fn keep(&self, found: &[String]) -> Result<()> {
        fs::create_dir_all(RESULTS)?;
        let directory = Path::new(RESULTS);
        let all = format!(
            "[\n{}\n]\n",
            found
                .iter()
                .map(|one| one.trim())
                .collect::<Vec<_>>()
                .join(",\n")
        );
        fs::write(directory.join("results.json"), &all)?;
        let page = format!(
            "# k6\n\nThe load of `telpher bench store` with k6, every acknowledged message read back. Run again with \
             `cargo xtask k6 --keep`;\n[`bench/k6`](../../k6/README.md) explains the figures. k6 and the node share \
             the machine, and k6 is the\nlarger part of the work.\n\nCommit {}. Result:\n\n```json\n{all}```\n",
            commit()?
        );
        fs::write(directory.join("README.md"), page)?;
        eprintln!("   {RESULTS}");
        Ok(())
    }
}

/// Returns the address of the HTTP listener from the node's ready line.
fn address(ready: &str) -> Result<&str> {
    let (_, rest) = ready
        .split_once("\"http\":\"http://")
        .with_context(|| format!("the node's ready line has no HTTP address: {ready}"))?;
    Ok(rest.split('"').next().unwrap_or_default())
}

/// A directory that is deleted on drop.
struct ScratchDirectory<'a>(&'a Path);

impl Drop for ScratchDirectory<'_> {
    fn drop(&mut self) {
        // A directory that cannot be deleted stays below `target`, where it does no harm.
        let _ = fs::remove_dir_all(self.0);
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
    fn omitted_options_default_to_the_load_of_the_report() {
        let plan = parse("").unwrap();
        assert_eq!(
            (plan.vus, plan.pipeline, plan.ramp_s, plan.duration_s),
            (30, 5, 30, 60)
        );
        let short = parse("--door http --ramp 1 --duration 2 --keep").unwrap();
        assert_eq!(short.doors, ["http"]);
        assert_eq!(
            (short.ramp_s, short.duration_s, short.is_copied),
            (1, 2, true)
        );
        for wrong in ["--door tcp", "--ramp soon", "--vus", "--speed 3"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_address_is_that_of_the_http_listener() {
        let ready = r#"{"native":"tcp://127.0.0.1:1","http":"http://127.0.0.1:4242","socket":"s"}"#;
        assert_eq!(address(ready).unwrap(), "127.0.0.1:4242");
        assert!(address("{}").is_err());
    }
}
