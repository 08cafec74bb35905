//! Zeros for files, without memory of their own: a node that rests keeps what it once allocated.

use std::io;

use crate::disk::File;
use crate::extent::write_all;

static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// Writes so many zeros from there on. A short write is gone on with.
pub(crate) fn write_zeros(file: &dyn File, offset: u64, size: u64) -> io::Result<()> {
    for done in (0..size).step_by(ZEROS.len()) {
        let length = (size - done).min(ZEROS.len() as u64) as usize;
        write_all(file, &ZEROS[..length], offset + done)?;
    }
    Ok(())
}
