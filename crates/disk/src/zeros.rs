//! Writes zeros to files from one static buffer, so that an idle node holds no memory for it.

use std::io;

use crate::{File, write_all};

static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// Writes `size` zero bytes from `offset` on. A short write is continued.
pub fn write_zeros(file: &dyn File, offset: u64, size: u64) -> io::Result<()> {
    for done in (0..size).step_by(ZEROS.len()) {
        let length = (size - done).min(ZEROS.len() as u64) as usize;
        write_all(file, &ZEROS[..length], offset + done)?;
    }
    Ok(())
}
