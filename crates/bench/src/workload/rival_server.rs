//! Start-up of the rival servers that a workload is compared with.

use std::net::TcpListener;
use std::path::Path;

/// Arguments of `redis-server`: its own directory, and an append-only file that is synced
/// `everysec` or `always`.
#[must_use]
pub fn redis(port: u16, directory: &Path, sync: &str) -> Vec<String> {
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

/// Returns a free port. The caller must bind it at once.
///
/// # Errors
/// When no port is free.
pub fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
