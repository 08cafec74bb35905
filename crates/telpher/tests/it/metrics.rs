//! `/metrics`: formats, conventions of Prometheus, work that waits, the process.

use std::collections::HashMap;

use crate::support::{Node, Place, eventually};

/// Returns the page for an `Accept` header, and its content type.
fn page(place: &Place, node: &Node, accept: &str) -> (String, String) {
    let url = node.url("http");
    let script = format!(
        "curl -sf -o page -w '%{{content_type}}' -H 'Accept: {accept}' {url}/metrics && echo && cat page"
    );
    let ended = place.shell(&script);
    let (content_type, text) = ended.expect(0).stdout.split_once('\n').unwrap();
    (content_type.to_owned(), text.to_owned())
}

/// Checks the conventions of `promtool check metrics`: every sample belongs to a described family
/// with a type, only counters end with `_total`, and every family occurs once.
fn lint(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let mut types: HashMap<&str, &str> = HashMap::new();
    let mut helps: HashMap<&str, &str> = HashMap::new();
    for line in text.lines() {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some("TYPE"), Some(name), Some(kind)) => {
                if types.insert(name, kind).is_some() {
                    problems.push(format!("{name} has two types"));
                }
                if (kind == "counter") != name.ends_with("_total") {
                    problems.push(format!("{name} is a {kind}"));
                }
            }
            (Some("#"), Some("HELP"), Some(name), help) => {
                let help = help.unwrap_or_default();
                if helps.insert(name, help).is_some() || help.is_empty() {
                    problems.push(format!("{name} has two help texts or an empty one"));
                }
            }
            (Some("#"), ..) => problems.push(format!("unknown comment: {line}")),
            (Some(sample), ..) => {
                let name = sample.split('{').next().unwrap();
                let of_histogram = ["_bucket", "_sum", "_count"];
                let base = of_histogram.iter().find_map(|end| name.strip_suffix(end));
                let family = match base {
                    Some(base) if types.get(base) == Some(&"histogram") => base,
                    _ => name,
                };
                if !types.contains_key(family) || !helps.contains_key(family) {
                    problems.push(format!("{name} is not described"));
                }
            }
            _ => problems.push(format!("an empty line: {line:?}")),
        }
    }
    problems
}

#[test]
fn metrics_have_the_accepted_format() {
    let place = Place::new();
    let node = place.serve("--dev");
    for accept in ["*/*", "text/plain;version=0.0.4"] {
        let (content_type, text) = page(&place, &node, accept);
        assert_eq!(content_type, "text/plain; version=0.0.4; charset=utf-8");
        assert_eq!(lint(&text), Vec::<String>::new());
        assert!(!text.contains("# EOF") && !text.contains("# UNIT"));
    }
    let accept = "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;q=0.4,*/*;q=0.3";
    let (content_type, text) = page(&place, &node, accept);
    assert!(content_type.starts_with("application/openmetrics-text; version=1.0.0"));
    assert!(text.ends_with("# EOF\n"));
    assert!(text.contains("# TYPE telpher_journal_syncs counter\n"));
}

