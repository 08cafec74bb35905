//! Rules that raise each flag. They return the figure that raised it.

use std::collections::BTreeMap;

use crate::measurement::Measurement;
use crate::model::{Case, Metric, Metrics, Mode};
use crate::process::Role;
use crate::stats::Description;

/// Returns true if a window has too few messages, or is too short, to be trusted.
pub fn is_too_short(window_ns: u64, messages: u64) -> bool {
    window_ns < 1_000_000_000 || messages < 1_000
}

/// Returns true if a generator that used this share of a core, in percent, may limit the rate.
pub fn is_busy_generator(percent: f64) -> bool {
    percent > 90.0
}

/// Returns true if these shares of the machine's CPU time, stolen and used by others, in percent, may
/// have disturbed a run.
pub fn is_noisy_host(steal_percent: f64, foreign_percent: f64) -> bool {
    steal_percent > 2.0 || foreign_percent > 20.0
}

/// Returns true if repeats that vary by this much, in percent of their mean, differ too much.
pub fn is_unstable(variation_percent: f64) -> bool {
    variation_percent > 10.0
}

pub(super) fn pacing_limited(case: &Case, metrics: &Metrics) -> Option<String> {
    let achieved = metrics.get(Metric::SenderRate).filter(|_| case.paced())?;
    let share = 100.0 * achieved / case.rate as f64;
    (share >= 98.0).then(|| format!("{share:.1} % of {}/s offered", case.rate))
}

pub(super) fn too_short(measured: &Measurement) -> Option<String> {
    let short = is_too_short(measured.window_ns, measured.completed);
    let window_s = measured.window_ns as f64 / 1e9;
    short.then(|| format!("{} messages in {window_s:.3} s", measured.completed))
}

pub(super) fn generator_limited(metrics: &Metrics, measured: &Measurement) -> Option<String> {
    let roles = measured.usage.iter().flat_map(|usage| &usage.roles);
    let busiest = roles
        .filter(|usage| usage.role == Role::Sender && usage.wall_ns > 0)
        .filter_map(|usage| Some(100.0 * usage.cpu_ns? as f64 / usage.wall_ns as f64))
        .fold(0.0, f64::max);
    if is_busy_generator(busiest) {
        return Some(format!("sender used {busiest:.0} % of a core"));
    }
    let lag = metrics.get(Metric::LagP99).filter(|lag_ms| *lag_ms > 1.0)?;
    Some(format!("sender {lag:.2} ms late at p99"))
}

pub(super) fn little_mismatch(case: &Case, metrics: &Metrics) -> Option<String> {
    // An end-to-end latency is over before its ack arrives, but the next message waits for both.
    if case.paced() || !case.mode.answered || case.mode == Mode::END_TO_END {
        return None;
    }
    let in_flight = f64::from(case.clients) * f64::from(case.in_flight?);
    let rate = metrics.get(Metric::SenderRate)?;
    let product = rate * metrics.get(Metric::LatencyMean)? / 1e3;
    let off = 100.0 * (in_flight - product).abs() / in_flight;
    (off > 5.0).then(|| format!("{in_flight} in flight, rate × latency is {product:.2}"))
}

pub(super) fn noisy_host(metrics: &Metrics) -> Option<String> {
    let steal = metrics.get(Metric::HostSteal)?;
    let foreign = metrics.get(Metric::HostForeign)?;
    is_noisy_host(steal, foreign)
        .then(|| format!("{steal:.1} % stolen, {foreign:.1} % used by others"))
}

pub(super) fn cpu_ticks(measured: &Measurement) -> Option<String> {
    let roles = measured.usage.iter().flat_map(|usage| &usage.roles);
    let coarse = roles
        .filter(|usage| usage.cpu_ns.is_some())
        .find(|usage| usage.cpu_step_ns.saturating_mul(100) > usage.wall_ns)?;
    let step_ms = coarse.cpu_step_ns as f64 / 1e6;
    Some(format!(
        "steps of {step_ms:.1} ms in a window of {:.0} ms",
        coarse.wall_ns as f64 / 1e6
    ))
}

pub(super) fn slow_disk(metrics: &Metrics) -> Option<String> {
    let sync_ms = metrics.get(Metric::SyncP50).filter(|ms| *ms > 0.5)?;
    Some(format!("a sync took {sync_ms:.2} ms at p50"))
}

pub(super) fn unstable(case: &Case, metrics: &BTreeMap<Metric, Description>) -> Option<String> {
    let metric = case.headline().first()?;
    let variation = 100.0 * metrics.get(metric)?.variation?;
    is_unstable(variation).then(|| format!("{} varies by {variation:.1} %", metric.label()))
}
