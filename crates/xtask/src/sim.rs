//! `cargo xtask sim`: the long simulation tests, or worlds under given or new seeds.

use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::Range;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::crash;
use crate::step::{self, cargo};

const LIMIT: Duration = Duration::from_secs(60 * 60);

/// The output of the last worlds under new seeds.
const LOG: &str = "target/sim.log";

/// A kind of worlds, each of which follows from a seed.
struct World {
    name: &'static str,
    package: &'static str,
    /// Test that runs the worlds of given seeds.
    test: &'static str,
    /// Worlds per run under new seeds: so many that some of them have faults.
    count: u64,
}

const WORLDS: [World; 8] = [
    World {
        name: "consensus",
        package: "telpher-cluster",
        test: "agreement::nodes_agree_in_thousands_of_worlds",
        count: 10,
    },
    World {
        name: "cluster",
        package: "telpher-sim",
        test: "cluster::topics_groups_and_producers_survive_in_thousands_of_clusters",
        count: 10,
    },
    World {
        name: "conversations",
        package: "telpher-sim",
        test: "conversations::no_message_is_lost_in_thousands_of_worlds",
        count: 40,
    },
    World {
        name: "retractions",
        package: "telpher-sim",
        test: "retractions::retractions_are_whole_in_thousands_of_worlds",
        count: 40,
    },
    World {
        name: "topics",
        package: "telpher-sim",
        test: "topics::acknowledged_records_survive_in_thousands_of_worlds",
        count: 20,
    },
    World {
        name: "http",
        package: "telpher-sim",
        test: "http::acknowledged_messages_survive_in_thousands_of_worlds",
        count: 20,
    },
    World {
        name: "durable",
        package: "telpher-sim",
        test: "durable::no_acknowledged_write_is_lost_in_thousands_of_worlds",
        count: 60,
    },
    World {
        name: "smoke",
        package: "telpher-sim",
        test: "smoke::every_call_ends_once_in_thousands_of_worlds",
        count: 100,
    },
];

/// Runs the worlds that are too many for every commit; or new seeds of all worlds for some minutes; or
/// worlds of one kind, of conversations by default. A failing seed is printed with its command.
pub(crate) fn run(args: &[String]) -> Result<()> {
    match args {
        [] => run_long(),
        [flag, minutes] if flag == "--minutes" => {
            let minutes: u64 = minutes.parse().with_context(|| format!("`{minutes}`"))?;
            run_new(Duration::from_secs(60 * minutes))
        }
        [flag, name, seeds @ ..] if flag == "--world" => {
            run_given(world(name)?, &crash::seeds("sim --world NAME", seeds)?)
        }
        seeds => run_given(world("conversations")?, &crash::seeds("sim", seeds)?),
    }
}

fn world(name: &str) -> Result<&'static World> {
    let found = WORLDS.iter().find(|it| it.name == name);
    let names = || WORLDS.map(|it| it.name).join(", ");
    found.with_context(|| format!("there is no world `{name}`\nhint: {}", names()))
}

fn run_long() -> Result<()> {
    for package in ["telpher-sim", "telpher-cluster"] {
        let words = [
            "test",
            "--release",
            "--package",
            package,
            "--test",
            "it",
            "--",
        ];
        let mut command = cargo(&words);
        let title = format!("simulation in {package}");
        step::run(&title, command.arg("--ignored"), LIMIT)?;
    }
    Ok(())
}

fn run_given(world: &World, seeds: &str) -> Result<()> {
    let title = format!("simulate `{}` under the seeds {seeds}", world.name);
    step::run(&title, command(world, seeds).arg("--nocapture"), LIMIT)
}

/// Runs worlds of all kinds in turn, under seeds that no earlier run had.
fn run_new(duration: Duration) -> Result<()> {
    let mut next = RandomState::new().build_hasher().finish() >> 24;
    let (start, mut count) = (step::now(), 0);
    loop {
        for world in &WORLDS {
            if start.elapsed() >= duration {
                eprintln!("\n   {count} worlds: ok");
                return Ok(());
            }
            let seeds = next..next + world.count;
            run_quietly(world, seeds)?;
            next += world.count;
            count += world.count;
        }
    }
}

fn run_quietly(world: &World, seeds: Range<u64>) -> Result<()> {
    eprintln!("   {} under the seeds {seeds:?}", world.name);
    let log = File::create(LOG).context(LOG)?;
    let mut command = command(world, &format!("{seeds:?}"));
    command.stdin(Stdio::null());
    command.stdout(log.try_clone()?).stderr(log);
    if step::run_bounded(&mut command, LIMIT)?.success() {
        return Ok(());
    }
    let output = std::fs::read_to_string(LOG).context(LOG)?;
    eprintln!("{output}");
    let name = world.name;
    match failed_seed(&output) {
        Some(seed) => bail!("`{name}` failed\nhint: cargo xtask sim --world {name} --seed {seed}"),
        None => bail!("`{name}` failed under one of the seeds {seeds:?}"),
    }
}

fn command(world: &World, seeds: &str) -> Command {
    let mut command = cargo(&["test", "--release", "--package", world.package]);
    command.args(["--test", "it", "--", "--ignored", "--exact", world.test]);
    command.env("TELPHER_SIM_SEEDS", seeds);
    command
}

/// Returns the seed that the output of a test names as failed.
fn failed_seed(output: &str) -> Option<u64> {
    let failed = output.lines().find(|line| line.ends_with("failed"))?;
    let (_, seed) = failed.split_once("seed ")?;
    seed.split_once(' ')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree;

    #[test]
    fn failed_seed_is_found_in_the_output() {
        let output = "running 1 test\nthread 'x' panicked:\nthe world of seed 41 failed\n";
        assert_eq!(failed_seed(output), Some(41));
        assert_eq!(failed_seed("test result: ok"), None);
    }

    #[test]
    fn every_world_is_a_test_of_its_package() {
        let crates = tree::root().unwrap().join("crates");
        for world in &WORLDS {
            let (module, test) = world.test.split_once("::").unwrap();
            let package = world.package.strip_prefix("telpher-").unwrap();
            let file = format!("{package}/tests/it/{module}.rs");
            let text = std::fs::read_to_string(crates.join(file)).unwrap();
            assert!(text.contains(&format!("fn {test}(")), "{}", world.test);
        }
        assert!(world("nothing").is_err());
    }
}
