//! Short benchmarks: their output, their files and their failures.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{Ended, Place, eventually};

/// The keys of the progress lines, in the order of the SLIM report.
const KEYS: [&str; 13] = [
    "mode",
    "clients",
    "size",
    "rate",
    "repeat",
    "sender_mps",
    "observed_mps",
    "sink_mps",
    "sink_active_mps",
    "sender_errors",
    "sink_errors",
    "node_cpu",
    "total_cpu",
];

const LATENCIES: [&str; 3] = ["mean_latency_ms", "p50_latency_ms", "p99_latency_ms"];

/// Returns a directory with the system's `PATH`, for `taskset` and others.
fn place() -> Place {
    Place::new().with_variable("PATH", &std::env::var("PATH").unwrap())
}

/// Runs a benchmark to its end and returns its results.
#[track_caller]
fn results(place: &Place, line: &str) -> (Ended, Value) {
    let ended = place.run(&format!("bench {line} --json --quiet"));
    ended.expect(0);
    let json = ended.json();
    (ended, json)
}

/// Returns the progress lines with a name.
fn lines<'a>(ended: &'a Ended, name: &str) -> Vec<&'a str> {
    let start = format!("{name} ");
    let lines = ended.stderr.lines();
    lines.filter(|line| line.starts_with(&start)).collect()
}

fn keys(line: &str) -> Vec<&str> {
    let pairs = line.split_whitespace().skip(1);
    pairs.map(|pair| pair.split_once('=').unwrap().0).collect()
}

fn cases(results: &Value) -> Vec<&Value> {
    results["cases"].as_array().unwrap().iter().collect()
}

/// Returns the mean of a metric over the runs of a case.
#[track_caller]
fn mean(case: &Value, metric: &str) -> f64 {
    let mean = case["summary"]["metrics"][metric]["mean"].as_f64();
    mean.unwrap_or_else(|| panic!("{metric} is missing: {}", case["summary"]))
}

/// Returns the directory of the results.
fn results_directory(place: &Place) -> PathBuf {
    let mut entries = fs::read_dir(place.path("bench-out")).unwrap();
    let first = entries.next().unwrap().unwrap().path();
    assert!(entries.next().is_none());
    first
}

#[test]
fn a_benchmark_prints_progress_lines_and_writes_every_file() {
    let place = place();
    let (ended, results) = results(&place, "agent --repeats 2 --duration 200ms");
    let runs = lines(&ended, "BENCHMARK_RESULT");
    assert_eq!(runs.len(), 6, "{}", ended.stderr);
    for line in &runs {
        let answered = line.contains("mode=request-reply");
        let latencies = LATENCIES.iter().filter(|_| answered);
        let expected: Vec<_> = KEYS.iter().chain(latencies).copied().collect();
        assert_eq!(keys(line)[..expected.len()], expected, "{line}");
        assert!(line.contains(" sender_errors=0 "), "{line}");
    }
    let summaries = lines(&ended, "MODE_SUMMARY");
    assert_eq!(summaries.len(), 3);
    assert!(
        summaries
            .iter()
            .all(|line| line.contains(" total_errors=0 "))
    );
    for (case, (mode, count)) in cases(&results).iter().zip([
        ("request-reply", 20.0),
        ("fire-and-forget", 200.0),
        ("write", 200.0),
    ]) {
        assert_eq!(case["case"]["mode"]["name"], mode);
        assert_eq!(mean(case, "sender_total_messages"), count, "{mode}");
        assert_eq!(mean(case, "observed_messages"), count, "{mode}");
        assert!(mean(case, "node_cpu_us_per_message") > 0.0, "{mode}");
    }
    let directory = results_directory(&place);
    for file in [
        "results.json",
        "results.tsv",
        "suite_summary.md",
        "technical_report.md",
        "report.html",
        "env.json",
        "plots",
        "hdr",
    ] {
        assert!(directory.join(file).exists(), "{file} is missing");
    }
    reports_can_be_written_again(&place, &directory.join("results.json"));
}

fn reports_can_be_written_again(place: &Place, file: &Path) {
    let file = file.display();
    let slim = place.run(&format!("bench report {file} --style slim"));
    assert!(slim.expect(0).stdout.contains("## Technical Report"));
    let page = place.run(&format!("bench report {file} --style markdown"));
    assert!(page.expect(0).stdout.contains("- Version of telpher: "));
    let same = place.run(&format!("bench compare {file} {file} --fail-if p99>+10%"));
    assert!(same.expect(0).stdout.contains("pass "), "{}", same.stdout);
}

