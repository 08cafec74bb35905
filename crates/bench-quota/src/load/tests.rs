//! Tests of loads against a scripted server on loopback.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::super::TakeClient;
use super::super::agents::Order;
use super::*;

/// Returns the response to a request by its number, counted over all connections.
type AnswerScript = fn(u64) -> Vec<u8>;

/// Response that closes the connection.
const HANG_UP: Vec<u8> = Vec::new();

fn answer(status: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{body}").into_bytes()
}

/// Starts a server that runs until the test's process ends.
fn serve(answers: AnswerScript) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let asked = Arc::new(AtomicU64::new(0));
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, asked) = (stream.unwrap(), Arc::clone(&asked));
            thread::spawn(move || answer_requests(stream, answers, &asked));
        }
    });
    address
}

/// Answers the requests of a connection, each of which ends with its body's last brace.
fn answer_requests(mut stream: TcpStream, answers: AnswerScript, asked: &AtomicU64) -> Option<()> {
    let mut text = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let size = stream.read(&mut buffer).ok().filter(|size| *size > 0)?;
        text.extend_from_slice(&buffer[..size]);
        let ends = text.iter().filter(|byte| **byte == b'}').count();
        if ends > 0 {
            text.clear();
        }
        for _ in 0..ends {
            let bytes = answers(asked.fetch_add(1, Ordering::Relaxed));
            if bytes.is_empty() {
                return None;
            }
            stream.write_all(&bytes).ok()?;
        }
    }
}

fn spec(address: String, pace: Pace) -> LoadSpec {
    LoadSpec {
        addresses: vec![address],
        client: TakeClient::Written(Dialect::Request),
        pace,
        agents: Names {
            prefix: "t-".to_owned(),
            count: 10,
            order: Order::Random,
        },
    }
}

fn count(requests: u64, connections: u32, pipeline: u32, reuse: Reuse) -> Pace {
    Pace::Count {
        connections,
        pipeline,
        requests,
        reuse,
    }
}

fn run_load(spec: &LoadSpec) -> Result<LoadCounts, Failure> {
    let mut opened = 0;
    let asked = Load::open(spec, Dialect::Request)?.ask(|| {
        opened += 1;
        Ok(())
    })?;
    assert_eq!(opened, 1, "a window opens once");
    Ok(asked)
}

fn every_third_allowed(number: u64) -> Vec<u8> {
    match number % 3 {
        0 => answer("200 OK", "{}"),
        _ => answer("429 Too Many Requests", "{}"),
    }
}

#[test]
fn every_request_is_counted_once_for_each_connection_reuse_mode() {
    for (reuse, pipeline) in [(Reuse::Never, 1), (Reuse::Asked, 1), (Reuse::Kept, 7)] {
        let spec = spec(serve(every_third_allowed), count(300, 8, pipeline, reuse));
        let asked = run_load(&spec).unwrap();
        assert_eq!(
            (asked.answered.allowed(), asked.answered.limited()),
            (100, 200)
        );
        let run = asked.tally.over(asked.window_ns);
        assert_eq!(run.check(), Ok(()));
        assert_eq!((run.sent, run.completed, run.errors.len()), (300, 300, 0));
        let phases = asked.answered.phases.iter();
        let timed: Vec<u64> = phases.map(|phase| phase.time.count()).collect();
        match pipeline {
            1 => assert_eq!(timed, [300; 4]),
            _ => assert_eq!(timed, [0; 0]),
        }
    }
}

#[test]
fn lost_and_invalid_answers_are_failures_and_the_load_continues() {
    let answers: AnswerScript = |number| match number {
        10 => HANG_UP,
        20 => answer("503 Service Unavailable", "{}"),
        _ => answer("200 OK", "{}"),
    };
    let asked = run_load(&spec(serve(answers), count(100, 1, 1, Reuse::Kept))).unwrap();
    let run = asked.tally.over(asked.window_ns);
    assert_eq!((run.sent, run.completed), (100, 98));
    let errors: Vec<_> = run
        .errors
        .iter()
        .map(|(kind, count)| (kind.as_str(), *count))
        .collect();
    assert_eq!(errors, [("connection-lost", 1), ("status-503", 1)]);
}

#[test]
fn an_unreadable_answer_ends_the_run() {
    let answers: AnswerScript =
        |_| b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    let failure = run_load(&spec(serve(answers), count(1, 1, 1, Reuse::Kept))).unwrap_err();
    assert!(failure.to_string().contains("chunks"), "{failure}");
}

#[test]
fn a_closed_loop_counts_its_window_and_a_schedule_keeps_its_rate() {
    let closed = Pace::Closed {
        connections: 4,
        pipeline: 4,
        warmup_ns: 20_000_000,
        window_ns: 100_000_000,
    };
    let asked_closed = run_load(&spec(serve(every_third_allowed), closed)).unwrap();
    assert!(asked_closed.window_ns >= 100_000_000);
    let run = asked_closed.tally.over(asked_closed.window_ns);
    assert_eq!(run.check(), Ok(()));
    assert!(run.completed > 0 && run.response.is_none());
    let scheduled = Pace::Scheduled {
        connections: 4,
        rate: 1_000,
        warmup_ns: 20_000_000,
        window_ns: 200_000_000,
    };
    let asked_scheduled = run_load(&spec(serve(every_third_allowed), scheduled)).unwrap();
    let run = asked_scheduled.tally.over(asked_scheduled.window_ns);
    assert_eq!((run.sent, run.completed), (200, 200));
    assert_eq!(run.check(), Ok(()));
    assert!(run.response.is_some() && run.lag.is_some());
}

#[test]
fn virtual_user_sends_every_step_and_its_answers_are_checked() {
    // Each step but one is a GET; the server waits for a brace, so only that one is sent here.
    let users = Pace::Users {
        vus: 3,
        steps: vec![Step::Request],
        think_ns: 1_000_000,
        window_ns: 50_000_000,
    };
    let answers: AnswerScript = |number| match number {
        0 => answer("200 OK", "no json"),
        _ => answer("200 OK", "{}"),
    };
    let asked = run_load(&spec(serve(answers), users)).unwrap();
    let allowed = asked.answered.allowed();
    assert!(allowed >= 3, "each user asks at least once: {allowed}");
    assert_eq!(asked.answered.checks, 2 * allowed);
    assert_eq!(asked.answered.checks_held, asked.answered.checks - 1);
}
