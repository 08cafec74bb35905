//! ListPartitionReassignments: the list is always empty, as there is one broker.

use kafka::list_partition_reassignments::Response;

pub(crate) fn answer() -> Response {
    Response::default()
}
