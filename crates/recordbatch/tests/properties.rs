//! Whatever the bytes are, and whatever is put in.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use recordbatch::{
    Attributes, Batch, Batches, Builder, Compression, Malformed, Marker, Producer, Records, Rules,
    Template, codecs, retain, seal, validate,
};

const RULES: Rules = Rules {
    batch_size_max: 1 << 20,
};

type Headers = Vec<(String, Option<Vec<u8>>)>;

#[derive(Clone, Debug)]
struct RecordInput {
    timestamp: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Headers,
}

fn bytes(count: usize) -> impl Strategy<Value = Option<Vec<u8>>> {
    option::of(vec(any::<u8>(), 0..count))
}

fn record_input() -> impl Strategy<Value = RecordInput> {
    let header = ("[a-z]{0,5}", bytes(10));
    (0..i64::MAX / 2, bytes(20), bytes(200), vec(header, 0..4)).prop_map(
        |(timestamp, key, value, headers)| RecordInput {
            timestamp,
            key,
            value,
            headers,
        },
    )
}

fn producer() -> impl Strategy<Value = Option<Producer>> {
    let fields = (0..i64::MAX, 0..i16::MAX, 0..i32::MAX);
    option::of(fields.prop_map(|(id, epoch, sequence)| Producer {
        id,
        epoch,
        sequence,
    }))
}

fn fill(builder: &mut Builder, records: &[RecordInput]) {
    for record in records {
        let headers: Vec<_> = record
            .headers
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_deref()))
            .collect();
        let (key, value) = (record.key.as_deref(), record.value.as_deref());
        builder.push(record.timestamp, key, value, &headers);
    }
}

fn produced(
    records: &[RecordInput],
    producer: Option<Producer>,
    compression: Compression,
) -> Vec<u8> {
    let mut builder = Builder::new();
    fill(&mut builder, records);
    let template = Template {
        producer,
        ..Template::default()
    };
    let mut bytes = Vec::new();
    builder.finish_compressed(&template, compression, &mut bytes);
    bytes
}

fn read(header: &recordbatch::Header, payload: &[u8]) -> Vec<(i64, RecordInput)> {
    let one = |record: recordbatch::Record<'_>| {
        let headers = record.headers();
        let headers = headers.map(|(key, value)| (key.to_owned(), value.map(<[u8]>::to_vec)));
        let record_input = RecordInput {
            timestamp: record.timestamp,
            key: record.key.map(<[u8]>::to_vec),
            value: record.value.map(<[u8]>::to_vec),
            headers: headers.collect(),
        };
        (record.offset, record_input)
    };
    Records::new(header, payload)
        .map(|record| one(record.expect("a record")))
        .collect()
}

/// Everything that reads, over any bytes.
fn read_all(bytes: &[u8]) {
    for batch in Batches::new(bytes) {
        let Ok(batch) = batch else { return };
        let _ = (validate(&batch, RULES), Marker::decode(&batch));
        let payload = batch.payload();
        let walked = Records::new(batch.header(), payload).count();
        assert!(walked <= payload.len() / recordbatch::RECORD_SIZE_MIN + 1);
        if let Ok(unpacked) = codecs::unpack(&batch, 4096) {
            assert!(unpacked.len() <= 4096);
        }
        let mut records = Vec::new();
        let _ = retain(batch.header(), payload, 5, |_| true, &mut records);
    }
}

