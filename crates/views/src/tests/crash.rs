//! A file that loses a random part of its unsynced data in a crash.

use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use redb::StorageBackend;

#[derive(Debug, Default)]
struct Bytes {
    durable: Vec<u8>,
    now: Vec<u8>,
    /// The writes since the last sync.
    written: Vec<(usize, Vec<u8>)>,
}

/// A file that loses a random part of its unsynced data in a crash.
#[derive(Clone, Debug, Default)]
pub(super) struct Disk(Arc<Mutex<Bytes>>);

impl Disk {
    /// Returns the content after a crash.
    pub(super) fn crash(&self, dice: &mut fastrand::Rng) -> Disk {
        let bytes = self.0.lock();
        let mut left = bytes.durable.clone();
        left.resize(bytes.now.len().max(left.len()), 0);
        for (at, written) in &bytes.written {
            if dice.bool() {
                left[*at..at + written.len()].copy_from_slice(written);
            }
        }
        Disk::of(left)
    }

    pub(super) fn of(bytes: Vec<u8>) -> Disk {
        Disk(Arc::new(Mutex::new(Bytes {
            durable: bytes.clone(),
            now: bytes,
            ..Bytes::default()
        })))
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        self.0.lock().now.clone()
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().now.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let bytes = self.0.lock();
        let found = bytes.now.get(offset as usize..offset as usize + out.len());
        out.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut bytes = self.0.lock();
        bytes.now.resize(len as usize, 0);
        bytes
            .written
            .retain(|(at, it)| at + it.len() <= len as usize);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut bytes = self.0.lock();
        bytes.durable = bytes.now.clone();
        bytes.written.clear();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut bytes = self.0.lock();
        let range = offset as usize..offset as usize + data.len();
        bytes.now[range].copy_from_slice(data);
        bytes.written.push((offset as usize, data.to_vec()));
        Ok(())
    }
}
