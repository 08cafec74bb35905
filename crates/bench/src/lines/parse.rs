//! Parser of live lines, ours and the SLIM suite's.

use crate::model::{Area, Case, Metric, Metrics, Mode, Run};

/// Parses a `BENCHMARK_RESULT` line, ours or the SLIM suite's, as a reported run. `None` for
/// another kind of line, or if a mandatory key is missing. Lines without a target and area become
/// agent runs of `target`.
#[must_use]
pub fn parse_result(line: &str, target: &str) -> Option<(Case, Run)> {
    let mut words = line.split(' ');
    if words.next() != Some("BENCHMARK_RESULT") {
        return None;
    }
    let pairs: Vec<(&str, &str)> = words.filter_map(|word| word.split_once('=')).collect();
    let find = |key: &str| {
        pairs
            .iter()
            .find(|(name, _)| *name == key)
            .map(|(_, value)| *value)
    };
    let area = match find("area") {
        None | Some("agent") => Area::Agent,
        Some("rpc") => Area::Rpc,
        Some(_) => return None,
    };
    let modes = [
        Mode::REQUEST_REPLY,
        Mode::FIRE_AND_FORGET,
        Mode::WRITE,
        Mode::SERIAL,
        Mode::CONCURRENT,
        Mode::CALLBACK,
    ];
    let mode = modes
        .into_iter()
        .find(|mode| Some(mode.name.as_ref()) == find("mode"))?;
    let mut case = Case::new(find("target").unwrap_or(target), area, mode)
        .clients(find("clients")?.parse().ok()?)
        .size(find("size")?.parse().ok()?)
        .rate(find("rate")?.parse().ok()?);
    case.in_flight = find("in_flight").and_then(|depth| depth.parse().ok());
    // Keys between the area and our figures are parameters of the case.
    let own = pairs.iter().skip_while(|(key, _)| *key != "area").skip(1);
    for (key, value) in own.take_while(|(key, _)| *key != "steady_mps") {
        if *key != "in_flight" {
            case = case.parameter(key, value);
        }
    }
    let mut metrics = Metrics::new();
    for (key, value) in &pairs {
        if let (Some(metric), Ok(value)) = (Metric::named(key), value.parse::<f64>()) {
            metrics.set(metric, value);
        }
    }
    let repeat = find("repeat")?.parse().ok()?;
    Some((case, Run::reported(repeat, repeat, metrics)))
}
