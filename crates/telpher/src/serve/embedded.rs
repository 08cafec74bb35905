//! A node inside this process, on free loopback ports and a temporary directory: for a demo.

use std::sync::Arc;

use node::config::native::Socket;
use node::config::{Config, HostPort};
use tempfile::TempDir;

use super::ports;
use super::running::{Means, Running};
use crate::failure::{Exit, Failure};

/// A node that can be taken away and brought back at the same addresses.
pub(crate) struct Embedded {
    /// Where it listens for TCP.
    pub(crate) tcp: String,
    /// Where its Unix socket is.
    pub(crate) unix: String,
    config: Config,
    running: Option<Running>,
    /// Removed with everything in it when this is dropped.
    _dir: TempDir,
}

impl Embedded {
    /// Starts it on the current runtime, and threads for its connections.
    pub(crate) async fn start() -> Result<Self, Failure> {
        let dir = tempfile::Builder::new()
            .prefix("telpher-demo-")
            .tempdir()
            .map_err(|error| {
                let message = format!("cannot create a temporary directory: {error}");
                Failure::new(Exit::Failed, message).hint("TMPDIR names another place for it")
            })?;
        let socket = dir.path().join("telpher.sock");
        let mut config = Config::default();
        config.data.dir = dir.path().to_owned();
        config.native.socket = Socket::At(socket.clone());
        config.native.listen = Some(HostPort::loopback(0));
        config.http.listen = None;
        let running = start(&config).await?;
        let address = running.addresses().native;
        let port = address.map_or(0, |address| address.port());
        // From now on the same one.
        config.native.listen = Some(HostPort::loopback(port));
        Ok(Self {
            tcp: format!("tcp://127.0.0.1:{port}"),
            unix: format!("unix://{}", socket.display()),
            config,
            running: Some(running),
            _dir: dir,
        })
    }

    /// Takes it away, as suddenly as a crash.
    pub(crate) async fn crash(&mut self) {
        if let Some(running) = self.running.take() {
            running.crash().await;
        }
    }

    /// Brings it back, with nothing that it knew before.
    pub(crate) async fn restart(&mut self) -> Result<(), Failure> {
        self.running = Some(start(&self.config).await?);
        Ok(())
    }
}

async fn start(config: &Config) -> Result<Running, Failure> {
    let means = Means {
        gate: Arc::new(edge::Open),
        ports: ports::real(),
        tls: None,
        journal: None,
    };
    Running::start(config, means).await
}
