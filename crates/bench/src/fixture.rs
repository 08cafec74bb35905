//! Made-up results for the tests of lines, tables and plots: two targets, three agent modes, three
//! call modes and a sweep. The noise is a fixed sequence, so snapshots do not change.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::measurement::{Arrivals, Measurement, Sink};
use crate::model::{
    Area, Case, CaseResult, Environment, Mode, Results, Run, SCHEMA_VERSION, Setup, Summary,
    SweepResult, SweepStep,
};
use crate::process::{HostLoad, Role, RoleUsage, Usage};
use crate::sweep::{Sweep, SweepOptions};
use meter::histogram::Histogram;

/// A fixed sequence of numbers in 0..1 (a linear congruential generator, constants of Knuth's MMIX).
pub(crate) struct Noise(u64);

impl Noise {
    pub(crate) fn next(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns a latency near `around_ns`, with a long tail to the right.
    fn latency(&mut self, around_ns: f64) -> u64 {
        let tail = self.next().max(1e-6).powf(-0.18);
        (around_ns * (0.75 + 0.15 * self.next()) * tail) as u64
    }

    fn around(&mut self, value: f64, spread: f64) -> f64 {
        value * (1.0 + spread * (self.next() + self.next() - 1.0))
    }
}

/// Behaviour of a made-up system: rate, latency and CPU share of its roles.
#[derive(Clone, Copy)]
struct System {
    rate: f64,
    spread: f64,
    latency_ns: f64,
    cpu: [f64; 3],
}

/// Returns the results. They are made once, because the histograms of a million messages take time.
pub(crate) fn results() -> Results {
    static MADE: OnceLock<Results> = OnceLock::new();
    MADE.get_or_init(make).clone()
}

fn make() -> Results {
    let mut noise = Noise(7);
    let agent =
        |target: &str, mode: Mode, rate| Case::new(target, Area::Agent, mode).size(16).rate(rate);
    let rpc = |mode: Mode, depth| {
        Case::new("telpher", Area::Rpc, mode)
            .size(128)
            .in_flight(depth)
            .parameter("transport", "tcp")
    };
    let system = |rate, latency_us: f64, cpu| System {
        rate,
        spread: 0.01,
        latency_ns: latency_us * 1e3,
        cpu,
    };
    let plan = [
        (
            agent("telpher", Mode::REQUEST_REPLY, 100),
            25,
            system(100.0, 380.0, [2.1, 1.6, 0.9]),
        ),
        (
            agent("slim", Mode::REQUEST_REPLY, 100),
            25,
            system(100.0, 920.0, [8.9, 5.7, 3.1]),
        ),
        (
            agent("telpher", Mode::FIRE_AND_FORGET, 1_000),
            25,
            system(999.5, 0.0, [6.0, 3.0, 1.2]),
        ),
        (
            agent("slim", Mode::FIRE_AND_FORGET, 1_000),
            25,
            system(974.0, 0.0, [14.5, 5.4, 2.0]),
        ),
        (
            agent("telpher", Mode::WRITE, 1_000),
            25,
            system(999.0, 0.0, [6.2, 0.0, 1.1]),
        ),
        (
            agent("slim", Mode::WRITE, 1_000),
            25,
            system(933.4, 0.0, [15.3, 0.0, 2.0]),
        ),
        (
            rpc(Mode::SERIAL, 1),
            5,
            system(41_000.0, 24.4, [48.0, 44.0, 0.0]),
        ),
        (
            rpc(Mode::CONCURRENT, 10),
            5,
            system(212_000.0, 47.0, [88.0, 71.0, 0.0]),
        ),
        (
            rpc(Mode::CALLBACK, 10),
            5,
            System {
                spread: 0.4,
                ..system(240_000.0, 41.0, [93.0, 80.0, 0.0])
            },
        ),
    ];
    let mut order = 0;
    let mut cases = Vec::new();
    for (case, repeats, system) in plan {
        let mut runs = Vec::new();
        for repeat in 1..=repeats {
            order += 1;
            let measured = measured(&case, system, &mut noise);
            assert_eq!(measured.check(), Ok(()));
            runs.push(Run::of(&case, repeat, order, measured));
        }
        cases.push(CaseResult::of(case, runs));
    }
    let mut results = Results {
        schema_version: SCHEMA_VERSION,
        name: "made-up".to_owned(),
        generated: "2026-06-26 08:01:47".to_owned(),
        environment: environment(),
        setup: Setup {
            server: Some("tcp://127.0.0.1:7400".to_owned()),
            destination: Some("bench/agents/echo".to_owned()),
            duration: Some("1s".to_owned()),
            repeats: Some(25),
            notes: vec![("Sender".to_owned(), "telpher bench-role sender".to_owned())],
        },
        cases,
        comparisons: Vec::new(),
        sweeps: vec![sweep(&mut noise)],
    };
    results.compare();
    results
}

fn measured(case: &Case, system: System, noise: &mut Noise) -> Measurement {
    let window_ns = 1_000_000_000u64;
    let rate = noise.around(system.rate, system.spread);
    let completed = rate.round() as u64;
    // A closed loop obeys Little's law; the percentiles of a large run need no more samples than this.
    let mut service = Histogram::new();
    let mut response = Histogram::new();
    if case.mode.answered {
        let around_ns = noise.around(system.latency_ns, 0.02);
        for _ in 0..completed {
            let latency_ns = noise.latency(around_ns);
            service.record(latency_ns);
            response.record(latency_ns + (noise.next() * 60_000.0) as u64);
        }
    }
    let arrivals = Arrivals {
        first_ns: 1_000,
        last_ns: 1_000 + ((completed - 1) as f64 / rate * 1e9) as u64,
    };
    let sink = matches!(case.mode.counted_by, crate::model::CountedBy::Sink).then(|| Sink {
        received: completed,
        arrivals: Some(arrivals),
        elapsed_ns: Some(2_000_000_000),
        errors: BTreeMap::new(),
    });
    let roles = [Role::Sender, Role::Responder, Role::Node];
    let roles = roles
        .into_iter()
        .zip(system.cpu)
        .filter(|(_, percent)| *percent > 0.0);
    let mut usage = |(role, percent): (Role, f64)| RoleUsage {
        role,
        name: role.name().to_owned(),
        cpu_ns: Some((noise.around(percent, 0.08) / 100.0 * window_ns as f64) as u64),
        wall_ns: window_ns,
        cpu_step_ns: 120,
        rss_bytes: Some(9 << 20),
        rss_peak_bytes: Some((11 << 20) + (noise.next() * 1e6) as u64),
    };
    let roles = roles.map(&mut usage).collect();
    let paced = case.paced() && case.mode.answered;
    Measurement {
        sent: completed,
        completed,
        window_ns,
        setup_ns: Some((noise.around(4.1, 0.2) * 1e6) as u64),
        completions: Some(arrivals),
        errors: BTreeMap::new(),
        sink,
        service: case.mode.answered.then_some(service),
        reported: None,
        response: paced.then_some(response),
        lag: None,
        usage: Some(Usage {
            roles,
            host: Some(HostLoad {
                steal_percent: 0.1,
                foreign_percent: 3.0,
            }),
        }),
        storage: None,
        memory: Vec::new(),
        answered: None,
        streamed: None,
    }
}

fn sweep(noise: &mut Noise) -> SweepResult {
    let case = Case::new("telpher", Area::Agent, Mode::FIRE_AND_FORGET)
        .size(16_384)
        .rate(8_000);
    let options = SweepOptions {
        start_rate: 8_000,
        repeats: 3,
        ..SweepOptions::default()
    };
    let mut sweep = Sweep::new(options).unwrap();
    let mut steps = Vec::new();
    while let Some(attempt) = sweep.attempt() {
        let rate = (attempt.rate as f64).min(52_000.0);
        let cpu = [40.0, 30.0, 20.0].map(|share| share * rate / 52_000.0);
        let system = System {
            rate,
            spread: 0.02,
            latency_ns: 0.0,
            cpu,
        };
        let offered = Case {
            rate: attempt.rate,
            ..case.clone()
        };
        let runs: Vec<_> = (1..=options.repeats)
            .map(|repeat| Run::of(&offered, repeat, repeat, measured(&offered, system, noise)))
            .collect();
        let summary = Summary::of(&offered, &runs);
        let observed = summary.mean(crate::model::Metric::ObservedRate).unwrap();
        let seen = sweep.observe(observed).unwrap();
        steps.push(SweepStep {
            step: attempt.step,
            phase: attempt.phase,
            rate: attempt.rate,
            gain_percent: seen.gain_percent,
            improved: seen.improved,
            summary,
            runs,
        });
    }
    SweepResult {
        case,
        options,
        steps,
        outcome: sweep.outcome(),
    }
}

fn environment() -> Environment {
    Environment {
        command: "telpher bench agent --mode request-reply --repeats 25".to_owned(),
        cpu_model: Some("Made-Up CPU @ 3.00GHz".to_owned()),
        cpu_count: Some(2),
        cpus_allowed: Some("0-1".to_owned()),
        cpu_limit: None,
        governor: None,
        kernel: Some("6.12.0".to_owned()),
        memory_bytes: Some(8 << 30),
        load_average: Some([0.10, 0.20, 0.30]),
        cpu_step_ns: 120,
        placement: Some("unpinned".to_owned()),
        versions: [("telpher".to_owned(), "0.1.0".to_owned())].into(),
        commit: None,
    }
}
