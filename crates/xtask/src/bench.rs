//! `cargo xtask bench NAME`: runs a benchmark whose result is committed.
//!
//! What it leaves in `bench/results/NAME/` is everything that was measured (`results.json`, every
//! repeat) and a page made from it (`README.md`: command, commit, machine, tables, flags). It quotes
//! nothing and decides nothing: run it on a machine that does nothing else.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::step::{self, cargo};

/// A benchmark with a name.
struct Suite {
    name: &'static str,
    about: &'static str,
    /// What `telpher bench` is asked for, words separated by blanks.
    line: &'static str,
    /// Whether floors and peers take part.
    peers: Peers,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Peers {
    Beside,
    Without,
}

const SUITES: [Suite; 12] = [
    Suite {
        name: "slim-smoke",
        about: "the smoke run of the SLIM suite: three modes, 25 repeats",
        line: "agent --mode request-reply,fire-and-forget,write --clients 1 --size 16 --rate 100 \
               --oneway-rate 1000 --write-rate 1000 --duration 1s --repeats 25",
        peers: Peers::Without,
    },
    Suite {
        name: "slim-capacity",
        about: "how many messages and writes at most, 16 KiB, as the SLIM suite sweeps",
        line: "agent --sweep --mode fire-and-forget,write --size 16384 --sweep-start-rate 4000 \
               --sweep-steps 6 --sweep-repeats 5",
        peers: Peers::Without,
    },
    Suite {
        name: "uvrpc",
        about: "the run of the UVRPC report: 100 calls in three modes",
        line: "rpc --mode serial,concurrent,callback --concurrency 10 --size 128 --requests 100 \
               --repeats 5",
        peers: Peers::Without,
    },
    Suite {
        name: "rpc-same-cpu",
        about: "calls beside the floor, ZeroMQ, tarpc and tonic, all on one CPU",
        line: "rpc --mode serial,blocking,concurrent,callback --concurrency 10,64,256 --size 128 \
               --placement same-cpu --repeats 5",
        peers: Peers::Beside,
    },
    Suite {
        name: "rpc-two-cpus",
        about: "the same with the caller on CPU 0 and the callee on CPU 1",
        line: "rpc --mode serial,blocking,concurrent,callback --concurrency 10,64,256 --size 128 \
               --placement two-cpus --repeats 5",
        peers: Peers::Beside,
    },
    Suite {
        name: "rpc-unpinned",
        about: "the same wherever the kernel puts the two",
        line: "rpc --mode serial,blocking,concurrent,callback --concurrency 10,64,256 --size 128 \
               --placement unpinned --repeats 5",
        peers: Peers::Beside,
    },
    Suite {
        name: "rpc-transports",
        about: "TCP, a Unix socket and memory side by side",
        line: "rpc --mode serial,blocking,concurrent,callback --concurrency 10,256 --size 128 \
               --transport tcp,unix,inproc --placement same-cpu --repeats 5",
        peers: Peers::Without,
    },
    Suite {
        name: "rpc-deep",
        about: "up to 10,000 calls in flight",
        line: "rpc --mode concurrent,callback --concurrency 256,1000,10000 --size 128 --repeats 5",
        peers: Peers::Without,
    },
    Suite {
        name: "node-calls",
        about: "calls through a node beside NATS",
        line: "rpc --via node --mode serial,concurrent,callback --concurrency 10,64 --size 16 \
               --placement unpinned,two-cpus --repeats 5",
        peers: Peers::Beside,
    },
    Suite {
        name: "node-messages",
        about: "requests, and messages to one and to ten subscribers, beside NATS",
        line: "agent --mode request-reply,publish --rate 0 --in-flight 1,10,64 --subscribers 1,10 \
               --size 16 --repeats 5",
        peers: Peers::Beside,
    },
    Suite {
        name: "journal-local",
        about: "durable appends within a process beside the disk floor, with filing and without",
        line: "journal --via process --writers 1,128 --threads 1,128 --size 256 --filing on,off \
               --duration 3s --repeats 5 --dir target",
        peers: Peers::Beside,
    },
    Suite {
        name: "journal-door",
        about: "durable appends through a node beside the durable echo",
        line: "journal --via door --shape 1x1,1x128,16x8,128x1 --size 256 --filing on,off \
               --duration 3s --repeats 5 --dir target",
        peers: Peers::Beside,
    },
];

/// The check whose result is committed beside the benchmarks: a node that is killed over and over.
const KILLS: &str = "journal-kill";
const KILLS_ABOUT: &str =
    "a node killed 1,000 times under load; everything it acknowledged is read back";
const KILLS_LINE: &str = "bench journal --kill-9-check 1000 --dir target --quiet";

const PEERS: &str = "bench/peers/bin";
const OUT: &str = "target/bench-out";
const RESULTS: &str = "bench/results";

const BUILD_LIMIT: Duration = Duration::from_secs(40 * 60);
const RUN_LIMIT: Duration = Duration::from_secs(20 * 60);

/// Builds the release and runs the suites that are named.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let (checks, args): (Vec<&String>, Vec<&String>) = args.iter().partition(|name| *name == KILLS);
    let find = |name: &&String| {
        let mut suites = SUITES.iter();
        let suite = suites.find(|suite| suite.name == name.as_str());
        suite.with_context(|| format!("there is no suite `{name}`\n{}", names()))
    };
    let suites: Vec<&Suite> = args.iter().map(find).collect::<Result<_>>()?;
    if suites.is_empty() && checks.is_empty() {
        bail!("which suite?\n{}", names());
    }
    let with_peers = suites.iter().any(|suite| suite.peers == Peers::Beside);
    ensure!(
        !with_peers || Path::new(PEERS).is_dir(),
        "the peers are not built\nhint: cargo xtask peers"
    );
    let build = &mut cargo(&["build", "--release", "--package", "telpher"]);
    step::run("build the release", build, BUILD_LIMIT)?;
    let commit = commit()?;
    for suite in suites {
        suite.run(&commit)?;
    }
    match checks.is_empty() {
        true => Ok(()),
        false => kill(&commit),
    }
}

