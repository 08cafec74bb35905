//! A node inside this process, on free loopback ports and a temporary directory: for a demo.

use std::sync::Arc;

use ::journal::{Journal, SyncTimes};
use model::ByteSize;
use node::config::native::Socket;
use node::config::{Config, HostPort};
use tempfile::TempDir;

use super::descriptors::Grant;
use super::running::{Kept, Means, Running};
use super::{journal, ports};
use crate::failure::{Exit, Failure};

/// Files of its journal: a demo writes little.
const SEGMENT_SIZE: ByteSize = ByteSize::mebibytes(1);

/// A node that can be taken away and brought back at the same addresses.
pub(crate) struct Embedded {
    /// Where it listens for TCP.
    pub(crate) tcp: String,
    /// Where its Unix socket is.
    pub(crate) unix: String,
    config: Config,
    /// Outlives the nodes: what one has written is there for the next.
    journal: Arc<Journal>,
    sync_times: Arc<SyncTimes>,
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
        config.kafka.listen = None;
        config.slim.listen = None;
        config.journal.segment_size = SEGMENT_SIZE;
        config.journal.reserve = ByteSize::default();
        let (journal, sync_times) = journal::open(&config, &ports::real())?;
        let running = start(&config, &journal, &sync_times).await?;
        let address = running.addresses().native;
        let port = address.map_or(0, |address| address.port());
        // From now on the same one.
        config.native.listen = Some(HostPort::loopback(port));
        Ok(Self {
            tcp: format!("tcp://127.0.0.1:{port}"),
            unix: format!("unix://{}", socket.display()),
            config,
            journal,
            sync_times,
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

    /// Brings it back, with what is in the journal and nothing else that it knew before.
    pub(crate) async fn restart(&mut self) -> Result<(), Failure> {
        let running = start(&self.config, &self.journal, &self.sync_times).await?;
        self.running = Some(running);
        Ok(())
    }
}

async fn start(
    config: &Config,
    journal: &Arc<Journal>,
    sync_times: &Arc<SyncTimes>,
) -> Result<Running, Failure> {
    let means = Means {
        gate: Arc::new(edge::Open),
        ports: ports::real(),
        identity: None,
        limiter: None,
        grant: Grant::UNLIMITED,
        journal: Kept {
            journal: journal.clone(),
            sync_times: sync_times.clone(),
        },
    };
    Running::start(config, means).await
}
