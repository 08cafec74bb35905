//! `packaging/monitoring/`: rules and dashboard use metrics that nodes have, and `docs/` explains every
//! alert. `cargo xtask monitoring` runs them in Prometheus.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{Node, Place, eventually, free_port};

const PAGE: &str = "docs/operations/alerts.md";

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path: PathBuf = root.join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn rules() -> String {
    read("packaging/monitoring/telpher.rules.yml")
}

fn dashboard() -> Value {
    serde_json::from_str(&read("packaging/monitoring/telpher-dashboard.json")).unwrap()
}

/// Returns the expressions of the rules: the texts after `expr:`, with the deeper lines below.
fn rule_expressions(rules: &str) -> Vec<String> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut expressions = Vec::new();
    let mut lines = rules.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(first) = line.trim_start().strip_prefix("expr:") else {
            continue;
        };
        let mut text = first.trim().trim_start_matches(">-").to_owned();
        while let Some(more) = lines.next_if(|it| indent(it) > indent(line)) {
            text.push(' ');
            text.push_str(more.trim());
        }
        expressions.push(text);
    }
    expressions
}

/// Returns the panels of the dashboard that are not rows.
fn panels(dashboard: &Value) -> Vec<&Value> {
    let panels = dashboard["panels"].as_array().unwrap().iter();
    panels.filter(|it| it["type"] != "row").collect()
}

/// Returns the names of metrics and of recorded series in an expression.
fn names(expression: &str) -> impl Iterator<Item = &str> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || "_:".contains(letter);
    let words = expression.split(move |letter| !is_part(letter));
    words.filter(|word| {
        word.starts_with("telpher_") || word.starts_with("process_") || word.contains(':')
    })
}

/// Returns the names of the series on a page of metrics, also of families without any.
fn series(page: &str) -> BTreeSet<String> {
    let mut series = BTreeSet::new();
    for line in page.lines() {
        let Some((name, kind)) = line
            .strip_prefix("# TYPE ")
            .and_then(|line| line.split_once(' '))
        else {
            continue;
        };
        match kind {
            "histogram" => {
                series.extend(["_bucket", "_sum", "_count"].map(|end| format!("{name}{end}")));
            }
            _ => {
                series.insert(name.to_owned());
            }
        }
    }
    series
}

/// Starts a node with every part that is off by default. The servers of the archive and of quotas do
/// not answer.
fn full_node(place: &Place) -> Node {
    let silent = free_port();
    place.serve(&format!(
        "--dev --archive-url postgres://telpher@127.0.0.1:{silent}/telpher?sslmode=disable \
         --quota-store-redis redis://127.0.0.1:{silent}"
    ))
}

/// Starts the only member of a cluster.
fn member(place: &Place) -> Node {
    let [native, http, kafka, link] = [(); 4].map(|()| free_port());
    let flags = format!(
        "--data data --native-listen 127.0.0.1:{native} --http-listen 127.0.0.1:{http} \
         --kafka-listen 127.0.0.1:{kafka} --cluster-listen 127.0.0.1:{link}"
    );
    place.run(&format!("cluster init {flags}")).expect(0);
    let flags = flags.replace(&format!("--native-listen 127.0.0.1:{native} "), "");
    place.serve_member(&format!("127.0.0.1:{native}"), &flags)
}

#[test]
fn metrics_of_rules_and_dashboard_exist_on_a_node() {
    let rules = rules();
    let dashboard = dashboard();
    let mut expressions = rule_expressions(&rules);
    assert!(expressions.len() > 30, "{expressions:?}");
    for panel in panels(&dashboard) {
        let targets = panel["targets"].as_array().unwrap();
        let texts = targets.iter().map(|it| it["expr"].as_str().unwrap());
        expressions.extend(texts.map(str::to_owned));
    }
    let used: BTreeSet<_> = expressions.iter().flat_map(|it| names(it)).collect();
    assert!(used.len() > 100, "{used:?}");
    let recorded = rules.lines().filter_map(|line| {
        let (_, name) = line.split_once("- record: ")?;
        Some(name.to_owned())
    });
    let recorded: BTreeSet<_> = recorded.collect();

    let [place, other] = [Place::new(), Place::new()];
    let [node, member] = [full_node(&place), member(&other)];
    eventually("every metric is on the page of a node", || {
        let mut known = recorded.clone();
        for node in [&node, &member] {
            known.extend(series(&node.get("/metrics", None).1));
        }
        let missing: Vec<_> = used.iter().filter(|it| !known.contains(**it)).collect();
        if !missing.is_empty() {
            eprintln!("no such metrics: {missing:?}");
        }
        missing.is_empty()
    });
}

/// Returns the lines of each alert by its name.
fn alerts(rules: &str) -> BTreeMap<&str, Vec<&str>> {
    let mut alerts: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut current = None;
    for line in rules.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("- alert: ") {
            current = Some(name);
            assert!(alerts.insert(name, Vec::new()).is_none(), "{name} twice");
        } else if line.starts_with("- ") {
            current = None;
        } else if let Some(name) = current {
            alerts.get_mut(name).unwrap().push(line);
        }
    }
    alerts
}

