//! Opening a node from its parts.

use std::sync::Arc;

use conversation_service::Conversations;
use journal::AppendError;
use messaging::Messaging;
use platform::{Alone, Membership, Platform};
use quota_service::{QuotaService, QuotaStreams};
use store::{Health, Kind, Store, Streams};
use topic_service::{EventFeed, Topics};
use views::Views;
use webhooks::Webhooks;

use super::{Inner, Node, StoredServices};
use crate::event_feed::ConversationEvents;
use crate::history::History;
use crate::parts::{OpenError, Parts, StorageParts};
use crate::user_sessions::ConnectedUsers;

/// Finds the streams of quotas, or creates them.
fn quota_streams(store: &Arc<Store>, now_ms: u64) -> Result<QuotaStreams, AppendError> {
    let shard = store.shard_of("quotas");
    let find = |name| store.find_or_create_in(Kind::Quotas, name, shard, now_ms);
    Ok(QuotaStreams {
        store: store.clone(),
        shard,
        state: find("state")?.stream,
        changes: find("changes")?.stream,
        audit: find("audit")?.stream,
        usage: find("usage")?.stream,
    })
}

impl Node {
    /// Opens a node. Everything that is stored and that it needs at once is loaded: names, quotas,
    /// topics, and the drafts that the last shutdown interrupted, which become messages. Then the
    /// configured limits of quotas are put into effect. Views and webhooks are loaded by their
    /// first use.
    ///
    /// The shell drives the work of an open node: [`Node::sweep`], [`Views::tend`],
    /// [`Webhooks::tend`], [`Streams::apply_retention`], [`quota_service::Quotas::follow_clock`] and
    /// [`quota_service::Quotas::tend_store`].
    pub fn open(parts: Parts) -> Result<Self, OpenError> {
        let Parts {
            ports,
            limits,
            quotas,
            offload,
            names,
            sockets,
            tracer,
            storage,
        } = parts;
        let membership = storage.as_ref().and_then(|it| it.membership.clone());
        let membership = membership.unwrap_or_else(|| {
            let journal_id = storage.as_ref().map_or(0, |it| it.journal.id());
            Arc::new(Alone::new(journal_id)) as Arc<dyn Membership>
        });
        let platform = Arc::new(Platform::new(ports, offload, membership).with_tracer(tracer));
        let now_ms = platform.unix_ms();
        let names_max = storage
            .as_ref()
            .map(|it| it.options.names_per_namespace_max);
        let journal = storage.as_ref().map(|it| it.journal.clone());
        let store = journal
            .zip(names_max)
            .map(|(journal, max)| Store::open(journal, max, now_ms));
        let store = store.transpose()?.map(Arc::new);
        let streams = store.as_ref().map(|store| quota_streams(store, now_ms));
        let streams = streams
            .transpose()
            .map_err(quota_service::OpenError::from)?;
        let (options, shared) = (quotas.options, quotas.shared);
        let quota_service = QuotaService::new(platform.clone(), options, shared, streams);
        let quota_service = Arc::new(quota_service);
        let mailboxes = storage.as_ref().map(|it| it.options.mailboxes);
        let messaging = Arc::new(Messaging::new(
            platform.clone(),
            limits,
            quota_service.clone(),
            names,
            store.clone().zip(mailboxes),
        ));
        let stored = storage
            .zip(store)
            .map(|(storage, store)| StoredServices::open(storage, store, &platform, &messaging));
        let inner = Inner {
            platform,
            messaging,
            sockets,
            quotas: quota_service,
            history: History::default(),
            stored: stored.transpose()?,
        };
        let node = Self {
            inner: Arc::new(inner),
        };
        node.quotas().restore(quotas.limits)?;
        node.inner.platform.need_sweep();
        Ok(node)
    }
}

impl StoredServices {
    fn open(
        parts: StorageParts,
        store: Arc<Store>,
        platform: &Arc<Platform>,
        messaging: &Arc<Messaging>,
    ) -> Result<Self, OpenError> {
        let conversations = Conversations::open(
            platform.clone(),
            store.clone(),
            parts.options.conversations,
            parts.assembler,
            parts.archive,
        )
        .map_err(OpenError::Drafts)?;
        let feed = parts.event_encoder.map(|encoder| {
            let events = ConversationEvents::new(conversations.clone(), encoder);
            Arc::new(events) as Arc<dyn EventFeed>
        });
        let topics = Topics::open(
            platform.clone(),
            store.clone(),
            parts.topics,
            feed,
            Arc::new(ConnectedUsers(messaging.clone())),
        )?;
        let shared = || (platform.clone(), store.clone(), conversations.clone());
        let views = parts.views.map(|options| {
            let (platform, store, conversations) = shared();
            Views::new(platform, store, conversations, options)
        });
        let webhooks = parts.webhooks.map(|parts| {
            let (platform, store, conversations) = shared();
            Webhooks::new(platform, store, conversations, views.clone(), parts)
        });
        Ok(Self {
            health: Health::new(platform.clone(), store.clone(), parts.sync_times),
            streams: Streams::new(platform.clone(), store.clone()),
            topics,
            conversations,
            views,
            webhooks,
            store,
        })
    }
}
