//! Compressed records. Whatever the bytes say, no more comes out of them than is asked for.

use std::io::{self, Read, Write};

use crate::attributes::Compression;
use crate::batch::Batch;

/// Why records could not be unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unpack {
    /// There is more than may come out.
    #[error("compressed records hold more than {size_max} bytes")]
    TooLarge {
        /// The limit.
        size_max: usize,
    },
    /// The bytes are not what the attributes say.
    #[error("malformed compressed records")]
    Malformed,
    /// The attributes say nothing that is known.
    #[error("a compression of records that is not known")]
    Unknown,
}

/// What precedes blocks that snappy-java wrote: 8 bytes of magic and two versions of 4 bytes.
const XERIAL_MAGIC: &[u8; 8] = b"\x82SNAPPY\0";
const XERIAL_HEADER_SIZE: usize = 16;
const XERIAL_VERSION: [u8; 4] = 1_u32.to_be_bytes();
/// What snappy-java puts into a block.
const XERIAL_BLOCK_SIZE: usize = 32 << 10;

/// The records of a batch, unpacked: at most `size_max` bytes.
pub fn unpack(batch: &Batch<'_>, size_max: usize) -> Result<Vec<u8>, Unpack> {
    let compression = batch.header().attributes.compression();
    decompress(
        compression.ok_or(Unpack::Unknown)?,
        batch.payload(),
        size_max,
    )
}

/// Bytes that the records of a batch can have at most when they are unpacked, as far as their codec bounds
/// that; `usize::MAX` where it does not.
pub fn unpacked_size_max(batch: &Batch<'_>) -> usize {
    let size = batch.payload().len();
    match batch.header().attributes.compression() {
        Some(Compression::None) => size,
        // One block of DEFLATE stands for at most 1,032 times its bytes.
        Some(Compression::Gzip) => size.saturating_mul(1_040),
        // Three bytes stand for at most 64.
        Some(Compression::Snappy) => size.saturating_mul(32),
        // A byte more of a match's length stands for 255.
        Some(Compression::Lz4) => size.saturating_mul(256),
        Some(Compression::Zstd) | None => usize::MAX,
    }
}

/// At most `size_max` bytes out of `bytes`.
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

/// Appends what one block of snappy holds.
fn block(bytes: &[u8], size_max: usize, out: &mut Vec<u8>) -> Result<(), Unpack> {
    let size = snap::raw::decompress_len(bytes).map_err(|_| Unpack::Malformed)?;
    let start = out.len();
    if size > size_max.saturating_sub(start) {
        return Err(Unpack::TooLarge { size_max });
    }
    // Three bytes stand for at most 64: what says more lies, and gets no memory.
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

/// `bytes` compressed, each way as Kafka's Java client does it.
pub fn compress(compression: Compression, bytes: &[u8]) -> Vec<u8> {
    compress_at(compression, None, bytes)
}

/// `bytes` compressed at that level of gzip (1 to 9) or zstd (up to 22); other codecs have one level.
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

/// Independent blocks: Kafka's Java reader takes no others.
fn lz4(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let frame = lz4_flex::frame::FrameInfo::new()
        .block_size(lz4_flex::frame::BlockSize::Max64KB)
        .block_mode(lz4_flex::frame::BlockMode::Independent);
    let mut encoder = lz4_flex::frame::FrameEncoder::with_frame_info(frame, Vec::new());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}
