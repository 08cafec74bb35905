//! The HTML page with every plot and table: no script, no external resource, light and dark,
//! printable.

mod cards;
mod formulas;

use super::Table;
use super::overview::{Detail, Section, overview};
use crate::flags::Flag;
use crate::format::escape;
use crate::model::Results;
use crate::plot::{self, Kind, Plot};

const STYLE: &str = include_str!("html/page.css");

/// Renders the whole page.
#[must_use]
pub fn page(results: &Results) -> String {
    let plots = plot::all(results);
    let mut text = head(results);
    text += &cards::cards(results);
    for (kind, id, title, text_of) in PLOTS {
        let of_kind: Vec<_> = plots.iter().filter(|plot| plot.kind == kind).collect();
        if !of_kind.is_empty() {
            text += &format!(
                "<section id=\"{id}\"><h2>{title}</h2>\n<p>{}</p>\n",
                escape_prose(text_of)
            );
            text += &figures(&of_kind);
            text += "</section>\n";
        }
    }
    text += &tables(results);
    text += &flags(results);
    text += formulas::METHOD;
    text += &environment(results);
    text + "</main></body></html>\n"
}

const PLOTS: [(Kind, &str, &str, &str); 6] = [
    (
        Kind::Throughput,
        "throughput",
        "Throughput",
        "Messages per second, counted at the sink, or at the sender in modes without a sink. At a \
         configured rate the bar cannot exceed the mark.",
    ),
    (
        Kind::Latency,
        "latency",
        "Latency",
        "Each further nine takes the same width, so the tail is as readable as the body. For messages on \
         a schedule, response latency also counts the time that a message waited because the one before \
         it was slow.",
    ),
    (
        Kind::Capacity,
        "capacity",
        "Capacity",
        "Throughput at each offered rate: first in growing steps, then between the last two.",
    ),
    (
        Kind::Cpu,
        "cpu",
        "CPU",
        "CPU time of each role's process, all threads, user and system, from its CPU clock at both edges \
         of the window.",
    ),
    (
        Kind::Memory,
        "memory",
        "Memory",
        "Resident memory of the servers over their runs.",
    ),
    (
        Kind::RunOrder,
        "run-order",
        "Run order",
        "Every run in the order in which it ran. A slope is drift, a step is an event, a lone dot is a run \
         to look into.",
    ),
];

fn head(results: &Results) -> String {
    let environment = &results.environment;
    let mut facts = vec![format!("{} UTC", results.generated)];
    let version = environment.versions.get("telpher");
    facts.extend(version.map(|version| format!("Telpher {version}")));
    facts.extend(environment.cpu_model.clone());
    facts.extend(environment.cpu_count.map(|count| format!("{count} CPUs")));
    facts.extend(environment.placement.clone());
    facts.extend(
        environment
            .kernel
            .as_ref()
            .map(|kernel| format!("Linux {kernel}")),
    );
    facts.extend(
        environment
            .commit
            .as_ref()
            .map(|commit| format!("commit {commit}")),
    );
    let facts: Vec<_> = facts
        .iter()
        .map(|fact| format!("<span>{}</span>", escape(fact)))
        .collect();
    let runs: usize = results.cases.iter().map(|result| result.runs.len()).sum();
    let shared = cards::shared_words(results);
    let shared = match shared.is_empty() {
        true => String::new(),
        false => format!(", all with {}", escape(&shared)),
    };
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light \
         dark\">\n<title>{title} · telpher bench</title>\n<style>{theme}{plot}{STYLE}</style>\n</head>\n\
         <body><main>\n<header>\n<p class=\"brand\">{LOGO}telpher bench</p>\n<h1>{title}</h1>\n\
         <p class=\"facts\">{facts}</p>\n<pre class=\"command\"><code>{command}</code></pre>\n\
         <p class=\"lead\">{cases} in {runs} runs{shared}. Figures are means over runs with Student-t \
         95\u{a0}% intervals; n/a means not measured.</p>\n</header>\n",
        title = escape(&title(&results.name)),
        theme = plot::THEME,
        plot = plot::STYLE,
        facts = facts.concat(),
        command = escape(&environment.command),
        cases = match results.cases.len() {
            1 => "1 case".to_owned(),
            count => format!("{count} cases"),
        },
    )
}

