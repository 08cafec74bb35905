//! A card for each case: its first headline figure large, the others small, and its flags.

use crate::flags::RaisedFlag;
use crate::format::escape;
use crate::format::{human, margin};
use crate::model::{CaseResult, Metric, Results};
use crate::plot;

/// Cases shown as cards at the top; beyond that the tables are the better overview.
const CARDS_MAX: usize = 12;

pub(super) fn cards(results: &Results) -> String {
    if results.cases.is_empty() || results.cases.len() > CARDS_MAX {
        return String::new();
    }
    let mut text = String::from("<section class=\"cards\" aria-label=\"At a glance\">\n");
    let shared = shared(results);
    for result in &results.cases {
        text += &card(result, &plot::colour(results, &result.case), &shared);
    }
    text + "</section>\n"
}

/// Words of the parameters that all cases share. Empty for a single case, whose card shows them.
pub(super) fn shared_words(results: &Results) -> String {
    let shared = shared(results);
    let Some(first) = results.cases.first() else {
        return String::new();
    };
    let parts = first.case.parts().into_iter();
    let words = parts.filter(|(name, _)| shared.iter().any(|it| it == name));
    let words: Vec<_> = words.map(|(_, words)| words).collect();
    words.join(" · ")
}

/// Names of the parameters that all cases share.
fn shared(results: &Results) -> Vec<String> {
    let [first, others @ ..] = &results.cases[..] else {
        return Vec::new();
    };
    if others.is_empty() {
        return Vec::new();
    }
    let parts = first.case.parts().into_iter();
    parts
        .filter(|(name, _)| *name != "mode")
        .filter(|part| others.iter().all(|it| it.case.parts().contains(part)))
        .map(|(name, _)| name.to_owned())
        .collect()
}

/// Share of the mean above which half of the interval makes the mean too uncertain for a headline.
const UNCERTAIN: f64 = 0.5;

fn card(result: &CaseResult, colour: &str, shared: &[String]) -> String {
    let case = &result.case;
    let Some(metric) = case.headline().first() else {
        return String::new();
    };
    let described = result.summary.get(*metric);
    let value = described.map_or("n/a".to_owned(), |one| human(one.mean, metric.unit()));
    let (number, unit) = value.split_once([' ', '/']).unwrap_or((&value, ""));
    let unit = if value.contains("/s") { "/s" } else { unit };
    let spread = described.and_then(|one| Some(margin(one.mean, one.interval?) + " · "));
    let is_uncertain = described.is_some_and(|one| {
        let interval = one.interval;
        interval.is_some_and(|it| it.high - one.mean > UNCERTAIN * one.mean.abs())
    });
    let uncertain = if is_uncertain { " uncertain" } else { "" };
    let known: Vec<&str> = shared.iter().map(String::as_str).chain(["mode"]).collect();
    let others = [
        Metric::ObservedRate,
        Metric::LatencyP50,
        Metric::LatencyP99,
        Metric::NodeCpuPerMessage,
    ];
    let others: String = others
        .into_iter()
        .filter(|other| other != metric)
        .filter_map(|other| {
            let mean = result.summary.mean(other)?;
            let words = match other {
                Metric::LatencyP50 => "p50",
                Metric::LatencyP99 => "p99",
                Metric::NodeCpuPerMessage => "node CPU",
                _ => "rate",
            };
            let per = if other == Metric::NodeCpuPerMessage {
                "/msg"
            } else {
                ""
            };
            Some(format!(
                "<span>{words} <b>{}{per}</b></span>",
                escape(&human(mean, other.unit()))
            ))
        })
        .collect();
    format!(
        "<article class=\"card {colour}\">\n<h3><i></i>{target} <span>{mode}</span></h3>\n\
         <p class=\"what\">{words}</p>\n<p class=\"big{uncertain}\">{number}<small>{unit}</small></p>\n\
         <p class=\"label\">{label} · {spread}n = {runs}</p>\n<p class=\"others\">{others}</p>\n{chips}</article>\n",
        target = escape(&case.target),
        mode = escape(&case.mode.name),
        words = escape(&case.description_without(&known)),
        number = escape(number),
        unit = escape(unit),
        label = metric.label(),
        spread = spread.unwrap_or_default(),
        runs = result.summary.runs,
        chips = chips(&result.summary.flags),
    )
}

fn chips(raised: &[RaisedFlag]) -> String {
    if raised.is_empty() {
        return String::new();
    }
    let chip = |raised: &RaisedFlag| {
        let (name, detail) = (raised.flag.name(), escape(&raised.detail));
        format!("<a class=\"chip\" href=\"#{name}\" title=\"{detail}\">{name}</a>")
    };
    format!(
        "<p class=\"chips\">{}</p>\n",
        raised.iter().map(chip).collect::<String>()
    )
}
