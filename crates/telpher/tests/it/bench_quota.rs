//! `telpher bench quota` in short runs against a limiter of the test: it counts answers, and fails
//! if a bucket allows too much. Every variant also runs once against nodes.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use ::bench::measurement::{Answers, Endpoint};
use ::bench::model::Results;

use crate::support::{Ended, Place};

/// Starts a limiter that allows a number of takes; returns its address.
fn limiter(takes: u64) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let left = Arc::new(AtomicU64::new(takes));
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, left) = (stream.unwrap(), Arc::clone(&left));
            thread::spawn(move || answer_requests(stream, &left));
        }
    });
    url
}

/// Answers the requests of a connection.
fn answer_requests(mut stream: TcpStream, left: &AtomicU64) -> Option<()> {
    let mut text = String::new();
    let mut buffer = [0; 4096];
    loop {
        let size = stream.read(&mut buffer).ok().filter(|size| *size > 0)?;
        text += std::str::from_utf8(&buffer[..size]).ok()?;
        let is_take = text.starts_with("POST /api/request ");
        let is_whole = match is_take {
            true => text.ends_with('}'),
            false => text.ends_with("\r\n\r\n"),
        };
        if !is_whole {
            continue;
        }
        let one_less = |left: u64| left.checked_sub(1);
        let took = || left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less);
        let status = match !is_take || took().is_ok() {
            true => "200 OK",
            false => "429 Too Many Requests",
        };
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: 15\r\nConnection: keep-alive");
        let answer = format!("{head}\r\n\r\n{{\"remaining\":1}}");
        stream.write_all(answer.as_bytes()).ok()?;
        text.clear();
    }
}

fn run(place: &Place, url: &str, line: &str) -> Ended {
    place.run(&format!("bench quota --url {url} {line} --json --quiet"))
}

/// Returns the answers of the first run of each case.
fn answers(ended: &Ended) -> Vec<Answers> {
    let results = Results::from_bytes(ended.stdout.as_bytes()).unwrap();
    let first = |case: &::bench::model::CaseResult| {
        let measured = case.runs[0].measured.as_ref().unwrap();
        measured.answered.clone().unwrap()
    };
    results.cases.iter().map(first).collect()
}

#[test]
fn a_bucket_that_allows_too_much_fails_the_run() {
    let place = Place::new();
    let line = "--agents 1 -n 80 -c 8 --warmup 0s --keep-alive on";
    let ended = run(&place, &limiter(80), line);
    let answered = &answers(ended.expect(0))[0];
    assert_eq!((answered.must_allow, answered.allowed()), (Some(80), 80));
    assert_eq!(answered.phases.len(), 4);

    // Takes above the capacity are denied, and a bucket with too little capacity is detected.
    let ended = run(&place, &limiter(40), line);
    ended.expect(1).shows_error(
        "the check of the results failed",
        "telpher bench quota --help",
    );
    let miss = "40 takes were allowed in run 1, expected 80 ± 1";
    assert!(ended.stderr.contains(miss), "{}", ended.stderr);
    let answered = &answers(&ended)[0];
    assert_eq!((answered.allowed(), answered.limited()), (40, 40));
}

#[test]
fn virtual_users_send_every_kind_of_request() {
    let place = Place::new();
    let line = "--vus 3 --agents 10 --think 10ms --duration 300ms --warmup 0s";
    let ended = run(&place, &limiter(2), line);
    let answered = &answers(ended.expect(0))[0];
    let names: Vec<_> = answered.endpoints.iter().map(|one| &*one.name).collect();
    assert_eq!(
        names,
        [
            "/health",
            "/api/request",
            "/api/quota",
            "/api/test-rate-limit"
        ]
    );
    let count = |one: &Endpoint| one.allowed.count() + one.limited.count();
    let turns = count(&answered.endpoints[0]);
    assert!(turns >= 3 && answered.endpoints.iter().all(|one| count(one) == turns));
    assert_eq!(answered.endpoints[1].allowed.count(), 2);
    assert_eq!(
        (answered.checks, answered.checks_held),
        (6 * turns, 6 * turns)
    );
    let out = place.path("bench-out").read_dir().unwrap().next();
    let report = out.unwrap().unwrap().path().join("quota_report.md");
    let report = std::fs::read_to_string(report).unwrap();
    assert!(
        report.contains("| as published |") && report.contains("| url, agents 10 |"),
        "{report}"
    );
}

