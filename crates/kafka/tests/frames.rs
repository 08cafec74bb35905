//! Frames and headers as a broker and a client use them, and golden bytes.

#![expect(clippy::unwrap_used, reason = "what goes wrong in a test ends it")]

use bytes::{Bytes, BytesMut};
use kafka::{
    API_KEYS, ApiKey, EncodeError, ErrorCode, FrameError, Records, Request, RequestError, Uuid,
    api_versions, decode_request, decode_response, encode_api_versions_refusal, encode_request,
    encode_response, encode_response_around, fetch, heartbeat, metadata, peek_api_key, produce,
    response_correlation_id, take_frame,
};

fn frame_of(bytes: &[u8]) -> Bytes {
    let mut arrived = BytesMut::from(bytes);
    let frame = take_frame(&mut arrived, bytes.len()).unwrap().unwrap();
    assert!(arrived.is_empty());
    frame
}

#[test]
fn a_frame_is_decoded_once_its_last_byte_arrives() {
    let mut arrived = BytesMut::new();
    for &byte in &[0, 0, 0, 3, b'a', b'b'] {
        arrived.extend_from_slice(&[byte]);
        assert_eq!(take_frame(&mut arrived, 3), Ok(None));
    }
    arrived.extend_from_slice(b"c\0\0\0\0\0\0");
    assert_eq!(
        take_frame(&mut arrived, 3),
        Ok(Some(Bytes::from_static(b"abc")))
    );
    assert_eq!(take_frame(&mut arrived, 3), Ok(Some(Bytes::new())));
    assert_eq!(take_frame(&mut arrived, 3), Ok(None));
    assert_eq!(arrived.len(), 2);
}

#[test]
fn records_that_are_left_out_are_inserted_by_the_caller() {
    let pieces = [vec![1; 300], vec![], vec![2; 5]];
    let response = |records: &dyn Fn(&[u8]) -> Records| {
        let partition = |bytes: &Vec<u8>| fetch::PartitionResponse {
            error_code: ErrorCode::KafkaStorageError,
            records: Some(records(bytes)),
            ..fetch::PartitionResponse::default()
        };
        let topic = fetch::TopicResponse {
            partitions: pieces.iter().map(partition).collect(),
            ..fetch::TopicResponse::default()
        };
        fetch::Response {
            responses: vec![topic],
            ..fetch::Response::default()
        }
    };
    let whole = response(&|bytes| Bytes::copy_from_slice(bytes).into());
    let around = response(&|bytes| Records::left_out(bytes.len()));
    for version in [4, 11, 12, 16] {
        let mut expected = b"before".to_vec();
        encode_response(&mut expected, version, 7, &whole).unwrap();
        let mut frame = b"before".to_vec();
        let encoded = encode_response_around(&mut frame, version, 7, &around).unwrap();
        assert_eq!(encoded.errors.len(), 3);
        let sizes: Vec<_> = encoded.gaps.iter().map(|gap| gap.size).collect();
        assert_eq!(sizes, [300, 5]);
        for (gap, bytes) in encoded.gaps.iter().zip([&pieces[0], &pieces[2]]).rev() {
            frame.splice(gap.at..gap.at, bytes.iter().copied());
        }
        assert_eq!(frame, expected);
        let mut out = b"before".to_vec();
        let error = encode_response(&mut out, version, 7, &around).unwrap_err();
        assert_eq!(error, EncodeError::LeftOut(300));
        assert_eq!(out, b"before");
    }
}

#[test]
fn the_api_key_is_readable_from_the_first_six_bytes() {
    let arrived = [0, 0, 0, 9, 0, 18, 0, 4];
    for size in 0..6 {
        assert_eq!(peek_api_key(&arrived[..size]), None);
    }
    assert_eq!(peek_api_key(&arrived), Some(ApiKey::ApiVersions));
    assert_eq!(peek_api_key(&[0, 0, 0, 9, 1, 18]), None);
}

#[test]
fn oversized_and_negative_frames_are_rejected_by_their_size() {
    for (announced, size) in [([0, 0, 0, 4], 4), ([0xff, 0xff, 0xff, 0xff], -1)] {
        let mut arrived = BytesMut::from(&announced[..]);
        let refused = FrameError { size, size_max: 3 };
        assert_eq!(take_frame(&mut arrived, 3), Err(refused));
    }
}

#[test]
fn heartbeat_bytes_before_and_after_the_first_flexible_version() {
    let request = heartbeat::Request {
        group_id: "g".to_owned(),
        generation_id: 5,
        member_id: "m1".to_owned(),
        group_instance_id: None,
    };
    let mut classic = Vec::new();
    encode_request(&mut classic, 3, 258, Some("me"), &request).unwrap();
    assert_eq!(
        classic,
        b"\0\0\0\x19\0\x0c\0\x03\0\0\x01\x02\0\x02me\0\x01g\0\0\0\x05\0\x02m1\xff\xff"
    );
    let mut flexible = Vec::new();
    encode_request(&mut flexible, 4, 258, Some("me"), &request).unwrap();
    assert_eq!(
        flexible,
        b"\0\0\0\x18\0\x0c\0\x04\0\0\x01\x02\0\x02me\0\x02g\0\0\0\x05\x03m1\0\0"
    );
    for bytes in [classic, flexible] {
        let frame = frame_of(&bytes);
        let (header, read) = decode_request(&frame).unwrap();
        assert_eq!(
            (header.key, header.correlation_id),
            (ApiKey::Heartbeat, 258)
        );
        assert_eq!(header.client_id, Some("me"));
        assert_eq!(read, Request::Heartbeat(request.clone()));
    }
}

