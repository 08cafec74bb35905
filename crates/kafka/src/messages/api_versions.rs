//! ApiVersions: supported APIs and versions; the first request on most connections.

use crate::api::API_KEYS;
use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// Name and version of the client software.
    struct Request {
        client_software_name: String [3..],
        client_software_version: String [3..],
    }

    /// Supported APIs and features.
    struct Response {
        error_code: ErrorCode,
        api_keys: Vec<ServedApi>,
        throttle_time_ms: i32 [1..],
        supported_features: Vec<SupportedFeature> [3.., tag 0],
        finalized_features_epoch: i64 [3.., tag 1] = -1,
        finalized_features: Vec<FinalizedFeature> [3.., tag 2],
        zk_migration_ready: bool [3.., tag 3],
    }

    /// An API and its versions.
    struct ServedApi {
        api_key: i16,
        min_version: i16,
        max_version: i16,
    }

    /// Levels of a feature that the broker supports.
    struct SupportedFeature {
        name: String,
        min_version: i16,
        max_version: i16,
    }

    /// Level of a feature in the cluster.
    struct FinalizedFeature {
        name: String,
        max_version_level: i16,
        min_version_level: i16,
    }
}

impl Response {
    /// Returns a response with all APIs of the table.
    pub fn of_table() -> Self {
        let api_keys = API_KEYS.iter().map(|key| key.api()).map(|api| ServedApi {
            api_key: api.key.code(),
            min_version: api.version_min,
            max_version: api.version_max,
        });
        Self {
            api_keys: api_keys.collect(),
            ..Self::default()
        }
    }
}
