//! Checks of the listeners: free ports and sockets, and enough file descriptors.

mod neighbour;

use std::io;
use std::net::TcpListener;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use config::{Config, HostPort, Loaded};
use serde_json::json;

use neighbour::Neighbour;

use super::directory::InUse;
use super::finding::Finding;
use crate::{are_connections_asked_for, descriptors_granted};

/// Maximum bytes of a Unix socket's path (unix(7)).
const SOCKET_PATH_MAX: usize = 107;

pub(super) fn check(config: &Config, in_use: InUse) -> Vec<Finding> {
    let ports = [
        ("native port", "--native-listen", &config.native.listen),
        ("http port", "--http-listen", &config.http.listen),
        ("kafka port", "--kafka-listen", &config.kafka.listen),
        ("slim port", "--slim-listen", &config.slim.listen),
    ];
    let neighbour = match in_use {
        InUse::Yes => None,
        InUse::No => Neighbour::find(config),
    };
    let neighbour = neighbour.as_ref();
    let mut findings: Vec<_> = ports
        .into_iter()
        .map(|(check, flag, listen)| check_port(check, flag, listen.as_ref(), in_use, neighbour))
        .collect();
    if let Some(path) = config.native.socket.path(&config.data.dir) {
        findings.push(check_socket("socket", "--native-socket", &path, in_use));
    }
    if let Some(path) = &config.slim.socket {
        findings.push(check_socket("slim socket", "--slim-socket", path, in_use));
    }
    findings
}

fn check_port(
    check: &'static str,
    flag: &str,
    listen: Option<&HostPort>,
    in_use: InUse,
    neighbour: Option<&Neighbour>,
) -> Finding {
    let Some(listen) = listen else {
        return Finding::ok(check, "the listener is disabled");
    };
    match TcpListener::bind(listen.to_string()) {
        Ok(_) if listen.port == 0 => Finding::ok(check, format!("{listen}: any free port")),
        Ok(_) => Finding::ok(check, format!("{listen} is free")),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => match in_use {
            InUse::Yes => Finding::ok(check, format!("{listen} is in use, by the running node")),
            InUse::No => match neighbour {
                Some(neighbour) => Finding::warn(
                    check,
                    format!("{listen} is in use; {neighbour}"),
                    format!("use that node, or choose another port: {flag} 127.0.0.1:0"),
                ),
                None => Finding::fail(
                    check,
                    format!("{listen} is in use by another program"),
                    format!("stop that program, or choose another port: {flag} HOST:PORT"),
                ),
            },
        },
        Err(error) => Finding::fail(
            check,
            format!("cannot listen on {listen}: {error}"),
            format!("choose an address of this machine: {flag} HOST:PORT"),
        ),
    }
}

fn check_socket(check: &'static str, flag: &str, path: &Path, in_use: InUse) -> Finding {
    let shown = path.display();
    let hint = format!("choose another path, or `none`: {flag} PATH");
    if path.as_os_str().len() > SOCKET_PATH_MAX {
        let detail =
            format!("the path {shown} exceeds the limit of Unix sockets, {SOCKET_PATH_MAX} bytes");
        return Finding::fail(check, detail, hint);
    }
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Finding::ok(check, format!("{shown} is free"))
        }
        Err(error) => Finding::fail(check, format!("cannot check {shown}: {error}"), hint),
        Ok(found) if !found.file_type().is_socket() => {
            Finding::fail(check, format!("{shown} exists and is not a socket"), hint)
        }
        Ok(_) => match (UnixStream::connect(path), in_use) {
            (Ok(_), InUse::Yes) => {
                Finding::ok(check, format!("{shown} is in use, by the running node"))
            }
            (Ok(_), InUse::No) => Finding::fail(check, format!("{shown} is in use"), hint),
            (Err(_), _) => Finding::ok(
                check,
                format!("{shown} is left over from an earlier node and will be replaced"),
            ),
        },
    }
}

/// Checks that the system grants a file descriptor for every connection the node would accept.
pub(super) fn check_descriptors(loaded: &Loaded) -> Finding {
    const CHECK: &str = "descriptors";
    let connections_max = loaded.config.native.connections_max;
    let (granted, wanted) = descriptors_granted(connections_max);
    let figures = json!({ "granted": granted, "wanted": wanted });
    let finding = match granted {
        Some(granted) if granted < wanted && !are_connections_asked_for(loaded) => {
            let message = format!("limit {granted}, which also limits the connections");
            Finding::ok(CHECK, message)
        }
        Some(granted) if granted < wanted => Finding::warn(
            CHECK,
            format!("limit {granted}, but {connections_max} connections need {wanted}"),
            "raise the hard limit (`ulimit -Hn`, LimitNOFILE=), or lower native.connections_max",
        ),
        Some(granted) => Finding::ok(CHECK, format!("limit {granted}, {wanted} are needed")),
        None => Finding::ok(CHECK, "no limit"),
    };
    finding.figures(figures)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::super::finding::Verdict;
    use super::*;

    #[test]
    fn a_port_in_use_fails_unless_it_is_the_nodes_own() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let listen = HostPort::loopback(taken.local_addr().unwrap().port());
        let of = |in_use| check_port("port", "--x", Some(&listen), in_use, None).verdict;
        assert_eq!(of(InUse::No), Verdict::Fail);
        assert_eq!(of(InUse::Yes), Verdict::Ok);
        drop(taken);
        assert_eq!(of(InUse::No), Verdict::Ok);
        assert_eq!(
            check_port("port", "--x", None, InUse::No, None).verdict,
            Verdict::Ok
        );
    }

    #[test]
    fn a_socket_is_in_use_only_if_it_accepts() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let of = |path: &Path| check_socket("socket", "--x", path, InUse::No).verdict;
        assert_eq!(of(&path), Verdict::Ok);
        let listener = UnixListener::bind(&path).unwrap();
        assert_eq!(of(&path), Verdict::Fail);
        drop(listener);
        assert_eq!(of(&path), Verdict::Ok);
        std::fs::write(dir.path().join("f"), "").unwrap();
        assert_eq!(of(&dir.path().join("f")), Verdict::Fail);
        assert_eq!(of(Path::new(&"x".repeat(200))), Verdict::Fail);
    }
}