#[test]
fn fetch_bytes_with_a_topic_id() {
    let request = fetch::Request {
        cluster_id: Some("c".to_owned()),
        max_wait_ms: 500,
        min_bytes: 1,
        max_bytes: 1 << 20,
        isolation_level: 1,
        topics: vec![fetch::Topic {
            topic_id: Uuid([0xab; 16]),
            partitions: vec![fetch::Partition {
                partition: 2,
                current_leader_epoch: 3,
                fetch_offset: 4,
                partition_max_bytes: 5,
                ..fetch::Partition::default()
            }],
            ..fetch::Topic::default()
        }],
        ..fetch::Request::default()
    };
    let mut bytes = Vec::new();
    encode_request(&mut bytes, 15, 1, None, &request).unwrap();
    let expected = [
        &b"\0\0\0\x5b\0\x01\0\x0f\0\0\0\x01\xff\xff\0"[..],
        b"\0\0\x01\xf4\0\0\0\x01\0\x10\0\0\x01",
        b"\0\0\0\0\xff\xff\xff\xff\x02",
        &[0xab; 16],
        b"\x02\0\0\0\x02\0\0\0\x03\0\0\0\0\0\0\0\x04\xff\xff\xff\xff",
        b"\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\x05\0\0",
        b"\x01\x01",
        b"\x01\0\x02\x02c",
    ];
    assert_eq!(bytes, expected.concat());
    let frame = frame_of(&bytes);
    assert_eq!(decode_request(&frame).unwrap().1, Request::Fetch(request));
}

#[test]
fn records_are_read_from_the_frame_and_written_from_pieces() {
    let request = produce::Request {
        acks: -1,
        topic_data: vec![produce::Topic {
            name: "t".to_owned(),
            partition_data: vec![produce::Partition {
                index: 0,
                records: Some(Bytes::from_static(b"batch").into()),
            }],
            ..produce::Topic::default()
        }],
        ..produce::Request::default()
    };
    let mut bytes = Vec::new();
    encode_request(&mut bytes, 9, 1, None, &request).unwrap();
    let frame = frame_of(&bytes);
    let (_, Request::Produce(read)) = decode_request(&frame).unwrap() else {
        panic!("a Produce request is one");
    };
    let records = read.topic_data[0].partition_data[0].records.clone();
    let records = records.unwrap().into_bytes();
    assert_eq!(records, "batch");
    assert!(
        frame.as_ptr_range().contains(&records.as_ptr()),
        "records were copied"
    );

    let mut pieces = Records::default();
    for piece in ["ba", "", "tch"] {
        pieces.push(Bytes::from_static(piece.as_bytes()));
    }
    let answer = |records| fetch::Response {
        responses: vec![fetch::TopicResponse {
            partitions: vec![fetch::PartitionResponse {
                records: Some(records),
                ..fetch::PartitionResponse::default()
            }],
            ..fetch::TopicResponse::default()
        }],
        ..fetch::Response::default()
    };
    let mut bytes = Vec::new();
    encode_response(&mut bytes, 13, 9, &answer(pieces)).unwrap();
    let read = decode_response::<fetch::Request>(&frame_of(&bytes), 13).unwrap();
    assert_eq!(read, (9, answer(Bytes::from_static(b"batch").into())));
}

#[test]
fn unsupported_api_versions_requests_get_a_version_0_response() {
    let mut bytes = Vec::new();
    encode_request(
        &mut bytes,
        99,
        6,
        Some("new"),
        &api_versions::Request::default(),
    )
    .unwrap();
    let refused = RequestError::UnsupportedVersion {
        key: ApiKey::ApiVersions,
        version: 99,
        correlation_id: 6,
    };
    assert_eq!(decode_request(&frame_of(&bytes)), Err(refused));

    let mut answer = Vec::new();
    encode_api_versions_refusal(&mut answer, 6).unwrap();
    // Correlation id, error 35 and a count of four bytes, none of them flexible.
    let count = u8::try_from(API_KEYS.len()).unwrap();
    assert_eq!(answer[4..14], [0, 0, 0, 6, 0, 35, 0, 0, 0, count]);
    assert_eq!(answer.len(), 14 + API_KEYS.len() * 6);
    // A client that asked in version 4 decodes it.
    let read = decode_response::<api_versions::Request>(&frame_of(&answer), 4).unwrap();
    assert_eq!(read.0, 6);
    assert_eq!(read.1.error_code, ErrorCode::UnsupportedVersion);
    let served = |code| {
        read.1
            .api_keys
            .iter()
            .find(move |served| served.api_key == code)
    };
    let produce = served(ApiKey::Produce.code()).unwrap();
    assert_eq!((produce.min_version, produce.max_version), (0, 13));
    assert!(
        read.1
            .api_keys
            .iter()
            .all(|api| ApiKey::from_code(api.api_key).is_some())
    );
}

