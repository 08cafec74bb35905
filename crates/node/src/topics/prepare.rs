//! What is done to produced batches apart from the threads that serve connections: unpacking those of
//! compacted topics to look for their keys, and recompressing (`compression.type`).

use std::task::Poll;

use ::topics::Codec;
use bytes::Bytes;
use recordbatch::codecs::{Unpack, unpack};
use recordbatch::{
    BadRecord, Batch, Compression, Rejected, Survey, recompress, survey_payload, validate,
};

use super::Topics;
use super::error::{ProduceError, Storage};
use super::keys::{UNPACKED_SIZE_MAX, check_payload};
use super::partition::Rules;
use super::pending::Pending;
use super::state::Topic;

/// A batch as its topic stores it.
#[derive(Clone, Debug)]
pub struct PreparedBatch {
    pub(super) bytes: Bytes,
    /// The timestamps of its records, if they were looked at.
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

    /// The whole batch.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Bytes that its records had when they were unpacked; 0 if they were not.
    pub fn unpacked_size(&self) -> usize {
        self.unpacked_size
    }
}

/// Why a batch is not prepared, and what the attempt took.
#[derive(Clone, Debug)]
pub struct NotPrepared {
    /// Why.
    pub error: ProduceError,
    /// Bytes that its records had when they were unpacked, as far as that came.
    pub unpacked_size: usize,
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
    /// Whether a batch has to be unpacked before it is appended: to look for the keys of its records, or
    /// to give it the codec of the topic. Reads its header only.
    pub fn needs_preparation(&self, topic: &Topic, batch: &Bytes) -> bool {
        // What is no batch is refused by the append, with its reason.
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

    /// The batch as the topic stores it, made apart from the caller's thread; it is checked as
    /// [`Producing::append`](super::Producing::append) does. Unpacked, it may have at most
    /// `unpacked_size_max` bytes. `permit` is dropped when the work is over, also where nobody waits for
    /// the answer any more.
    pub fn prepare(
        &self,
        topic: &Topic,
        batch: &Bytes,
        unpacked_size_max: usize,
        permit: impl Send + 'static,
    ) -> Pending<Result<PreparedBatch, NotPrepared>> {
        let (rules, batch) = (topic.rules(), batch.clone());
        let size_max = unpacked_size_max.min(UNPACKED_SIZE_MAX);
        let work = move || {
            let prepared = prepared(batch, rules, size_max);
            drop(permit);
            prepared
        };
        match self.inner.make_elsewhere(work) {
            Ok(later) => Pending::steps(move |waker| match later.take(waker) {
                Some(prepared) => Poll::Ready(Ok(prepared)),
                None => Poll::Pending,
            }),
            Err(overloaded) => {
                let error = ProduceError::from(Storage::from(overloaded));
                Pending::now(Err(error.into()))
            }
        }
    }
}

impl Rules {
    /// The codec that a batch of this compression is to get, if it is another one.
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