#[test]
fn bench_runs_every_combination_of_clients_and_sizes() {
    let line = "agent --mode fire-and-forget --clients 1,2 --size 16,64 --oneway-rate 400 \
                --duration 100ms --repeats 1";
    let (_, results) = results(&place(), line);
    let shapes: Vec<_> = cases(&results)
        .iter()
        .map(|case| {
            assert_eq!(mean(case, "sink_received_messages"), 40.0);
            let shape = |key: &str| case["case"][key].as_u64().unwrap();
            (shape("clients"), shape("size"))
        })
        .collect();
    assert_eq!(shapes, [(1, 16), (1, 64), (2, 16), (2, 64)]);
}

#[test]
fn without_a_rate_every_mode_is_unpaced() {
    let line = "agent --mode request-reply,fire-and-forget,write,publish --rate 0 --in-flight 4 \
                --subscribers 3 --duration 150ms --repeats 1 --clients 2";
    let (_, results) = results(&place(), line);
    let cases = cases(&results);
    assert_eq!(cases.len(), 4);
    for case in &cases {
        assert!(mean(case, "sender_total_messages") > 100.0, "{case}");
    }
    // Messages are either received or lost by a full subscriber; none is counted twice or not at
    // all.
    let lost = cases[3]["summary"]["errors"]["sink.lost"].as_f64();
    let copies = mean(cases[3], "sink_received_messages") + lost.unwrap_or_default();
    assert_eq!(copies, 3.0 * mean(cases[3], "sender_total_messages"));
}

#[test]
fn a_sweep_prints_its_steps_and_its_result() {
    let line = "agent --mode write --sweep --sweep-start-rate 200 --sweep-max-rate 800 \
                --duration 100ms --quiet";
    let ended = place().run(&format!("bench {line}"));
    ended.expect(0);
    let steps = lines(&ended, "CAPACITY_SWEEP_STEP");
    assert!(steps.len() >= 3, "{}", ended.stderr);
    assert!(
        steps[0].contains(" phase=coarse step=1 rate=200 "),
        "{}",
        steps[0]
    );
    let found = lines(&ended, "CAPACITY_CASE_SUMMARY");
    assert_eq!(found.len(), 1);
    assert!(ended.stdout.contains("capacity"), "{}", ended.stdout);
}

#[test]
fn bench_rpc_measures_every_mode_over_every_transport() {
    let line = "rpc --mode serial,blocking,concurrent,callback --transport tcp,unix,inproc \
                --requests 100 --repeats 2";
    let place = place();
    let (ended, results) = results(&place, line);
    // Four modes; a blocking caller cannot share its callee's thread.
    assert_eq!(cases(&results).len(), 11);
    for case in cases(&results) {
        assert_eq!(mean(case, "sender_total_messages"), 100.0);
        assert_eq!(mean(case, "sender_errors"), 0.0);
        let flags = case["summary"]["flags"].to_string();
        assert!(flags.contains("too-short"), "{flags}");
    }
    assert_eq!(lines(&ended, "BENCHMARK_RESULT").len(), 22);
    let file = results_directory(&place).join("results.json");
    let report = place.run(&format!("bench report {} --style uvrpc", file.display()));
    for expected in [
        "## Test Results (2 Runs)",
        "Concurrent Await",
        "Speedup vs Serial",
    ] {
        assert!(report.stdout.contains(expected), "{}", report.stdout);
    }
}

#[test]
fn calls_go_through_a_node_too() {
    let line = "rpc --via direct,node --mode serial,callback --concurrency 32 --size 16 \
                --duration 100ms --repeats 1 --placement same-cpu";
    let (_, results) = results(&place(), line);
    let node_cpu = |case: &&Value| case["summary"]["metrics"]["node_cpu_seconds"].is_object();
    let through_node: Vec<_> = cases(&results).iter().map(node_cpu).collect();
    assert_eq!(through_node, [false, false, true, true]);
    assert_eq!(
        results["environment"]["placement"],
        "same-cpu: all roles on CPU 0"
    );
}

/// A program with the interface of the peers, which reports 1000 measured calls.
const PEER: &str = r#"#!/bin/sh
[ "$1" = echo ] && shift
if [ "$1" = serve ]; then
    echo READY 127.0.0.1:1
    exec cat
