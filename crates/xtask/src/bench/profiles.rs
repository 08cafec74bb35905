//! `cargo xtask bench profiles`: where the CPU time of a node goes under the loads of the aims in
//! `docs/benchmarks.md`, from samples of `perf`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::files::{OUT, RESULTS, benchmark, capitalised};
use crate::step;

pub(super) const NAME: &str = "profiles";
pub(super) const ABOUT: &str = "where the CPU time goes under the loads of the aims, by thread, system call and function (needs perf)";

/// A load, and the process that is sampled.
struct Load {
    name: &'static str,
    about: &'static str,
    /// Arguments of `telpher bench`, separated by blanks.
    line: &'static str,
    /// The sampled processes: a word in the command line of a child, of the child's children, and so
    /// on.
    process: &'static [&'static str],
    /// The number of these processes.
    count: usize,
}

const NODE: &[&str] = &["serve"];

const LOADS: [Load; 9] = [
    Load {
        name: "bulk",
        about: "producing in bulk, on disk",
        line: "kafka --mode bulk -d 10s -w 2s --acks all --durability disk --dir target",
        process: NODE,
        count: 1,
    },
    Load {
        name: "conversations-native",
        about: "conversations over the native protocol",
        line: "store --vus 30 --pipeline 5 --ramp 2s --duration 10s --size 256 --door native --dir target",
        process: NODE,
        count: 1,
    },
    Load {
        name: "conversations-http",
        about: "conversations over HTTP",
        line: "store --vus 30 --pipeline 5 --ramp 2s --duration 10s --size 256 --door http --dir target",
        process: NODE,
        count: 1,
    },
    Load {
        name: "connections",
        about: "producing over 128 connections, one message in flight on each",
        line: "kafka --mode connections -c 128 -s 256 -d 10s -w 2s --acks all --durability disk --dir target",
        process: NODE,
        count: 1,
    },
    Load {
        name: "end-to-end",
        about: "one message at a time to a waiting consumer, on disk",
        line: "kafka --mode end-to-end -s 256 -d 10s -w 2s --acks all --durability disk --dir target",
        process: NODE,
        count: 1,
    },
    Load {
        name: "cluster",
        about: "producing to three nodes, 1,024 in flight on one connection; all nodes together",
        line: "kafka --cluster 3 --mode produce -c 1024 -s 256 --batch-size 1000000 -d 10s -w 2s --acks all --dir target",
        process: &["dev", "serve"],
        count: 3,
    },
    Load {
        name: "callbacks",
        about: "callbacks with 256 in flight on one CPU; caller and callee together",
        line: "rpc --mode callback --concurrency 256 --size 128 --placement same-cpu --duration 12s",
        process: &["bench-role"],
        count: 2,
    },
    Load {
        name: "slim",
        about: "SLIM protocol, requests of 16 B without sessions",
        line: "agent --protocol slim --slim-clients raw --mode request-reply --size 16 --rate 0 --duration 12s \
               --peers bench/peers/bin",
        process: NODE,
        count: 1,
    },
    Load {
        name: "publish",
        about: "publish to 10 subscribers",
        line: "agent --mode publish --subscribers 10 --size 16 --rate 0 --duration 12s",
        process: NODE,
        count: 1,
    },
];

/// How long samples are taken.
const RECORDED: &str = "5";

/// The CPU time in clock ticks (of 10 ms) after which a process is under load: its start costs less.
const WARM_TICKS: u64 = 150;

/// The time that a load has to begin: free memory may be filled first.
const BEGIN_LIMIT: Duration = Duration::from_secs(180);

/// The smallest parts that the tables show, in percent.
const FUNCTION_MIN: f64 = 0.8;
const CALL_MIN: f64 = 0.5;

/// The longest name of a function in a table.
const NAME_MAX: usize = 100;

