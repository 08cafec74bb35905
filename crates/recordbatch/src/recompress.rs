//! Giving the records of a batch another compression.

use crate::attributes::Compression;
use crate::batch::Batch;
use crate::codecs::{Unpack, compress_at, unpack};
use crate::record::{BadRecord, Records};
use crate::seal;

/// Why a batch cannot be given another compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotRecompressed {
    /// See [`Unpack`].
    #[error(transparent)]
    Unpack(#[from] Unpack),
    /// See [`BadRecord`].
    #[error(transparent)]
    Record(#[from] BadRecord),
}

/// The batch with its records compressed by `compression`, at `level` if the codec has levels; `None` is
/// the codec's default level. Unpacked, the records take at most `size_max` bytes. Everything else of the
/// batch stays, and its checksum is made anew: the caller has checked the batch before.
///
/// # Errors
/// When the records cannot be unpacked, or are not as the header says.
pub fn recompress(
    batch: &Batch<'_>,
    compression: Compression,
    level: Option<i32>,
    size_max: usize,
) -> Result<Vec<u8>, NotRecompressed> {
    let payload = unpack(batch, size_max)?;
    let mut header = *batch.header();
    Records::new(&header, &payload).check()?;
    header.attributes = header.attributes.with_compression(compression);
    let mut out = Vec::new();
    seal(
        &header,
        &compress_at(compression, level, &payload),
        &mut out,
    );
    Ok(out)
}
