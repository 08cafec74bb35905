//! Opening a node from its parts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use journal::SyncTimes;
use parking_lot::{Mutex, RwLock};
use platform::{Platform, Ports};
use routing::Table;

use super::{Inner, Node};
use crate::parts::{OpenError, Parts, StorageParts};
use crate::store::Store;
use crate::views::ViewsState;
use crate::{quotas, topics, webhooks};

/// The services that need storage.
#[derive(Default)]
struct Services {
    topics: Option<Arc<topics::State>>,
    sync_times: Option<Arc<SyncTimes>>,
    views: Option<ViewsState>,
    webhooks: Option<webhooks::Registry>,
}

impl Services {
    fn open(parts: StorageParts, store: &Store, ports: &Ports) -> Result<Self, topics::OpenError> {
        let topics = topics::State::open(store, ports, parts.topics, parts.event_encoder)?;
        let clock = &*ports.clock;
        Ok(Self {
            topics: Some(Arc::new(topics)),
            sync_times: parts.sync_times,
            views: parts.views.map(ViewsState::new),
            webhooks: parts.webhooks.map(|it| webhooks::Registry::new(it, clock)),
        })
    }
}

impl Node {
    /// Opens a node. Everything that is stored and that it needs at once is loaded: names, quotas,
    /// topics, and the drafts that the last shutdown interrupted, which become messages. Then the
    /// configured limits of quotas are put into effect. Views and webhooks are loaded by their
    /// first use.
    ///
    /// The shell drives the work of an open node: [`Node::sweep`], [`crate::views::Views::tend`],
    /// [`crate::webhooks::Webhooks::tend`], [`Node::apply_stream_retention`],
    /// [`crate::Quotas::follow_clock`] and [`crate::Quotas::tend_store`].
    pub fn open(parts: Parts) -> Result<Self, OpenError> {
        let Parts {
            ports,
            limits,
            quotas,
            offload,
            names,
            sockets,
            storage,
        } = parts;
        let store = storage.as_ref().map(|it| {
            let (assembler, archive) = (it.assembler.clone(), it.archive.clone());
            Store::open(it.journal.clone(), it.options, assembler, archive)
        });
        let store = store.transpose()?;
        let (options, shared) = (quotas.options, quotas.shared);
        let quota_state = quotas::State::open(&ports, options, shared, store.as_ref())?;
        let services = match storage.zip(store.as_ref()) {
            Some((storage, store)) => Services::open(storage, store, &ports)?,
            None => Services::default(),
        };
        let platform = Arc::new(Platform::new(ports, offload));
        let inner = Inner {
            quotas: quota_state,
            platform,
            limits,
            table: RwLock::new(Table::default()),
            peers: Mutex::new(BTreeMap::new()),
            to_sweep: Mutex::default(),
            names,
            store,
            starved_since_ns: AtomicU64::new(0),
            sockets,
            sync_times: services.sync_times,
            views: services.views,
            webhooks: services.webhooks,
            topics: services.topics,
            next_connection: AtomicU64::new(1),
            draining: AtomicBool::new(false),
        };
        let node = Self {
            inner: Arc::new(inner),
        };
        node.quotas().restore(quotas.limits)?;
        node.convert_lost_drafts().map_err(OpenError::Drafts)?;
        if let (Some(store), Some(_)) = (&node.inner.store, &node.inner.webhooks) {
            store.touched.keep();
        }
        node.inner.platform.need_sweep();
        Ok(node)
    }
}
