//! Recompressing produced batches, apart from the threads that serve connections (`compression.type`).

use std::task::Poll;

use ::topics::Codec;
use bytes::Bytes;
use recordbatch::{BadRecord, Batch, Compression, NotRecompressed, recompress, validate};

use super::Topics;
use super::error::{ProduceError, Storage};
use super::keys::UNPACKED_SIZE_MAX;
use super::partition::Rules;
use super::pending::Pending;
use super::state::Topic;

impl Topics {
    /// The batch as the topic stores it, where that takes recompressing it; `None` if it is appended as it
    /// is. The batch was checked then.
    pub fn prepare(
        &self,
        topic: &Topic,
        batch: &Bytes,
    ) -> Option<Pending<Result<Bytes, ProduceError>>> {
        let rules = topic.rules();
        let codec = rules.codec?;
        // What is no batch is refused by the append, with its reason.
        let (header, _) = Batch::split(batch).ok()?;
        let compression = header.header().attributes.compression()?;
        if compression == compression_of(codec).0 {
            return None;
        }
        let batch = batch.clone();
        let work = move || recompressed(&batch, rules, codec);
        Some(match self.inner.make_elsewhere(work) {
            Ok(later) => Pending::steps(move |waker| match later.take(waker) {
                Some(prepared) => Poll::Ready(Ok(prepared)),
                None => Poll::Pending,
            }),
            Err(overloaded) => Pending::now(Err(Storage::from(overloaded).into())),
        })
    }
}

fn recompressed(bytes: &Bytes, rules: Rules, codec: Codec) -> Result<Bytes, ProduceError> {
    let (batch, rest) = Batch::split(bytes)?;
    if !rest.is_empty() {
        return Err(ProduceError::NotOne);
    }
    validate(
        &batch,
        recordbatch::Rules {
            batch_size_max: rules.batch_size_max,
        },
    )?;
    let (compression, level) = compression_of(codec);
    let recompressed = recompress(&batch, compression, level, UNPACKED_SIZE_MAX);
    let recompressed = recompressed.map_err(|error| match error {
        NotRecompressed::Record(bad) => bad,
        NotRecompressed::Unpack(_) => BadRecord { index: 0 },
    })?;
    Ok(recompressed.into())
}

/// The codec of a batch, and its level.
fn compression_of(codec: Codec) -> (Compression, Option<i32>) {
    match codec {
        Codec::None => (Compression::None, None),
        Codec::Gzip(level) => (
            Compression::Gzip,
            level.and_then(|level| i32::try_from(level).ok()),
        ),
        Codec::Snappy => (Compression::Snappy, None),
        Codec::Lz4 => (Compression::Lz4, None),
        Codec::Zstd(level) => (Compression::Zstd, Some(level)),
    }
}
