//! ConsumerGroupHeartbeat: refused, as by a broker whose consumer protocol (KIP-848) is disabled.

use kafka::ErrorCode;
use kafka::consumer_group_heartbeat::Response;

pub(crate) fn answer() -> Response {
    let message =
        "the consumer group protocol (KIP-848) is not supported: use group.protocol=classic";
    Response {
        error_code: ErrorCode::UnsupportedVersion,
        error_message: Some(message.to_owned()),
        ..Response::default()
    }
}