proptest! {
    #[test]
    fn any_bytes_are_batches_or_an_error(bytes in vec(any::<u8>(), 0..300)) {
        read_all(&bytes);
    }

    #[test]
    fn a_damaged_batch_with_a_right_checksum_is_read_or_refused(
        records in vec(record_input(), 1..5),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        compression in 0..5_usize,
    ) {
        let mut bytes = produced(&records, None, Compression::ALL[compression]);
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let crc = crc32c::crc32c(&bytes[21..]);
        bytes[17..21].copy_from_slice(&crc.to_be_bytes());
        read_all(&bytes);
    }

    #[test]
    fn a_built_batch_is_valid_and_decodes_to_its_records(
        records in vec(record_input(), 1..20),
        producer in producer(),
        compression in 0..5_usize,
        behind in vec(any::<u8>(), 0..5),
    ) {
        let compression = Compression::ALL[compression];
        let mut bytes = produced(&records, producer, compression);
        let size = bytes.len();
        bytes.extend_from_slice(&behind);
        let (batch, rest) = Batch::split(&bytes).unwrap();
        prop_assert_eq!((batch.bytes().len(), rest), (size, &behind[..]));
        prop_assert_eq!(validate(&batch, RULES), Ok(()));
        prop_assert_eq!(batch.header().producer(), producer);
        prop_assert_eq!(batch.header().attributes, Attributes::of(compression));
        let payload = codecs::unpack(&batch, 1 << 20).unwrap();
        prop_assert_eq!(Records::new(batch.header(), &payload).check(), Ok(()));
        let seen = read(batch.header(), &payload);
        prop_assert_eq!(seen.len(), records.len());
        for (index, ((offset, seen), record_input)) in seen.iter().zip(&records).enumerate() {
            prop_assert_eq!(*offset, index as i64);
            prop_assert_eq!(format!("{seen:?}"), format!("{record_input:?}"));
        }
        let highest = records.iter().map(|it| it.timestamp).max();
        prop_assert_eq!(Some(batch.header().max_timestamp), highest);
    }

    #[test]
    fn skipped_offsets_hold_no_record_and_iteration_resumes_at_its_position(
        records in vec((record_input(), 0..5_i32), 0..10),
        behind in 1..5_i32,
        stop in any::<prop::sample::Index>(),
    ) {
        let (mut builder, mut offset, mut expected) = (Builder::new(), 0, Vec::new());
        for (record, left_out) in &records {
            builder.skip(*left_out);
            fill(&mut builder, std::slice::from_ref(record));
            offset += i64::from(*left_out) + 1;
            expected.push(offset - 1);
        }
        builder.skip(behind);
        let mut bytes = Vec::new();
        builder.finish(&Template::default(), &mut bytes);
        let (batch, _) = Batch::split(&bytes).unwrap();
        let header = batch.header();
        prop_assert_eq!(header.last_offset() + 1, offset + i64::from(behind));
        let payload = batch.payload();
        let mut walk = Records::new(header, payload);
        let stop = stop.index(expected.len() + 1);
        let mut offsets: Vec<_> = walk.by_ref().take(stop).map(|it| it.unwrap().offset).collect();
        let rest = Records::resume(header, payload, walk.place());
        offsets.extend(rest.map(|it| it.unwrap().offset));
        prop_assert_eq!(offsets, expected);
    }

    #[test]
    fn every_flipped_bit_behind_the_checksum_is_caught(records in vec(record_input(), 1..4)) {
        let mut bytes = produced(&records, None, Compression::None);
        for bit in 17 * 8..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            let (batch, _) = Batch::split(&bytes).unwrap();
            prop_assert!(!batch.is_intact(), "bit {}", bit);
            prop_assert!(validate(&batch, RULES).is_err());
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn a_batch_that_is_cut_off_is_torn(records in vec(record_input(), 1..4), cut in any::<prop::sample::Index>()) {
        let bytes = produced(&records, None, Compression::None);
        let cut = cut.index(bytes.len());
        let torn = Batch::split(&bytes[..cut]).err();
        let is_torn = matches!(torn, Some(Malformed::Torn { have, .. }) if have == cut);
        prop_assert!(is_torn, "{torn:?}");
    }

    #[test]
    fn retained_records_preserve_their_offset_and_timestamp(
        records in vec(record_input(), 1..20),
        mask in any::<u32>(),
        horizons in (0..i64::MAX / 2, 0..i64::MAX / 2),
    ) {
        let keep = |offset: i64| mask >> (offset % 32) & 1 == 1;
        let bytes = produced(&records, None, Compression::None);
        let (batch, _) = Batch::split(&bytes).unwrap();
        let before = read(batch.header(), batch.payload());
        let expected: Vec<_> = before.into_iter().filter(|it| keep(it.0)).collect();

        let mut payload = Vec::new();
        let left = retain(batch.header(), batch.payload(), horizons.0, |it| keep(it.offset), &mut payload);
        let left = left.unwrap();
        prop_assert_eq!(left.dropped as usize, records.len() - expected.len());
        let mut bytes = Vec::new();
        seal(&left.header, &payload, &mut bytes);
        let (batch, _) = Batch::split(&bytes).unwrap();
        prop_assert!(batch.is_intact());
        prop_assert_eq!(batch.header().last_offset(), records.len() as i64 - 1);
        let seen = read(batch.header(), batch.payload());
        prop_assert_eq!(format!("{seen:?}"), format!("{expected:?}"));

        // Once more, with another horizon: the first one stays.
        let mut again = Vec::new();
        let left = retain(batch.header(), batch.payload(), horizons.1, |_| true, &mut again).unwrap();
        prop_assert_eq!(left.dropped, 0);
        let deletes = expected.iter().any(|it| it.1.value.is_none());
        prop_assert_eq!(left.header.attributes.has_delete_horizon(), deletes);
        if deletes {
            prop_assert_eq!(left.header.base_timestamp, horizons.0);
        }
        let seen = read(&left.header, &again);
        prop_assert_eq!(format!("{seen:?}"), format!("{expected:?}"));
    }

    #[test]
    fn decompression_restores_the_bytes_and_stops_at_the_limit(
        bytes in vec(any::<u8>(), 0..3000),
        times in 1..40_usize,
        compression in 0..5_usize,
    ) {
        let compression = Compression::ALL[compression];
        let bytes = bytes.repeat(times);
        let packed = codecs::compress(compression, &bytes);
        let unpack = |size_max| codecs::decompress(compression, &packed, size_max);
        prop_assert_eq!(unpack(bytes.len()), Ok(bytes.clone()));
        if let Some(size_max) = bytes.len().checked_sub(1) {
            prop_assert_eq!(unpack(size_max), Err(codecs::Unpack::TooLarge { size_max }));
        }
    }
}

#[test]
fn a_snappy_block_with_a_forged_size_allocates_no_memory() {
    // 1 GiB in a byte.
    let lie = [0x80, 0x80, 0x80, 0x80, 0x04, 0x00];
    let unpacked = codecs::decompress(Compression::Snappy, &lie, usize::MAX);
    assert_eq!(unpacked, Err(codecs::Unpack::Malformed));
}

#[test]
fn split_errors_carry_the_invalid_magic_or_length() {
    let old = [0; 17];
    let Err(magic) = Batch::split(&old) else {
        panic!("an old message set is no batch");
    };
    assert_eq!(magic, Malformed::Magic { magic: 0 });
    let mut short = [0; 61];
    (short[16], short[11]) = (2, 48);
    let Err(length) = Batch::split(&short) else {
        panic!("48 bytes are too few");
    };
    assert_eq!(length, Malformed::Length { length: 48 });
    short[8] = 0x80;
    assert!(matches!(Batch::split(&short), Err(Malformed::Length { length }) if length < 0));
}
