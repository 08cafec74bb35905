//! DescribeClientQuotas: the list is always empty. Kafka's tools ask for it before they show users.

use kafka::describe_client_quotas::Response;

pub(crate) fn answer() -> Response {
    Response {
        entries: Some(Vec::new()),
        ..Response::default()
    }
}
