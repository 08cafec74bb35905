//! The options of the views.

use std::time::Duration;

use crate::file::ViewsLocation;

/// Extracts labels: calls back for each key and value in metadata. The format of metadata is known
/// outside this crate.
pub type Labels = fn(&[u8], &mut dyn FnMut(&str, &str));

/// The options of the views.
#[derive(Clone, Debug)]
pub struct Options {
    /// Location of the database.
    pub place: ViewsLocation,
    /// Size of the cache in bytes.
    pub cache_size: usize,
    /// Maximum age of views after a crash; later events are applied again.
    pub sync_interval: Duration,
    /// Maximum number of watched inboxes.
    pub watchers_max: usize,
    /// Extracts labels from metadata.
    pub labels: Labels,
}
