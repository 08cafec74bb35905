//! Recompression of a batch.

use crate::attributes::Compression;
use crate::codecs::compress_at;
use crate::header::Header;
use crate::seal;

/// Returns the batch with its records compressed by `compression`, at `level` if the codec has
/// levels; `None` is the codec's default level. `payload` is the records of the batch, decompressed
/// and checked by the caller. All other fields stay, except the checksum.
pub fn recompress(
    header: &Header,
    payload: &[u8],
    compression: Compression,
    level: Option<i32>,
) -> Vec<u8> {
    let mut header = *header;
    header.attributes = header.attributes.with_compression(compression);
    let mut out = Vec::new();
    seal(&header, &compress_at(compression, level, payload), &mut out);
    out
}
