//! Starts the archive of conversations in PostgreSQL, if one is configured.

use std::time::Duration;

use node::Node;
use node::config::Config;
use node::conversations::feed::Keep;
use outbound::archive::{self, Options};

use crate::failure::{Exit, Failure};

/// Returns the task that writes the archive; `None` if no archive is configured. The database may
/// be unreachable at the start; the task writes to it once it is reachable.
pub(super) fn start(
    node: &Node,
    config: &Config,
) -> Result<Option<impl Future<Output = ()> + Send + 'static>, Failure> {
    let Some(options) = options(config) else {
        return Ok(None);
    };
    let task = archive::keep(node, options);
    task.map(Some)
        .map_err(|error| Failure::new(Exit::Usage, error))
}

fn options(config: &Config) -> Option<Options> {
    let archive = &config.archive;
    let url = archive.url.as_ref()?.secret().to_owned();
    let ms = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    Some(Options {
        url,
        interval: archive.interval,
        statement_timeout: archive.statement_timeout,
        read_timeout: archive.read_timeout,
        keep: Keep {
            messages: archive.keep_messages.map(u64::from),
            bytes: archive.keep_size.map(|size| size.as_u64()),
            age_ms: archive.keep_age.map(ms),
        },
    })
}
