//! Compression and decompression of records. The size of the output is always bounded by the
//! caller.

use std::io::{self, Read, Write};

use crate::attributes::Compression;
use crate::batch::Batch;

/// The reason why records could not be decompressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unpack {
    /// The decompressed records exceed the limit.
    #[error("the decompressed records exceed {size_max} bytes")]
    TooLarge {
        /// The limit.
        size_max: usize,
    },
    /// The bytes do not match the codec in the attributes.
    #[error("malformed compressed records")]
    Malformed,
    /// The attributes name an unknown codec.
    #[error("unknown compression of records")]
    Unknown,
}

/// The header before blocks that snappy-java wrote: 8 bytes of magic and two versions of 4 bytes.
const XERIAL_MAGIC: &[u8; 8] = b"\x82SNAPPY\0";
const XERIAL_HEADER_SIZE: usize = 16;
const XERIAL_VERSION: [u8; 4] = 1_u32.to_be_bytes();
/// The uncompressed size of snappy-java's blocks, in bytes.
const XERIAL_BLOCK_SIZE: usize = 32 << 10;

/// Decompresses the records of a batch to at most `size_max` bytes.
pub fn unpack(batch: &Batch<'_>, size_max: usize) -> Result<Vec<u8>, Unpack> {
    let compression = batch.header().attributes.compression();
    decompress(
        compression.ok_or(Unpack::Unknown)?,
        batch.payload(),
        size_max,
    )
}

/// Returns the largest decompressed size that the codec allows for a batch, in bytes; `usize::MAX`
/// for a codec without such a bound.
pub fn unpacked_size_max(batch: &Batch<'_>) -> usize {
    let size = batch.payload().len();
    match batch.header().attributes.compression() {
        Some(Compression::None) => size,
        // A block of DEFLATE expands to at most 1,032 times its size.
        Some(Compression::Gzip) => size.saturating_mul(1_040),
        // Three bytes expand to at most 64.
        Some(Compression::Snappy) => size.saturating_mul(32),
        // Each further byte of a match length adds 255 bytes.
        Some(Compression::Lz4) => size.saturating_mul(256),
        Some(Compression::Zstd) | None => usize::MAX,
    }
}

/// Decompresses `bytes` to at most `size_max` bytes.
pub fn decompress(
    compression: Compression,
    bytes: &[u8],
    size_max: usize,
) -> Result<Vec<u8>, Unpack> {
    match compression {
        Compression::None if bytes.len() > size_max => Err(Unpack::TooLarge { size_max }),
        Compression::None => Ok(bytes.to_vec()),
        Compression::Gzip => read(flate2::bufread::MultiGzDecoder::new(bytes), size_max),
        Compression::Snappy => snappy(bytes, size_max),
        Compression::Lz4 => read(lz4_flex::frame::FrameDecoder::new(bytes), size_max),
        Compression::Zstd => {
            let decoder = zstd::Decoder::with_buffer(bytes).map_err(|_| Unpack::Malformed)?;
            read(decoder, size_max)
        }
    }
}

fn read(from: impl Read, size_max: usize) -> Result<Vec<u8>, Unpack> {
    let mut out = Vec::new();
    let mut from = from.take((size_max as u64).saturating_add(1));
    from.read_to_end(&mut out).map_err(|_| Unpack::Malformed)?;
    if out.len() > size_max {
        return Err(Unpack::TooLarge { size_max });
    }
    Ok(out)
}

fn snappy(bytes: &[u8], size_max: usize) -> Result<Vec<u8>, Unpack> {
    let mut out = Vec::new();
    if !bytes.starts_with(XERIAL_MAGIC) {
        block(bytes, size_max, &mut out)?;
        return Ok(out);
    }
    let mut rest = bytes.get(XERIAL_HEADER_SIZE..).ok_or(Unpack::Malformed)?;
    while !rest.is_empty() {
        let (length, behind) = rest.split_first_chunk().ok_or(Unpack::Malformed)?;
        let length = u32::from_be_bytes(*length) as usize;
        let (bytes, behind) = behind.split_at_checked(length).ok_or(Unpack::Malformed)?;
        block(bytes, size_max, &mut out)?;
        rest = behind;
    }
    Ok(out)
}

/// Decompresses one block of snappy and appends it.
fn block(bytes: &[u8], size_max: usize, out: &mut Vec<u8>) -> Result<(), Unpack> {
    let size = snap::raw::decompress_len(bytes).map_err(|_| Unpack::Malformed)?;
    let start = out.len();
    if size > size_max.saturating_sub(start) {
        return Err(Unpack::TooLarge { size_max });
    }
    // Three bytes expand to at most 64: a larger stated size is false and gets no memory.
    if size > bytes.len().saturating_mul(32) {
        return Err(Unpack::Malformed);
    }
    out.resize(start + size, 0);
    let written = snap::raw::Decoder::new().decompress(bytes, &mut out[start..]);
    match written {
        Ok(written) if written == size => Ok(()),
        _ => Err(Unpack::Malformed),
    }
}

/// Compresses `bytes` as Kafka's Java client does.
pub fn compress(compression: Compression, bytes: &[u8]) -> Vec<u8> {
    compress_at(compression, None, bytes)
}

/// Compresses `bytes` at this level of gzip (1 to 9) or zstd (up to 22); other codecs have one
/// level.
pub fn compress_at(compression: Compression, level: Option<i32>, bytes: &[u8]) -> Vec<u8> {
    let packed = match compression {
        Compression::None => Ok(bytes.to_vec()),
        Compression::Gzip => gzip(level, bytes),
        Compression::Snappy => xerial(bytes),
        Compression::Lz4 => lz4(bytes),
        Compression::Zstd => {
            zstd::encode_all(bytes, level.unwrap_or(zstd::DEFAULT_COMPRESSION_LEVEL))
        }
    };
    packed.expect("writing into memory does not fail")
}

fn gzip(level: Option<i32>, bytes: &[u8]) -> io::Result<Vec<u8>> {
    let level = level.and_then(|level| u32::try_from(level).ok());
    let level = level.map_or_else(flate2::Compression::default, |level| {
        flate2::Compression::new(level.min(9))
    });
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
    encoder.write_all(bytes)?;
    encoder.finish()
}

fn xerial(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut out = XERIAL_MAGIC.to_vec();
    out.extend_from_slice(&XERIAL_VERSION);
    out.extend_from_slice(&XERIAL_VERSION);
    let mut encoder = snap::raw::Encoder::new();
    for chunk in bytes.chunks(XERIAL_BLOCK_SIZE) {
        let block = encoder.compress_vec(chunk)?;
        out.extend_from_slice(&(block.len() as u32).to_be_bytes());
        out.extend_from_slice(&block);
    }
    Ok(out)
}

/// Writes independent blocks: Kafka's Java reader accepts no others.
fn lz4(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let frame = lz4_flex::frame::FrameInfo::new()
        .block_size(lz4_flex::frame::BlockSize::Max64KB)
        .block_mode(lz4_flex::frame::BlockMode::Independent);
    let mut encoder = lz4_flex::frame::FrameEncoder::with_frame_info(frame, Vec::new());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}
