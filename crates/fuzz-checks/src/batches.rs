//! Record batches, compressed records and records of topics from any bytes: nothing panics, every
//! accepted batch can be walked through, and no output exceeds its limit.

use recordbatch::{
    Batch, Batches, Compression, Marker, Records, Rules, codecs, retain, seal, validate,
};
use topics::{Change, Limits, Partition, Reserved, Topic, Transaction};

use crate::encoded;

const RULES: Rules = Rules {
    batch_size_max: 4096,
};
const SIZE_MAX: usize = 1 << 16;

/// Checks one input.
///
/// # Panics
///
/// Panics if a property does not hold.
pub fn check(input: &[u8]) {
    batches(input);
    records_of_topics(input);
    let Some((first, packed)) = input.split_first() else {
        return;
    };
    let compression = Compression::ALL[usize::from(*first) % Compression::ALL.len()];
    if let Ok(unpacked) = codecs::decompress(compression, packed, SIZE_MAX) {
        assert!(unpacked.len() <= SIZE_MAX);
        resealed(input, compression, packed);
    }
}

fn batches(bytes: &[u8]) {
    for batch in Batches::new(bytes) {
        let Ok(batch) = batch else { return };
        let _ = (validate(&batch, RULES), Marker::decode(&batch));
        walk(&batch);
    }
}

/// The input as the records of a batch whose checksum is right.
fn resealed(input: &[u8], compression: Compression, packed: &[u8]) {
    let Ok((batch, _)) = Batch::split(input) else {
        return;
    };
    let mut header = *batch.header();
    header.attributes = header.attributes.with_compression(compression);
    let mut bytes = Vec::new();
    seal(&header, packed, &mut bytes);
    batches(&bytes);
}

fn walk(batch: &Batch<'_>) {
    let Ok(payload) = codecs::unpack(batch, SIZE_MAX) else {
        return;
    };
    let records = Records::new(batch.header(), &payload);
    let count = records.clone().filter(|it| it.is_ok()).count();
    assert!(count <= payload.len() / recordbatch::RECORD_SIZE_MIN);
    let mut left = Vec::new();
    if let Ok(retained) = retain(batch.header(), &payload, 5, |_| true, &mut left) {
        assert_eq!(retained.dropped, 0);
        let again = Records::new(&retained.header, &left);
        assert!(again.filter(|it| it.is_ok()).count() == count);
    }
}

fn records_of_topics(bytes: &[u8]) {
    if let Ok(change) = Change::decode(bytes) {
        assert_eq!(encoded(|out| change.encode(out)), bytes);
    }
    if let Ok(reserved) = Reserved::decode(bytes) {
        assert_eq!(reserved.encode(), bytes);
    }
    if let Ok(topic) = Topic::decode(bytes) {
        assert_eq!(Topic::decode(&encoded(|out| topic.encode(out))), Ok(topic));
    }
    if let Ok(transaction) = Transaction::decode(bytes) {
        let again = encoded(|out| transaction.encode(out));
        assert_eq!(Transaction::decode(&again), Ok(transaction));
    }
    if let Ok(snapshot) = Partition::decode(bytes, Limits::default()) {
        let again = encoded(|out| snapshot.partition.encode(snapshot.records, out));
        assert_eq!(Partition::decode(&again, Limits::default()), Ok(snapshot));
    }
}
