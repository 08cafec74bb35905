//! Batches that are unpacked before they are appended.

use recordbatch::Compression;

use super::*;

impl World {
    /// Prepares a batch that may have `size_max` bytes when unpacked; `None` if it needs no
    /// preparation.
    fn prepare(
        &mut self,
        topic: &Topic,
        bytes: &[u8],
        size_max: usize,
    ) -> Option<Result<PreparedBatch, NotPrepared>> {
        let bytes = bytes::Bytes::copy_from_slice(bytes);
        if !self.topics.needs_preparation(topic, &bytes) {
            return None;
        }
        let pending = self.topics.prepare(topic, &bytes, size_max, ());
        Some(self.acknowledged(pending))
    }
}

fn packed(records: &[(Option<&[u8]>, &[u8])]) -> Vec<u8> {
    let mut builder = Builder::new();
    for (key, value) in records {
        builder.push(7, *key, Some(value), &[]);
    }
    let mut bytes = Vec::new();
    builder.finish_compressed(&Template::default(), Compression::Zstd, &mut bytes);
    bytes
}

#[test]
fn only_compressed_batches_of_compacted_topics_are_unpacked() {
    let mut world = World::new();
    let compacted = world.create("compacted", &[("cleanup.policy", "compact")]);
    let plain = world.create("plain", &[]);
    let bytes = packed(&[(Some(b"k"), b"v")]);
    assert!(world.prepare(&plain, &bytes, 1 << 20).is_none());
    let uncompressed = world.batch(&["k=v"]);
    assert!(world.prepare(&compacted, &uncompressed, 1 << 20).is_none());
    let prepared = world.prepare(&compacted, &bytes, 1 << 20).unwrap().unwrap();
    assert_eq!(prepared.bytes(), &bytes);
    assert!(prepared.unpacked_size() > 0);
    let mut producing = world.topics.producing();
    let placed = producing
        .append_prepared(&compacted, 0, &prepared, None)
        .unwrap();
    drop(producing);
    assert_eq!(world.settle(placed), 0);
}

#[test]
fn failed_prepare_reports_its_unpacked_size() {
    let mut world = World::new();
    let topic = world.create("t", &[("cleanup.policy", "compact")]);
    let keyless = packed(&[(Some(b"k"), b"v"), (None, &[0; 10_000])]);
    let failed = world
        .prepare(&topic, &keyless, 1 << 20)
        .unwrap()
        .unwrap_err();
    assert_eq!(failed.error, ProduceError::NoKey { indexes: vec![1] });
    assert!(failed.unpacked_size > 10_000, "{failed:?}");
    let failed = world.prepare(&topic, &keyless, 5_000).unwrap().unwrap_err();
    assert_eq!(failed.error, Rejected::Unpacked { max: 5_000 }.into());
    assert_eq!(failed.unpacked_size, 5_000);
}
