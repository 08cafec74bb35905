use crate::model::{Metric, Metrics, Mode};
use crate::process::{HostLoad, Role, RoleUsage};

use super::*;

fn histogram(values_ns: &[u64]) -> Histogram {
    let mut histogram = Histogram::new();
    values_ns.iter().for_each(|ns| histogram.record(*ns));
    histogram
}

fn usage(role: Role, cpu_ns: Option<u64>) -> RoleUsage {
    RoleUsage {
        role,
        name: role.name().into(),
        cpu_ns,
        wall_ns: 1_000_000_000,
        cpu_step_ns: 1,
        rss_bytes: Some(1 << 20),
        rss_peak_bytes: Some(2 << 20),
    }
}

fn paced_run() -> Measurement {
    Measurement {
        sent: 100,
        completed: 100,
        window_ns: 1_000_000_000,
        setup_ns: Some(4_100_000),
        sink: Some(Sink {
            received: 100,
            arrivals: Some(Arrivals {
                first_ns: 5,
                last_ns: 990_000_005,
            }),
            elapsed_ns: Some(2_000_000_000),
            errors: BTreeMap::new(),
        }),
        ..Measurement::default()
    }
}

#[track_caller]
fn assert_metric(metrics: &Metrics, metric: Metric, expected: f64) {
    let actual = metrics
        .get(metric)
        .unwrap_or_else(|| panic!("{} is absent", metric.key()));
    assert!(
        (actual - expected).abs() < 1e-9 * expected.abs().max(1.0),
        "{actual} != {expected}"
    );
}

#[test]
fn the_steady_rate_divides_by_n_minus_1_intervals() {
    let metrics = paced_run().metrics(&Mode::REQUEST_REPLY);
    assert_metric(&metrics, Metric::SenderRate, 100.0);
    assert_metric(&metrics, Metric::ObservedRate, 100.0 / 0.99);
    assert_metric(&metrics, Metric::SteadyRate, 100.0);
    assert_metric(&metrics, Metric::SinkRate, 50.0);
    assert_metric(&metrics, Metric::Setup, 4.1);
}

#[test]
fn a_mode_counted_by_the_sender_observes_the_senders_rate() {
    let run = Measurement {
        sink: None,
        completions: Some(Arrivals {
            first_ns: 0,
            last_ns: 495_000_000,
        }),
        ..paced_run()
    };
    let metrics = run.metrics(&Mode::WRITE);
    assert_metric(&metrics, Metric::ObservedRate, 100.0);
    assert_metric(&metrics, Metric::SteadyRate, 200.0);
    assert_eq!(metrics.get(Metric::SinkRate), None);
    assert_eq!(metrics.get(Metric::SinkErrors), None);
}

#[test]
fn a_figure_that_was_not_measured_is_absent() {
    let run = Measurement {
        sent: 1,
        completed: 1,
        window_ns: 1,
        ..Measurement::default()
    };
    let metrics = run.metrics(&Mode::FIRE_AND_FORGET);
    for metric in [
        Metric::ObservedRate,
        Metric::SteadyRate,
        Metric::LatencyP99,
        Metric::ResponseP99,
        Metric::NodeCpu,
        Metric::TotalCpu,
        Metric::NodeCpuPerMessage,
        Metric::Setup,
        Metric::HostSteal,
    ] {
        assert_eq!(metrics.get(metric), None, "{}", metric.key());
    }
}

#[test]
fn a_single_arrival_has_no_rate() {
    let sink = Sink {
        received: 1,
        arrivals: Some(Arrivals {
            first_ns: 7,
            last_ns: 7,
        }),
        ..Sink::default()
    };
    let run = Measurement {
        sink: Some(sink),
        ..paced_run()
    };
    assert_eq!(
        run.metrics(&Mode::FIRE_AND_FORGET)
            .get(Metric::ObservedRate),
        None
    );
}

#[test]
fn cpu_is_summed_by_role_and_divided_by_messages() {
    let mut run = paced_run();
    run.usage = Some(Usage {
        roles: vec![
            usage(Role::Sender, Some(100_000_000)),
            usage(Role::Responder, Some(50_000_000)),
            usage(Role::Node, Some(20_000_000)),
            usage(Role::Node, Some(10_000_000)),
        ],
        host: Some(HostLoad {
            steal_percent: 1.0,
            foreign_percent: 2.0,
        }),
    });
    let metrics = run.metrics(&Mode::REQUEST_REPLY);
    assert_metric(&metrics, Metric::SenderCpu, 10.0);
    assert_metric(&metrics, Metric::NodeCpu, 3.0);
    assert_metric(&metrics, Metric::TotalCpu, 18.0);
    assert_metric(&metrics, Metric::NodeCpuPerMessage, 300.0);
    assert_metric(&metrics, Metric::TotalCpuPerMessage, 1_800.0);
    assert_metric(&metrics, Metric::NodeRssPeak, (4 << 20) as f64);
    assert_metric(&metrics, Metric::HostForeign, 2.0);
}

