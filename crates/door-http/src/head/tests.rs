use proptest::prelude::*;

use super::*;

fn read(bytes: &[u8]) -> Read<'_> {
    super::read(bytes, |_, path| path != "/elsewhere")
}

const POST: &str = "POST /api/request HTTP/1.1\r\nHost: x\r\nContent-Type: application/json; \
                    charset=utf-8\r\nContent-Length: 3\r\nAuthorization: Bearer t\r\n\r\n{} ";

#[test]
fn a_request_is_read_when_part_of_the_next_follows() {
    let bytes = format!("{POST}GET /");
    let Read::Request(request, size) = read(bytes.as_bytes()) else {
        panic!("not a request");
    };
    assert_eq!((size, request.body), (POST.len(), &b"{} "[..]));
    assert_eq!(
        (request.method, request.path),
        (Method::Post, "/api/request")
    );
    assert_eq!(
        (request.token, request.content_type),
        ("t", "application/json")
    );
    assert!(request.is_kept_alive);
    assert_eq!(read(&bytes.as_bytes()[size..]), Read::Part);
}

#[test]
fn every_prefix_of_a_request_is_incomplete() {
    for end in 0..POST.len() {
        assert_eq!(read(&POST.as_bytes()[..end]), Read::Part, "{end}");
    }
}

#[test]
fn connections_are_kept_alive_by_the_rules_of_each_http_version() {
    for (version, connection, is_kept_alive) in [
        ("1.1", "", true),
        ("1.1", "Connection: Close\r\n", false),
        ("1.0", "", false),
        ("1.0", "connection: Keep-Alive\r\n", true),
    ] {
        let text = format!("GET /health HTTP/{version}\r\nhost: x\r\n{connection}\r\n");
        let Read::Request(request, _) = read(text.as_bytes()) else {
            panic!("{text}");
        };
        assert_eq!(request.is_kept_alive, is_kept_alive, "{text}");
    }
}

#[test]
fn ambiguous_or_unsupported_requests_are_left_to_hyper() {
    for text in [
        "GET  /x HTTP/1.1\r\n\r\n",
        "get /x HTTP/1.1\r\n\r\n",
        "HEAD /x HTTP/1.1\r\n\r\n",
        "GET x HTTP/1.1\r\n\r\n",
        "POST /elsewhere HTTP/1.1\r\ncontent-length: 1000\r\n",
        "GET /x?a HTTP/1.1\r\n\r\n",
        "GET /x HTTP/2.0\r\n\r\n",
        "GET /x HTTP/1.1\n\n",
        "GET /x HTTP/1.1\r\na: b\n\r\n",
        "GET /x HTTP/1.1\r\na: b\r\n\n",
        "GET /x HTTP/1.1\r\nauthorization: Bearer \u{e9}\r\n\r\n",
        "GET /\u{e9} HTTP/1.1\r\n\r\n",
        "GET /x HTTP/1.1\r\na: b\r\n c\r\n\r\n",
        "GET /x HTTP/1.1\r\na : b\r\n\r\n",
        "GET /x HTTP/1.1\r\nno colon\r\n\r\n",
        "GET /x HTTP/1.1\r\ncontent-length: 1\r\n\r\nx",
        "POST /x HTTP/1.1\r\n\r\n",
        "POST /x HTTP/1.1\r\ncontent-length: +1\r\n\r\nx",
        "POST /x HTTP/1.1\r\ncontent-length: 1, 1\r\n\r\nx",
        "POST /x HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 1\r\n\r\nx",
        "POST /x HTTP/1.1\r\ncontent-length: 99999999999999999999\r\n\r\nx",
        "POST /x HTTP/1.1\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\nx",
        "POST /x HTTP/1.1\r\ncontent-length: 1\r\nexpect: 100-continue\r\n\r\nx",
        "POST /x HTTP/1.1\r\ncontent-length: 1\r\ncontent-encoding: gzip\r\n\r\nx",
        "GET /x HTTP/1.1\r\nconnection: upgrade\r\n\r\n",
        "GET /x HTTP/1.1\r\nx-forwarded-for: 1.1.1.1\r\nX-Forwarded-For: 2.2.2.2\r\n\r\n",
        "GET /x HTTP/1.1\r\nauthorization: Basic x\r\n\r\n",
        "GET /x HTTP/1.1\r\na: \u{1}\r\n\r\n",
        "GET /x HTTP/1.1\r\nhost: y\r\n\r\n",
        "GET /x HTTP/1.1\r\norigin: http://a\r\n\r\n",
        "GET /x HTTP/1.1\r\nif-none-match: *\r\n\r\n",
        "GET /x HTTP/1.1\r\nif-match: \"1\"\r\nif-match: \"2\"\r\n\r\n",
        "GET /x HTTP/1.1\r\nidempotency-key:\r\n\r\n",
        "GET /x HTTP/1.1\r\nsec-fetch-site: none\r\n\r\n",
    ] {
        let text = text.replacen("1.1\r\n", "1.1\r\nhost: x\r\n", 1);
        assert_eq!(read(text.as_bytes()), Read::Other, "{text:?}");
    }
    assert_eq!(read(b"GET /x HTTP/1.1\r\n\r\n"), Read::Other, "no host");
    let endless = format!("GET /x HTTP/1.1\r\na: {}", "x".repeat(HEAD_SIZE_MAX));
    assert_eq!(read(endless.as_bytes()), Read::Other);
}

proptest! {
    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = read(&bytes);
    }

    #[test]
    fn a_request_with_any_byte_changed_never_reaches_beyond_the_buffer(
        at in 0..POST.len(),
        byte in any::<u8>(),
    ) {
        let mut bytes = POST.as_bytes().to_vec();
        bytes[at] = byte;
        if let Read::Request(request, size) = read(&bytes) {
            prop_assert!(size <= bytes.len() && request.body.len() <= size);
        }
    }
}
