//! `telpher doctor`.

use std::net::TcpListener;

use serde_json::Value;

use crate::support::Place;

fn check<'a>(report: &'a Value, name: &str) -> &'a Value {
    let checks = report["checks"].as_array().unwrap();
    let found = checks.iter().find(|check| check["check"] == name);
    found.unwrap_or_else(|| panic!("no check {name}: {report:#}"))
}

const FREE_PORTS: &str = "[native]\nlisten = '127.0.0.1:0'\n[http]\nlisten = '127.0.0.1:0'\n";

#[test]
fn a_suitable_environment_passes_and_is_unchanged() {
    let place = Place::new();
    place.write("telpher.toml", FREE_PORTS);
    let ended = place.run("doctor --json");
    let report = ended.expect(0).json();
    assert_eq!(report["ok"], true);
    for name in [
        "configuration",
        "lock",
        "directory",
        "native port",
        "http port",
        "socket",
    ] {
        assert_eq!(check(&report, name)["verdict"], "ok", "{name}: {report:#}");
    }
    let sync = &check(&report, "sync")["figures"];
    assert!(
        sync["count"].as_u64().unwrap() > 0 && sync["p99_ns"].as_u64() >= sync["p50_ns"].as_u64()
    );
    for name in ["file system", "room", "descriptors"] {
        assert!(
            check(&report, name)["figures"].is_object(),
            "{name}: {report:#}"
        );
    }
    let left: Vec<_> = place
        .path("")
        .read_dir()
        .unwrap()
        .map(|one| one.unwrap().file_name())
        .collect();
    assert_eq!(left, ["telpher.toml"]);
}

#[test]
fn problems_of_a_node_fail_with_hints() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let place = Place::new();
    place.write(
        "telpher.toml",
        &format!("[native]\nlisten = '{address}'\n[http]\nlisten = 'none'\n"),
    );
    place.write("telpher-data", "a file");
    let ended = place.run("doctor");
    ended.expect(1).shows_error("checks failed", "see the hint");
    let line = |start: &str| ended.stdout.lines().any(|line| line.starts_with(start));
    assert!(line("fail  native port"), "{}", ended.stdout);
    assert!(
        ended.stdout.contains("hint: stop that program"),
        "{}",
        ended.stdout
    );
    assert!(
        line("ok    http port      the listener is disabled"),
        "{}",
        ended.stdout
    );
}

#[test]
fn a_configuration_mistake_does_not_stop_the_other_checks() {
    let place = Place::new();
    place.write("telpher.toml", "[native]\nlissten = '127.0.0.1:1'\n");
    let report = place.run("doctor --json --data here").expect(1).json();
    let wrong = check(&report, "configuration");
    assert_eq!(wrong["verdict"], "fail");
    assert!(
        wrong["hints"][0].as_str().unwrap().contains("listen"),
        "{wrong}"
    );
    assert!(
        check(&report, "directory")["detail"]
            .as_str()
            .unwrap()
            .starts_with("here ")
    );
}

#[test]
fn a_running_node_is_recognized_by_its_directory() {
    let place = Place::new();
    let node = place.serve("");
    place.write(
        "telpher.toml",
        &format!(
            "[native]\nlisten = '{}'\n[http]\nlisten = 'none'\n",
            node.address("native")
        ),
    );
    let report = place.run("doctor --json").expect(0).json();
    let lock = check(&report, "lock");
    assert_eq!(lock["verdict"], "warn");
    assert!(
        lock["detail"].as_str().unwrap().starts_with("process "),
        "{lock}"
    );
    assert_eq!(check(&report, "native port")["verdict"], "ok");
    assert_eq!(check(&report, "socket")["verdict"], "ok");
}

#[test]
fn a_node_with_another_directory_is_recognized_by_its_ports() {
    let elsewhere = Place::new();
    let node = elsewhere.serve("--dev");
    let place = Place::new();
    let [native, http, kafka, slim] =
        ["native", "http", "kafka", "slim"].map(|it| node.url(it).rsplit("://").next().unwrap());
    place.write(
        "telpher.toml",
        &format!(
            "[native]\nlisten = '{native}'\n[http]\nlisten = '{http}'\n\
             [kafka]\nlisten = '{kafka}'\n[slim]\nlisten = '{slim}'\n"
        ),
    );
    let ended = place.run("doctor --json");
    let report = ended.expect(0).json();
    for name in ["native port", "http port", "kafka port", "slim port"] {
        let found = check(&report, name);
        assert_eq!(found["verdict"], "warn", "{name}: {report:#}");
        let detail = found["detail"].as_str().unwrap();
        assert!(
            detail.contains("a Telpher node runs at http://"),
            "{detail}"
        );
    }
    node.stop().expect(0);
}

#[test]
fn a_running_node_tells_administrators_its_configuration_and_checks() {
    let place = Place::new().with_variable("TELPHER_HTTP_STREAMS_MAX", "77");
    place.write(
        "telpher.toml",
        "[telemetry]\notlp_endpoint = 'http://ann:s3cret@127.0.0.1:9'\n",
    );
    let node = place.serve("--config telpher.toml --mailbox-deliveries-max 9");
    let (status, config) = node.get("/v1/config", None);
    assert_eq!(status, 200, "{config}");
    assert!(!config.contains("s3cret"), "{config}");
    let config: Value = serde_json::from_str(&config).unwrap();
    let options = config["options"].as_array().unwrap();
    let of = |key: &str| {
        let found = options.iter().find(|it| it["key"] == key).unwrap();
        let text = |field: &str| found[field].as_str().unwrap().to_owned();
        [text("value"), text("layer"), text("origin")]
    };
    assert_eq!(
        of("http.streams_max"),
        ["77", "environment", "TELPHER_HTTP_STREAMS_MAX"]
    );
    assert_eq!(
        of("telemetry.otlp_endpoint"),
        ["http://ann:***@127.0.0.1:9", "file", "telpher.toml:2:1"]
    );
    assert_eq!(
        of("mailbox.deliveries_max"),
        ["9", "option", "--mailbox-deliveries-max"]
    );
    assert_eq!(of("telemetry.service_name")[1], "default");

    let doctor = |node: &crate::support::Node| {
        let (status, report) = node.get("/v1/doctor", None);
        assert_eq!(status, 200, "{report}");
        serde_json::from_str::<Value>(&report).unwrap()
    };
    let report = doctor(&node);
    for name in ["node", "directory", "http port", "socket", "backup"] {
        assert_eq!(check(&report, name)["verdict"], "ok", "{name}: {report:#}");
    }
    // Its verdict depends on the disk of the machine.
    assert!(check(&report, "sync")["detail"].is_string(), "{report:#}");
    let backup = place.path("backup");
    let url = node.url("native");
    let made = format!("backup {} --url {url}", backup.display());
    place.run(&made).expect(0);
    let report = doctor(&node);
    let made = check(&report, "backup");
    assert!(made["figures"]["bytes"].as_u64().unwrap() > 0, "{made}");
    let left = place.path("").read_dir().unwrap();
    let left = left.map(|it| it.unwrap().file_name().into_string().unwrap());
    assert!(left.into_iter().all(|it| !it.contains("doctor")));
    node.stop().expect(0);
}
