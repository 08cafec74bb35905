//! The parts that a node is opened from.

use std::sync::Arc;

use conversation_service::archive::Archive;
use conversation_service::{Assemble, ConversationError};
use journal::{Journal, SyncTimes};
use messaging::{Limits, Names, mailboxes};
use platform::{Inline, Membership, Offload, Ports, Tracer};
use quota::Limit;
use quota_service::SharedStore;
use webhooks::WebhookParts;

use crate::SocketsSource;
use crate::event_feed::EventEncoder;

/// Everything that a node is opened from. [`Parts::in_memory`] and [`Parts::with_storage`] have
/// defaults for all fields but the ports and the journal.
pub struct Parts {
    /// Time and randomness.
    pub ports: Ports,
    /// The limits of connections.
    pub limits: Limits,
    /// The quotas.
    pub quotas: QuotaParts,
    /// The executor of work that may wait for the disk. By default it runs inline.
    pub offload: Arc<dyn Offload>,
    /// The names of a listener with its own name table, for monitoring.
    pub names: Option<Arc<dyn Names>>,
    /// The source of socket counts, for monitoring.
    pub sockets: Option<SocketsSource>,
    /// The source of spans; `None` if none are exported.
    pub tracer: Option<Arc<Tracer>>,
    /// The storage. A node without it has no mailboxes, streams, conversations and topics, and its
    /// quotas last until it ends.
    pub storage: Option<StorageParts>,
}

/// The quotas of a node.
#[derive(Default)]
pub struct QuotaParts {
    /// The options.
    pub options: quota_service::Options,
    /// The configured limits. They replace stored ones only if the configuration changed since the
    /// last start.
    pub limits: Vec<Limit>,
    /// The store that several nodes share; without one, the cells are local.
    pub shared: Option<SharedStore>,
}

/// The options of mailboxes, names and conversations.
#[derive(Clone, Copy, Debug)]
pub struct StoreOptions {
    /// The options of mailboxes.
    pub mailboxes: mailboxes::Options,
    /// Maximum number of mailboxes, streams and conversations per namespace. It also limits the
    /// partitions of all topics, those of deleted topics included.
    pub names_per_namespace_max: usize,
    /// The options of conversations.
    pub conversations: conversation_service::Options,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            mailboxes: mailboxes::Options::default(),
            names_per_namespace_max: 1_000_000,
            conversations: conversation_service::Options::default(),
        }
    }
}

/// The storage of a node, and the services that need it.
pub struct StorageParts {
    /// The journal.
    pub journal: Arc<Journal>,
    /// The cluster to which the node belongs; `None` for a node alone.
    pub membership: Option<Arc<dyn Membership>>,
    /// The options of mailboxes, names and conversations.
    pub options: StoreOptions,
    /// The durations of syncs, for monitoring.
    pub sync_times: Option<Arc<SyncTimes>>,
    /// The options of topics.
    pub topics: topic_service::Options,
    /// The encoder of conversation events. With it, each namespace has a read-only topic of its
    /// events.
    pub event_encoder: Option<Arc<dyn EventEncoder>>,
    /// The assembler of streamed answers. Without it, answers cannot be streamed to the node.
    pub assembler: Option<Arc<dyn Assemble>>,
    /// The archive from which trimmed messages are read.
    pub archive: Option<Arc<dyn Archive>>,
    /// The options of the views of conversations; `None` for a node without views.
    pub views: Option<views::Options>,
    /// The webhooks; `None` for a node without webhooks.
    pub webhooks: Option<WebhookParts>,
}

impl Parts {
    /// Returns the parts of a node without storage.
    pub fn in_memory(ports: Ports) -> Self {
        Self {
            ports,
            limits: Limits::default(),
            quotas: QuotaParts::default(),
            offload: Arc::new(Inline),
            names: None,
            sockets: None,
            tracer: None,
            storage: None,
        }
    }

    /// Returns the parts of a node with storage.
    pub fn with_storage(ports: Ports, storage: StorageParts) -> Self {
        Self {
            storage: Some(storage),
            ..Self::in_memory(ports)
        }
    }
}

impl StorageParts {
    /// Returns storage in a journal, with default options and without optional services.
    pub fn new(journal: Arc<Journal>) -> Self {
        Self {
            journal,
            membership: None,
            options: StoreOptions::default(),
            sync_times: None,
            topics: topic_service::Options::default(),
            event_encoder: None,
            assembler: None,
            archive: None,
            views: None,
            webhooks: None,
        }
    }
}

/// The reason why a node cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The directory of streams cannot be read.
    #[error(transparent)]
    Store(#[from] store::OpenError),
    /// The stored quotas cannot be used, or the configured limits are invalid.
    #[error(transparent)]
    Quotas(#[from] quota_service::OpenError),
    /// The stored topics cannot be used.
    #[error(transparent)]
    Topics(#[from] topic_service::OpenError),
    /// The drafts that the last shutdown interrupted cannot be stored as messages.
    #[error(transparent)]
    Drafts(ConversationError),
}
