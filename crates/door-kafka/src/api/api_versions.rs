//! ApiVersions: the supported APIs and versions.

use kafka::api_versions::{Request, Response};
use kafka::{ApiKey, ErrorCode};

/// The APIs that a cluster does not have: it has no transactions.
const OF_TRANSACTIONS: [ApiKey; 7] = [
    ApiKey::AddPartitionsToTxn,
    ApiKey::AddOffsetsToTxn,
    ApiKey::EndTxn,
    ApiKey::WriteTxnMarkers,
    ApiKey::TxnOffsetCommit,
    ApiKey::DescribeTransactions,
    ApiKey::ListTransactions,
];

pub(crate) fn answer(is_clustered: bool, request: &Request, version: i16) -> Response {
    let mut response = Response::of_table();
    if is_clustered {
        let is_absent = |api: i16| OF_TRANSACTIONS.iter().any(|key| key.code() == api);
        response.api_keys.retain(|it| !is_absent(it.api_key));
    }
    let is_named = is_name(&request.client_software_name);
    if version >= 3 && !(is_named && is_name(&request.client_software_version)) {
        response = Response {
            error_code: ErrorCode::InvalidRequest,
            ..Response::default()
        };
    }
    response
}

/// Returns whether a client may use this as its software name (KIP-511).
fn is_name(name: &str) -> bool {
    let is_inside = |byte: u8| byte.is_ascii_alphanumeric() || b".-".contains(&byte);
    let is_edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = name.as_bytes();
    is_edge(bytes.first()) && is_edge(bytes.last()) && bytes.iter().copied().all(is_inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_software_names_are_validated() {
        for (name, expected) in [
            ("librdkafka", true),
            ("apache-kafka-java", true),
            ("2.16.1", true),
            ("", false),
            ("-a", false),
            ("a b", false),
        ] {
            assert_eq!(is_name(name), expected, "{name}");
        }
    }
}
