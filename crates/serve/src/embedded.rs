//! A node inside this process, with free loopback ports and a temporary directory, for the demo.

use std::sync::Arc;

use ::journal::{Journal, SyncTimes};
use config::native::Socket;
use config::{Config, HostPort};
use console::{Exit, Failure};
use model::ByteSize;
use quota_service::LimitConfig;
use tempfile::TempDir;

use super::descriptors::Grant;
use super::running::{Dependencies, NodeJournal, Running};
use super::{journal, ports};

/// Segment size of the journal; the demo writes little.
const SEGMENT_SIZE: ByteSize = ByteSize::mebibytes(1);

/// A node that can be crashed and restarted at the same addresses.
pub struct Embedded {
    /// The TCP address.
    pub tcp: String,
    /// The address of the Unix socket.
    pub unix: String,
    /// The address of the console, if the node serves it.
    pub console: Option<String>,
    config: Config,
    /// The journal outlives each node, so the next node finds its data.
    journal: Arc<Journal>,
    sync_times: Arc<SyncTimes>,
    running: Option<Running>,
    /// The data directory, removed on drop.
    _dir: TempDir,
}

impl Embedded {
    /// Starts the node on the current runtime, and threads for its connections.
    pub async fn start() -> Result<Self, Failure> {
        Self::start_with(Config::default(), None).await
    }

    /// Starts the node with an HTTP listener, which serves the console, and with a limit for each
    /// agent.
    pub async fn start_with_console() -> Result<Self, Failure> {
        let limit = LimitConfig {
            name: "agent-requests".to_owned(),
            pattern: "*/*/*".to_owned(),
            unit: "requests".to_owned(),
            capacity: Some(20),
            refill: Some("3/s".to_owned()),
            ..LimitConfig::default()
        };
        let limit = limit.read().map_err(|reasons| {
            let message = format!("the limit of the demo is invalid: {}", reasons.join("; "));
            Failure::new(Exit::Failed, message).hint("this is a defect: please report it")
        })?;
        let config = Config {
            limits: vec![limit],
            ..Config::default()
        };
        Self::start_with(config, Some(HostPort::loopback(0))).await
    }

    async fn start_with(mut config: Config, http: Option<HostPort>) -> Result<Self, Failure> {
        let dir = tempfile::Builder::new()
            .prefix("telpher-demo-")
            .tempdir()
            .map_err(|error| {
                let message = format!("cannot create a temporary directory: {error}");
                Failure::new(Exit::Failed, message).hint("TMPDIR selects another directory")
            })?;
        let socket = dir.path().join("telpher.sock");
        config.data.dir = dir.path().to_owned();
        config.native.socket = Socket::At(socket.clone());
        config.native.listen = Some(HostPort::loopback(0));
        config.http.listen = http;
        config.kafka.listen = None;
        config.slim.listen = None;
        config.journal.segment_size = SEGMENT_SIZE;
        config.journal.reserve = ByteSize::default();
        let (journal, sync_times) = journal::open(&config, &ports::real())?;
        let running = start(&config, &journal, &sync_times).await?;
        let address = running.addresses().native;
        let port = address.map_or(0, |address| address.port());
        let http = running.addresses().http;
        // A restart uses the same ports.
        config.native.listen = Some(HostPort::loopback(port));
        config.http.listen = http.map(|address| HostPort::loopback(address.port()));
        Ok(Self {
            tcp: format!("tcp://127.0.0.1:{port}"),
            unix: format!("unix://{}", socket.display()),
            console: http.map(|address| format!("http://{address}/ui/")),
            config,
            journal,
            sync_times,
            running: Some(running),
            _dir: dir,
        })
    }

    /// Ends the node as suddenly as a crash.
    pub async fn crash(&mut self) {
        if let Some(running) = self.running.take() {
            running.crash().await;
        }
    }

    /// Starts the node again, from the journal only.
    pub async fn restart(&mut self) -> Result<(), Failure> {
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
    let dependencies = Dependencies {
        loaded: None,
        gate: Arc::new(door::Open),
        ports: ports::real(),
        identity: None,
        limiter: None,
        grant: Grant::UNLIMITED,
        journal: NodeJournal {
            journal: journal.clone(),
            sync_times: sync_times.clone(),
        },
        member: None,
    };
    Running::start(config, dependencies).await
}
