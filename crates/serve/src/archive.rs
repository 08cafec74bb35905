//! Creates the archive of conversations in PostgreSQL, if one is configured.

use std::time::Duration;

use config::Config;
use conversation_service::feed::ArchivedRetention;
use outbound::archive::{Archive, Options};

use console::{Exit, Failure};

/// Returns the archive; `None` if none is configured. The database may be unreachable at the start;
/// the archive writes to it once it is reachable.
pub(super) fn create(config: &Config) -> Result<Option<Archive>, Failure> {
    let archive = options(config).map(Archive::new).transpose();
    archive.map_err(|error| Failure::new(Exit::Usage, error))
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
        keep: ArchivedRetention {
            messages: archive.keep_messages.map(u64::from),
            bytes: archive.keep_size.map(|size| size.as_u64()),
            age_ms: archive.keep_age.map(ms),
        },
    })
}
