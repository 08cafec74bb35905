//! What DescribeUserScramCredentials and AlterUserScramCredentials share.

use kafka::ErrorCode;
use node::topics::Hash;

use crate::kafka::errors::Failed;

/// To whoever is none.
pub(super) const NOT_ADMIN: &str =
    "only an administrator looks after users: telpher token add NAME --role admin";

/// Of a user that is not there.
pub(super) const UNKNOWN: &str = "there is no such user";

/// Of a user that is asked about more than once.
pub(super) const TWICE: &str = "the user stands twice in the request";

/// A mechanism of Kafka's numbers.
pub(super) fn hash(mechanism: i8) -> Result<Hash, Failed> {
    let hash = u8::try_from(mechanism).ok().and_then(Hash::from_u8);
    hash.ok_or_else(|| {
        let message = "1 is SCRAM-SHA-256, 2 is SCRAM-SHA-512";
        Failed::new(ErrorCode::UnsupportedSaslMechanism, message)
    })
}
