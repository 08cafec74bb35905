//! `cargo xtask bench NAME`: runs a benchmark whose result is committed.
//!
//! The task writes to `bench/results/NAME/`: `results.json.gz` with every repeat, and `README.md`
//! with command, commit, machine, tables and flags. It makes no judgement. Run it on an otherwise
//! idle machine.

mod files;
mod growth;
mod profiles;
mod python;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use self::files::{PEERS, RESULTS, benchmark, capitalised, compress, entries, measure, telpher};
use crate::step::{self, cargo};

/// A named benchmark.
struct Suite {
    name: &'static str,
    about: &'static str,
    /// Arguments of `telpher bench`, separated by blanks.
    line: &'static str,
    /// Participation of floors and peers.
    peers: Peers,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Peers {
    With,
    Without,
}

const SUITES: [Suite; 33] = [
    Suite {
        name: "slim-smoke",
        about: "the smoke run of the SLIM suite: three modes, 25 repeats",
        line: "agent --mode request-reply,fire-and-forget,write --clients 1 --size 16 --rate 100 \
               --oneway-rate 1000 --write-rate 1000 --duration 1s --repeats 25",
        peers: Peers::Without,
    },
    Suite {
        name: "slim-capacity",
        about: "capacity for messages and writes of 16 KiB, with the sweep of the SLIM suite",
        line: "agent --sweep --mode fire-and-forget,write --size 16384 --sweep-start-rate 4000 \
               --sweep-steps 6 --sweep-repeats 5",
        peers: Peers::Without,
    },
    Suite {
        name: "slim-nodes",
        about: "SLIM's Rust clients through this node and through SLIM's, unpaced, compared with the native protocol",
        line: "agent --protocol slim --slim-clients slimctl,native --size 16,1024,16384 --rate 0 --duration 1s \
               --repeats 5",
        peers: Peers::With,
    },
    Suite {
        name: "slim-paced",
        about: "16 bytes on a schedule, 100 and 1,000 requests a second: the Python bindings, messages without sessions, and \
                the native protocol",
        line: "agent --protocol slim --slim-clients python,raw,native --mode request-reply --size 16 --rate 100,1000 \
               --duration 2s --repeats 8",
        peers: Peers::With,
    },
    Suite {
        name: "slim-python",
        about: "the Python bindings through this node and through SLIM's, unpaced",
        line: "agent --protocol slim --slim-clients python --size 16,1024,16384 --rate 0 --duration 1s --repeats 4",
        peers: Peers::With,
    },
    Suite {
        name: "slim-reliable",
        about: "requests in reliable sessions, which SLIM's examples, SLIMRPC and A2A use, and in unreliable ones: \
                the Python bindings through this node and through SLIM's",
        line: "agent --protocol slim --slim-clients python-reliable,python --mode request-reply --size 16,16384 --rate 0 \
               --duration 3s --repeats 5",
        peers: Peers::With,
    },
    Suite {
        name: "slim-raw",
        about: "messages without sessions through this node and through SLIM's, unpaced",
        line: "agent --protocol slim --slim-clients raw --size 16,1024,16384 --rate 0 --duration 1s --repeats 5",
        peers: Peers::With,
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
        about: "calls compared with the floor, ZeroMQ, tarpc and tonic, all on one CPU",
        line: "rpc --mode serial,blocking,concurrent,callback --concurrency 10,64,256 --size 128 \
               --placement same-cpu --repeats 5",
        peers: Peers::With,
    },
    Suite {
        name: "rpc-two-cpus",
        about: "calls compared with the floor, ZeroMQ, tarpc and tonic, the caller on CPU 0, the callee on CPU 1",
        line: "rpc --mode serial,blocking,concurrent,callback --concurrency 10,64,256 --size 128 \
               --placement two-cpus --repeats 5",
        peers: Peers::With,
    },
    Suite {
        name: "rpc-unpinned",
        about: "calls compared with the floor, ZeroMQ, tarpc and tonic, placed by the kernel",
        line: "rpc --mode serial,blocking,concurrent,callback --concurrency 10,64,256 --size 128 \
               --placement unpinned --repeats 5",
        peers: Peers::With,
    },
    Suite {
        name: "rpc-transports",
        about: "calls over TCP, a Unix socket and memory",
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
        about: "calls through a node, compared with NATS",
        line: "rpc --via node --mode serial,concurrent,callback --concurrency 10,64 --size 16 \
               --placement unpinned,two-cpus --repeats 5",
        peers: Peers::With,
    },
    Suite {
        name: "node-messages",
        about: "requests, and messages to one and to ten subscribers, compared with NATS",
        line: "agent --mode request-reply,publish --rate 0 --in-flight 1,10,64 --subscribers 1,10 \
               --size 16 --repeats 5",
        peers: Peers::With,
    },
    Suite {
        name: "journal-local",
        about: "durable appends within a process, compared with the disk floor, with filing and without",
        line: "journal --via process --writers 1,128 --threads 1,128 --size 256 --filing on,off \
               --duration 3s --repeats 5 --dir target",
        peers: Peers::With,
    },
    Suite {
        name: "journal-door",
        about: "durable appends through a node, compared with the durable echo",
        line: "journal --via door --shape 1x1,1x128,16x8,128x1 --size 256 --filing on,off \
               --duration 3s --repeats 5 --dir target",
        peers: Peers::With,
    },
    Suite {
        name: "store",
        about: "30 users with 5 messages in flight over every client API, compared with floors and peers",
        line: "store --vus 30 --pipeline 5 --ramp 2s --duration 8s --size 256 --repeats 5 --dir target",
        peers: Peers::With,
    },
    Suite {
        name: "store-fleetlm",
        about: "the load of FleetLM's report over every client API: a ramp of 30 seconds, then a minute",
        line: "store --vus 30 --pipeline 5 --ramp 30s --duration 60s --size 256 --dir target",
        peers: Peers::Without,
    },
    Suite {
        name: "store-one",
        about: "one message at a time over every client API, compared with a raw sync and a raw round trip",
        line: "store --vus 1 --pipeline 1 --ramp 1s --duration 5s --size 256 --repeats 5 --dir target",
        peers: Peers::With,
    },
    Suite {
        name: "store-soak",
        about: "five minutes of messages, with a check that memory does not grow",
        line: "store --soak 5m --door native --ramp 5s --size 256 --dir target",
        peers: Peers::Without,
    },
    Suite {
        name: "quota-k6",
        about: "the k6 test of the rate limiter's report: 50 users, 10,000 agents, four endpoints",
        line: "quota --vus 50 --agents 10000 --duration 30s --mix health,request,quota,test --think 500ms \
               --repeats 3 --dir target",
        peers: Peers::With,
    },
    Suite {
        name: "quota-ab",
        about: "the Apache Bench test of the rate limiter's report: 1,000 takes for one agent over 50 connections",
        line: "quota --agents 1 -n 1000 -c 50 --keep-alive off,on --repeats 10 --dir target",
        peers: Peers::With,
    },
    Suite {
        name: "quota-closed",
        about: "50 connections with takes for 10,000 agents in a closed loop, 1 and 16 requests in flight on each",
        line: "quota --agents 10000 -c 50 --pipeline 1,16 --door http,native --duration 5s --repeats 5 --dir target",
        peers: Peers::With,
    },
    Suite {
        name: "quota-hot",
        about: "50 connections with takes for one agent in a closed loop, compared with many agents",
        line: "quota --agents 10000,1 -c 50 --door http,native --duration 5s --repeats 5 --dir target",
        peers: Peers::With,
    },
    Suite {
        name: "quota-batch",
        about: "many takes in a request compared with many requests in flight, over HTTP and the native protocol; six limits \
                compared with one",
        line: "quota --agents 10000 -c 8 --pipeline 1,16 --batch 16,100 --limits 1,6 --door http,native --duration 3s --repeats 5 --dir target",
        peers: Peers::With,
    },
    Suite {
        name: "quota-redis",
        about: "nodes that share a Redis: one agent with leased credit, compared with a million agents with a call per take",
        line: "quota --store redis --nodes 1,3 --agents 1,1000000 -c 48 --pipeline 16 --batch 100 --door http,native \
               --duration 3s --repeats 5 --dir target",
        peers: Peers::With,
    },
    Suite {
        name: "quota-rate",
        about: "takes on a schedule: latencies at a rate that all targets can sustain",
        line: "quota --agents 10000 -c 50 --rate 1000 --duration 5s --repeats 5 --dir target",
        peers: Peers::With,
    },
    Suite {
        name: "kafka-acks",
        about: "128 producers that await each ack, over one connection and over 128, compared with Apache Kafka and the floors",
        line: "kafka --mode produce,connections -c 128 -s 256 -d 5s -w 2s --acks all --durability disk,memory \
               --repeats 5 --dir target",
        peers: Peers::With,
    },
    Suite {
        name: "kafka-bulk",
        about: "maximum throughput of producing and consuming, compared with Apache Kafka",
        line: "kafka --mode bulk,consume -d 5s -w 2s --acks all --durability disk,memory --repeats 5 --dir target",
        peers: Peers::With,
    },
    Suite {
        name: "kafka-end-to-end",
        about: "one message at a time to a waiting consumer, compared with Apache Kafka, a raw sync and a raw round trip",
        line: "kafka --mode end-to-end -s 256 -d 5s -w 2s --acks all --durability disk,memory --repeats 5 --dir target",
        peers: Peers::With,
    },
    Suite {
        name: "kafka-cluster",
        about: "three nodes compared with one, with three brokers of Apache Kafka, and with the quorum floor",
        line: "kafka --cluster 3 --mode produce,connections -c 128,1024 -s 256 --batch-size 1000000 -d 4s -w 1s \
               --acks 1,all --repeats 5 --dir target",
        peers: Peers::With,
    },
    Suite {
        name: "kafka-chronik",
        about: "the test of Chronik's report: 128 producers, 256 bytes, 30 seconds, both acks",
        line: "kafka -c 128 -s 256 -d 30s -w 5s --acks 1,all --repeats 3 --dir target",
        peers: Peers::Without,
    },
];

/// A check whose result is committed: its report, or it fails.
struct Check {
    name: &'static str,
    about: &'static str,
    /// Arguments of `telpher`.
    line: &'static str,
}

const CHECKS: [Check; 9] = [
    Check {
        name: "journal-kill",
        about: "a node killed 1,000 times under load; all acknowledged records are read back",
        line: "bench journal --kill-9-check 1000 --dir target --quiet",
    },
    Check {
        name: "store-kill",
        about: "a node killed 100 times while messages are appended over its client APIs; all acknowledged ones are read back",
        line: "bench store --kill-9-check 100 --dir target --quiet",
    },
    Check {
        name: "store-idle",
        about: "a million idle conversations of 10 messages: memory of each, and a cold start with all of them",
        line: "bench store --idle 1000000 --size 64 --door native --dir target --quiet",
    },
    Check {
        name: "kafka-idle",
        about: "1,000 partitions, 10,000 groups with offsets and 100 with a member: memory and CPU of the idle node",
        line: "bench kafka --idle 1000 --dir target --quiet",
    },
    Check {
        name: "kafka-start",
        about: "idle partitions and groups with a log of 5 GiB: a kill after its last ack, a start, and a read of all acknowledged data",
        line: "bench kafka --idle 1000 --idle-log 5GiB --dir target --quiet",
    },
    Check {
        name: "kafka-failover",
        about: "three nodes with 1,000 partitions: 50 kills of the leader under load; time to the first ack, and a read of \
                everything that was acknowledged",
        line: "bench kafka --cluster 3 --fault kill-leader --repeats 50 -p 1000 -c 64 -s 1024 --dir target --quiet",
    },
    Check {
        name: "kafka-faults",
        about: "the same with kills of followers and of all nodes, and pauses of the leader and of all nodes",
        line: "bench kafka --cluster 3 --fault none,kill-follower,kill-all,pause,pause-all --repeats 10 -p 1000 -c 64 -s 1024 \
               --dir target --quiet",
    },
    Check {
        name: "quota-memory",
        about: "a million agents with a bucket each: memory of a bucket, compared with other rate limiters",
        line: "bench quota --memory 1000000 --peers bench/peers/bin --dir target --quiet",
    },
    Check {
        name: "slim-subscriptions",
        about: "10,000 SLIM subscriptions over 100 connections and over 1,000: memory of each, in this node and in SLIM's",
        line: "bench agent --protocol slim --subscriptions 10000 --connections 100,1000 --peers bench/peers/bin --quiet",
    },
];

const BUILD_LIMIT: Duration = Duration::from_secs(40 * 60);

/// Builds the release and runs the named suites and checks.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let named = |name: &str| args.iter().any(|arg| arg == name);
    let is_known = |arg: &&String| {
        SUITES.iter().any(|suite| suite.name == arg.as_str())
            || CHECKS.iter().any(|check| check.name == arg.as_str())
            || [growth::NAME, profiles::NAME, python::NAME].contains(&arg.as_str())
    };
    if let Some(unknown) = args.iter().find(|arg| !is_known(arg)) {
        bail!("unknown suite `{unknown}`\n{}", names());
    }
    ensure!(!args.is_empty(), "no suite is given\n{}", names());
    let suites: Vec<&Suite> = SUITES.iter().filter(|suite| named(suite.name)).collect();
    let with_peers = suites.iter().any(|suite| suite.peers == Peers::With);
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
    for check in CHECKS.iter().filter(|check| named(check.name)) {
        check.run(&commit)?;
    }
    if named(growth::NAME) {
        growth::run(&commit)?;
    }
    if named(profiles::NAME) {
        profiles::run(&commit)?;
    }
    if named(python::NAME) {
        python::run(&commit)?;
    }
    Ok(())
}

