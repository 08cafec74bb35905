use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use rustix::process::{Resource, Signal, getrlimit};
use serde_json::Value;

use crate::support::{Place, eventually, mode};

#[test]
fn a_node_serves_every_listener_and_ends_cleanly() {
    let place = Place::new();
    let node = place.serve("");
    assert_eq!(node.get("/livez", None).0, 200);
    assert_eq!(node.get("/readyz", None).0, 200);
    TcpStream::connect(node.address("native")).unwrap();
    UnixStream::connect(place.path(node.address("socket"))).unwrap();
    assert_eq!(mode(&place.path("telpher-data")), 0o700);

    let ended = node.stop();
    ended.expect(0);
    assert!(ended.stderr.contains("draining"), "{}", ended.stderr);
    assert!(!place.path("telpher-data/telpher.sock").exists());
    place.serve("").stop().expect(0);
}

#[test]
fn a_start_with_defaults_logs_no_warning() {
    let place = Place::new();
    let ended = place.serve("").stop();
    assert!(!ended.expect(0).stderr.contains("WARN"), "{}", ended.stderr);
}

#[test]
fn too_few_descriptors_for_configured_connections_are_logged() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    let wanted = 1_000_000;
    let place = Place::new();
    let ended = place
        .serve(&format!("--native-connections-max {wanted}"))
        .stop();
    let is_warned_of = ended.expect(0).stderr.contains("limit of file descriptors");
    assert_eq!(
        is_warned_of,
        maximum.is_some_and(|maximum| maximum < wanted),
        "{}",
        ended.stderr
    );
}

#[test]
fn sigint_ends_a_node() {
    let place = Place::new();
    let node = place.serve("");
    node.signal(Signal::INT);
    node.end().expect(0);
}

#[test]
fn a_killed_node_can_be_restarted() {
    let place = Place::new();
    let node = place.serve("");
    node.signal(Signal::KILL);
    assert_eq!(node.end().status.code(), None);
    assert!(place.path("telpher-data/telpher.sock").exists());
    place.serve("").stop().expect(0);
}

#[test]
fn listeners_can_be_disabled() {
    let place = Place::new();
    let line = "serve --json --native-listen none --http-listen none --kafka-listen none \
                --slim-listen none";
    let mut node = place.start(line.split(' '));
    let ready: Value = serde_json::from_str(&node.line()).unwrap();
    for door in ["native", "http", "kafka", "slim", "slim_socket"] {
        assert_eq!(ready[door], Value::Null, "{door}");
    }
    UnixStream::connect(place.path("telpher-data/telpher.sock")).unwrap();
    node.stop().expect(0);
}

#[test]
fn a_port_in_use_is_reported_with_a_hint() {
    let place = Place::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    place
        .run(&format!(
            "serve --native-listen {address} --http-listen 127.0.0.1:0"
        ))
        .expect(4)
        .shows_error(
            &format!("`native.listen`: {address} is in use"),
            "--native-listen 127.0.0.1:0",
        );
    place
        .run(&format!(
            "serve --native-listen 127.0.0.1:0 --http-listen {address}"
        ))
        .expect(4)
        .shows_error(
            &format!("`http.listen`: {address} is in use"),
            "--http-listen 127.0.0.1:0",
        );
}

#[test]
fn listening_on_a_foreign_address_fails_with_a_hint() {
    // The address is reserved for documentation (RFC 5737), so no machine has it.
    let line = "serve --insecure --http-listen 127.0.0.1:0 --native-listen 192.0.2.1:7400";
    Place::new()
        .run(line)
        .expect(1)
        .shows_error("cannot listen on 192.0.2.1:7400", "--native-listen");
}

#[test]
fn two_nodes_do_not_share_a_data_directory() {
    let place = Place::new();
    let node = place.serve("");
    place
        .run("serve --native-listen 127.0.0.1:0 --http-listen 127.0.0.1:0")
        .expect(4)
        .shows_error(&format!("in use by process {}", node.pid()), "--data");
    assert_eq!(node.get("/readyz", None).0, 200);
    UnixStream::connect(place.path("telpher-data/telpher.sock")).unwrap();
    node.stop().expect(0);
}

