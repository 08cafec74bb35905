//! Starting the servers of others beside which a workload is measured.

use std::net::TcpListener;
use std::path::Path;

/// What `redis-server` is started with: its own directory, and an append-only file that is synced
/// `everysec` or `always`.
pub(super) fn redis(port: u16, directory: &Path, sync: &str) -> Vec<String> {
    let (directory, port) = (directory.display().to_string(), port.to_string());
    let flags = [
        "--bind",
        "127.0.0.1",
        "--port",
        &port,
        "--dir",
        &directory,
        "--appendonly",
        "yes",
        "--appendfsync",
        sync,
        "--save",
        "",
    ];
    flags.map(str::to_owned).to_vec()
}

/// A port that nobody has; whoever asks for it must take it at once.
pub(super) fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