impl Check {
    /// Runs the check and stores its report.
    fn run(&self, commit: &str) -> Result<()> {
        let directory = Path::new(RESULTS).join(self.name);
        fs::create_dir_all(&directory)?;
        let command = &mut telpher(&[]);
        eprintln!("   {}: telpher {}", self.name, self.line);
        let found = step::read(command.args(self.line.split_whitespace()).arg("--json"))?;
        fs::write(directory.join("results.json"), &found)?;
        let page = format!(
            "# {name}\n\n{}. Run again with `cargo xtask bench {name}`:\n\n```sh\ntelpher {}\n```\n\nCommit \
             {commit}. Result:\n\n```json\n{}\n```\n",
            capitalised(self.about),
            self.line,
            found.trim(),
            name = self.name,
        );
        fs::write(directory.join("README.md"), page)?;
        eprintln!("   {}", directory.display());
        Ok(())
    }
}

fn names() -> String {
    let suites = SUITES.iter().map(|suite| (suite.name, suite.about));
    let checks = CHECKS.iter().map(|check| (check.name, check.about));
    let line = |(name, about): (&str, &str)| format!("  {name:<18} {about}\n");
    format!(
        "Suites:\n{}",
        suites
            .chain(checks)
            .chain([
                (growth::NAME, growth::ABOUT),
                (profiles::NAME, profiles::ABOUT),
                (python::NAME, python::ABOUT),
            ])
            .map(line)
            .collect::<String>()
    )
}

