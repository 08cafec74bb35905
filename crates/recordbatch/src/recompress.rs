//! Giving the records of a batch another compression.

use crate::attributes::Compression;
use crate::codecs::compress_at;
use crate::header::Header;
use crate::seal;

/// The batch with its records compressed by `compression`, at `level` if the codec has levels; `None` is
/// the codec's default level. `payload` is the records of the batch, unpacked and checked by the caller.
/// Everything else of the batch stays, and its checksum is made anew.
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