/// Samples all loads, and stores their tables.
pub(super) fn run(commit: &str) -> Result<()> {
    ensure!(
        step::is_installed("perf"),
        "no perf\nhint: install the Debian package linux-perf"
    );
    let out = Path::new(OUT).join(NAME);
    fs::create_dir_all(&out)?;
    let mut page = format!(
        "# {NAME}\n\nParts of CPU time: {ABOUT}. Taken with `cargo xtask bench {NAME}`, commit \
         {commit}. A call includes all that it does in the kernel. In a virtual machine samples wait \
         until interrupts are on: the time around a sleep is counted in `finish_task_switch`. [Aims](../../../docs/benchmarks.md#aims) \
         says what follows.\n"
    );
    for load in &LOADS {
        step::heading(load.name);
        let data = out.join(load.name).with_extension("data");
        load.record(&data).context(load.name)?;
        page += &load.section(&data).context(load.name)?;
        fs::remove_file(&data)?;
    }
    let directory = Path::new(RESULTS).join(NAME);
    fs::create_dir_all(&directory)?;
    fs::write(directory.join("README.md"), page)?;
    eprintln!("   {}", directory.display());
    Ok(())
}

impl Load {
    /// Runs the load, and samples its processes in the middle.
    fn record(&self, data: &Path) -> Result<()> {
        let mut command = benchmark(self.line);
        command.args(["--repeats", "1", "--quiet", "--out", OUT]);
        let mut load = command.stdout(Stdio::null()).spawn()?;
        let recorded = self
            .wait_until_warm(&mut load)
            .and_then(|processes| record(&processes, data));
        let status = load.wait()?;
        recorded?;
        ensure!(status.success(), "the load failed ({status})");
        Ok(())
    }

    /// Returns the processes to sample, when each is under load.
    fn wait_until_warm(&self, load: &mut Child) -> Result<Vec<u32>> {
        let by = step::now() + BEGIN_LIMIT;
        while step::now() < by {
            let mut processes = vec![load.id()];
            for word in self.process {
                let found = processes
                    .iter()
                    .map(|parent| children(*parent, "telpher", word));
                processes = found.collect::<Result<Vec<_>>>()?.concat();
            }
            if processes.len() == self.count && processes.iter().all(|id| ticks(*id) >= WARM_TICKS)
            {
                return Ok(processes);
            }
            if let Some(status) = load.try_wait()? {
                bail!("the load ended before it was sampled ({status})");
            }
            thread::sleep(Duration::from_millis(50));
        }
        load.kill()?;
        bail!("no process is under load after {BEGIN_LIMIT:?}")
    }

    fn section(&self, data: &Path) -> Result<String> {
        let report = |args: &[&str]| {
            let mut command = Command::new("perf");
            command.args(["report", "--stdio", "--call-graph", "none", "--input"]);
            step::read(command.arg(data).args(args)).map(|text| parts(&text))
        };
        let threads = report(&["--no-children", "--sort", "comm"])?;
        let objects = report(&["--no-children", "--sort", "dso"])?;
        let functions = report(&["--no-children", "--sort", "symbol"])?;
        let calls = report(&["--children", "--sort", "symbol"])?;

        let kernel: f64 = objects
            .iter()
            .filter(|(name, _)| name.starts_with("[kernel"))
            .map(|(_, part)| part)
            .sum();
        let calls = calls.iter().filter_map(|(name, part)| {
            let name = name
                .strip_prefix("[k] __x64_sys_")
                .or_else(|| name.strip_prefix("[k] __arm64_sys_"))?;
            (*part >= CALL_MIN).then(|| (name.to_owned(), *part))
        });
        let functions = functions
            .into_iter()
            .filter(|(_, part)| *part >= FUNCTION_MIN);
        let mut text = format!(
            "\n## {}\n\n{}:\n\n```sh\ntelpher bench {} --repeats 1\n```\n\nKernel: {kernel:.0} % of the CPU time.\n",
            self.name,
            capitalised(self.about),
            self.line
        );
        table(
            &mut text,
            "thread",
            threads.into_iter().filter(|(_, part)| *part >= CALL_MIN),
        )?;
        table(&mut text, "system call", calls)?;
        table(&mut text, "function, without what it calls", functions)?;
        Ok(text)
    }
}

/// Samples processes.
fn record(processes: &[u32], data: &Path) -> Result<()> {
    let ids: Vec<String> = processes.iter().map(u32::to_string).collect();
    let mut command = Command::new("perf");
    command.args(["record", "--quiet", "--freq", "1999", "-g", "--pid"]);
    command.arg(ids.join(",")).arg("--output").arg(data);
    command.args(["--", "sleep", RECORDED]);
    step::read(&mut command).map(drop)
}

