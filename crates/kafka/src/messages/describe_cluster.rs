//! DescribeCluster: brokers and controller, without topics.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// Options of the request.
    struct Request {
        include_cluster_authorized_operations: bool,
        endpoint_type: i8 [1..] = 1,
        include_fenced_brokers: bool [2..],
    }

    /// Brokers and controller of the cluster.
    struct Response {
        throttle_time_ms: i32,
        error_code: ErrorCode,
        error_message: Option<String>,
        endpoint_type: i8 [1..] = 1,
        cluster_id: String,
        controller_id: i32 = -1,
        brokers: Vec<Broker>,
        cluster_authorized_operations: i32 = i32::MIN,
    }

    /// Address of a broker.
    struct Broker {
        broker_id: i32,
        host: String,
        port: i32,
        rack: Option<String>,
        is_fenced: bool [2..],
    }
}
