//! `Shared`: state of the archive for the writer, the reader and observers.

use conversation_service::archive::ArchiveView;
use parking_lot::Mutex;

use super::failure::Failure;

/// Shared state of the archive.
#[derive(Debug, Default)]
pub(super) struct Shared(Mutex<ArchiveView>);

impl Shared {
    pub(super) fn view(&self) -> ArchiveView {
        self.0.lock().clone()
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut ArchiveView)) {
        change(&mut self.0.lock());
    }

    /// Records a success, which clears the error.
    pub(super) fn succeeded(&self) {
        self.change(|view| {
            view.is_connected = true;
            if view.error.take().is_some() {
                tracing::info!("writing to the archive works again");
            }
        });
    }

    /// Records a failed attempt; logs each new reason once.
    pub(super) fn failed(&self, failure: &Failure) {
        let reason = failure.to_string();
        self.change(|view| {
            view.errors += 1;
            view.is_connected = failure.affects_one_partition();
            if view.error.as_ref() != Some(&reason) {
                tracing::warn!(reason, "writing to the archive failed");
                view.error = Some(reason);
            }
        });
    }
}
