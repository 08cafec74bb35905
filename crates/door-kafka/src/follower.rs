//! Kafka connections of a member that does not lead: each request is passed to the leader.
//!
//! While no leader serves, requests are answered here, with errors after which clients look for the leader
//! and repeat them. So a client keeps its connection while leaders change, as at a broker of Apache Kafka
//! that keeps running. Many clients repeat no request whose connection ends before the first answer.
//!
//! The leader alone has the users and topics; the member knows the names of the topics. Where clients have
//! to authenticate, only ApiVersions is answered here, and a connection ends with that to the leader.
//!
//! This module knows neither how the leader is found nor how it is reached: see [`Leader`]. Invariant:
//! *a request is answered once, by the leader or here, in the order of the requests.*

mod connection;
mod refusals;
mod request;
mod responses;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use door::Gate;
use net::Stream;
use platform::Membership;
use topic_service::{Topic, Topics};

use crate::accept::Arrived;
use crate::listener::{BrokerAddress, Options};
use crate::users::Users;
use connection::Connection;

/// The way to the leader's Kafka listener.
pub trait Leader: Send + Sync {
    /// Connects to the Kafka listener of the leader. Returns `None` if that does not succeed within
    /// `limit`.
    fn connect(&self, limit: Duration) -> impl Future<Output = Option<LeaderStream>> + Send;

    /// Returns the last knowledge of the leader's services; `None` if there is none yet.
    fn known(&self) -> Option<KnownServices>;
}

/// The services of the leader, as a member that does not lead knew them a moment ago.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KnownServices {
    /// There are users, as whom clients have to authenticate.
    pub has_users: bool,
    /// The topics; `None` if they are unknown.
    pub topics: Option<Arc<[KnownTopic]>>,
}

/// A topic that a member knows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KnownTopic {
    /// Its name.
    pub name: String,
    /// Its id.
    pub id: [u8; 16],
    /// The number of its partitions.
    pub partitions: u32,
}

impl KnownServices {
    /// Returns the services of this node.
    pub fn of(topics: &Topics) -> Self {
        let known = |topic: &Arc<Topic>| {
            let about = topic.about();
            KnownTopic {
                name: about.name.clone(),
                id: about.id.0,
                partitions: about.partitions,
            }
        };
        Self {
            has_users: topics.is_any(),
            topics: Some(topics.list().iter().map(known).collect()),
        }
    }
}

/// A connection to the Kafka listener of a leader.
pub struct LeaderStream {
    /// The byte stream.
    pub stream: Stream,
    /// Completes when the member leads no more.
    pub end: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl fmt::Debug for LeaderStream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("LeaderStream")
            .field("stream", &self.stream)
            .finish_non_exhaustive()
    }
}

/// The Kafka listener of a member that does not lead.
pub struct Follower {
    membership: Arc<dyn Membership>,
    gate: Arc<dyn Gate>,
    options: Options,
}

impl fmt::Debug for Follower {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Follower")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl Follower {
    /// Creates the listener of a member.
    pub fn new(membership: Arc<dyn Membership>, gate: Arc<dyn Gate>, options: Options) -> Self {
        Self {
            membership,
            gate,
            options,
        }
    }

    /// Serves one connection to its end.
    pub async fn serve(&self, arrived: Arrived, leader: &impl Leader) {
        let Arrived { stream, local } = arrived;
        let (sink, peer) = (stream.sink.clone(), stream.peer.clone());
        let own = self.options.advertised.clone();
        let own = own.unwrap_or_else(|| BrokerAddress::from(local));
        let connection = Connection::new(self, leader, own, stream);
        match connection.run().await {
            Ok(()) => tracing::debug!(remote = %peer, "kafka connection closed"),
            Err(reason) => tracing::debug!(remote = %peer, %reason, "kafka connection closed"),
        }
        sink.finish();
    }

    /// Returns the knowledge that clients may have, which is none if they have to authenticate.
    fn open_services(&self, leader: &impl Leader) -> Option<KnownServices> {
        let is_open = |known: &KnownServices| !known.has_users && self.gate.admit("").is_ok();
        leader.known().filter(is_open)
    }
}