#[test]
fn metrics_describe_the_process_and_the_build() {
    let place = Place::new();
    let node = place.serve("--dev");
    let (_, text) = page(&place, &node, "*/*");
    let value = |name: &str| -> f64 {
        let line = text
            .lines()
            .find(|line| line.split(' ').next() == Some(name));
        let line = line.unwrap_or_else(|| panic!("no {name}:\n{text}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    assert!(value("process_resident_memory_bytes") > 1e6);
    assert!(value("process_cpu_seconds_total") >= 0.0);
    assert!(value("process_open_fds") > 5.0);
    assert!(value("process_max_fds") > value("process_open_fds"));
    // Later than 2020-01-01.
    assert!(value("process_start_time_seconds") > 1_577_836_800.0);
    let build = text
        .lines()
        .find(|line| line.starts_with("telpher_build_info{"));
    assert!(build.unwrap().contains(env!("CARGO_PKG_VERSION")));
}

#[test]
fn mailbox_backlog_is_in_the_metrics_and_survives_a_restart() {
    let place = Place::new();
    let data = "--data data";
    let node = place.serve(data);
    let home = Place::new().with_variable("TELPHER_URL", node.url("native"));
    for body in ["1", "2", "3"] {
        home.run_words(["write", "acme/demo/lower", body]).expect(0);
    }
    let series = "telpher_mailbox_backlog_messages{mailbox=\"acme/demo/lower\"}";
    let age = "telpher_mailbox_oldest_message_age_seconds{mailbox=\"acme/demo/lower\"}";
    assert_eq!(node.metric("telpher_mailbox_messages"), 3);
    assert_eq!(node.metric(series), 3);
    assert!(node.get("/metrics", None).1.contains(age));
    node.stop().expect(0);

    let node = place.serve(data);
    eventually("the backlog is counted after a restart", || {
        node.metric("telpher_mailbox_messages") == 3
    });
    assert_eq!(node.metric(series), 3);
    let home = Place::new().with_variable("TELPHER_URL", node.url("native"));
    home.run("mailbox purge acme/demo/lower").expect(0);
    eventually("an empty mailbox has no backlog", || {
        node.metric("telpher_mailbox_messages") == 0
    });
    let (_, text) = node.get("/metrics", None);
    assert!(!text.contains(series), "{text}");
}

#[test]
fn group_lag_is_in_the_metrics() {
    let place = Place::new();
    let node = place.serve("--dev");
    let broker = node.url("kafka");
    let script = format!(
        "seq 10 | kcat -b {broker} -t jobs -p 0 -P && \
         kcat -b {broker} -G readers -c 4 -X auto.offset.reset=earliest jobs"
    );
    place.shell(&script).expect(0);
    let series = "telpher_kafka_group_lag{group=\"readers\",topic=\"jobs\",partition=\"0\"}";
    assert_eq!(node.metric(series), 6);
}

#[test]
fn native_and_kafka_requests_are_timed_by_verb_and_api() {
    let place = Place::new();
    let node = place.serve("--dev");
    let home = Place::new().with_variable("TELPHER_URL", node.url("native"));
    let _agent = home.listen(["acme/demo/upper", "--exec", "tr a-z A-Z"]);
    home.run("request acme/demo/upper hello").expect(0);
    home.run("write acme/demo/lower job").expect(0);
    home.run("append acme/demo/log record").expect(0);
    home.run("read acme/demo/log").expect(0);
    let broker = node.url("kafka");
    place
        .shell(&format!("echo x | kcat -b {broker} -t jobs -P"))
        .expect(0);
    for verb in ["request", "write", "append", "read", "subscribe"] {
        let series = format!("telpher_native_request_duration_seconds_count{{verb=\"{verb}\"}}");
        assert!(node.metric(&series) >= 1, "{series}");
    }
    let taken = "telpher_native_request_duration_seconds_count{verb=\"take\"}";
    assert_eq!(node.metric(taken), 0);
    for api in ["Produce", "Metadata", "ApiVersions"] {
        let series = format!("telpher_kafka_request_duration_seconds_count{{api=\"{api}\"}}");
        assert!(node.metric(&series) >= 1, "{series}");
    }
    let (_, text) = page(&place, &node, "*/*");
    assert!(!text.contains("_duration_seconds_count{api=\"CreateTopics\"}"));
}

#[test]
fn labels_of_http_requests_are_templates_of_routes() {
    let place = Place::new();
    let node = place.serve("--dev");
    for path in [
        "/v1/topics/one",
        "/v1/topics/two",
        "/no/such/route",
        "/nor/this",
    ] {
        assert_eq!(node.get(path, None).0, 404, "{path}");
    }
    let count = |route: &str| {
        node.metric(&format!(
            "telpher_http_request_duration_seconds_count{{method=\"GET\",route=\"{route}\",status=\"404\"}}"
        ))
    };
    assert_eq!(count("/v1/topics/{topic}"), 2);
    assert_eq!(count("none"), 2);
    let (_, text) = page(&place, &node, "*/*");
    assert!(
        !text.contains("/v1/topics/one") && !text.contains("/nor/this"),
        "{text}"
    );
}
