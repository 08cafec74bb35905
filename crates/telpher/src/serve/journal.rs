//! The journal of a node that serves: opened in its data directory, and told of to people.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bench::clock::now_ns;
use journal::disk::RealDisk;
use journal::{AcceptLoss, Journal, MeasuredDisk, Options, SyncTimes};
use node::config::Config;

use crate::failure::{Exit, Failure};

/// Where it lies in the data directory.
pub(super) const DIRECTORY: &str = "journal";

/// How long the end of a node waits for what is queued.
const FLUSH: Duration = Duration::from_secs(2);

/// Opens it, or makes it where there is none.
pub(super) fn open(
    config: &Config,
    ports: &node::Ports,
) -> Result<(Arc<Journal>, Arc<SyncTimes>), Failure> {
    let dir = config.data.dir.join(DIRECTORY);
    let options = options(config, ports);
    let clock = ports.clock.clone();
    let disk = MeasuredDisk::new(Arc::new(RealDisk::new(&dir)), now_ns);
    let times = disk.times().clone();
    let opened = Journal::open(Arc::new(disk), &options, move || clock.unix_ms());
    let (journal, recovery) = opened.map_err(|error| {
        let message = format!("the journal in {}: {error}", dir.display());
        Failure::new(Exit::Failed, message).hint(format!(
            "`telpher inspect {}` says more",
            config.data.dir.display()
        ))
    })?;
    tracing::info!(
        segments = recovery.segments,
        blocks = recovery.blocks,
        bytes = recovery.bytes,
        torn_bytes = recovery.torn_bytes,
        "the journal is open"
    );
    Ok((Arc::new(journal), times))
}

fn options(config: &Config, ports: &node::Ports) -> Options {
    let journal = &config.journal;
    Options {
        journal_id: ports.entropy.next_u64(),
        entropy: ports.entropy.next_u64(),
        // The configuration keeps it at 64 and below.
        shard_count: u16::try_from(journal.shards).unwrap_or(u16::MAX),
        segment_size: journal.segment_size.as_u64() & !4095,
        queue_bytes_max: journal.queue_size_max.as_u64(),
        tail_bytes_max: journal.tail_size_max.as_usize(),
        reserve_size: journal.reserve.as_u64(),
        accept_loss: match journal.accept_loss {
            true => AcceptLoss::Yes,
            false => AcceptLoss::No,
        },
        ..Options::default()
    }
}

/// What mailboxes hold.
pub(super) fn store_options(config: &Config) -> node::StoreOptions {
    let mailbox = &config.mailbox;
    node::StoreOptions {
        messages_max: mailbox.messages_max as usize,
        size_max: mailbox.size_max.as_u64(),
        ttl: mailbox.ttl,
        ack_timeout: mailbox.ack_timeout,
        in_flight_max: mailbox.in_flight_max as usize,
        deliveries_max: mailbox.deliveries_max,
        conversations: conversation_options(&config.conversation),
    }
}

fn conversation_options(
    options: &node::config::conversation::Options,
) -> node::conversations::Options {
    let limits = node::conversations::Limits {
        batch_messages_max: options.batch_messages_max as usize,
        batch_bytes_max: options.batch_size_max.as_usize(),
        message_bytes_max: options.message_size_max.as_usize(),
        metadata_bytes_max: options.metadata_size_max.as_usize(),
        parts_max: options.parts_max as usize,
        cursors_max: options.cursors_max as usize,
        drafts_max: options.drafts_max as usize,
        draft_bytes_max: options.draft_size_max.as_usize(),
    };
    node::conversations::Options {
        limits,
        watchers_max: options.watchers_max as usize,
    }
}

/// Waits until nothing is queued any more; what was acknowledged is on disk in any case.
pub(super) fn flush(journal: &Journal) {
    #[expect(
        clippy::disallowed_methods,
        reason = "the end of a process waits by the real clock"
    )]
    let now = Instant::now;
    let deadline = now() + FLUSH;
    while journal.stats().queued_bytes > 0 && now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
}
