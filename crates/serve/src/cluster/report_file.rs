//! The file with what the members have reported, in the data directory.

use std::io;
use std::path::{Path, PathBuf};

use cluster::ReportFile;
use futures_util::future::BoxFuture;

use super::identity::write_file;

/// Name of the file.
pub(super) const NAME: &str = "cluster.reports";

/// The file in a data directory.
pub(super) struct DataFile {
    data: PathBuf,
}

impl DataFile {
    pub(super) fn new(data: &Path) -> DataFile {
        DataFile {
            data: data.to_owned(),
        }
    }
}

impl ReportFile for DataFile {
    fn read(&self) -> io::Result<Option<Vec<u8>>> {
        match std::fs::read(self.data.join(NAME)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn write(&self, bytes: Vec<u8>) -> BoxFuture<'static, io::Result<()>> {
        let data = self.data.clone();
        // The syncs must not stop the thread of the consensus.
        let writing = tokio::task::spawn_blocking(move || write_file(&data, NAME, &bytes));
        Box::pin(async move {
            let written = writing.await.map_err(io::Error::other)?;
            written.map_err(|failure| {
                tracing::warn!(error = %failure, "the reports of the members are not written");
                io::Error::other(failure.to_string())
            })
        })
    }
}