/// Returns the measured commit, marked if the sources differ from it.
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
        let command = &mut benchmark(self.line);
        command.args(["--style", "table"]);
        if self.peers == Peers::With {
            command.args(["--peers", PEERS]);
        }
        let made = measure(self.name, commit, command)?;
        self.keep(&made.join("results.json"))
    }

    /// Copies the result to its committed directory, and renders its page.
    fn keep(&self, results: &Path) -> Result<()> {
        let directory = Path::new(RESULTS).join(self.name);
        fs::create_dir_all(&directory)?;
        let copy = directory.join("results.json.gz");
        compress(results, &copy).with_context(|| format!("cannot copy {}", results.display()))?;
        let report = &mut telpher(&["bench", "report", "--style", "markdown"]);
        let page = step::read(report.arg(&copy))?;
        let mut page = self.page(&page);
        if let Some(plot) = memory_plot(results)? {
            fs::copy(&plot, directory.join("memory.svg"))?;
            page += "\n## Memory\n\n![memory of the servers over their runs](memory.svg)\n";
        }
        fs::write(directory.join("README.md"), page)?;
        eprintln!("   {}", directory.display());
        Ok(())
    }

    /// Returns the report under the name of the suite, with the command to repeat it.
    fn page(&self, report: &str) -> String {
        let body = report.split_once("\n\n").map_or(report, |(_, body)| body);
        let body = body.replace("`results.json`", "`results.json.gz`");
        format!(
            "# {}\n\n{}. Run again with `cargo xtask bench {}`:\n\n{body}",
            self.name,
            capitalised(self.about),
            self.name
        )
    }
}