#[test]
fn a_process_without_a_figure_leaves_no_total() {
    let mut run = paced_run();
    let roles = vec![usage(Role::Sender, Some(1)), usage(Role::Node, None)];
    run.usage = Some(Usage { roles, host: None });
    let metrics = run.metrics(&Mode::REQUEST_REPLY);
    assert!(metrics.get(Metric::SenderCpu).is_some());
    assert_eq!(metrics.get(Metric::NodeCpu), None);
    assert_eq!(metrics.get(Metric::TotalCpu), None);
    assert_eq!(metrics.get(Metric::ResponderCpu), None);
}

#[test]
fn latencies_are_milliseconds_of_the_histogram() {
    let mut run = Measurement {
        sent: 2,
        completed: 2,
        ..paced_run()
    };
    run.service = Some(histogram(&[1_000_000, 3_000_000]));
    run.response = Some(histogram(&[2_000_000, 30_000_000]));
    let metrics = run.metrics(&Mode::REQUEST_REPLY);
    assert!((metrics.get(Metric::LatencyMean).unwrap() - 2.0).abs() < 0.01);
    assert!((metrics.get(Metric::LatencyP99).unwrap() - 3.0).abs() < 0.01);
    assert!((metrics.get(Metric::ResponseMax).unwrap() - 30.0).abs() < 0.1);
}

#[test]
fn a_measurement_that_contradicts_itself_is_refused() {
    let good = paced_run();
    assert_eq!(good.check(), Ok(()));
    let run = Measurement {
        window_ns: 0,
        ..good.clone()
    };
    assert_eq!(run.check(), Err(MeasurementError::NoWindow));
    let run = Measurement {
        sent: 99,
        ..good.clone()
    };
    assert_eq!(
        run.check(),
        Err(MeasurementError::MoreCompleted {
            sent: 99,
            completed: 100
        })
    );
    let run = Measurement {
        service: Some(histogram(&[1; 98])),
        ..good
    };
    assert_eq!(
        run.check(),
        Err(MeasurementError::SamplesDiffer {
            recorded: 98,
            completed: 100
        })
    );
}

fn reported(count: u64) -> ReportedLatency {
    ReportedLatency {
        count,
        mean_ns: Some(2e6),
        min_ns: 1_000_000,
        p50_ns: 1_900_000,
        p90_ns: 2_500_000,
        p99_ns: 3_000_000,
        p999_ns: Some(4_000_000),
        max_ns: 5_000_000,
    }
}

#[test]
fn a_reported_latency_gives_only_its_own_figures() {
    let run = Measurement {
        reported: Some(reported(100)),
        ..paced_run()
    };
    assert_eq!(run.check(), Ok(()));
    let metrics = run.metrics(&Mode::SERIAL);
    assert_metric(&metrics, Metric::LatencyMean, 2.0);
    assert_metric(&metrics, Metric::LatencyP99, 3.0);
    assert_metric(&metrics, Metric::LatencyMax, 5.0);
    assert_eq!(metrics.get(Metric::LatencyP95), None);
    assert_eq!(metrics.get(Metric::ResponseP50), None);
}

#[test]
fn figures_missing_in_a_reported_latency_are_absent() {
    let run = Measurement {
        reported: Some(ReportedLatency {
            mean_ns: None,
            p999_ns: None,
            ..reported(100)
        }),
        ..paced_run()
    };
    let metrics = run.metrics(&Mode::SERIAL);
    assert_metric(&metrics, Metric::LatencyP99, 3.0);
    assert_eq!(metrics.get(Metric::LatencyMean), None);
    assert_eq!(metrics.get(Metric::LatencyP999), None);
}

#[test]
fn a_reported_latency_of_another_number_of_messages_is_refused() {
    let run = |reported| Measurement {
        reported: Some(reported),
        ..paced_run()
    };
    let differ = MeasurementError::SamplesDiffer {
        recorded: 99,
        completed: 100,
    };
    assert_eq!(run(reported(99)).check(), Err(differ));
    let both = Measurement {
        service: Some(histogram(&[1; 100])),
        ..run(reported(100))
    };
    assert_eq!(both.check(), Err(MeasurementError::TwoLatencies));
}

#[test]
fn observed_messages_are_answers_if_there_is_no_sink() {
    let run = Measurement {
        sink: None,
        ..paced_run()
    };
    let observed = |mode: &Mode| run.metrics(mode).get(Metric::ObservedMessages);
    assert_eq!(observed(&Mode::REQUEST_REPLY), Some(100.0));
    assert_eq!(observed(&Mode::FIRE_AND_FORGET), None);
}
