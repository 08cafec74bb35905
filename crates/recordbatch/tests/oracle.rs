//! Another implementation reads what we write, and we read what it writes.

use bytes::{Bytes, BytesMut};
use kafka_protocol::records::{
    Compression as Theirs, Record, RecordBatchDecoder, RecordBatchEncoder, RecordEncodeOptions,
    TimestampType,
};
use recordbatch::{
    Attributes, Batch, Batches, Builder, Compression, Marker, MarkerKind, Producer, Records, Rules,
    Template, codecs, validate,
};

const RULES: Rules = Rules {
    batch_size_max: 1 << 20,
};

const PRODUCER: Producer = Producer {
    id: 12,
    epoch: 3,
    sequence: 500,
};

fn reference_compression(compression: Compression) -> Theirs {
    match compression {
        Compression::None => Theirs::None,
        Compression::Gzip => Theirs::Gzip,
        Compression::Snappy => Theirs::Snappy,
        Compression::Lz4 => Theirs::Lz4,
        Compression::Zstd => Theirs::Zstd,
    }
}

/// Enough to fill several blocks of every compression.
fn value(index: usize) -> Vec<u8> {
    (0..5000 + index).map(|at| (at * at % 7) as u8).collect()
}

#[test]
fn the_reference_library_decodes_our_batches() {
    for compression in Compression::ALL {
        let mut builder = Builder::new();
        for index in 0..30 {
            let (key, value) = (format!("key {index}"), value(index));
            let headers: &[_] = &[("trace", Some(&b"1-2"[..])), ("none", None)];
            builder.push(
                1000 - index as i64,
                Some(key.as_bytes()),
                Some(&value),
                headers,
            );
        }
        let template = Template {
            base_offset: 70,
            leader_epoch: 2,
            attributes: Attributes::default().transactional(),
            producer: Some(PRODUCER),
        };
        let mut bytes = Vec::new();
        builder.finish_compressed(&template, compression, &mut bytes);
        let set = RecordBatchDecoder::decode(&mut Bytes::from(bytes)).unwrap();
        assert_eq!(set.compression, reference_compression(compression));
        assert_eq!(set.records.len(), 30);
        for (index, record) in set.records.iter().enumerate() {
            assert_eq!(record.offset, 70 + index as i64);
            assert_eq!(record.timestamp, 1000 - index as i64);
            assert_eq!(
                record.key.as_deref(),
                Some(format!("key {index}").as_bytes())
            );
            assert_eq!(record.value.as_deref(), Some(&value(index)[..]));
            assert_eq!(record.headers.len(), 2);
            let known = (record.producer_id, record.producer_epoch, record.sequence);
            assert_eq!(known, (12, 3, 500 + index as i32));
            assert!(record.transactional && !record.control);
        }
    }
}

#[test]
fn we_decode_batches_of_the_reference_library() {
    for compression in Compression::ALL {
        let records: Vec<_> = (0..30)
            .map(|index| Record {
                transactional: false,
                control: false,
                delete_horizon: false,
                partition_leader_epoch: -1,
                producer_id: 12,
                producer_epoch: 3,
                timestamp_type: TimestampType::Creation,
                offset: index as i64,
                sequence: 500 + index as i32,
                timestamp: 1000 + 7 * index as i64,
                key: None,
                value: Some(value(index).into()),
                headers: Default::default(),
            })
            .collect();
        let options = RecordEncodeOptions {
            version: 2,
            compression: reference_compression(compression),
        };
        let mut bytes = BytesMut::new();
        RecordBatchEncoder::encode(&mut bytes, &records, &options).unwrap();
        let batches: Vec<_> = Batches::new(&bytes).map(Result::unwrap).collect();
        let [batch] = batches[..] else {
            panic!("{} batches", batches.len());
        };
        assert_eq!(validate(&batch, RULES), Ok(()));
        assert_eq!(batch.header().producer(), Some(PRODUCER));
        let payload = codecs::unpack(&batch, 1 << 20).unwrap();
        let walk = Records::new(batch.header(), &payload);
        assert_eq!(walk.clone().check(), Ok(()));
        for (index, record) in walk.enumerate() {
            let record = record.unwrap();
            assert_eq!(record.offset, index as i64);
            assert_eq!(record.timestamp, 1000 + 7 * index as i64);
            assert_eq!((record.key, record.value), (None, Some(&value(index)[..])));
        }
    }
}

#[test]
fn the_reference_library_decodes_our_markers_as_control_records() {
    let marker = Marker {
        producer_id: 4,
        producer_epoch: 1,
        kind: MarkerKind::Abort,
        coordinator_epoch: 0,
    };
    let mut bytes = Vec::new();
    marker.encode(9, 0, 5, &mut bytes);
    let (batch, _) = Batch::split(&bytes).unwrap();
    assert_eq!(Marker::decode(&batch), Ok(marker));
    let set = RecordBatchDecoder::decode(&mut Bytes::from(bytes.clone())).unwrap();
    let [record] = &set.records[..] else {
        panic!("{} records", set.records.len());
    };
    assert!(record.control && record.transactional);
    assert_eq!((record.offset, record.producer_id), (9, 4));
    assert_eq!(record.key.as_deref(), Some(&b"\0\0\0\0"[..]));
}
