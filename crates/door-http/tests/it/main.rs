//! The HTTP door over loopback sockets, with a journal on a disk in memory.

#![expect(clippy::unwrap_used, reason = "what goes wrong in a test ends it")]

mod agents;
mod ai_sdk;
mod answer;
mod append;
mod bad_input;
mod budget;
mod client;
mod cold_conversations;
mod compat;
mod console;
mod context;
mod contract;
mod fast_appends;
mod faults;
mod follow;
mod in_process;
mod metadata;
mod name_tokens;
mod openapi;
mod quotas;
mod read;
mod resume;
mod socket;
mod state;
mod streams;
mod topics;
mod transfer;
mod views;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use door_testing::SwitchedOffload;
use journal::Journal;
use journal::disk::{Disk, SimulatedDisk};
use node::{Node, Parts, QuotaParts, StorageParts, StoreOptions};
use platform::Membership;
use platform::testing::ThreeMembers;
use serde_json::{Value, json};
use tokio::net::TcpListener;

pub(crate) use client::{Answer, Events};
pub(crate) use door_testing::ManualClock;

/// A node that keeps conversations, and its door.
pub(crate) struct Door {
    pub(crate) node: Node,
    pub(crate) disk: SimulatedDisk,
    pub(crate) address: SocketAddr,
    clock: Arc<ManualClock>,
    pub(crate) offload: Arc<SwitchedOffload>,
}

impl Door {
    pub(crate) async fn open() -> Self {
        Self::with(StoreOptions::default()).await
    }

    pub(crate) async fn with(options: StoreOptions) -> Self {
        Self::on(SimulatedDisk::new(7), options, 1).await
    }

    /// A node on what an earlier one left; `start` counts them.
    pub(crate) async fn on(disk: SimulatedDisk, options: StoreOptions, start: u64) -> Self {
        Self::with_segments(disk, options, start, 4 << 20).await
    }

    pub(crate) async fn with_segments(
        disk: SimulatedDisk,
        options: StoreOptions,
        start: u64,
        segment_size: u64,
    ) -> Self {
        Self::behind(Arc::new(disk.clone()), disk, options, start, segment_size).await
    }

    /// The same on a disk that something stands in front of.
    pub(crate) async fn behind(
        front: Arc<dyn Disk>,
        disk: SimulatedDisk,
        options: StoreOptions,
        start: u64,
        segment_size: u64,
    ) -> Self {
        let quotas = QuotaParts::default();
        Self::start(front, disk, options, quotas, None, start, segment_size).await
    }

    /// A node that is a member of a cluster.
    pub(crate) async fn of_cluster() -> Self {
        let (disk, options) = (SimulatedDisk::new(7), StoreOptions::default());
        let members: Arc<dyn Membership> = Arc::new(ThreeMembers::new(7));
        let front = Arc::new(disk.clone());
        let quotas = QuotaParts::default();
        Self::start(front, disk, options, quotas, Some(members), 1, 4 << 20).await
    }

    pub(crate) async fn with_quotas(quotas: QuotaParts) -> Self {
        let (disk, options) = (SimulatedDisk::new(7), StoreOptions::default());
        Self::start(
            Arc::new(disk.clone()),
            disk,
            options,
            quotas,
            None,
            1,
            4 << 20,
        )
        .await
    }

    async fn start(
        front: Arc<dyn Disk>,
        disk: SimulatedDisk,
        options: StoreOptions,
        quotas: QuotaParts,
        membership: Option<Arc<dyn Membership>>,
        start: u64,
        segment_size: u64,
    ) -> Self {
        let journal_options = journal::Options {
            segment_size,
            ..door_testing::journal_options(start)
        };
        let clock = Arc::new(ManualClock::default());
        let journals = Arc::clone(&clock);
        let now_ms = move || journals.0.load(Ordering::Relaxed) / 1_000_000;
        let (journal, _) = Journal::open(front, &journal_options, now_ms).unwrap();
        let storage = StorageParts {
            membership,
            options,
            event_encoder: Some(Arc::new(http_conversations::EventJson)),
            assembler: Some(Arc::new(message_json::chunks::Assembler)),
            views: Some(views::options()),
            ..StorageParts::new(Arc::new(journal))
        };
        let offload = Arc::new(SwitchedOffload::default());
        let ports = door_testing::ports(clock.clone(), start << 32);
        let node = Node::open(Parts {
            quotas,
            offload: offload.clone(),
            ..Parts::with_storage(ports, storage)
        });
        let node = node.unwrap();
        let address = serve(&node).await;
        Self {
            node,
            disk,
            address,
            clock,
            offload,
        }
    }

    /// Time passes.
    pub(crate) fn pass_ms(&self, ms: u64) {
        self.clock.0.fetch_add(ms * 1_000_000, Ordering::Relaxed);
    }

    /// The views catch up.
    pub(crate) fn tend(&self) {
        while self.node.views().unwrap().tend().unwrap() {}
    }

    /// Whether there is a place for one more who follows an inbox.
    pub(crate) fn can_follow(&self, who: &str) -> bool {
        let watch = self
            .node
            .views()
            .unwrap()
            .watch_inbox("default/default", who);
        watch.is_ok()
    }

    /// Asks, and reads the whole answer.
    pub(crate) async fn ask(&self, method: &str, path: &str, body: &Value) -> Answer {
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        self.ask_with(
            method,
            path,
            &[("content-type", "application/json")],
            body.as_bytes(),
        )
        .await
    }

    pub(crate) async fn ask_with(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let answer = client::ask(self.address, method, path, headers, body).await;
        let contract = contract::Contract::of(self.address).await;
        contract.check(method, path, body, &answer);
        answer
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &Value::Null).await
    }

    /// Appends one text, and says which number it has.
    pub(crate) async fn append_text(&self, conversation: &str, text: &str) -> u64 {
        let path = format!("/v1/conversations/{conversation}/messages");
        let answer = self.ask("POST", &path, &text_batch(text)).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()["last_seq"].as_u64().unwrap()
    }

    /// Follows a path.
    pub(crate) async fn events(&self, path: &str) -> Events {
        Events::open(self.address, path, &[("accept", "text/event-stream")]).await
    }

    /// Follows a conversation from behind a position on.
    pub(crate) async fn follow(&self, conversation: &str, position: &str) -> Events {
        let path = format!("/v1/conversations/{conversation}/messages");
        let headers = [("accept", "text/event-stream"), ("last-event-id", position)];
        Events::open(self.address, &path, &headers).await
    }
}

async fn serve(node: &Node) -> SocketAddr {
    serve_routes(door_http::routes(
        node.clone(),
        Arc::new(door::Open),
        Arc::default(),
        &[],
        None,
    ))
    .await
}

/// Serves other routes than a door's.
pub(crate) async fn serve_routes(routes: http_api::Routes) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(door_http::serve(
        listener,
        None,
        net::SocketBudget::unlimited(),
        routes,
        door_http::Options::default(),
        door_http::spawn_here(),
    ));
    address
}

/// A batch of one text.
pub(crate) fn text_batch(text: &str) -> Value {
    json!({"messages": [{"role": "user", "content": text}]})
}