#[test]
fn every_alert_is_explained_and_has_a_test() {
    let (rules, tests) = (rules(), read("packaging/monitoring/telpher.rules.test.yml"));
    let alerts = alerts(&rules);
    assert!(alerts.len() > 30, "{:?}", alerts.keys());
    let page = read(PAGE);
    for (name, lines) in &alerts {
        let value = |key: &str| lines.iter().find_map(|line| line.strip_prefix(key));
        for key in ["expr:", "for: ", "summary: ", "description: "] {
            assert!(value(key).is_some(), "{name} has no {key}");
        }
        let severity = value("severity: ");
        let known = ["critical", "warning", "info"];
        assert!(
            severity.is_some_and(|it| known.contains(&it)),
            "{name}: {severity:?}"
        );
        let runbook = format!("{PAGE}#{}", name.to_lowercase());
        assert_eq!(value("runbook_url: "), Some(&*runbook), "{name}");
        let heading = format!("\n### {name}\n");
        let (_, text) = page
            .split_once(&heading)
            .unwrap_or_else(|| panic!("{PAGE} does not explain {name}"));
        let (text, _) = text.split_once("\n#").unwrap_or((text, ""));
        assert!(
            text.contains("\n- "),
            "{PAGE} does not say what to do about {name}"
        );
        for state in ["pending", "firing"] {
            let expected = format!("alertname=\"{name}\", alertstate=\"{state}\"");
            assert!(tests.contains(&expected), "no test of {name}: {state}");
        }
    }
    let headings = page.lines().filter_map(|line| line.strip_prefix("### "));
    let unknown: Vec<_> = headings.filter(|it| !alerts.contains_key(it)).collect();
    assert!(unknown.is_empty(), "no such alerts: {unknown:?}");
}

#[test]
fn dashboard_has_the_structure_that_grafana_exports() {
    let dashboard = dashboard();
    assert!(dashboard["schemaVersion"].as_u64().unwrap() >= 39);
    assert_eq!(dashboard["uid"], "telpher");
    assert!(dashboard["id"].is_null(), "an id belongs to one Grafana");
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    let variables: Vec<_> = variables
        .iter()
        .map(|it| (it["name"].as_str().unwrap(), it["type"].as_str().unwrap()))
        .collect();
    let expected = [
        ("datasource", "datasource"),
        ("job", "query"),
        ("instance", "query"),
    ];
    assert_eq!(variables, expected);

    let all = dashboard["panels"].as_array().unwrap();
    let rows = all.iter().filter(|it| it["type"] == "row");
    let rows: Vec<_> = rows.map(|it| it["title"].as_str().unwrap()).collect();
    let expected = [
        "Overview",
        "Traffic",
        "Latency",
        "Refusals",
        "Disk",
        "Memory and process",
        "Mailboxes",
        "Conversations",
        "Topics and lag",
        "Quotas",
        "Cluster",
    ];
    assert_eq!(rows, expected);

    let mut ids = BTreeSet::new();
    let mut cells = BTreeSet::new();
    for panel in all {
        let title = panel["title"].as_str().unwrap();
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{title}: id");
        let place = |key: &str| panel["gridPos"][key].as_u64().unwrap();
        assert!(place("x") + place("w") <= 24, "{title} is outside the grid");
        for cell in (place("x")..place("x") + place("w"))
            .flat_map(|x| (place("y")..place("y") + place("h")).map(move |y| (x, y)))
        {
            assert!(cells.insert(cell), "{title} overlaps another panel");
        }
    }
    let source = serde_json::json!({"type": "prometheus", "uid": "${datasource}"});
    for panel in panels(&dashboard) {
        let title = panel["title"].as_str().unwrap();
        let kinds = ["timeseries", "stat", "state-timeline", "heatmap"];
        assert!(kinds.contains(&panel["type"].as_str().unwrap()), "{title}");
        assert!(
            !panel["description"].as_str().unwrap().is_empty(),
            "{title}"
        );
        assert_eq!(panel["datasource"], source, "{title}");
        let targets = panel["targets"].as_array().unwrap();
        let mut references = BTreeSet::new();
        for target in targets {
            assert_eq!(target["datasource"], source, "{title}");
            assert!(
                references.insert(target["refId"].as_str().unwrap()),
                "{title}"
            );
            let expression = target["expr"].as_str().unwrap();
            assert!(
                expression.contains("job=~\"$job\""),
                "{title}: {expression}"
            );
            let is_closed = |open: char, close: char| {
                expression.matches(open).count() == expression.matches(close).count()
            };
            assert!(
                is_closed('(', ')') && is_closed('{', '}'),
                "{title}: {expression}"
            );
        }
        assert!(!targets.is_empty(), "{title} has no query");
    }
}
