//! Heads of HTTP requests from any bytes: the fast parser reads what a general parser reads,
//! independent of the pieces and of the bytes that follow.

use door_http::head::{self, Read};
use http_api::{FastRequest, Method, Version};

/// Checks one input.
///
/// # Panics
///
/// Panics if a property does not hold.
pub fn check(input: &[u8]) {
    match read(input) {
        Read::Request(fast, size) => {
            assert!(size <= input.len());
            assert_eq!(
                read(&input[..size]),
                Read::Request(fast, size),
                "the bytes that follow must not matter"
            );
            for cut in 0..size {
                assert_eq!(read(&input[..cut]), Read::Part, "the first {cut} bytes");
            }
            agrees(&fast, &input[..size]);
        }
        // From some byte on, the general parser must take over.
        Read::Other => {
            let is_other = |cut: &usize| read(&input[..*cut]) == Read::Other;
            let from = (0..=input.len()).find(is_other).unwrap_or(0);
            assert!(
                (from..=input.len()).all(|cut| is_other(&cut)),
                "from {from} on"
            );
        }
        Read::Part => {}
    }
}

/// Reads a head, with any path on the fast path.
fn read(bytes: &[u8]) -> Read<'_> {
    head::read(bytes, |_, _| true)
}

/// Compares a fast request with the result of a general parser.
fn agrees(fast: &FastRequest<'_>, bytes: &[u8]) {
    let mut fields = vec![httparse::EMPTY_HEADER; bytes.len()];
    let mut request = httparse::Request::new(&mut fields);
    let head = match request.parse(bytes) {
        Ok(httparse::Status::Complete(head)) => head,
        other => panic!("{other:?}"),
    };
    let method = match fast.method {
        Method::Get => "GET",
        Method::Post => "POST",
    };
    let version = match fast.version {
        Version::Http10 => 0,
        Version::Http11 => 1,
    };
    assert_eq!(request.method, Some(method));
    assert_eq!(request.path, Some(fast.path));
    assert_eq!(request.version, Some(version));
    assert_eq!(fast.body, &bytes[head..]);
    let all = |name: &str| -> Vec<&[u8]> {
        let fields = request.headers.iter();
        let named = fields.filter(|field| field.name.eq_ignore_ascii_case(name));
        named.map(|field| field.value).collect()
    };
    let only = |name: &str| match all(name)[..] {
        [] => &b""[..],
        [value] => value,
        _ => panic!("{name} is there more than once"),
    };
    match (fast.body.len(), only("content-length")) {
        (0, b"") => assert_eq!(fast.method, Method::Get),
        (size, length) => assert_eq!(std::str::from_utf8(length).unwrap_or("").parse(), Ok(size)),
    }
    assert!(all("transfer-encoding").is_empty());
    assert!(all("if-none-match").is_empty());
    assert_eq!(only("x-forwarded-for"), fast.forwarded.as_bytes());
    assert_eq!(only("if-match"), fast.if_match.as_bytes());
    assert_eq!(only("idempotency-key"), fast.idempotency_key.as_bytes());
    let token = only("authorization")
        .strip_prefix(b"Bearer ")
        .unwrap_or_default();
    assert_eq!(token, fast.token.as_bytes());
    let essence = only("content-type")
        .split(|byte| *byte == b';')
        .next()
        .unwrap_or_default();
    assert_eq!(essence.trim_ascii_end(), fast.content_type.as_bytes());
    let is_kept_alive = match only("connection").to_ascii_lowercase().as_slice() {
        b"" => fast.version == Version::Http11,
        value => value == b"keep-alive",
    };
    assert_eq!(is_kept_alive, fast.is_kept_alive);
}
