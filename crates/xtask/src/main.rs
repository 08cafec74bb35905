//! Developer commands: `cargo xtask TASK`.
//!
//! Each task is a list of steps that run one after the other, print what they do and how long it
//! took, and end after a bounded time. To add a task: a module, and a line in [`TASKS`].

mod bench;
mod check;
mod cluster;
mod compat;
mod crash;
mod cycles;
mod demo;
mod deps;
mod fix;
mod footprint;
mod fuzz;
mod k6;
mod language;
mod layers;
mod monitoring;
mod mutants;
mod openapi;
mod oracle;
mod outside;
mod package;
mod peers;
mod python;
mod setup;
mod sim;
mod size;
mod step;
mod tree;
mod ui;

use std::process::ExitCode;

use anyhow::{Result, bail};

struct Task {
    name: &'static str,
    about: &'static str,
    run: fn(&[String]) -> Result<()>,
}

const TASKS: [Task; 24] = [
    Task {
        name: "test",
        about: "install what the tests need, then check; CI runs this task",
        run: check::test,
    },
    Task {
        name: "check",
        about: "format, dependencies, lints, documentation, tests; never writes",
        run: check::check,
    },
    Task {
        name: "fix",
        about: "format the code and apply what the lints suggest",
        run: fix::run,
    },
    Task {
        name: "setup",
        about: "install what the tests need; fast if it is installed",
        run: setup::run,
    },
    Task {
        name: "deps",
        about: "check the layers, the banned dependencies, cycles of files and the size of crates",
        run: deps::run,
    },
    Task {
        name: "language",
        about: "check prose and names for vague wording",
        run: language::run,
    },
    Task {
        name: "ui",
        about: "build the console; --check: is the committed one that of ui/; --browser: test it in Chromium; --scale: measure it at a large node",
        run: ui::run,
    },
    Task {
        name: "demo",
        about: "build quickly and run `telpher demo`",
        run: demo::run,
    },
    Task {
        name: "footprint",
        about: "memory and CPU time of an idle node; about a minute",
        run: footprint::run,
    },
    Task {
        name: "sim",
        about: "simulate thousands of worlds; or new ones for --minutes N; or --world NAME under --seeds N \
                or under --seed S",
        run: sim::run,
    },
    Task {
        name: "crash",
        about: "crash the journal under --seeds N (1000000; `test` does 10000) or under --seed S",
        run: crash::run,
    },
    Task {
        name: "mutants",
        about: "break the code on purpose; the proofs must catch each mutant (part of `test`)",
        run: mutants::run,
    },
    Task {
        name: "fuzz",
        about: "fuzz the parsers, on the stable toolchain; --seconds N (60)",
        run: fuzz::run,
    },
    Task {
        name: "peers",
        about: "build the rival systems for benchmarks, and try them",
        run: peers::run,
    },
    Task {
        name: "oracle",
        about: "send the same Kafka requests to Apache Kafka and to a node, and compare the responses; \
                with --cluster, to three brokers and three nodes",
        run: oracle::run,
    },
    Task {
        name: "compat",
        about: "run third-party clients against a node: all, or the named families (kafka, slim) and clients; \
                --a2a-tck DIR; --cluster: Kafka clients while the leader of a cluster moves",
        run: compat::run,
    },
    Task {
        name: "package",
        about: "build and try what a node is installed from: deb, container, kubernetes; --profile NAME",
        run: package::run,
    },
    Task {
        name: "cluster",
        about: "make nodes and links of a cluster fail under load, and compare every answer with the log; \
                --rounds N, names of faults",
        run: cluster::run,
    },
    Task {
        name: "monitoring",
        about: "check the alert rules and the dashboard with Prometheus, which reads nodes under load",
        run: monitoring::run,
    },
    Task {
        name: "python",
        about: "check and test the Python package; --interpreter PATH, -- PYTEST-ARGUMENTS",
        run: python::run,
    },
    Task {
        name: "openapi",
        about: "run schemathesis against a node: checks its responses against /openapi.json",
        run: openapi::run,
    },
    Task {
        name: "k6",
        about: "run the k6 script against a new node; --ramp, --duration, --door, --keep",
        run: k6::run,
    },
    Task {
        name: "outside",
        about: "load a node's quotas with k6, ab and wrk, or the named ones; --url, --duration",
        run: outside::run,
    },
    Task {
        name: "bench",
        about: "run a benchmark and store its result in bench/results",
        run: bench::run,
    },
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(args: &[String]) -> Result<()> {
    let Some((name, rest)) = args.split_first() else {
        eprint!("{}", usage());
        bail!("no task is given");
    };
    if ["help", "--help", "-h"].contains(&name.as_str()) {
        eprint!("{}", usage());
        return Ok(());
    }
    match TASKS.iter().find(|task| task.name == name) {
        Some(task) => (task.run)(rest),
        None => {
            eprint!("{}", usage());
            bail!("there is no task `{name}`");
        }
    }
}

fn usage() -> String {
    let tasks = TASKS.map(|task| format!("  cargo xtask {:<10}{}\n", task.name, task.about));
    format!("Tasks:\n{}", tasks.concat())
}