fi
echo "$@" >> loads
[ -e broken ] && { echo "peer: out of order" >&2; exit 1; }
sleep 0.5
echo '{"program":"peer","mode":"serial","in_flight":1,"size":128,"connections":1,"completed":1000,
"errors":0,"window_ns":200000000,"cpu_ns":90000000,"latency":{"count":1000,"mean_ns":200000.5,
"min_ns":100000,"p50_ns":190000,"p90_ns":250000,"p99_ns":400000,"p999_ns":500000,"max_ns":600000},
"received":0,"notes":"pretends"}' | tr -d '\n'
echo
"#;

#[test]
fn peers_are_compared_by_rate_and_latency() {
    use std::os::unix::fs::PermissionsExt;
    let place = place();
    for name in ["floors", "peer-zmq", "peer-tarpc", "peer-tonic"] {
        place.write(name, PEER);
        let executable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(place.path(name), executable).unwrap();
    }
    let line = "rpc --peers . --mode serial,blocking --duration 200ms --repeats 2";
    let (_, found) = results(&place, line);
    let targets: Vec<_> = cases(&found)
        .iter()
        .map(|case| case["case"]["target"].as_str().unwrap())
        .collect();
    // The peers have no mode with this name, so it is compared with their serial mode.
    assert_eq!(
        targets,
        ["telpher", "floor", "zmq", "tarpc", "tonic", "telpher"]
    );
    let floor = cases(&found)[1];
    assert_eq!(mean(floor, "observed_mps"), 5000.0);
    assert_eq!(mean(floor, "p50_latency_ms"), 0.19);
    assert!(floor["summary"]["metrics"]["p95_latency_ms"].is_null());
    assert!(
        (mean(floor, "total_cpu_us_per_message") - 90.0).abs() < 20.0,
        "{floor}"
    );
    let compared = |subject: &str, metric: &str| {
        let comparisons = found["comparisons"].as_array().unwrap().iter();
        let of = |one: &&Value, key: &str, text: &str| one[key].as_str().unwrap().contains(text);
        let chosen = comparisons.filter(|one| of(one, "subject", subject));
        chosen
            .filter(|one| one["metric"] == metric && of(one, "baseline", "-serial-"))
            .count()
    };
    assert_eq!(compared("telpher-rpc-serial", "p50_latency_ms"), 4);
    assert_eq!(compared("telpher-rpc-blocking", "p50_latency_ms"), 4);
    let loads = fs::read_to_string(place.path("loads")).unwrap();
    assert!(
        loads.contains("--mode serial --in-flight 1 --size 128"),
        "{loads}"
    );

    place.write("broken", "");
    let ended = place.run(&format!("bench {line}"));
    ended
        .expect(1)
        .shows_error("has ended: peer: out of order", "run the benchmark again");
}

#[test]
fn a_node_that_dies_is_an_error_and_no_result() {
    let place = place();
    let line = "bench agent --mode request-reply --rate 200 --duration 40s --repeats 1 --quiet";
    let bench = place.start(line.split_whitespace());
    let mut node = None;
    eventually("the node runs and the sender sends", || {
        let running = processes_in(&place);
        let pid_of = |word: &str| {
            let mut running = running.iter();
            running.find(|one| one.1.contains(word)).map(|one| one.0)
        };
        node = pid_of(" serve ");
        node.is_some() && pid_of("agent-sender").is_some_and(|sender| sleeps_taken(sender) > 50)
    });
    let node = rustix::process::Pid::from_raw(node.unwrap()).unwrap();
    rustix::process::kill_process(node, rustix::process::Signal::KILL).unwrap();
    let ended = bench.end();
    ended.expect(1).shows_error(
        "telpher has ended",
        "run the benchmark again, with less load",
    );
    assert!(ended.stdout.is_empty(), "{}", ended.stdout);
    assert!(!results_directory(&place).join("results.json").exists());
}

/// Returns the number of voluntary context switches of a process; a paced sender has one per
/// message.
fn sleeps_taken(pid: i32) -> u64 {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return 0;
    };
    let statuses = threads.filter_map(|thread| {
        let status = fs::read_to_string(thread.ok()?.path().join("status")).ok()?;
        let mut lines = status.lines();
        let switches = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        switches?.trim().parse::<u64>().ok()
    });
    statuses.sum()
}