/// The children of a process that run a program and have a word in their command line.
fn children(process: u32, program: &str, word: &str) -> Result<Vec<u32>> {
    // Each thread has its own list. Processes and threads may end at any time.
    let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else {
        return Ok(Vec::new());
    };
    let lists = threads.flatten().map(|thread| {
        let path = thread.path().join("children");
        fs::read_to_string(path).unwrap_or_default()
    });
    let mut found = Vec::new();
    for id in lists.collect::<String>().split_whitespace() {
        let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let mut args = line.split(|byte| *byte == 0);
        let is_program = args
            .next()
            .is_some_and(|path| path.ends_with(program.as_bytes()));
        if is_program && args.any(|arg| arg == word.as_bytes()) {
            found.push(id.parse()?);
        }
    }
    Ok(found)
}

/// The CPU time of a process in clock ticks; 0 when it has ended.
fn ticks(process: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name, in parentheses, may have blanks; user and system time are fields 14 and 15.
    let Some((_, fields)) = text.rsplit_once(')') else {
        return 0;
    };
    let fields = fields.split_whitespace().skip(11).take(2);
    fields.filter_map(|field| field.parse::<u64>().ok()).sum()
}

/// Reads a report of `perf`: names with their parts in percent, without those of callees if it has
/// both.
fn parts(report: &str) -> Vec<(String, f64)> {
    let line = |line: &str| {
        let (percent, mut name) = line.trim().split_once('%')?;
        let part = percent.parse().ok()?;
        if let Some((own, rest)) = name.trim_start().split_once('%')
            && own.parse::<f64>().is_ok()
        {
            name = rest;
        }
        Some((short(name.trim()), part))
    };
    report.lines().filter_map(line).collect()
}

/// A name of a function without its hash and the columns behind it, and not longer than a table
/// allows.
fn short(name: &str) -> String {
    let name = name.split_once("  ").map_or(name, |(name, _)| name);
    let plain = match name.rsplit_once("::h") {
        Some((plain, hash)) if hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()) => {
            plain
        }
        _ => name,
    };
    match plain.char_indices().nth(NAME_MAX) {
        Some((end, _)) => format!("{}…", &plain[..end]),
        None => plain.to_owned(),
    }
}

fn table(
    text: &mut String,
    head: &str,
    rows: impl Iterator<Item = (String, f64)>,
) -> std::fmt::Result {
    write!(text, "\n| {head} | % |\n| :--- | --: |\n")?;
    for (name, part) in rows {
        writeln!(text, "| `{}` | {part:.1} |", name.replace('|', "\\|"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_read_with_and_without_those_of_callees() {
        let text = "# Overhead\n    12.30%  [k] finish_task_switch\n     1.20%  [.] a::b::h0123456789abcdef\n\n";
        let found = parts(text);
        let expected = [
            ("[k] finish_task_switch".to_owned(), 12.3),
            ("[.] a::b".to_owned(), 1.2),
        ];
        assert_eq!(found, expected);
        let text = "    40.00%     1.00%  [k] __x64_sys_sendto\n";
        assert_eq!(parts(text), [("[k] __x64_sys_sendto".to_owned(), 40.0)]);
        let text = "    40.00%  [k] __x64_sys_sendto             -      -\n";
        assert_eq!(parts(text), [("[k] __x64_sys_sendto".to_owned(), 40.0)]);
    }

    #[test]
    fn long_names_are_cut() {
        let name = "x".repeat(NAME_MAX + 1);
        assert_eq!(short(&name), format!("{}…", &name[1..]));
        assert_eq!(short("a::hello"), "a::hello");
    }

    #[test]
    fn a_table_has_a_row_for_each_part() {
        let mut text = String::new();
        table(&mut text, "call", [("read".to_owned(), 12.34)].into_iter()).unwrap();
        assert_eq!(text, "\n| call | % |\n| :--- | --: |\n| `read` | 12.3 |\n");
    }

    #[test]
    fn processes_are_found_by_a_word_of_their_command_line() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let is_found = |word: &str| {
            let found = children(std::process::id(), "sleep", word).unwrap();
            found.contains(&child.id())
        };
        // The list of children may lack one while others of the process end.
        let by_word = (0..1000).any(|_| {
            thread::sleep(Duration::from_millis(10));
            is_found("60")
        });
        let by_part = is_found("6");
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(by_word);
        assert!(!by_part);
    }
}