#[test]
fn the_answer_to_api_versions_never_has_tagged_fields_in_its_header() {
    let mut bytes = Vec::new();
    encode_response(&mut bytes, 3, 6, &api_versions::Response::of_table()).unwrap();
    let count = u8::try_from(API_KEYS.len() + 1).unwrap();
    assert_eq!(bytes[4..11], [0, 0, 0, 6, 0, 0, count]);
    let read = decode_response::<api_versions::Request>(&frame_of(&bytes), 3).unwrap();
    assert_eq!(read, (6, api_versions::Response::of_table()));
}

#[test]
fn other_response_headers_are_tagged_in_flexible_versions() {
    let mut bytes = Vec::new();
    encode_response(&mut bytes, 3, 6, &heartbeat::Response::default()).unwrap();
    assert_eq!(bytes, [0, 0, 0, 10, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0]);
    bytes.clear();
    encode_response(&mut bytes, 4, 6, &heartbeat::Response::default()).unwrap();
    assert_eq!(bytes, [0, 0, 0, 12, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(response_correlation_id(&bytes[4..]), Some(6));
}

#[test]
fn a_request_with_an_unsupported_api_or_version_names_it() {
    let unknown = Bytes::from_static(b"\x03\xe7\0\0\0\0\0\x01\xff\xff");
    assert_eq!(decode_request(&unknown), Err(RequestError::UnknownApi(999)));
    let old = Bytes::from_static(b"\0\x01\0\x03\0\0\0\x01\xff\xff");
    let refused = RequestError::UnsupportedVersion {
        key: ApiKey::Fetch,
        version: 3,
        correlation_id: 1,
    };
    assert_eq!(decode_request(&old), Err(refused));
    assert_eq!(refused.to_string(), "Fetch version 3 is not supported");
    for size in 0..8 {
        let cut = old.slice(..size);
        assert!(
            matches!(decode_request(&cut), Err(RequestError::Header(_))),
            "{size}"
        );
    }
}

#[test]
fn a_decode_error_names_its_field() {
    let long = Bytes::from_static(b"\0\x03\0\x01\0\0\0\x01\xff\xff\x7f\xff\xff\xff");
    assert_eq!(
        decode_request(&long).unwrap_err().to_string(),
        "Metadata, version 1: topics: 2147483647 elements announced, 0 bytes left"
    );
    let null = Bytes::from_static(b"\0\x03\0\x09\0\0\0\x01\xff\xff\0\x02\0\0\0\0\0\0");
    assert_eq!(
        decode_request(&null).unwrap_err().to_string(),
        "Metadata, version 9: name: null is not allowed"
    );
    let surplus = Bytes::from_static(b"\0\0\0\x01\0\0\0");
    assert_eq!(
        decode_response::<heartbeat::Request>(&surplus, 0)
            .unwrap_err()
            .to_string(),
        "body: 1 bytes too many"
    );
}

#[test]
fn bytes_after_a_request_are_ignored() {
    let mut frame = Vec::new();
    encode_request(&mut frame, 3, 1, None, &heartbeat::Request::default()).unwrap();
    frame.extend_from_slice(b"more");
    let frame = Bytes::from(frame).slice(4..);
    let (_, read) = decode_request(&frame).unwrap();
    assert_eq!(read, Request::Heartbeat(heartbeat::Request::default()));
}

#[test]
fn metadata_distinguishes_no_topics_from_all_topics_since_version_1() {
    for version in 0..=13 {
        for topics in [None, Some(Vec::new())] {
            let request = metadata::Request {
                topics,
                ..metadata::Request::default()
            };
            let mut bytes = Vec::new();
            encode_request(&mut bytes, version, 1, None, &request).unwrap();
            let frame = frame_of(&bytes);
            let Request::Metadata(read) = decode_request(&frame).unwrap().1 else {
                panic!("a Metadata request is one");
            };
            // Version 0 has an empty list for all topics and no encoding for none.
            let expected = if version == 0 {
                Some(Vec::new())
            } else {
                request.topics
            };
            assert_eq!(read.topics, expected, "version {version}");
        }
    }
}

#[test]
fn encoding_errors_leave_the_buffer_unchanged() {
    let request = heartbeat::Request {
        group_id: "g".repeat(32_768),
        ..heartbeat::Request::default()
    };
    for version in [3, 4] {
        let mut out = b"before".to_vec();
        let error = encode_request(&mut out, version, 1, None, &request).unwrap_err();
        assert_eq!(
            error.to_string(),
            "text of 32768 bytes is above the limit of 32767"
        );
        assert_eq!(out, b"before");
    }
}