/// Returns the title of the page: the part of Telpher that was measured, and the quantities.
fn title(name: &str) -> String {
    let title = match name {
        "agent" => "Telpher messaging: messages per second and latency",
        "rpc" => "Telpher RPC: calls per second and latency",
        "agent-slim" => "Telpher SLIM listener: messages per second and latency",
        "journal" => "Telpher journal: durable appends per second and latency",
        "kafka" => "Telpher topics: Kafka records per second and latency",
        "store" => "Telpher conversations: durable appends per second and latency",
        "quota" => "Telpher quotas: decisions per second and latency",
        other => return format!("Telpher benchmark: {other}"),
    };
    title.to_owned()
}

/// Logo: a cable car on its cable.
const LOGO: &str = "<svg class=\"logo\" viewBox=\"0 0 28 20\" aria-hidden=\"true\"><path d=\"M0 4 Q14 8 28 \
    4\"/><path d=\"M14 6 v4\"/><rect x=\"8.5\" y=\"10\" width=\"11\" height=\"7\" rx=\"2\"/></svg>";

fn figures(plots: &[&Plot]) -> String {
    let figure = |plot: &&Plot| {
        format!(
            "<figure>\n<h3>{}</h3>\n{}<figcaption>{}</figcaption>\n</figure>\n",
            escape(&plot.title),
            plot.inline(),
            escape_prose(&plot.caption)
        )
    };
    format!(
        "<div class=\"figures\">\n{}</div>\n",
        plots.iter().map(figure).collect::<String>()
    )
}

fn tables(results: &Results) -> String {
    let mut text = String::from(
        "<section id=\"tables\"><h2>Tables</h2>\n<p>Means over runs; p99.9 is over the messages of all runs \
         together (pooled), because a mean of percentiles is not a percentile.</p>\n",
    );
    for Section {
        heading,
        table,
        notes,
    } in overview(results, Detail::Full)
    {
        text += &format!("<h3>{}</h3>\n{}", escape(&heading), table.html());
        for note in notes {
            text += &format!("<p class=\"note\">{}</p>\n", escape_prose(&note));
        }
    }
    text + "</section>\n"
}

fn flags(results: &Results) -> String {
    let mut raised: Vec<Flag> = results.flags().map(|(_, raised)| raised.flag).collect();
    raised.sort_unstable();
    raised.dedup();
    if raised.is_empty() {
        return String::new();
    }
    let mut text = String::from(
        "<section id=\"flags\"><h2>Flags</h2>\n<p>Reasons to read a figure with care.</p>\n<dl>\n",
    );
    for flag in raised {
        let (name, meaning) = (flag.name(), escape_prose(flag.meaning()));
        text += &format!("<dt id=\"{name}\">{name}</dt><dd>{meaning}</dd>\n");
    }
    text + "</dl></section>\n"
}

fn environment(results: &Results) -> String {
    let mut table = Table::new(["Fact", "Value"], 2);
    let setup = &results.setup;
    let known = [
        ("Server", setup.server.clone()),
        ("Destination", setup.destination.clone()),
        ("Duration of a run", setup.duration.clone()),
        (
            "Repeats of a case",
            setup.repeats.map(|repeats| repeats.to_string()),
        ),
    ];
    for (name, value) in known.into_iter().filter(|(_, value)| value.is_some()) {
        table.row([Some(name.to_owned()), value]);
    }
    for (name, value) in setup.notes.iter().chain(&results.environment.facts()) {
        table.row([
            Some(name.clone()),
            Some(value.clone()).filter(|value| value != "n/a"),
        ]);
    }
    format!(
        "<section id=\"environment\"><h2>Environment</h2>\n{}<p class=\"note\">Layout of results.json: \
         version {}.</p></section>\n",
        table.html(),
        results.schema_version
    )
}

/// Escapes prose for HTML and keeps each number on one line with its `%`.
fn escape_prose(text: &str) -> String {
    escape(text).replace(" %", "\u{a0}%")
}

#[cfg(test)]
mod tests;