#[test]
fn a_data_directory_that_cannot_be_made_is_refused() {
    let place = Place::new();
    place.write("file", "");
    place
        .run("serve --data file")
        .expect(2)
        .shows_error("`data`: file is not a directory", "--data");
    for data in ["file/below", "/proc/nothing-can-be-made-here"] {
        place
            .run(&format!("serve --data {data}"))
            .expect(1)
            .shows_error(data, "--data");
    }
}

#[test]
fn a_public_listener_is_refused_without_tls_and_tokens() {
    let place = Place::new();
    let ended = place.run("serve --native-listen 0.0.0.0:0 --http-listen [::]:0");
    ended
        .expect(2)
        .shows_error(
            "`native.listen`: other machines can reach 0.0.0.0:0",
            "--tls-certificate",
        )
        .shows_error(
            "`http.listen`: other machines can reach [::]:0",
            "telpher token add",
        )
        .shows_error("neither TLS nor a token", "--insecure");
}

#[test]
fn a_file_at_the_socket_path_is_not_replaced() {
    let place = Place::new();
    place.write("precious", "data");
    let line = "serve --native-listen 127.0.0.1:0 --http-listen 127.0.0.1:0 \
                --kafka-listen 127.0.0.1:0 --slim-listen 127.0.0.1:0 --native-socket precious";
    place
        .run(line)
        .expect(1)
        .shows_error("precious exists and is not a socket", "--native-socket");
    assert_eq!(
        std::fs::read_to_string(place.path("precious")).unwrap(),
        "data"
    );
}

#[test]
fn a_certificate_and_its_key_enable_tls() {
    let place = Place::new();
    let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    place
        .write("chain.pem", &pair.cert.pem())
        .write("key.pem", &pair.signing_key.serialize_pem());
    let node = place.serve("--tls-certificate chain.pem --tls-key key.pem");
    assert!(node.ready["native"].as_str().unwrap().starts_with("tls://"));
    assert!(node.ready["http"].as_str().unwrap().starts_with("https://"));
    node.stop().expect(0);

    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    place.write("key.pem", &other.signing_key.serialize_pem());
    place
        .run("serve --tls-certificate chain.pem --tls-key key.pem")
        .expect(2)
        .shows_error("invalid TLS configuration", "PEM");
}

#[test]
fn a_dev_node_prints_commands_and_removes_its_data() {
    let place = Place::new();
    let temporary = place.path("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let place = place.with_variable("TMPDIR", temporary.to_str().unwrap());
    let line = "serve --dev --native-listen 127.0.0.1:0 --http-listen 127.0.0.1:0 \
                --kafka-listen 127.0.0.1:0 --slim-listen 127.0.0.1:0";
    let mut child = place
        .command(line.split(' '))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let entries = || std::fs::read_dir(&temporary).unwrap().count();
    eventually("the directory is there", || entries() == 1);
    let mut said = String::new();
    let mut stdout = child.stdout.take().unwrap();
    while !said.contains("Ctrl-C") {
        let mut chunk = [0; 256];
        let size = stdout.read(&mut chunk).unwrap();
        assert!(size > 0, "{said}");
        said.push_str(std::str::from_utf8(&chunk[..size]).unwrap());
    }
    let commands: Vec<_> = said
        .lines()
        .filter_map(|line| line.strip_prefix("  telpher "))
        .collect();
    let [listen, request, agents] = commands[..] else {
        panic!("{said}")
    };
    let _agent = place.listen(listen.split(' ').skip(1));
    assert_eq!(place.run(request).expect(0).stdout, "hello");
    assert!(
        place
            .run(agents)
            .expect(0)
            .stdout
            .contains("acme/demo/echo")
    );
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), Signal::TERM).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(entries(), 0);
    assert!(!place.path("telpher-data").exists());
}

#[test]
fn dev_and_a_data_directory_exclude_each_other() {
    Place::new().run("serve --dev --data x").expect(2);
}

#[test]
fn the_json_log_format_writes_json_lines() {
    let place = Place::new().with_variable("TELPHER_LOG_FORMAT", "json");
    let ended = place.serve("").stop();
    let lines: Vec<Value> = ended
        .expect(0)
        .stderr
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(
        lines.iter().any(|line| line["message"] == "draining"),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_node_that_logs_nothing_is_silent() {
    let ended = Place::new().serve("--log-level off").stop();
    assert_eq!(ended.expect(0).stderr, "");
}
