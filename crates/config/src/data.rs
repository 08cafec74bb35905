//! Options of the data directory.

use std::path::PathBuf;

options! {
    /// The data directory.
    data, "Data";

    /// Directory of all durable data; created if it is missing, used by one node at a time.
    "data" => dir: PathBuf = PathBuf::from("./telpher-data");
}
