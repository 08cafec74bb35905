//! Conversations with a manual clock.

use std::sync::Arc;

use platform::testing::ManualClock;
use store::Store;

use crate::archive::Archive;
use crate::{Assemble, Conversations, Options};

/// Conversations, their store and their clock.
pub(crate) struct World {
    pub(crate) conversations: Conversations,
    pub(crate) store: Arc<Store>,
    clock: Arc<ManualClock>,
}

impl World {
    /// Opens the conversations of a journal.
    pub(crate) fn open(
        journal: Arc<journal::Journal>,
        options: Options,
        assembler: Option<Arc<dyn Assemble>>,
        archive: Option<Arc<dyn Archive>>,
    ) -> Self {
        let clock = ManualClock::at(0);
        let platform = platform::testing::platform(clock.clone());
        let store = Arc::new(Store::open(journal, 1_000_000, 0).unwrap());
        let opened = Conversations::open(platform, store.clone(), options, assembler, archive);
        Self {
            conversations: opened.unwrap(),
            store,
            clock,
        }
    }

    /// Advances the clock, with the sweeps that a node makes.
    pub(crate) fn pass_ms(&self, ms: u64) {
        for _ in 0..ms.div_ceil(100) {
            self.clock.pass_ns(100_000_000);
            self.conversations.sweep();
        }
    }
}
