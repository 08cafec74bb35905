//! The parts of a node, from the configuration.

use std::sync::Arc;

use ::journal::Journal;
use config::Config;
use http_conversations::EventJson;
use message_json::chunks::Assembler;
use messaging::Limits;
use net::SocketBudget;
use node::{QuotaParts, SocketsSource, SocketsView, StorageParts, StoreOptions};
use quota_service::SharedStore;
use views::ViewsLocation;

/// The directory of the views in the data directory.
const VIEWS: &str = "views";

/// Returns the limits of connections.
pub(super) fn limits(config: &Config) -> Limits {
    let native = &config.native;
    Limits {
        connections_max: native.connections_max as usize,
        calls_max: native.calls_max,
        subscriptions_per_connection_max: native.subscriptions_per_connection_max as usize,
        credit_messages: native.credit_messages,
        credit_bytes: native.credit_bytes.as_u64(),
    }
}

/// Returns the quotas.
pub(super) fn quotas(config: &Config, shared: Option<SharedStore>) -> QuotaParts {
    QuotaParts {
        options: config.quota.to_service(),
        limits: config.limits.clone(),
        shared,
    }
}

/// Returns the counts of a socket budget.
pub(super) fn sockets(budget: SocketBudget) -> SocketsSource {
    Box::new(move || SocketsView {
        open: budget.open(),
        limit: budget.limit(),
        refused: budget.refused(),
    })
}

/// Returns the storage, without an archive and webhooks.
pub(super) fn storage(config: &Config, journal: Arc<Journal>) -> StorageParts {
    StorageParts {
        options: store_options(config),
        topics: config.topics.to_service(),
        event_encoder: Some(Arc::new(EventJson)),
        assembler: Some(Arc::new(Assembler)),
        views: Some(view_options(config)),
        ..StorageParts::new(journal)
    }
}

fn view_options(config: &Config) -> views::Options {
    let views = &config.views;
    views::Options {
        place: ViewsLocation::Directory(config.data.dir.join(VIEWS)),
        cache_size: views.cache_size.as_usize(),
        sync_interval: views.sync_interval,
        watchers_max: views.watchers_max as usize,
        labels: message_json::labels,
    }
}

fn store_options(config: &Config) -> StoreOptions {
    let mailbox = &config.mailbox;
    StoreOptions {
        mailboxes: messaging::mailboxes::Options {
            messages_max: mailbox.messages_max as usize,
            size_max: mailbox.size_max.as_u64(),
            ttl: mailbox.ttl,
            ack_timeout: mailbox.ack_timeout,
            in_flight_max: mailbox.in_flight_max as usize,
            deliveries_max: mailbox.deliveries_max,
        },
        names_per_namespace_max: config.namespace.names_max as usize,
        conversations: conversation_options(&config.conversation),
    }
}

fn conversation_options(options: &config::conversation::Options) -> conversation_service::Options {
    let limits = conversation_service::Limits {
        batch_messages_max: options.batch_messages_max as usize,
        batch_bytes_max: options.batch_size_max.as_usize(),
        message_bytes_max: options.message_size_max.as_usize(),
        metadata_bytes_max: options.metadata_size_max.as_usize(),
        parts_max: options.parts_max as usize,
        cursors_max: options.cursors_max as usize,
        drafts_max: options.drafts_max as usize,
        draft_bytes_max: options.draft_size_max.as_usize(),
    };
    conversation_service::Options {
        limits,
        watchers_max: options.watchers_max as usize,
    }
}
