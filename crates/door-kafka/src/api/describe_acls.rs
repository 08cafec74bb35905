//! DescribeAcls: answers like a broker without access rules.

use kafka::ErrorCode;
use kafka::describe_acls::Response;

pub(crate) fn answer() -> Response {
    Response {
        error_code: ErrorCode::SecurityDisabled,
        error_message: Some("There are no access rules.".to_owned()),
        ..Response::default()
    }
}
