//! What is known of the archive, for everybody who looks.

use node::ports::archive::ArchiveView;
use parking_lot::Mutex;

use super::failure::Failure;

/// Shared by whoever writes, reads and looks.
#[derive(Debug, Default)]
pub(super) struct Shared(Mutex<ArchiveView>);

impl Shared {
    pub(super) fn view(&self) -> ArchiveView {
        self.0.lock().clone()
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut ArchiveView)) {
        change(&mut self.0.lock());
    }

    /// It answered; what was wrong is over.
    pub(super) fn succeeded(&self) {
        self.change(|view| {
            view.is_connected = true;
            if view.error.take().is_some() {
                tracing::info!("the archive can be written again");
            }
        });
    }

    /// An attempt failed; each reason is told once.
    pub(super) fn failed(&self, failure: &Failure) {
        let reason = failure.to_string();
        self.change(|view| {
            view.errors += 1;
            view.is_connected = failure.is_of_one_partition();
            if view.error.as_ref() != Some(&reason) {
                tracing::warn!(reason, "the archive cannot be written");
                view.error = Some(reason);
            }
        });
    }
}
