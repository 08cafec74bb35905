//! Options of raw streams (`telpher append`, `telpher read`).

use std::time::Duration;

use model::ByteSize;

options! {
    /// Raw streams: records that `telpher append` adds in order.
    stream, "Streams";

    /// Age above which records of a stream are deleted; `0s` keeps them.
    "stream.retention" => retention: Duration = Duration::ZERO, from "0s" to "876000h";

    /// Size of a stream above which its oldest records are deleted; `0B` keeps them.
    "stream.retention_size" => retention_size: ByteSize = ByteSize::default(), from "0B" to "1024GiB";
}