/// Returns the processes that run in a directory, with their command lines.
fn processes_in(place: &Place) -> Vec<(i32, String)> {
    let directory = place.path("").canonicalize().unwrap();
    let is_there = |pid: &i32| {
        let current = fs::read_link(format!("/proc/{pid}/cwd"));
        current.is_ok_and(|current| current == directory)
    };
    let entries = fs::read_dir("/proc").unwrap();
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(is_there)
        .map(|pid| {
            let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            (pid, line.replace('\0', " "))
        })
        .collect()
}

#[test]
fn invalid_benchmarks_fail_with_a_hint() {
    let place = place();
    let run = |line: &str| place.run(&format!("bench {line}"));
    run("rpc --via node --transport inproc")
        .expect(1)
        .shows_error("nothing to run", "add --transport tcp");
    run("rpc --peers nowhere")
        .expect(1)
        .shows_error("floors is not in nowhere", "cargo xtask peers");
    run("agent --sweep --sweep-growth 0.5")
        .expect(1)
        .shows_error("growth must be at least 1", "explains the options");
    run("rpc --requests 0").expect(2);
    run("report missing.json")
        .expect(3)
        .shows_error("cannot read missing.json", "results.json");
    place.write("empty.json", "{}");
    run("compare empty.json empty.json")
        .expect(2)
        .shows_error("empty.json: not the results of a benchmark", "bench-out");
    place.write("file", "");
    run("agent --out file --repeats 1")
        .expect(1)
        .shows_error("cannot write", "--out");
}

#[test]
fn strict_fails_on_flagged_figures() {
    let line = "bench rpc --mode serial --requests 10 --repeats 1 --strict --quiet";
    let ended = place().run(line);
    ended
        .expect(1)
        .shows_error("flagged", "run without --strict");
    assert!(ended.stdout.contains("serial"), "the tables come first");
}

#[test]
fn growth_measures_every_dimension_and_draws_the_curves() {
    let place = place();
    let line =
        "growth --max 10 --log-max 2 --log-unit 4000000 --duration 50ms --repeats 2 --rest 0s";
    let (_, found) = results(&place, line);
    let curves = found["curves"].as_array().unwrap();
    let names: Vec<_> = curves
        .iter()
        .map(|one| one["of"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "connections",
            "topics",
            "groups",
            "mailboxes",
            "conversations",
            "buckets"
        ]
    );
    for curve in curves {
        let points = curve["points"].as_array().unwrap();
        let items: Vec<_> = points
            .iter()
            .map(|one| one["items"].as_u64().unwrap())
            .collect();
        assert_eq!(items, [1, 10], "{curve:#}");
        for point in points {
            assert_eq!(point["cpu_us"].as_array().unwrap().len(), 2, "{point:#}");
            assert!(point["rates"][1].as_f64().unwrap() > 0.0, "{point:#}");
        }
    }
    let log: Vec<_> = found["log"].as_array().unwrap().iter().collect();
    assert_eq!(log.len(), 2, "{found:#}");
    for point in log {
        for figure in [
            "cpu_us",
            "start_ms",
            "read_begin_ms",
            "read_end_ms",
            "disk_bytes",
        ] {
            assert!(point[figure].as_f64().unwrap() > 0.0, "{point:#}");
        }
    }
    assert_eq!(found["left_out"].as_array().unwrap().len(), 0, "{found:#}");
    let made = results_directory(&place);
    for file in [
        "results.json",
        "tables.md",
        "growth-cpu.svg",
        "growth-log.svg",
    ] {
        assert!(made.join(file).is_file(), "{file}");
    }
}

#[test]
fn growth_leaves_out_steps_beyond_its_limits_with_the_reason() {
    let place = place();
    let line = "growth --of topics,log --max 10 --log-max 1000 --rest 0s --limit 0s";
    let (_, found) = results(&place, line);
    let left_out = found["left_out"].as_array().unwrap();
    let reasons: Vec<_> = left_out
        .iter()
        .map(|one| one["reason"].as_str().unwrap())
        .collect();
    assert_eq!(reasons[0], "starting a node did not fit into 0ns (--limit)");
    assert_eq!(reasons[1], "the step before it was left out");
    // Two steps of topics, and 1, 2, 5, 10, 20 and 1,000 GB.
    assert_eq!(reasons.len(), 8, "{found:#}");
}
