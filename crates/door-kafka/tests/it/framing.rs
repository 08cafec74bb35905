//! Request framing: malformed frames, unknown APIs and unsupported versions.

use kafka::api_versions::{Request, Response};
use kafka::{API_KEYS, ErrorCode};

use crate::Bench;

fn api_versions_request() -> Request {
    Request {
        client_software_name: "test".to_owned(),
        client_software_version: "1".to_owned(),
    }
}

#[tokio::test]
async fn every_api_versions_version_lists_all_apis() {
    let mut client = Bench::new().connect();
    for version in 0..=4 {
        let response = client.ask(version, &api_versions_request()).await;
        assert_eq!(response.error_code, ErrorCode::None);
        assert_eq!(response.api_keys.len(), API_KEYS.len(), "{version}");
    }
}

#[tokio::test]
async fn an_unsupported_api_versions_request_is_answered_with_supported_versions() {
    let mut client = Bench::new().connect();
    // ApiVersions 99, correlation id 7, and bytes of an unknown version.
    client
        .raw(&[0, 0, 0, 12, 0, 18, 0, 99, 0, 0, 0, 7, 9, 9, 9, 9])
        .await;
    let (number, response) = client.receive::<Request>(0).await;
    assert_eq!((number, response.error_code.code()), (7, 35));
    assert_eq!(response.api_keys, Response::of_table().api_keys);
    let again = client.ask(4, &api_versions_request()).await;
    assert_eq!(again.error_code, ErrorCode::None);
}

#[tokio::test]
async fn a_client_without_a_software_name_is_an_invalid_request() {
    let mut client = Bench::new().connect();
    let response = client.ask(3, &Request::default()).await;
    assert_eq!(response.error_code, ErrorCode::InvalidRequest);
    assert_eq!(
        client.ask(3, &api_versions_request()).await.error_code,
        ErrorCode::None
    );
}

#[tokio::test]
async fn an_invalid_request_ends_the_connection() {
    let bench = Bench::new();
    let cases: [(&str, &[u8]); 6] = [
        ("HTTP", b"GET / HTTP/1.1\r\n\r\n"),
        ("a negative size", &[0xff, 0xff, 0xff, 0xff, 0, 3]),
        ("a size above the limit", &[0x7f, 0, 0, 0, 0, 0, 0, 0]),
        (
            "an API that there is not",
            &[0, 0, 0, 8, 0, 99, 0, 0, 0, 0, 0, 1],
        ),
        (
            "a version that there is not",
            &[0, 0, 0, 8, 0, 3, 0, 99, 0, 0, 0, 1],
        ),
        (
            "a body that ends early",
            &[0, 0, 0, 10, 0, 3, 0, 1, 0, 0, 0, 1, 0xff, 0xff],
        ),
    ];
    for (name, bytes) in cases {
        let mut client = bench.connect();
        client.raw(bytes).await;
        assert!(client.is_closed().await, "{name}");
    }
}

#[tokio::test]
async fn requests_before_an_invalid_one_are_answered() {
    let mut client = Bench::new().connect();
    let number = client.send(4, &api_versions_request()).await;
    client.raw(b"GET / HTTP/1.1\r\n\r\n").await;
    assert_eq!(client.receive::<Request>(4).await.0, number);
    assert!(client.is_closed().await);
}

#[tokio::test]
async fn a_request_may_arrive_byte_by_byte() {
    let mut client = Bench::new().connect();
    let mut bytes = Vec::new();
    kafka::encode_request(&mut bytes, 4, 5, None, &api_versions_request()).unwrap();
    for byte in bytes {
        client.raw(&[byte]).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(client.receive::<Request>(4).await.0, 5);
}