/// Runs the check with kills and keeps what it found, which is nothing or it fails.
fn kill(commit: &str) -> Result<()> {
    let place = Path::new(RESULTS).join(KILLS);
    fs::create_dir_all(&place)?;
    let command = &mut telpher(&[]);
    eprintln!("   {KILLS}: telpher {KILLS_LINE}");
    let found = step::read(command.args(KILLS_LINE.split_whitespace()).arg("--json"))?;
    fs::write(place.join("results.json"), &found)?;
    let page = format!(
        "# {KILLS}\n\n{}. Run again with `cargo xtask bench {KILLS}`:\n\n```sh\ntelpher {KILLS_LINE}\n```\n\nCommit \
         {commit}. What was found:\n\n```json\n{}\n```\n",
        capitalised(KILLS_ABOUT),
        found.trim(),
    );
    fs::write(place.join("README.md"), page)?;
    eprintln!("   {}", place.display());
    Ok(())
}

fn names() -> String {
    let line = |suite: &Suite| format!("  {:<15} {}\n", suite.name, suite.about);
    let suites: String = SUITES.iter().map(line).collect();
    format!("Suites:\n{suites}  {KILLS:<15} {KILLS_ABOUT}\n")
}

/// The commit that is measured, and whether the sources differ from it.
pub(crate) fn commit() -> Result<String> {
    let head = step::read(Command::new("git").args(["rev-parse", "--short=12", "HEAD"]))?;
    let sources = [
        "status",
        "--porcelain",
        "--",
        "crates",
        "Cargo.toml",
        "Cargo.lock",
    ];
    let changed = step::read(Command::new("git").args(sources))?;
    Ok(match changed.trim() {
        "" => head.trim().to_owned(),
        _ => format!("{}-modified", head.trim()),
    })
}

impl Suite {
    fn run(&self, commit: &str) -> Result<()> {
        let out = Path::new(OUT).join(self.name);
        let earlier = directories(&out)?;
        let command = &mut telpher(&["bench"]);
        command.args(self.line.split_whitespace());
        command.args(["--commit", commit, "--style", "table", "--out"]);
        command.arg(&out);
        if self.peers == Peers::Beside {
            command.args(["--peers", PEERS]);
        }
        step::run(self.name, command, RUN_LIMIT)?;
        let mut made = directories(&out)?;
        made.retain(|directory| !earlier.contains(directory));
        let made = made.pop().context("the benchmark left no directory")?;
        self.keep(&made.join("results.json"))
    }

    /// Puts the result where it is committed, with its page.
    fn keep(&self, results: &Path) -> Result<()> {
        let place = Path::new(RESULTS).join(self.name);
        fs::create_dir_all(&place)?;
        let kept = place.join("results.json");
        fs::copy(results, &kept).with_context(|| format!("cannot copy {}", results.display()))?;
        let report = &mut telpher(&["bench", "report", "--style", "markdown"]);
        let page = step::read(report.arg(&kept))?;
        fs::write(place.join("README.md"), self.page(&page))?;
        eprintln!("   {}", place.display());
        Ok(())
    }

    /// The report under the name of the suite, with the way to run it again.
    fn page(&self, report: &str) -> String {
        let body = report.split_once("\n\n").map_or(report, |(_, body)| body);
        format!(
            "# {}\n\n{}. Run again with `cargo xtask bench {}`:\n\n{body}",
            self.name,
            capitalised(self.about),
            self.name
        )
    }
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(letters).collect()
}

fn telpher(args: &[&str]) -> Command {
    let mut command = Command::new("target/release/telpher");
    command.args(args);
    command
}

fn directories(parent: &Path) -> Result<Vec<PathBuf>> {
    if !parent.is_dir() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(parent)?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    Ok(paths.collect::<std::io::Result<_>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_suite_has_a_name_of_its_own_that_fits_a_directory() {
        for suite in &SUITES {
            let same = SUITES.iter().filter(|other| other.name == suite.name);
            assert_eq!(same.count(), 1, "{}", suite.name);
            assert!(
                suite
                    .name
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || c == '-')
            );
        }
        let error = run(&["nonsense".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("slim-smoke"), "{error}");
    }

    #[test]
    fn the_page_of_a_result_is_the_report_under_the_name_of_the_suite() {
        let suite = &SUITES[0];
        let page = suite.page("# agent\n\n```sh\ntelpher bench agent\n```\n");
        assert!(
            page.starts_with("# slim-smoke\n\nThe smoke run of"),
            "{page}"
        );
        assert!(
            page.ends_with(":\n\n```sh\ntelpher bench agent\n```\n"),
            "{page}"
        );
    }
}