#[test]
fn scheduled_and_closed_loads_are_separate_cases() {
    let place = Place::new();
    let url = limiter(u64::MAX);
    let ended = run(&place, &url, "--rate 200 -c 4 --warmup 0s --duration 500ms");
    assert_eq!(answers(ended.expect(0))[0].allowed(), 100);
    let results = Results::from_bytes(ended.stdout.as_bytes()).unwrap();
    assert!(results.cases[0].summary.pooled.response.is_some());
    let ended = run(
        &place,
        &url,
        "--agents 10,1 -c 4 --warmup 0s --duration 200ms",
    );
    assert_eq!(answers(ended.expect(0)).len(), 2);
    let results = Results::from_bytes(ended.stdout.as_bytes()).unwrap();
    assert!(results.cases[0].summary.pooled.response.is_none());

    let refused = run(&place, "http://127.0.0.1:1", "--duration 200ms");
    refused.expect(1).shows_error("cannot", "benchmark");
}

/// Runs the benchmark against nodes that it starts, and returns its results.
fn run_nodes(line: &str) -> Results {
    let place = Place::new();
    let ended = place.run(&format!("bench quota {line} --json --quiet"));
    let results = Results::from_bytes(ended.expect(0).stdout.as_bytes()).unwrap();
    for case in &results.cases {
        let run = &case.runs[0];
        let answered = run.measured.as_ref().unwrap().answered.as_ref().unwrap();
        assert!(answered.allowed() > 0, "{}", case.case.key());
        assert_eq!(run.error_count(), 0, "{}", case.case.key());
    }
    results
}

fn keys(results: &Results) -> Vec<String> {
    let keys = results.cases.iter().map(|case| case.case.key());
    keys.collect()
}

#[test]
fn takes_are_measured_over_both_protocols_and_in_batches() {
    let results = run_nodes(
        "--agents 20 -c 2 --pipeline 1,4 --batch 8 --limits 1,6 --door http,native --warmup 20ms --duration 100ms",
    );
    let ends = [
        "f1-agents=20",
        "f4-agents=20",
        "f1-agents=20-batch=8",
        "f1-agents=20-batch=8-limits=6",
        "f1-agents=20-door=native",
        "f4-agents=20-door=native",
        "f1-agents=20-batch=8-door=native",
        "f1-agents=20-batch=8-door=native-limits=6",
    ];
    let wanted = ends.map(|end| format!("telpher-quota-take-c2-s17-r0-{end}"));
    assert_eq!(keys(&results), wanted);
    assert!(!results.comparisons.is_empty());
}

#[test]
fn a_node_passes_the_tests_of_the_report_and_keeps_a_schedule() {
    let results = run_nodes("--agents 1 -n 300 -c 4 --warmup 20ms --keep-alive off,on");
    assert_eq!(results.cases.len(), 2);
    let results = run_nodes("--vus 3 --agents 10 --think 10ms --warmup 20ms --duration 200ms");
    assert_eq!(results.cases.len(), 1);
    let results = run_nodes("--agents 10 --rate 200 -c 4 --warmup 20ms --duration 200ms");
    assert_eq!(results.cases[0].runs[0].measured.as_ref().unwrap().sent, 40);
}

#[test]
fn memory_per_bucket_is_measured() {
    let place = Place::new();
    let ended = place.run("bench quota --memory 500 --memory-rest 1s --json --quiet");
    let found = ended.expect(0).json();
    let server = &found["servers"][0];
    assert_eq!(
        (&server["agents"], &server["wrong"]),
        (&500.into(), &0.into())
    );
}

#[test]
fn nodes_that_share_a_redis_admit_the_shared_limit() {
    let results = run_nodes(
        "--store redis --nodes 2 --agents 1,1000 -c 4 --pipeline 4 --batch 8 --door http,native --warmup 20ms \
         --duration 100ms",
    );
    let may_allow = |case: &::bench::model::CaseResult| {
        let measured = case.runs[0].measured.as_ref().unwrap();
        measured.answered.as_ref().unwrap().may_allow
    };
    let bounds: Vec<u64> = results.cases.iter().filter_map(may_allow).collect();
    // Takes of one agent, over each protocol.
    assert_eq!((results.cases.len(), bounds.len()), (12, 2));
    assert!(bounds.iter().all(|bound| *bound >= 11_000), "{bounds:?}");
}
