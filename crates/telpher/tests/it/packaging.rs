//! The files of `packaging/` describe the node that is here: its options, its notifications.

use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::Signal;

use crate::support::Place;

/// Returns a file of `packaging/`.
fn file(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../packaging");
    std::fs::read_to_string(path.join(name)).unwrap()
}

/// Returns the next notification to a service manager.
fn notification(socket: &UnixDatagram) -> String {
    let mut buffer = [0; 4096];
    let size = socket.recv(&mut buffer).unwrap();
    String::from_utf8_lossy(&buffer[..size]).into_owned()
}

#[test]
fn service_manager_is_notified_of_start_reload_and_end() {
    let place = Place::new();
    let path = place.path("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let place = place.with_variable("NOTIFY_SOCKET", path.to_str().unwrap());
    let node = place.serve("");
    assert_eq!(notification(&socket), "READY=1\n");
    node.signal(Signal::HUP);
    let reloading = notification(&socket);
    assert!(
        reloading.starts_with("RELOADING=1\nMONOTONIC_USEC="),
        "{reloading}"
    );
    assert_eq!(notification(&socket), "READY=1\n");
    node.signal(Signal::TERM);
    assert_eq!(notification(&socket), "STOPPING=1\n");
    node.end().expect(0);
}

#[test]
fn systemd_accepts_the_service() {
    let place = Place::new();
    let unit = file("systemd/telpher.service");
    let program = env!("CARGO_BIN_EXE_telpher");
    assert!(unit.contains("ExecStart=/usr/bin/telpher serve"));
    // The user is made at the installation.
    let unit = unit
        .replace("/usr/bin/telpher", program)
        .replace("User=telpher\nGroup=telpher\n", "");
    place.write("telpher.service", &unit);
    let verified = place.shell("systemd-analyze verify --man=no ./telpher.service");
    let verified = verified.expect(0);
    assert!(
        !verified.stderr.contains("telpher.service:"),
        "{}",
        verified.stderr
    );
}

#[test]
fn configuration_of_the_service_is_valid() {
    let place = Place::new();
    place.write("telpher.toml", &file("debian/telpher.toml"));
    place.run("config check --config telpher.toml").expect(0);
    let shown = place.run("config show --config telpher.toml");
    assert!(
        shown
            .expect(0)
            .stdout
            .contains("data = \"/var/lib/telpher\"")
    );
}

#[test]
fn variables_of_containers_are_options() {
    let container = file("container/Containerfile");
    let words = container.split_whitespace();
    let variables: Vec<_> = words
        .filter_map(|word| word.strip_prefix("TELPHER_")?.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    assert!(variables.len() >= 5, "{variables:?}");
    let manifest = file("kubernetes/telpher.yaml");
    let named = manifest.split("{name: TELPHER_").skip(1).map(|rest| {
        let (name, rest) = rest.split_once(", value: ").unwrap();
        let (value, _) = rest.split_once('}').unwrap();
        (name.to_owned(), value.trim_matches('"').to_owned())
    });
    let named: Vec<_> = named.collect();
    assert!(named.len() >= 4, "{named:?}");
    let place = Place::new();
    for (name, value) in variables.into_iter().chain(named) {
        // Both files of a certificate go together.
        let other = match name.as_str() {
            "TLS_CERTIFICATE" => "export TELPHER_TLS_KEY=key",
            "TLS_KEY" => "export TELPHER_TLS_CERTIFICATE=certificate",
            _ => ":",
        };
        let program = env!("CARGO_BIN_EXE_telpher");
        let script = format!("{other}; TELPHER_{name}='{value}' {program} config show");
        let shown = place.shell(&script);
        shown.expect(0);
        assert!(
            shown.stdout.contains(&format!("\"{value}\"")),
            "{name}={value} is not shown:\n{}",
            shown.stdout
        );
    }
}