/// Returns the memory plot next to a result, if there is one.
fn memory_plot(results: &Path) -> Result<Option<PathBuf>> {
    let plots = entries(&results.with_file_name("plots"))?;
    let is_memory = |path: &PathBuf| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("memory-"))
    };
    Ok(plots.into_iter().find(is_memory))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_suite_has_a_unique_name_valid_for_a_directory() {
        for suite in &SUITES {
            let names = SUITES
                .iter()
                .map(|suite| suite.name)
                .chain(CHECKS.map(|check| check.name));
            assert_eq!(
                names.filter(|name| *name == suite.name).count(),
                1,
                "{}",
                suite.name
            );
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
    fn memory_is_filled_for_suites_that_write_to_a_disk() {
        let writes = |name| {
            let suite = SUITES.iter().find(|suite| suite.name == name);
            files::writes_files(suite.unwrap().line)
        };
        assert!(writes("kafka-bulk") && writes("store"));
        assert!(!writes("rpc-same-cpu"));
    }

    #[test]
    fn committed_results_take_at_most_five_megabytes() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut size = 0;
        for directory in entries(&root.join(RESULTS)).unwrap() {
            for file in entries(&directory).unwrap() {
                size += fs::metadata(file).unwrap().len();
            }
        }
        assert!((1..=5_000_000).contains(&size), "{size} bytes");
    }

    #[test]
    fn result_page_is_the_report_titled_with_the_suite_name() {
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
