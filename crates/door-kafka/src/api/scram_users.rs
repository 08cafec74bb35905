//! The parts that DescribeUserScramCredentials and AlterUserScramCredentials share.

use kafka::ErrorCode;
use topics::Hash;

use crate::errors::Failed;

/// The error for other clients than administrators.
pub(super) const NOT_ADMIN: &str =
    "only an administrator may manage users: telpher token add NAME --role admin";

/// The error for a missing user.
pub(super) const UNKNOWN: &str = "there is no such user";

/// The error for a user that is named more than once.
pub(super) const TWICE: &str = "the request names the user more than once";

/// Returns the mechanism of a number in Kafka.
pub(super) fn hash(mechanism: i8) -> Result<Hash, Failed> {
    let hash = u8::try_from(mechanism).ok().and_then(Hash::from_u8);
    hash.ok_or_else(|| {
        let message = "unknown SCRAM mechanism: 1 is SCRAM-SHA-256, 2 is SCRAM-SHA-512";
        Failed::new(ErrorCode::UnsupportedSaslMechanism, message)
    })
}
