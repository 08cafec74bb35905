//! Prepares produced batches away from the threads that serve connections: unpacks batches of
//! compacted topics to check their keys, and recompresses batches (`compression.type`).

use std::task::Poll;

use bytes::Bytes;
use platform::{NotDurable, Pending};
use recordbatch::codecs::{Unpack, unpack};
use recordbatch::{
    BadRecord, Batch, Compression, Rejected, Survey, recompress, survey_payload, validate,
};
use topics::Codec;

use super::error::{ProduceError, Storage};
use super::keys::{UNPACKED_SIZE_MAX, check_payload};
use super::partition::Rules;
use crate::service::Topics;
use crate::topic::Topic;

/// A batch as its topic stores it.
#[derive(Clone, Debug)]
pub struct PreparedBatch {
    pub(super) bytes: Bytes,
    /// The timestamps of its records, if they were read.
    pub(super) survey: Option<Survey>,
    unpacked_size: usize,
}

impl PreparedBatch {
    /// A batch that needs no preparation.
    pub fn unchanged(bytes: Bytes) -> Self {
        Self {
            bytes,
            survey: None,
            unpacked_size: 0,
        }
    }

    /// Returns the whole batch.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Returns the bytes of the records after unpacking; 0 if they were not unpacked.
    pub fn unpacked_size(&self) -> usize {
        self.unpacked_size
    }
}

/// A batch was not prepared.
#[derive(Clone, Debug)]
pub struct NotPrepared {
    /// The reason.
    pub error: ProduceError,
    /// Bytes of the records that were unpacked before the error.
    pub unpacked_size: usize,
}

impl From<NotDurable> for NotPrepared {
    fn from(error: NotDurable) -> Self {
        ProduceError::from(error).into()
    }
}

impl From<ProduceError> for NotPrepared {
    fn from(error: ProduceError) -> Self {
        Self {
            error,
            unpacked_size: 0,
        }
    }
}

impl Topics {
    /// Returns whether a batch must be unpacked before it is appended, to check the keys of its
    /// records or to recompress it. Reads only the header.
    pub fn needs_preparation(&self, topic: &Topic, batch: &Bytes) -> bool {
        // A malformed batch is refused by the append, which gives the reason.
        let Ok((batch, _)) = Batch::split(batch) else {
            return false;
        };
        let Some(compression) = batch.header().attributes.compression() else {
            return false;
        };
        let rules = topic.rules();
        let is_looked_into = rules.is_compacted && compression != Compression::None;
        is_looked_into || rules.codec_beside(compression).is_some()
    }

    /// Returns the batch as the topic stores it, computed on another thread and checked as
    /// [`Producing::append`](super::Producing::append) does. Its unpacked size may be at most
    /// `unpacked_size_max` bytes. `permit` is dropped when the work is over, even if the answer was
    /// dropped before.
    pub fn prepare(
        &self,
        topic: &Topic,
        batch: &Bytes,
        unpacked_size_max: usize,
        permit: impl Send + 'static,
    ) -> Pending<PreparedBatch, NotPrepared> {
        let (rules, batch) = (topic.rules(), batch.clone());
        let size_max = unpacked_size_max.min(UNPACKED_SIZE_MAX);
        let work = move || {
            let prepared = prepared(batch, rules, size_max);
            drop(permit);
            prepared
        };
        match self.state.platform.offload_value(work) {
            Ok(later) => Pending::steps(move |waker| match later.take(waker) {
                Some(prepared) => Poll::Ready(prepared),
                None => Poll::Pending,
            }),
            Err(overloaded) => {
                let error = ProduceError::from(Storage::from(overloaded));
                Pending::known(Err(error.into()))
            }
        }
    }
}

impl Rules {
    /// Returns the codec to which a batch must be recompressed, if any.
    fn codec_beside(&self, compression: Compression) -> Option<Codec> {
        self.codec
            .filter(|codec| compression_of(*codec).0 != compression)
    }
}

fn prepared(bytes: Bytes, rules: Rules, size_max: usize) -> Result<PreparedBatch, NotPrepared> {
    let (batch, rest) = Batch::split(&bytes).map_err(ProduceError::from)?;
    if !rest.is_empty() {
        return Err(ProduceError::NotOne.into());
    }
    validate(
        &batch,
        recordbatch::Rules {
            batch_size_max: rules.batch_size_max,
        },
    )
    .map_err(ProduceError::from)?;
    let payload = unpack(&batch, size_max).map_err(|error| NotPrepared {
        error: not_unpacked(error),
        unpacked_size: size_max,
    })?;
    let (header, unpacked_size) = (batch.header(), payload.len());
    let survey = match rules.is_compacted {
        true => check_payload(header, &payload),
        false => survey_payload(header, &payload).map_err(ProduceError::from),
    };
    let survey = survey.map_err(|error| NotPrepared {
        error,
        unpacked_size,
    })?;
    let compression = header.attributes.compression();
    let codec = compression.and_then(|compression| rules.codec_beside(compression));
    let bytes = match codec {
        None => bytes.clone(),
        Some(codec) => {
            let (compression, level) = compression_of(codec);
            recompress(header, &payload, compression, level).into()
        }
    };
    Ok(PreparedBatch {
        bytes,
        survey: Some(survey),
        unpacked_size,
    })
}

fn not_unpacked(error: Unpack) -> ProduceError {
    match error {
        Unpack::TooLarge { size_max } => Rejected::Unpacked { max: size_max }.into(),
        Unpack::Malformed | Unpack::Unknown => BadRecord { index: 0 }.into(),
    }
}

/// Returns the compression type of a codec, and its level.
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
